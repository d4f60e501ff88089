"""A simulation's report as people and programs read it: a table, JSON or YAML."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from extender.api import codec
from extender.simulation.report import GangReport, PodReport, Report

NOTHING = "-"


def show(report: Report, output: str) -> None:
    """To stdout."""
    if output == "json":
        import json

        text = json.dumps(codec.to_builtins(report), indent=2) + "\n"
    elif output == "yaml":
        import yaml

        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        text = yaml.dump(codec.to_builtins(report), Dumper=dumper, sort_keys=False, allow_unicode=True, width=1000)
    else:
        text = "\n".join(_tables(report)) + "\n"
    sys.stdout.write(text)


def _tables(report: Report) -> Iterable[str]:
    yield from _table(("NAMESPACE", "POD", "NODE", "STATE", "AT", "MESSAGE"), [_pod(pod) for pod in report.pods])
    if report.gangs:
        yield ""
        rows = [_gang(gang) for gang in report.gangs]
        yield from _table(("NAMESPACE", "GROUP", "STATE", "MEMBERS", "MESSAGE"), rows)
    yield ""
    counts = ", ".join(f"{count} {state}" for state, count in report.summary.items()) or "no pods"
    yield f"{counts}; settled after {report.settled_at:g} virtual seconds"


def _pod(pod: PodReport) -> Sequence[str]:
    message = f"preempted by {pod.preempted_by}" if pod.preempted_by else pod.message
    if pod.nominated_node:
        message = f"[nominated: {pod.nominated_node}] {message}"
    at = f"{pod.bound_at:g}s" if pod.bound_at is not None else NOTHING
    return pod.namespace, pod.name, pod.node or NOTHING, pod.state, at, message


def _gang(gang: GangReport) -> Sequence[str]:
    members = f"{gang.assigned}/{gang.members}"
    if gang.min_member is not None:
        members += f" (min {gang.min_member})"
    return gang.namespace, gang.group, gang.state, members, gang.message


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """The last column is as wide as it likes: messages are not cut, so that they can be searched for."""
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads) - 1)]
    for row in (heads, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        yield "  ".join([*cells, row[-1]]).rstrip()
