"""Who is in each group of pods, and how far each member has come.

Event handlers and the assume/forget of the binding cycle feed it; Coscheduling counts siblings in it, so that no verb
walks through all pods. It has no counterpart in kube-scheduler before its own pod groups (backend/cache, alpha in 1.36).

    Pending --- assume ---> Assumed --- node set ---> Assigned
    Gated  <-> Pending      Assumed --- forget ---> Pending or Gated, as the object says
    any --- deletionTimestamp ---> Deleting          any --- remove, or a terminal phase ---> gone
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from extender.api import corev1

GroupKeyFn = Callable[[corev1.Pod], str | None]
"""The key of the group that a pod belongs to, by whatever labels are configured; None for a pod without one."""


class MemberState(Enum):
    PENDING = "pending"
    GATED = "gated"
    ASSUMED = "assumed"
    ASSIGNED = "assigned"
    DELETING = "deleting"


@dataclass(frozen=True, slots=True)
class Member:
    """`node_name` is where it runs, or is assumed to; a deleting member keeps it until it is gone."""

    pod: corev1.Pod
    state: MemberState
    node_name: str = ""


@dataclass(frozen=True, slots=True)
class GroupCounts:
    pending: int = 0
    gated: int = 0
    assumed: int = 0
    assigned: int = 0
    deleting: int = 0

    @property
    def alive(self) -> int:
        """All members that are not being deleted: the siblings that quorum counts."""
        return self.pending + self.gated + self.assumed + self.assigned

    @property
    def placed(self) -> int:
        return self.assumed + self.assigned

    @property
    def total(self) -> int:
        return self.alive + self.deleting


_NOBODY = GroupCounts()


@dataclass(slots=True)
class _Group:
    members: dict[str, Member] = field(default_factory=dict)  # by UID, in order of arrival
    counts: Counter[MemberState] = field(default_factory=Counter)


class PodGroupStates:
    """Thread-safe. `_lock` guards everything and is innermost; the key function is called outside it."""

    def __init__(self, group_key: GroupKeyFn) -> None:
        self._group_key = group_key
        self._lock = threading.Lock()
        self._groups: dict[str, _Group] = {}
        self._key_of: dict[str, str] = {}  # UID -> group

    def update(self, pod: corev1.Pod) -> str | None:
        """A pod was added or has changed. Returns its group's key. A pod may move between groups, or leave them."""
        key = None if pod.terminal else self._group_key(pod)
        with self._lock:
            known = self._member(pod.uid)
            if key is None or self._key_of.get(pod.uid) != key:
                self._take_out(pod.uid)
            if key is not None:
                self._put(key, _seen(pod, known))
        return key

    def remove(self, pod: corev1.Pod) -> str | None:
        """Returns the key of the group that it was in."""
        with self._lock:
            return self._take_out(pod.uid)

    def assume(self, pod: corev1.Pod, node_name: str = "") -> None:
        """Its binding is on its way to the node. Nothing happens for a pod that is in no group or assigned already."""
        with self._lock:
            member = self._member(pod.uid)
            if member is None or member.state in (MemberState.ASSIGNED, MemberState.DELETING):
                return
            self._put(self._key_of[pod.uid], Member(member.pod, MemberState.ASSUMED, node_name or pod.node_name))

    def forget(self, pod: corev1.Pod) -> None:
        """Takes `assume` back."""
        with self._lock:
            member = self._member(pod.uid)
            if member is not None and member.state is MemberState.ASSUMED:
                self._put(self._key_of[pod.uid], _seen(member.pod, None))

    def counts(self, key: str) -> GroupCounts:
        with self._lock:
            group = self._groups.get(key)
            if group is None:
                return _NOBODY
            count = group.counts
            return GroupCounts(
                count[MemberState.PENDING],
                count[MemberState.GATED],
                count[MemberState.ASSUMED],
                count[MemberState.ASSIGNED],
                count[MemberState.DELETING],
            )

    def members(self, key: str) -> Sequence[Member]:
        """In the order in which they were first seen."""
        with self._lock:
            group = self._groups.get(key)
            return tuple(group.members.values()) if group is not None else ()

    def member(self, uid: str) -> Member | None:
        with self._lock:
            return self._member(uid)

    def key_of(self, uid: str) -> str | None:
        with self._lock:
            return self._key_of.get(uid)

    def groups(self) -> Mapping[str, Sequence[Member]]:
        """A copy of everything."""
        with self._lock:
            return {key: tuple(group.members.values()) for key, group in self._groups.items()}

    # Below here the lock is held

    def _member(self, uid: str) -> Member | None:
        key = self._key_of.get(uid)
        return None if key is None else self._groups[key].members[uid]

    def _put(self, key: str, member: Member) -> None:
        uid = member.pod.uid
        group = self._groups.setdefault(key, _Group())
        before = group.members.get(uid)
        if before is not None:
            group.counts[before.state] -= 1
        group.members[uid] = member
        group.counts[member.state] += 1
        self._key_of[uid] = key

    def _take_out(self, uid: str) -> str | None:
        key = self._key_of.pop(uid, None)
        if key is None:
            return None
        group = self._groups[key]
        group.counts[group.members.pop(uid).state] -= 1
        if not group.members:
            del self._groups[key]
        return key


def _seen(pod: corev1.Pod, known: Member | None) -> Member:
    """What an event says of a member; one without news of a node leaves an assumed member assumed."""
    assumed_on = known.node_name if known is not None and known.state is MemberState.ASSUMED else ""
    if pod.deleting:
        return Member(pod, MemberState.DELETING, pod.node_name or assumed_on)
    if pod.node_name:
        return Member(pod, MemberState.ASSIGNED, pod.node_name)
    if assumed_on:
        return Member(pod, MemberState.ASSUMED, assumed_on)
    return Member(pod, MemberState.GATED if pod.gated else MemberState.PENDING)
