"""What a PodGroup's status says of the counts of its pods: phase, fields, and the conditions that follow from them.

The phases are scheduler-plugins', with three differences: a gang whose members all have a node and do not run yet is Scheduled, one
of which members still run is not Finished, and one that Failed may recover.
scheduler-plugins: pkg/controllers/podgroup_controller.go (syncHandler)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from extender.api import codec
from extender.api.metav1 import Condition
from extender.api.schedulingv1alpha1 import PodGroup, PodGroupStatus
from extender.client.status_patch import now
from extender.client.transport import USER_AGENT
from extender.framework.preemption.executor import DISRUPTION_TARGET
from extender.scheduler.pod_groups.records import Counts

PENDING, SCHEDULING, SCHEDULED, RUNNING = "Pending", "Scheduling", "Scheduled", "Running"
FINISHED, FAILED = "Finished", "Failed"
DEGRADED = "Degraded"
FOREIGN_SCHEDULER = "ForeignScheduler"
MOST_NAMED = 1024  # characters of a list of nodes or owners
_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]{0,17})")
# of the CRD's status, in its own spelling: those of scheduler-plugins' controller, where it runs, are its to write
ITS = ("phase", "occupiedBy", "running", "succeeded", "failed", "scheduleStartTime")
OURS = ("scheduled", "bound", "position", "missing", "wouldFit", "nodes")
_NUMBERS = frozenset(("scheduled", "running", "succeeded", "failed"))
_known_nodes: WeakKeyDictionary[frozenset[str], str] = WeakKeyDictionary()  # nodes of a gang -> what is said of them


@dataclass(frozen=True, slots=True)
class InLine:
    """Of a gang that waits: its place in line, what of a resource is missing, and what would make it fit."""

    position: int = 0
    missing: Mapping[str, str] = field(default_factory=dict)
    would_fit: str = ""


NOT_IN_LINE = InLine()


def phase_of(minimum: int, counts: Counts) -> str:
    """minimum: minMember."""
    ended = counts.ended
    if ended.succeeded >= minimum and not counts.alive:
        return FINISHED
    if counts.alive + ended.succeeded < minimum:
        return FAILED if ended.failed and counts.alive + ended.succeeded + ended.failed >= minimum else PENDING
    if counts.running + ended.succeeded >= minimum:
        return RUNNING
    return SCHEDULED if counts.bound >= minimum else SCHEDULING


def status_of(pod_group: PodGroup, counts: Counts, in_line: InLine, at: datetime) -> PodGroupStatus:
    """Without conditions. at: now."""
    minimum, known = pod_group.spec.min_member, pod_group.status
    phase = phase_of(minimum, counts)
    whole = counts.bound >= minimum
    return PodGroupStatus(
        phase=phase,
        occupied_by=_cut(sorted(counts.owners)) or known.occupied_by,
        scheduled=counts.scheduled,
        running=counts.running,
        succeeded=counts.ended.succeeded,
        failed=counts.ended.failed,
        schedule_start_time=known.schedule_start_time or (None if phase == PENDING else at),
        bound=f"{counts.bound}/{minimum}",
        position=0 if whole else in_line.position,
        missing={} if whole else dict(in_line.missing),
        would_fit="" if whole else in_line.would_fit,
        nodes=_nodes_said(counts.nodes),
    )


def fields(status: PodGroupStatus, names: Iterable[str]) -> dict[str, Any]:
    """For a merge patch: what is empty is taken out, and a count of 0 is one."""
    said = codec.to_builtins(status)
    return {name: said.get(name, 0 if name in _NUMBERS else None) for name in names}


def conditions_of(pod_group: PodGroup, counts: Counts) -> list[Condition]:
    """Those that change: a gang that has started and is below minMember is Degraded, and so is one that another scheduler has bound;
    one that has come to its end is Finished; and one that has started and has no member left is Scheduled no more."""
    found = [_degraded(pod_group, counts), _finished(pod_group, counts), _gone(pod_group, counts)]
    return [each for each in found if each is not None]


def strangers_said(counts: Counts, minimum: int) -> str:
    """What other schedulers do with the members, in words; empty where that is nothing, or no more than their own business."""
    bound = {name: number for name, number in counts.strangers.items() if number}
    mixed = counts.strangers if counts.ours else bound
    if not mixed or (not counts.ours and counts.bound >= minimum):
        return ""
    names = ", ".join(sorted(name[:63] for name in mixed)[:3])
    placed = sum(bound.values())
    if placed:
        return f"{placed} of the group's pods were bound by {names}, and not together with the others"
    return f"pods of the group name another scheduler: {names}"


def reason_of(conditions: Iterable[Condition], scheduled: str) -> str:
    """The one word of `kubectl get podgroup`: that of a gang that is not as it is to be comes first, then that of one that is over, then
    why it has started, or has not. scheduled: the type of the last of these conditions."""
    known = {each.type: each for each in conditions}
    for type_ in (DEGRADED, FINISHED):
        if type_ in known and known[type_].status == "True":
            return known[type_].reason
    return known[scheduled].reason if scheduled in known else ""


def foreign_said(pod_group: PodGroup, counts: Counts) -> str:
    """Why the gang is not whole for what other schedulers do, in words; empty where it is not for that. A fraction of which no member shows
    a start of ours was started past us, whenever that was, unless its object says that the gang has started."""
    minimum = pod_group.spec.min_member
    text = strangers_said(counts, minimum)
    if text or not counts.ours or counts.bound >= minimum:
        return text
    if not counts.scheduled or counts.unstarted < counts.scheduled or _has_started(pod_group):
        return ""
    return f"{counts.scheduled} of minMember {minimum} run, and this scheduler has started none of them"


def _has_started(pod_group: PodGroup) -> bool:
    """Or another controller's phase says so."""
    others = pod_group.phase_managers - {USER_AGENT}
    by_phase = bool(others) and pod_group.status.phase in (SCHEDULED, RUNNING, FINISHED)
    return by_phase or _is_true(pod_group, pod_group.scheduled)


