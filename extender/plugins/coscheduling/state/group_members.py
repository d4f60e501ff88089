"""A member's way through its group's state: it comes or changes, it gets to a node, it goes.

PodGroupManager calls these for what the watch and the verbs show; what a field of Group means stands there. Each touches one
group and nothing else. All run under the manager's lock.
scheduler-plugins: pkg/coscheduling/core/core.go keeps pods in its informer's cache alone
"""

from __future__ import annotations

from dataclasses import replace

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.group_annotations import relevant
from extender.plugins.coscheduling.spec.membership import GroupRef, foreign_gates
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import Member
from extender.plugins.coscheduling.state.pod_conditions import was_refused, was_sent
from extender.plugins.pod_claims import claim_uses


def put(group: Group, pod: corev1.Pod, ref: GroupRef, gate: str) -> None:
    """The member as it is now, new or changed. gate: the name of ours."""
    member = group.members.get(pod.uid)
    known, before = (member.pod, member.ref) if member is not None else (None, None)
    if member is not None:
        _uncount(group, member.pod)
        member.info, member.ref = PodInfo(pod), ref
    else:
        group.members[pod.uid] = Member(PodInfo(pod), ref)
    group.priorities[pod.priority] += 1
    group.standing = None
    if known is not None and known.spec.scheduler_name != pod.spec.scheduler_name:
        _leave_scheduler(group, known)
    group.of_scheduler.setdefault(pod.spec.scheduler_name, set()).add(pod.uid)
    (group.on_node.add if pod.node_name else group.on_node.discard)(pod.uid)
    if known is None and any(claim_uses(pod)):
        group.claiming.add(pod.uid)
    if (ref.lightweight or (before is not None and before.lightweight)) and (
        known is None or before != ref or relevant(known.metadata) != relevant(pod.metadata)
    ):
        group.spec = None  # what its pods say is what it asks for
    if pod.gated and not pod.node_name and not foreign_gates(pod, (gate,)):
        group.gated.add(pod.uid)
    else:
        group.gated.discard(pod.uid)


def recall(group: Group, pod: corev1.Pod) -> None:
    """What a member that is new to us shows of the time before: it was refused, or sent to its place."""
    if pod.node_name:
        return
    if was_refused(pod):
        group.refused.add(pod.uid)
    if pod.status.nominated_node_name and was_sent(pod):
        group.members[pod.uid].nomination = ""


def arrived(group: Group, uid: str) -> None:
    """The API shows it on a node: what was noted of its way there has served."""
    if (member := group.members.get(uid)) is not None:
        member.forget_dispatch()
        member.rejected_in_tree = None
        member.last_rejection = ""
    group.committed.pop(uid, None)
    commit = group.commits.pop(uid, None)
    if commit is not None and commit.begun:
        group.held.pop(uid, None)  # the watch is sometimes faster than the binding's own answer
    group.refused.discard(uid)
    group.answered.discard(uid)
    group.started.discard(uid)
    if (call := group.calls.pop(uid, None)) is not None:
        call.close()


def forget(group: Group, uid: str) -> None:
    """It is gone, or of another group now."""
    member = group.members.pop(uid, None)
    group.standing = None
    if member is not None:
        _uncount(group, member.pod)
        _leave_scheduler(group, member.pod)
        if member.ref.lightweight:
            group.spec = None
    group.on_node.discard(uid)
    group.earlier.discard(uid)
    if group.start is not None:
        group.start = replace(group.start, members=group.start.members - {uid})
    arrived(group, uid)  # no longer on its way, either
    group.gated.discard(uid)
    group.claiming.discard(uid)
    group.errors.forget(uid)
    group.refuted.forget(uid)


def _leave_scheduler(group: Group, pod: corev1.Pod) -> None:
    uids = group.of_scheduler[pod.spec.scheduler_name]
    uids.discard(pod.uid)
    if not uids:
        del group.of_scheduler[pod.spec.scheduler_name]


def _uncount(group: Group, pod: corev1.Pod) -> None:
    group.priorities[pod.priority] -= 1
    if not group.priorities[pod.priority]:
        del group.priorities[pod.priority]
