"""What the watch and the verbs show of a pod, brought to its group: a member comes or changes, gets to a node, goes.

PodGroupManager calls these under its lock. Each touches one group and nothing else.
scheduler-plugins: pkg/coscheduling/core/core.go keeps pods in its informer's cache alone
"""

from __future__ import annotations

from dataclasses import replace

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.group_annotations import relevant
from extender.plugins.coscheduling.spec.membership import GroupRef, foreign_gates
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import Effect, Member, MemberEvent, MemberState
from extender.plugins.coscheduling.state.pod_conditions import was_sent
from extender.plugins.pod_claims import claim_uses

Effects = tuple[Effect, ...]


def put(group: Group, pod: corev1.Pod, ref: GroupRef, gate: str) -> Effects:
    """The member as it is now, new or changed. gate: the name of ours. Returns what follows for others."""
    member = group.members.get(pod.uid)
    known, before = (member.pod, member.ref) if member is not None else (None, None)
    if member is not None:
        _uncount(group, member.pod)
        member.info, member.ref = PodInfo(pod), ref
    else:
        group.add(pod.uid, Member(PodInfo(pod), ref))
    group.priorities[pod.priority] += 1
    group.roles.add(pod)
    group.standing = None
    if known is not None and known.spec.scheduler_name != pod.spec.scheduler_name:
        _leave_scheduler(group, known)
    group.of_scheduler.setdefault(pod.spec.scheduler_name, set()).add(pod.uid)
    if known is None and any(claim_uses(pod)):
        group.claiming.add(pod.uid)
    if (ref.lightweight or (before is not None and before.lightweight)) and (
        known is None or before != ref or relevant(known.metadata) != relevant(pod.metadata)
    ):
        group.spec = None  # what its pods say is what it asks for
    _follow_gate(group, pod, gate)
    return _follow_node(group, pod)


def _follow_gate(group: Group, pod: corev1.Pod, gate: str) -> None:
    gated = pod.gated and not pod.node_name and not foreign_gates(pod, (gate,))
    if gated and pod.uid not in group.gated:
        group.gated.add(pod.uid)
        group.happened(pod.uid, MemberEvent.GATE_SEEN)
    elif not gated and pod.uid in group.gated:
        group.gated.discard(pod.uid)
        group.happened(pod.uid, MemberEvent.GATE_GONE)


def recall(group: Group, pod: corev1.Pod) -> None:
    """What a member that is new to us shows of the time before: it was sent to its place."""
    if pod.node_name or pod.uid in group.held:
        return
    if pod.status.nominated_node_name and was_sent(pod):
        group.happened(pod.uid, MemberEvent.DISPATCHED)
        group.members[pod.uid].nomination = ""


def _follow_node(group: Group, pod: corev1.Pod) -> Effects:
    """Once it is on a node, what was noted of its way there has served."""
    member = group.members[pod.uid]
    if not pod.node_name:
        unbound = member.state is MemberState.BOUND and not member.node
        return group.happened(pod.uid, MemberEvent.SEEN_UNBOUND) if unbound else ()
    effects = group.happened(pod.uid, MemberEvent.SEEN_BOUND)
    member.node = ""
    group.unconfirmed.discard(pod.uid)
    member.forget_dispatch()
    member.rejected_in_tree = None
    member.last_rejection = ""
    _left_the_line(group, pod.uid)
    return effects


def _left_the_line(group: Group, uid: str) -> None:
    """It waits for nothing any more."""
    group.started.discard(uid)
    if (call := group.calls.pop(uid, None)) is not None:
        call.close()


def forget(group: Group, uid: str) -> Effects:
    """It is gone, or of another group now. Returns what follows for others."""
    member = group.members.get(uid)
    effects = group.happened(uid, MemberEvent.GONE)
    group.standing = None
    if member is not None:
        _uncount(group, member.pod)
        _leave_scheduler(group, member.pod)
        if member.ref.lightweight:
            group.spec = None
    group.earlier.discard(uid)
    if group.start is not None:
        group.start = replace(group.start, members=group.start.members - {uid})
    _left_the_line(group, uid)
    group.gated.discard(uid)
    group.claiming.discard(uid)
    group.errors.forget(uid)
    group.refuted.forget(uid)
    return effects


def _leave_scheduler(group: Group, pod: corev1.Pod) -> None:
    uids = group.of_scheduler[pod.spec.scheduler_name]
    uids.discard(pod.uid)
    if not uids:
        del group.of_scheduler[pod.spec.scheduler_name]


def _uncount(group: Group, pod: corev1.Pod) -> None:
    group.roles.remove(pod)
    group.priorities[pod.priority] -= 1
    if not group.priorities[pod.priority]:
        del group.priorities[pod.priority]
