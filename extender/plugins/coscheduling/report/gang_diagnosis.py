"""Why a gang waits: the reason, the text for the group, the text for its pods, since when, and what would make its check pass.

GangReport shows it. What was decided of the group comes first, then the check that fails, then its place in line. More pods, a lower
minMember or a gate of others taken off need no plan to be said, unlike what would make a gang fit, which is relaxation's.
kube-scheduler: pkg/scheduler/framework/types.go (Diagnosis), for one pod
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.planner import NoPlacement
from extender.plugins.coscheduling.report.gang_observer import UNTOLD, WAITING_PHASES, GangObserver
from extender.plugins.coscheduling.report.gang_status import Relaxation
from extender.plugins.coscheduling.report.group_view import starts_with
from extender.plugins.coscheduling.scheduling.checks import extra_members_wait
from extender.plugins.coscheduling.spec.keys import GROUPS
from extender.plugins.coscheduling.spec.membership import foreign_gates
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import needs

MAX_SHOWN, MAX_SHOWN_NAME = 3, 63


@dataclass(frozen=True, slots=True)
class GangDiagnosis:
    """message: in words for the group; told: in words for a pod; since: seconds of the clock. Empty where nothing stops it."""

    reason: str = ""
    message: str = ""
    told: str = ""
    since: float | None = None
    verdict: NoPlacement | None = None


def diagnose(
    manager: PodGroupManager, observer: GangObserver, group: Group, place: int, denied_seconds: float
) -> GangDiagnosis:
    """place: in line among the gangs that wait, from 1; 0 for one that does not. The manager's lock is held."""
    seen = observer.see(group)
    if group.preempting is not None and group.last_diagnosis is not None:
        return _of_stop(manager, group, group.last_diagnosis, denied_seconds)
    if (extra := extra_members_wait(manager, group)) is not None:
        return GangDiagnosis(extra.reason, extra.cause, since=seen.failed_since)
    if seen.phase not in WAITING_PHASES:
        return GangDiagnosis(since=seen.since)
    failed = observer.failed_check(group)
    if failed is not None and not (failed.reason in UNTOLD and group.last_diagnosis is not None):
        return GangDiagnosis(failed.reason, failed.cause, failed.refusal, seen.failed_since)
    if group.last_diagnosis is not None:
        return _of_stop(manager, group, group.last_diagnosis, denied_seconds)
    if not group.members:
        return GangDiagnosis(since=seen.since)
    behind = place > 1 and group.key in manager.queue.active
    return GangDiagnosis(
        UnschedulableReason.ORDERED_AFTER_OTHERS if behind else UnschedulableReason.NOT_TRIED, since=seen.since
    )


def not_asked(running: int, minimum: int, elsewhere: Collection[str]) -> str:
    """Why kube-scheduler asks about no member, in words for the group; empty where that is not known.

    running: how many are on nodes, fewer than the quorum. elsewhere: the schedulers that the others name.
    """
    parts = []
    if running:
        parts.append(f"{running} of minMember {minimum} run, and no other pod is to come to this scheduler")
    if elsewhere:
        names = sorted(name[:MAX_SHOWN_NAME] for name in elsewhere)
        more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
        parts.append(f"pods name another scheduler: {', '.join(names[:MAX_SHOWN])}{more}")
    return "; ".join(parts)


def _of_stop(manager: PodGroupManager, group: Group, stop: Diagnosis, denied_seconds: float) -> GangDiagnosis:
    told = messages.denied(group.key, denied_seconds, stop.message)
    if group.key not in manager.denied and stop.verdict is None:
        told = stop.message
    return GangDiagnosis(stop.reason, stop.text, told, stop.since, stop.verdict)


def would_open(manager: PodGroupManager, group: Group, reason: str) -> tuple[Relaxation, ...]:
    """reason: of the check. Empty for any other, and where nothing short of another PodGroup would. Lock held."""
    spec = manager.specs.valid(group)
    if spec is None:
        return ()
    if reason == UnschedulableReason.QUORUM_MISSING:
        return tuple(_more_members(group, spec))
    if reason == UnschedulableReason.GATED:
        return (_without_foreign_gates(manager, group, spec),)
    if reason == UnschedulableReason.COMPANION_NOT_READY and group.key in manager.composites.parents:
        return (Relaxation("Companions", _of_tree(manager, group)),)
    if reason == UnschedulableReason.COMPANION_NOT_READY:
        others = ", ".join(starts_with(manager, group))
        return (Relaxation("Companions", f"what {others} waits for, or without naming it in {GROUPS}"),)
    return ()


def _of_tree(manager: PodGroupManager, group: Group) -> str:
    if missing := manager.composites.missing(group.key):
        return f"CompositePodGroup {missing}"
    others = ", ".join(starts_with(manager, group))
    waits = f"what {others} waits for" if others else "more groups"
    return f"{waits}, or a lower minGroupCount"


def _more_members(group: Group, spec: GroupSpec) -> Iterator[Relaxation]:
    there = len(group.members)
    if spec.roles.minima or there >= spec.min_member:
        lacks = needs(group, spec, group.members.keys())
        parts = [f"{_pods(short)} more of role {role}" for role, short in lacks.roles]
        if (rest := lacks.total - sum(short for _, short in lacks.roles)) > 0:
            parts.append(f"{_pods(rest)} more of {'any role' if parts else 'the group'}")
        if parts:
            yield Relaxation("MorePods", " and ".join(parts))
        return
    yield Relaxation("MorePods", f"{_pods(spec.min_member - there)} more of the group")
    if there:
        yield Relaxation("MinMember", f"minMember {there} instead of {spec.min_member}")


def _without_foreign_gates(manager: PodGroupManager, group: Group, spec: GroupSpec) -> Relaxation:
    gated = [info.pod for info in group.pending() if foreign_gates(info.pod, (manager.gate,))]
    gates = sorted({gate.name for pod in gated for gate in pod.spec.scheduling_gates} - {manager.gate})
    short = spec.min_member - (len(group.members) - len(gated))
    return Relaxation("Gates", f"{_pods(short)} freed of the gates of others: {', '.join(gates)}")


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"
