"""What would make a check pass that fails for a gang: more pods, a lower minMember, a gate of others taken off.

GangReport shows it; no plan is needed to say it, unlike what would make a gang fit, which is relaxation's.
Everything reads under the manager's lock. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Iterator

from extender.plugins.coscheduling.report.gang_status import Relaxation
from extender.plugins.coscheduling.report.group_view import starts_with
from extender.plugins.coscheduling.spec.keys import GROUPS
from extender.plugins.coscheduling.spec.membership import foreign_gates
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import needs


def would_open(manager: PodGroupManager, group: Group, reason: str) -> tuple[Relaxation, ...]:
    """reason: of the check. Empty for any other, and where nothing short of another PodGroup would."""
    spec = manager.spec(group)
    if spec is None or spec.invalid:
        return ()
    if reason == UnschedulableReason.QUORUM_MISSING:
        return tuple(_more_members(group, spec))
    if reason == UnschedulableReason.GATED:
        return (_without_foreign_gates(manager, group, spec),)
    if reason == UnschedulableReason.COMPANION_NOT_READY:
        others = ", ".join(starts_with(manager, group))
        return (Relaxation("Companions", f"what {others} waits for, or without naming it in {GROUPS}"),)
    return ()


def _more_members(group: Group, spec: GroupSpec) -> Iterator[Relaxation]:
    there = len(group.members)
    if spec.roles.minima or there >= spec.min_member:
        for role, short in needs(group, spec, group.members.keys()).roles:
            yield Relaxation("MorePods", f"{_pods(short)} more of role {role}")
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
