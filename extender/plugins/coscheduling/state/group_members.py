"""Which group each pod is in, and a member's way through its group's state: it comes, changes, gets to a node, goes.

PodGroupManager calls these for what the watch and the verbs show, under its lock; each touches one group and nothing else.
kube-scheduler has no counterpart: its calls and its informer are one process.

    (none) --watch--> member <--watch-- by a call alone --UNSEEN_SECONDS without a watch--> gone
    member --deleted, ended--> gone    gone --GONE_SECONDS--> (none): until then no late call brings it back
    gone --watch, of an etcd that was restored--> member
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cachetools import TTLCache

from extender.api import corev1
from extender.api.metav1 import ObjectMeta
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.pod_conditions import was_sent
from extender.plugins.coscheduling.spec.keys import START
from extender.plugins.coscheduling.spec.membership import GroupRef, foreign_gates
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.sources.steps import step_of
from extender.plugins.coscheduling.state.counts.sayings import NOTHING, Sayer
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import Effect, Member, MemberEvent, MemberState
from extender.plugins.pod_claims import claim_uses

MAX_GONE = 100_000
GONE_SECONDS = 300.0  # how long a late call cannot bring a deleted pod back
UNSEEN_SECONDS = 30.0  # how long a pod counts that only a call has shown, and no watch


class KnownPods:
    """Not locked: the manager's lock guards it. clock: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.groups: dict[str, str] = {}  # UID -> key of the group that it is in
        self._gone: TTLCache[str, bool] = TTLCache(MAX_GONE, GONE_SECONDS, timer=clock)
        self._unseen: dict[str, float] = {}  # UID -> until when the watch has to show it
        # UID -> key of the group that it left, and that holds it until its call ends
        self._left_held: dict[str, str] = {}

    def __contains__(self, uid: object) -> bool:
        """Whether the pod is a member of a group."""
        return uid in self.groups

    def group_of(self, uid: str) -> str:
        """The key of its group; empty if it is in none."""
        return self.groups.get(uid, "")

    def joins(self, uid: str, key: str, *, by_call: bool) -> None:
        self.groups[uid] = key
        if by_call:
            self._unseen[uid] = self._clock() + UNSEEN_SECONDS
        else:
            self._unseen.pop(uid, None)
            self._gone.pop(uid, None)
        if self._left_held.get(uid) == key:
            del self._left_held[uid]

    def leaves(self, uid: str, *, held: bool) -> None:
        """held: its bind call waits, and the group keeps the hold until that ends."""
        key = self.groups.pop(uid)
        self._unseen.pop(uid, None)
        if held:
            self._left_held[uid] = key

    def may_join_by_call(self, pod: corev1.Pod, key: str) -> bool:
        """Whether a call shows a member that was not known. What only calls have shown, the latest call may move."""
        if pod.deleting or pod.terminal or pod.uid in self._gone:
            return False
        known = self.groups.get(pod.uid)
        return known is None or (known != key and pod.uid in self._unseen)

    def unseen(self) -> list[str]:
        """UIDs of members that a call has shown and, for too long, no watch."""
        now = self._clock()
        return [uid for uid, until in self._unseen.items() if until <= now]

    def goes(self, uid: str) -> None:
        self._gone[uid] = True

    def comes_back(self, uid: str) -> None:
        """A pod that was taken for gone is none: what is said of it next counts."""
        self._gone.pop(uid, None)

    def is_gone(self, uid: str) -> bool:
        return uid in self._gone

    def holder_of(self, uid: str) -> str:
        """The key of the group that holds a pod that has left it; empty for any other."""
        return self._left_held.get(uid, "")

    def hold_is_over(self, uid: str, key: str) -> None:
        if self._left_held.get(uid) == key:
            del self._left_held[uid]


Effects = tuple[Effect, ...]


def upsert(group: Group, pod: corev1.Pod, ref: GroupRef, gate: str, *, alike: bool = False) -> Effects:
    """The member as it is now, new or changed. gate: the name of ours. alike: `counts_alike` has said so. Returns what follows for
    others. A fault leaves the members as they were: the event comes again, or the pod goes first, and either is to find them so."""
    member = group.members.get(pod.uid)
    before = (member.info, member.ref) if member is not None else None
    try:
        return _upsert(group, member, pod, ref, gate, alike=alike)
    except Exception:
        if member is None or before is None:
            group.take_out(pod.uid)
        else:
            member.info, member.ref = before
        _count_anew(group)
        raise


def _upsert(group: Group, member: Member | None, pod: corev1.Pod, ref: GroupRef, gate: str, *, alike: bool) -> Effects:
    if member is None:
        member = Member(PodInfo(pod), ref)
        group.add(pod.uid, member)
        _recount(group, None, None, pod, ref)
    else:
        known, before = member.info.pod, member.ref
        member.info, member.ref = PodInfo(pod), ref
        if alike:
            group.changes += 1
        else:
            group.changed()
            _recount(group, known, before, pod, ref)
    if pod.gated or pod.uid in group.gated:
        _follow_gate(group, pod, gate)
    if pod.node_name:
        return _came_to_node(group, pod.uid, member)
    unbound = member.state is MemberState.BOUND and not member.node
    return group.happened(pod.uid, MemberEvent.SEEN_UNBOUND) if unbound else ()


def counts_alike(known: corev1.Pod, pod: corev1.Pod) -> bool:
    """Whether a member names its group, and is counted, as before: nearly every change is one of its gates, its status or its node.

    The record of the start, which we write at the binding, says nothing of it either.
    """
    before, now = known.metadata, pod.metadata
    return (
        before.labels == now.labels
        and (before.annotations == now.annotations or _without_record(before) == _without_record(now))
        and before.creation_timestamp == now.creation_timestamp
        and known.spec.scheduling_group == pod.spec.scheduling_group
        and known.spec.scheduler_name == pod.spec.scheduler_name
        and known.priority == pod.priority
    )