def _degraded(pod_group: PodGroup, counts: Counts) -> Condition | None:
    minimum = pod_group.spec.min_member
    text = foreign_said(pod_group, counts)
    if text:
        return _change(pod_group, DEGRADED, "True", FOREIGN_SCHEDULER, text)
    below = counts.bound < minimum and bool(counts.alive) and counts.scheduled > 0
    if below and _is_true(pod_group, pod_group.scheduled) and not _is_true(pod_group, DISRUPTION_TARGET):
        text = f"{counts.bound} of minMember {minimum} have a node"
        return _change(pod_group, DEGRADED, "True", "BelowMinMember", text)
    if not _is_true(pod_group, DEGRADED):
        return None
    return _change(pod_group, DEGRADED, "False", "MinMember", f"{counts.bound} of minMember {minimum} have a node")


def _finished(pod_group: PodGroup, counts: Counts) -> Condition | None:
    minimum, ended = pod_group.spec.min_member, counts.ended
    match phase_of(minimum, counts):
        case "Finished":
            return _change(pod_group, FINISHED, "True", "Succeeded", f"{ended.succeeded} pods have succeeded")
        case "Failed" if not counts.alive:
            text = f"{ended.failed} pods have failed, {ended.succeeded} have succeeded"
            return _change(pod_group, FINISHED, "True", FAILED, text)
    if not _is_true(pod_group, FINISHED):
        return None
    return _change(pod_group, FINISHED, "False", "Restarted", f"{counts.alive} pods are to run once more")


def _gone(pod_group: PodGroup, counts: Counts) -> Condition | None:
    """Of a gang that waits for its members anew the verdicts tell once they come."""
    if counts.alive or counts.ended.succeeded or counts.ended.failed or not _is_true(pod_group, pod_group.scheduled):
        return None
    preempted = _is_true(pod_group, DISRUPTION_TARGET)
    reason = "GangPreempted" if preempted else "QuorumMissing"
    return _change(pod_group, pod_group.scheduled, "False", reason, "no pod of the group is left")


def _change(pod_group: PodGroup, type_: str, status: str, reason: str, message: str) -> Condition | None:
    known = _known(pod_group, type_)
    if known is not None and (known.status, known.reason, known.message) == (status, reason, message):
        return None
    since = known.last_transition_time if known is not None and known.status == status else None
    return Condition(
        type=type_,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since or now(),
        observed_generation=pod_group.metadata.generation,
    )


def _known(pod_group: PodGroup, type_: str) -> Condition | None:
    return next((each for each in pod_group.status.conditions if each.type == type_), None)


def _is_true(pod_group: PodGroup, type_: str) -> bool:
    known = _known(pod_group, type_)
    return known is not None and known.status == "True"


def _nodes_said(nodes: frozenset[str]) -> str:
    """Found out once for each set of nodes: of large gangs it is most of the work, and nodes seldom change once a gang has started."""
    text = _known_nodes.get(nodes)
    if text is None:
        text = _known_nodes[nodes] = _cut(ranges(nodes))
    return text


def ranges(names: Iterable[str]) -> list[str]:
    """`n1, n2, n3, x` is `n[1-3], x`. A number with zeros before it stays as it is."""
    by_stem: dict[str, list[int]] = {}
    found = []
    for name in names:
        numbered = _NUMBERED.fullmatch(name)
        if numbered is None:
            found.append(name)
        else:
            by_stem.setdefault(numbered[1], []).append(int(numbered[2]))
    for stem, numbers in by_stem.items():
        runs = [f"{first}-{last}" if last > first else f"{first}" for first, last in _runs(sorted(numbers))]
        several = len(numbers) > 1
        found.append(f"{stem}[{','.join(runs)}]" if several else f"{stem}{runs[0]}")
    return sorted(found)


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number == last + 1:
            last = number
            continue
        yield first, last
        first = last = number
    yield first, last


def _cut(parts: Sequence[str]) -> str:
    text = ", ".join(parts)
    return text if len(text) <= MOST_NAMED else f"{text[: MOST_NAMED - 3]}..."
