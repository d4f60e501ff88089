"""A simulation's report as people and programs read it: a table, JSON or YAML."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from msgspec import structs

from extender.api import codec
from extender.cli import output, standard_output, terminal
from extender.cli.table import natural, table
from extender.cli.terminal import Terminal
from extender.simulation.report import GangReport, PodReport, Report

NOTHING = "-"
GAP = 2
PODS = ("NAMESPACE", "POD", "NODE", "STATE", "AT", "MESSAGE")
GANGS = ("NAMESPACE", "GROUP", "STATE", "MEMBERS", "MESSAGE")


def show(report: Report, form: str, namespace: str = "") -> None:
    """To stdout. namespace: only what is there; the summary is of all."""
    if namespace:
        report = structs.replace(
            report,
            pods=[pod for pod in report.pods if pod.namespace == namespace],
            gangs=[gang for gang in report.gangs if gang.namespace == namespace],
        )
    if form == "json":
        output.as_json(codec.to_builtins(report))
        return
    if form == "yaml":
        import yaml

        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        unicode = standard_output.has_unicode()
        text = yaml.dump(codec.to_builtins(report), Dumper=dumper, sort_keys=False, allow_unicode=unicode, width=1000)
    else:
        text = "\n".join(_tables(report, terminal.of())) + "\n"
    sys.stdout.write(text)


def _tables(report: Report, shown_on: Terminal) -> Iterable[str]:
    pods = sorted(report.pods, key=lambda pod: (natural(pod.namespace), natural(pod.name)))
    yield from table(PODS, list(_pods(pods)), shown_on, GAP)
    if report.gangs:
        yield ""
        gangs = sorted(report.gangs, key=lambda gang: (natural(gang.namespace), natural(gang.group)))
        yield from table(GANGS, [_gang(gang) for gang in gangs], shown_on, GAP)
    yield ""
    counts = ", ".join(f"{count} {state}" for state, count in report.summary.items()) or "no pods"
    yield f"{counts}; settled after {report.settled_at:g} virtual seconds"


def _pods(pods: Sequence[PodReport]) -> Iterator[Sequence[str]]:
    """Members of a gang that wait for one reason are one row, where the first of them would stand; JSON and YAML have each."""
    alike: dict[Sequence[str], list[PodReport]] = {}
    for number, pod in enumerate(pods):
        same = (pod.namespace, pod.group, *_pod(pod)[2:]) if pod.group and not pod.node else (str(number),)
        alike.setdefault(same, []).append(pod)
    for first, *more in alike.values():
        namespace, name, *rest = _pod(first)
        yield namespace, f"{name} and {len(more)} more" if more else name, *rest


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
    message = "; ".join(filter(None, (gang.message, f"would fit: {gang.would_fit}" if gang.would_fit else "")))
    return gang.namespace, gang.group, gang.state, members, message
