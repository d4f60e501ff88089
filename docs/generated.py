"""The pages of the reference that are made from the code: conf.py writes them into docs/_generated before each build.

So they are never out of date, and never in the repository. What needs a sentence more is in configuration.md, metrics.md and
troubleshooting.md.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import yaml

from extender.api.schedulingv1alpha1 import PodGroup
from extender.cli.main import COMMANDS, build_parser
from extender.cli.schema import NAMES, schema
from extender.plugins.coscheduling.scheduling.phases import Phase
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason
from extender.scheduler.pod_groups import status

PROJECT = Path(__file__).resolve().parents[1]
CONDITIONS = {
    PodGroup.scheduled: "minMember of its pods have had a node together; else its reason is one of those above",
    status.DEGRADED: "it has started, and fewer than minMember of its pods have a node; or another scheduler binds some of them",
    status.DISRUPTION_TARGET: "pods of it are evicted for others",
    status.FINISHED: "no pod of it is left to run: minMember have succeeded (`Succeeded`), or some have failed (`Failed`)",
}
STATUS_PHASES = (
    *(status.PENDING, status.SCHEDULING, status.SCHEDULED, status.RUNNING),
    *(status.FINISHED, status.FAILED),
)
WIDTH = "100"


def write(folder: Path) -> None:
    """All of them, each only where it has changed: Sphinx reads those again that are newer."""
    os.environ["COLUMNS"] = WIDTH  # of help texts, on a machine whose terminal is narrow as well
    pages = {
        "command-line.md": command_line(),
        "all-pages.md": listed("All pages", "/[!i]*", "/tasks/*"),  # not the index itself
        "design-notes.md": listed("Notes, one by one", "/design/0*"),
        "pod-group.md": pod_group(),
        "reasons.md": reasons(),
        "schemas.md": schemas(),
        **{f"{name}.schema.json": [json.dumps(schema(name), indent=2)] for name in NAMES},
    }
    folder.mkdir(exist_ok=True)
    for name, lines in pages.items():
        text = "\n".join(lines) + "\n"
        file = folder / name
        if not file.exists() or file.read_text() != text:
            file.write_text(text)


def command_line() -> Iterator[str]:
    yield from ("# Command line", "", "What `gang-extender help COMMAND` prints.", "")
    yield "Exit codes: 0 done; 1 it did not work, or something is wrong; 2 wrong use; 130 interrupted; 141 nothing reads the"
    yield "output any more."
    for name, what in COMMANDS.items():
        yield from ("", f"## {name}", "", f"{what[0].upper()}{what[1:]}.", "", "```text")
        yield from _help(name).splitlines()
        yield "```"


def _help(name: str) -> str:
    (commands,) = (each for each in build_parser([name])._actions if isinstance(each, argparse._SubParsersAction))
    parser: argparse.ArgumentParser = commands.choices[name]
    parser.description = None
    return parser.format_help()


def listed(title: str, *patterns: str) -> Iterator[str]:
    """A page of the site's menu with all pages that there are: one that comes later is found as well."""
    yield from (f"# {title}", "", "```{toctree}", ":glob:", ":maxdepth: 1", "", *patterns, "```")


def pod_group() -> Iterator[str]:
    """Of the shipped definition."""
    definition = yaml.safe_load((PROJECT / "manifests" / "crd" / "podgroups.yaml").read_text())
    (version,) = definition["spec"]["versions"]
    fields = version["schema"]["openAPIV3Schema"]["properties"]
    kind, group = definition["spec"]["names"]["kind"], definition["spec"]["group"]
    yield from (f"# {kind}", "", f"`{group}/{version['name']}`, made from manifests/crd/podgroups.yaml.")
    for part in ("spec", "status"):
        yield from ("", f"## {part}", "")
        yield from _table(
            ("field", "type", ""),
            ((f"`{name}`", each["type"], each["description"]) for name, each in fields[part]["properties"].items()),
        )
    yield from ("", "## Columns of `kubectl get podgroups`", "", "Those marked wide are shown by `-o wide`.", "")
    columns = version["additionalPrinterColumns"]
    yield from _table(
        ("column", "", ""),
        ((each["name"], "wide" if each.get("priority") else "", each.get("description", "")) for each in columns),
    )


def reasons() -> Iterator[str]:
    yield from ("# Phases and reasons", "", "Closed lists: a program may compare with them.", "")
    yield from (
        "## Why a gang waits",
        "",
        "In the condition `Scheduled` of its PodGroup, in events, in `explain`, as a label of metrics.",
        "",
    )
    page = (PROJECT / "docs" / "troubleshooting.md").read_text()
    rows = []
    for reason in UnschedulableReason:
        there = f"\n### {reason.value}\n" in page
        rows.append((f"[{reason.value}](../troubleshooting.md#{reason.value.lower()})" if there else reason.value,))
    yield from _table(("reason",), rows)
    yield from ("", "## Conditions of a PodGroup", "")
    yield from _table(("type", "true while"), ((f"`{name}`", when) for name, when in CONDITIONS.items()))
    yield from ("", "## `status.phase` of a PodGroup", "")
    yield from _table(("phase",), ((phase,) for phase in STATUS_PHASES))
    yield from (
        "",
        "## Phases in `explain`, `/gangs` and metrics",
        "",
        "[A picture of them](../architecture.md#a-gangs-states).",
        "",
    )
    yield from _table(("phase",), ((_value(each),) for each in Phase))


def _value(each: Enum) -> str:
    return str(each.value)


def schemas() -> Iterator[str]:
    yield from ("# JSON schemas", "", "As `gang-extender schema NAME` prints them, of JSON Schema 2020-12.", "")
    yield from _table(("schema", "of"), ((f"[{name}]({name}.schema.json)", what) for name, what in NAMES.items()))
    yield from ("", "For an editor, as the first line of extender.yaml:", "", "```yaml")
    yield from ("# yaml-language-server: $schema=configuration.schema.json", "```")


def _table(heads: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
