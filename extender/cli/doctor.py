"""`gang-extender doctor`: what is wrong with an installation, in its configuration files and in its cluster, and what to do about it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from extender.cli.errors import UsageError

if TYPE_CHECKING:
    from extender.config.types import ExtenderConfiguration
    from extender.doctor.findings import Finding


ACCOUNT = "system:serviceaccount:kube-system:gang-scheduler"
"""The user that the pods of the manifests are."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kube-scheduler-config", metavar="FILE", help="the KubeSchedulerConfiguration that kube-scheduler runs with"
    )
    parser.add_argument("--config", metavar="FILE", help="the ExtenderConfiguration that the extender runs with")
    parser.add_argument("--kubeconfig", metavar="FILE", help="examine this cluster too; nothing is written to it")
    parser.add_argument(
        "--user", default=ACCOUNT, metavar="USER", help="whose rights are examined there (%(default)s); empty: your own"
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")


def run(args: argparse.Namespace) -> int:
    """1 if something is wrong: an error or a warning. What is only good to know is no mistake."""
    findings = list(_examine(args))
    if args.output == "json":
        json.dump([_as_json(each) for each in findings], sys.stdout, indent=1)
        sys.stdout.write("\n")
    else:
        print("\n".join(_lines(findings)))
    return int(any(each.is_wrong for each in findings))


def _examine(args: argparse.Namespace) -> Iterator[Finding]:
    from extender.doctor import configuration

    if args.kube_scheduler_config is None and args.config is None and args.kubeconfig is None:
        raise UsageError("doctor: wanted one or more of --kube-scheduler-config FILE, --config FILE, --kubeconfig FILE")
    examined = configuration.examine(args.kube_scheduler_config, args.config)
    yield from examined.findings
    if args.kubeconfig is not None:
        yield from _of_cluster(args, examined.ours)


def _of_cluster(args: argparse.Namespace, ours: ExtenderConfiguration | None) -> Iterator[Finding]:
    from extender.client.connection import Connection
    from extender.client.credentials import IdentityError
    from extender.client.errors import ApiError
    from extender.config.types import ExtenderConfiguration
    from extender.doctor import cluster

    try:
        api = Connection.from_kubeconfig(args.kubeconfig)
    except IdentityError as error:
        raise UsageError(str(error)) from error
    try:
        yield from cluster.examine(api, ours or ExtenderConfiguration(), args.kubeconfig, args.user)
    except ApiError as error:
        yield cluster.unreachable(args.kubeconfig, error)
    finally:
        api.close()


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