def _without_record(metadata: ObjectMeta) -> dict[str, str]:
    """The annotations, without our record of the start."""
    return {name: text for name, text in metadata.annotations.items() if name != START}


def _recount(group: Group, known: corev1.Pod | None, before: GroupRef | None, pod: corev1.Pod, ref: GroupRef) -> None:
    """The member counts by what it is now, and no longer by what it was."""
    if known is not None:
        _uncount(group, known)
        if known.spec.scheduler_name != pod.spec.scheduler_name:
            _leave_scheduler(group, known)
    else:
        if group.ended:  # another controller's pods are another gang of that name
            # with none on a node those count once they are asked for anew: this one may begin another run
            bare = bool(group.assigned)
            group.ended = {
                uid: each
                for uid, each in group.ended.items()
                if controller_of(each) == controller_of(pod) and (bare or controller_of(each))
            }
        if any(claim_uses(pod)):
            group.claiming.add(pod.uid)
    group.priorities[pod.priority] += 1
    _follow_step(group, known, pod)
    if group.roles is not None:
        group.roles.add(pod)
    group.of_scheduler.setdefault(pod.spec.scheduler_name, set()).add(pod.uid)
    group.standing = None
    _follow_saying(group, (known, before), (pod, ref))


def _count_anew(group: Group) -> None:
    """By its members as they are: a fault has left the counts half way."""
    for counts in (group.priorities, group.steps, group.sayings, group.of_scheduler):
        counts.clear()
    group.roles = None
    group.asks_anew()
    for uid, member in group.members.items():
        pod = member.pod
        group.priorities[pod.priority] += 1
        group.of_scheduler.setdefault(pod.spec.scheduler_name, set()).add(uid)
        _follow_step(group, None, pod)
        _follow_saying(group, NOTHING, (pod, member.ref))


def controller_of(pod: corev1.Pod) -> str:
    """The UID of what manages the pod; empty where nothing does."""
    owner = pod.metadata.controller
    return owner.uid if owner is not None else ""


def is_of_kind(spec: GroupSpec, pod: corev1.Pod, kind: tuple[str, str]) -> bool:
    """kind: a role, and a controller's UID; empty for any controller."""
    role, controller = kind
    return spec.roles.role_of(pod) == role and controller in ("", controller_of(pod))


def _follow_gate(group: Group, pod: corev1.Pod, gate: str) -> None:
    gated = pod.gated and not pod.node_name and not foreign_gates(pod, (gate,))
    if gated and pod.uid not in group.gated:
        group.set_gated(pod.uid, True)
        group.happened(pod.uid, MemberEvent.GATE_SEEN)
    elif not gated and pod.uid in group.gated:
        group.set_gated(pod.uid, False)
        group.happened(pod.uid, MemberEvent.GATE_GONE)


def restore(group: Group, pod: corev1.Pod) -> None:
    """What a member that is new to us shows of the time before: it was sent to its place."""
    if pod.node_name or pod.uid in group.held:
        return
    if pod.status.nominated_node_name and was_sent(pod):
        group.happened(pod.uid, MemberEvent.DISPATCHED)
        group.members[pod.uid].nomination = ""


def _came_to_node(group: Group, uid: str, member: Member) -> Effects:
    """Once it is on a node, what was noted of its way there has served."""
    effects = group.happened(uid, MemberEvent.SEEN_BOUND)
    member.node = ""
    group.unconfirmed.discard(uid)
    member.forget_dispatch()
    member.rejected_in_tree = None
    member.last_rejection = ""
    _left_the_line(group, uid)
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
        _follow_saying(group, (member.pod, member.ref), NOTHING)
        _uncount(group, member.pod)
        _follow_step(group, member.pod, None)
        _leave_scheduler(group, member.pod)
    group.gathered = group.gathered and bool(group.members)
    group.gathered_in_vain = group.gathered_in_vain and group.gathered
    if not (group.assigned or group.starting):
        group.whole_of = 0  # those that come next start anew
        if group.ended:  # without a controller they need a sibling on a node
            group.ended = {uid: each for uid, each in group.ended.items() if controller_of(each)}
    if group.start is not None:
        group.start = replace(group.start, members=group.start.members - {uid})
    _left_the_line(group, uid)
    group.set_gated(uid, False)
    group.claiming.discard(uid)
    group.errors.forget(uid)
    group.refuted.forget(uid)
    return effects


def _leave_scheduler(group: Group, pod: corev1.Pod) -> None:
    uids = group.of_scheduler[pod.spec.scheduler_name]
    uids.discard(pod.uid)
    if not uids:
        del group.of_scheduler[pod.spec.scheduler_name]


def _follow_saying(group: Group, before: Sayer, now: Sayer) -> None:
    if group.sayings.follow(before, now, group.spec):
        group.asks_anew()


def _follow_step(group: Group, before: corev1.Pod | None, now: corev1.Pod | None) -> None:
    if before is not None and now is not None and before.metadata.labels == now.metadata.labels:
        return
    for pod, by in ((before, -1), (now, 1)):
        step = step_of(pod) if pod is not None else None
        if step is not None:
            group.steps[step] += by
            if not group.steps[step]:
                del group.steps[step]


def _uncount(group: Group, pod: corev1.Pod) -> None:
    if group.roles is not None:
        group.roles.remove(pod)
    group.priorities[pod.priority] -= 1
    if not group.priorities[pod.priority]:
        del group.priorities[pod.priority]
