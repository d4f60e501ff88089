"""`gang-extender doctor`: what is wrong with the configuration files of an installation, and what to do about it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from extender.cli.errors import UsageError

if TYPE_CHECKING:
    from extender.doctor.findings import Finding


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kube-scheduler-config", metavar="FILE", help="the KubeSchedulerConfiguration that kube-scheduler runs with"
    )
    parser.add_argument("--config", metavar="FILE", help="the ExtenderConfiguration that the extender runs with")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    """1 if something is wrong: an error or a warning. What is only good to know is no mistake."""
    from extender.doctor import configuration

    if args.kube_scheduler_config is None and args.config is None:
        raise UsageError("doctor: wanted --kube-scheduler-config FILE, --config FILE, or both")
    try:
        findings = configuration.examine(args.kube_scheduler_config, args.config)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from error
    if args.output == "json":
        json.dump([_as_json(each) for each in findings], sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        print("\n".join(_lines(findings)))
    return int(any(each.is_wrong for each in findings))


def _as_json(finding: Finding) -> dict[str, Any]:
    return {**asdict(finding), "severity": finding.severity.value}


def _lines(findings: Sequence[Finding]) -> list[str]:
    if not findings:
        return ["nothing is wrong"]
    lines = []
    for each in findings:
        lines.append(f"{each.severity.value}: {each.place}: {each.message} ({each.code})")
        lines.append(f"  {each.fix}")
    return lines
