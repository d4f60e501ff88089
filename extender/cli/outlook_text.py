"""What would become of gangs, and how a pod's gang is doing, as text for a terminal. Pure: values and the time in, lines out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from extender.cli.explain_text import fields, preemption_lines, relaxation_lines, shortfall_lines
from extender.cli.explain_text import page as gang_page
from extender.cli.table import natural, table
from extender.cli.terminal import PLAIN, Terminal, printable
from extender.plugins.coscheduling.report.outlook import (
    DrainedGang,
    DrainOutlook,
    GangOutlook,
    Place,
    PodStatus,
    QuotaRefusal,
    UsedUpBudget,
    WhatIf,
)

SHOWN_NODES = 40
SHOWN_NAMES = 8
STANDBY = "this extender does not lead: it does not know which places are promised to others; ask the one that does"


def of_what_if(found: WhatIf, terminal: Terminal = PLAIN, *, wide: bool = False) -> Iterator[str]:
    """wide: with all nodes, members and victims, however many they are."""
    for number, gang in enumerate(found.gangs):
        yield from [""] if number else []
        yield printable(f"{' and '.join(gang.groups)}: {'fits now' if gang.fits else 'does not fit'}")
        yield ""
        yield from fields(_what_if(gang, standby=found.standby, wide=wide), terminal)
        if gang.places_then:
            yield from ("", "where it would go once those have gone:")
        yield from _by_node(gang.places or gang.places_then, terminal, wide)
    if found.quotas:
        yield ""
        yield from fields([("quota", list(map(_of_quota, found.quotas)))], terminal)


def _of_quota(refusal: QuotaRefusal) -> str:
    if not refusal.quota:
        return f"of {refusal.namespace} {refusal.message}"
    return f"{refusal.quota} would refuse the pods: {refusal.resource}: {refusal.message}"


def _what_if(gang: GangOutlook, *, standby: bool, wide: bool) -> Iterator[tuple[str, Iterable[str]]]:
    if gang.reason:
        yield "reason", [gang.reason]
    yield "minMember", [f"{gang.min_member} of {gang.members} members, at priority {gang.priority}"]
    if gang.ahead:
        yield "in line", [f"behind {gang.ahead} that wait" if gang.ahead > 1 else "behind one that waits"]
    if gang.domain:
        yield "within", [gang.domain]
    if gang.shortfall is not None:
        yield "short", shortfall_lines(gang.shortfall)
    if gang.reserved_for:
        yield "reserved for", list(gang.reserved_for) if wide else _some(gang.reserved_for)
    if gang.preemption is not None:
        yield from preemption_lines(gang.preemption, wide=wide)
    if gang.relaxations:
        yield "would fit", relaxation_lines(gang.relaxations)
    if gang.notes:
        yield "note", gang.notes
    if standby:
        yield "standby", [STANDBY]


def of_drain(found: DrainOutlook, terminal: Terminal = PLAIN, *, wide: bool = False) -> Iterator[str]:
    """wide: with all nodes and pods, however many they are."""
    below = sum(gang.below for gang in found.gangs)
    cordoned = ", which is cordoned" if found.unschedulable else ""
    yield printable(
        f"node {found.node}{cordoned}: {_counted(len(found.gangs), 'gang')} on it, {below} would fall below minMember"
    )
    if found.others:
        yield f"beside them {_counted(found.others, 'pod')} of no gang"
    for each in found.budgets:
        yield printable(_of_budget(each, wide))
    if found.standby:
        yield STANDBY
    if not found.gangs:
        return
    yield ""
    rows = [
        (
            gang.group,
            str(len(gang.here)),
            f"{gang.left}/{gang.min_member or '-'}",
            "below" if gang.below else "whole" if gang.here else "not started",
            _goes(gang, wide),
        )
        for gang in found.gangs
    ]
    yield from table(("GROUP", "HERE", "LEFT", "THEN", "MEMBERS GO"), rows, terminal)


def _of_budget(found: UsedUpBudget, wide: bool) -> str:
    pods = sorted(found.pods, key=natural)
    return (
        f"kubectl drain would wait: budget {found.budget} allows {found.allowed} of {_counted(len(pods), 'eviction')}: "
        f"{_names(pods, wide)}"
    )


def _goes(gang: DrainedGang, wide: bool) -> str:
    """Where, or why nowhere."""
    if not gang.here:
        return f"planned anew: {_names(gang.promised, wide)}"
    if not gang.asked:
        return "not asked: no time was left"
    if not gang.fits:
        short = gang.shortfall
        lacks = f": {short.placed} of {short.needed} find a place" if short is not None else ""
        return f"nowhere: {gang.reason or 'it is not known what the group asks for'}{lacks}"
    on = defaultdict(list)
    for place in gang.places:
        on[place.node].append(place.member)
    nodes = sorted(on, key=natural)
    most = len(nodes) if wide else SHOWN_NAMES
    shown = [f"{len(on[node])} to {node}" for node in nodes[:most]]
    left = len(gang.here) - len(gang.places)
    nowhere = [f"{left} nowhere"] if left > 0 else []
    return ", ".join([*shown, *(["..."] if len(nodes) > most else []), *nowhere]) or "nowhere, and none has to"


def of_pod(pod: PodStatus, now: datetime, terminal: Terminal = PLAIN, *, wide: bool = False) -> Iterator[str]:
    """wide: with all members of its gang."""
    where = f"on {pod.node}" if pod.node else "on no node"
    yield printable(f"pod {pod.pod}: {pod.phase or 'Pending'}, {where}, of scheduler {pod.scheduler_name}")
    if not pod.group:
        yield "  it is of no gang"
    if pod.message and not pod.node:
        yield from fields([("message", [pod.message])], terminal)
    if pod.gang is not None:
        yield ""
        yield from gang_page(pod.gang, now, terminal, wide=wide)


def _by_node(places: Sequence[Place], terminal: Terminal, wide: bool) -> Iterator[str]:
    """In natural order. places: by member."""
    if not places:
        return
    on: dict[str, list[str]] = defaultdict(list)
    for place in places:
        on[place.node].append(place.member)
    nodes = sorted(on, key=natural)
    shown = nodes if wide else nodes[:SHOWN_NODES]
    rows = [(node, str(len(on[node])), _names(sorted(on[node], key=natural), wide)) for node in shown]
    yield ""
    yield from table(("NODE", "TAKES", "MEMBERS"), rows, terminal)
    if len(nodes) > len(shown):
        yield f"... and {len(nodes) - len(shown)} more: -o wide has all"


def _some(names: Sequence[str]) -> list[str]:
    return [*names[:SHOWN_NAMES], *([f"and {len(names) - SHOWN_NAMES} more"] if len(names) > SHOWN_NAMES else [])]


def _names(names: Sequence[str], wide: bool) -> str:
    most = len(names) if wide else SHOWN_NAMES
    return ", ".join(names[:most]) + (" ..." if len(names) > most else "")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
