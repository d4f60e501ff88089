"""What the pods of each gang show: how many have a node, run, have ended. Counted by events: no event, and no look, goes over all members.

No informer shows pods that have ended. Where a member has left its node the API server is asked which have, and the answer is kept
here, until pods come that are not over. scheduler-plugins: pkg/controllers/podgroup_controller.go (syncHandler), which lists
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from extender.api import corev1

RUNNING = "Running"


@dataclass(frozen=True, slots=True)
class Member:
    """A pod that is neither over nor on its way out. node: empty without one. stranger: the scheduler that has bound it, or is to, where
    that is none of ours; `elsewhere` where one of ours is named, and has not bound it.
    started: it has a node, and shows a start of ours."""

    node: str
    running: bool
    owner: str
    stranger: str = ""
    started: bool = False


ELSEWHERE = "another scheduler"


@dataclass(frozen=True, slots=True)
class Ended:
    succeeded: int = 0
    failed: int = 0


NONE_ENDED = Ended()


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one gang at one moment. nodes, owners: each once. strangers: the schedulers of members that are not ours -> how many of these
    have a node. unstarted: members that have a node and show no start of ours. sure: whether it is known which have ended, with the last of
    the leavings."""

    alive: int = 0
    scheduled: int = 0
    running: int = 0
    ended: Ended = NONE_ENDED
    nodes: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()
    strangers: Mapping[str, int] = field(default_factory=dict)
    unstarted: int = 0
    ours: bool = False
    leavings: int = 0
    sure: bool = True

    @property
    def bound(self) -> int:
        """Members that have their node, or have had it and succeeded."""
        return self.scheduled + self.ended.succeeded


@dataclass(slots=True)
class Record:
    """members: by UID. ours: a member has named a scheduler of ours. ended is as it was when `answered` was `leavings`: the times that
    something happened after which more, or fewer, may have ended.
    scheduled and all after it follow from the members, each of which is counted as it comes, and goes. nodes, owners: how many members
    have each. strangers: likewise, with and without a node. said: the counts, until something changes.
    names: of the nodes. They are the same object as long as they are the same names, so that what is said of them is found out once.
    """

    members: dict[str, Member] = field(default_factory=dict)
    ended: Ended = NONE_ENDED
    ours: bool = False
    leavings: int = 0
    answered: int = 0
    scheduled: int = 0
    running: int = 0
    unstarted: int = 0
    nodes: dict[str, int] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)
    strangers: dict[str, int] = field(default_factory=dict)
    strangers_placed: dict[str, int] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    said: Counts | None = None

    def put(self, uid: str, member: Member) -> None:
        """In the place of what was known of it."""
        if uid in self.members:
            self.put_out(uid)
        self.members[uid] = member
        self._count(member, 1)

    def put_out(self, uid: str) -> None:
        self._count(self.members.pop(uid), -1)

    def counts(self) -> Counts:
        if self.said is None:
            if self.names != self.nodes.keys():
                self.names = frozenset(self.nodes)
            self.said = Counts(
                alive=len(self.members),
                scheduled=self.scheduled,
                running=self.running,
                ended=self.ended,
                nodes=self.names,
                owners=frozenset(self.owners),
                strangers={name: self.strangers_placed.get(name, 0) for name in self.strangers},
                unstarted=self.unstarted,
                ours=self.ours,
                leavings=self.leavings,
                sure=self.answered == self.leavings,
            )
        return self.said

    def _count(self, member: Member, by: int) -> None:
        """by: 1 or -1."""
        self.said = None
        self.running += by * member.running
        _add(self.owners, member.owner, by)
        _add(self.strangers, member.stranger, by)
        if member.node:
            self.scheduled += by
            self.unstarted += by * (not member.started)
            _add(self.nodes, member.node, by)
            _add(self.strangers_placed, member.stranger, by)


class Records:
    """By the key of the gang. key_of: the gang that a pod is in, empty for none. serves: whether a scheduler's name is ours.
    there: whether the gang with that key has a PodGroup. A record lasts as long as it has members, or its gang that PodGroup.
    bound_by_us: whether a pod that has a node shows a binding of ours, or maybe of the replica that led before.
    started_by_us: whether it shows a start of ours for certain, whenever that was."""

    def __init__(
        self,
        key_of: Callable[[corev1.Pod], str],
        serves: Callable[[str], bool],
        there: Callable[[str], bool],
        bound_by_us: Callable[[corev1.Pod], bool],
        started_by_us: Callable[[corev1.Pod], bool],
    ) -> None:
        self._key_of, self._serves, self._there = key_of, serves, there
        self._bound_by_us, self._started_by_us = bound_by_us, started_by_us
        self._lock = threading.Lock()  # guards both below
        self._records: dict[str, Record] = {}
        self._group_of: dict[str, str] = {}  # UID -> key

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> Iterable[str]:
        """The keys of the gangs that have changed by it."""
        pod = new or old
        if pod is None:
            return ()
        key = self._key_of(new) if new is not None and not new.terminal and not new.deleting else ""
        member = self._member(old, new) if new is not None and key else None
        with self._lock:
            before = self._group_of.get(pod.uid, "")
            known = self._records[before].members[pod.uid] if before else None
            if before == key and (known == member or member is None):
                return ()
            if before and before != key:
                self._leaves(before, pod.uid, known)
            if member is not None:
                self._comes(key, pod, member if known is None else _as_before(known, member))
            return {key, before} - {""}

    def _leaves(self, key: str, uid: str, known: Member | None) -> None:
        """Lock held."""
        record = self._records[key]
        record.put_out(uid)
        del self._group_of[uid]
        record.leavings += known is not None and bool(known.node)
        if not record.members and not self._there(key):
            del self._records[key]

    def _comes(self, key: str, pod: corev1.Pod, member: Member) -> None:
        """Lock held."""
        record = self._records.setdefault(key, Record())
        if pod.uid not in record.members and record.ended != NONE_ENDED:
            record.leavings += 1  # a gang that was over begins anew, perhaps without those that have ended
        record.put(pod.uid, member)
        record.ours = record.ours or self._serves(pod.spec.scheduler_name)
        self._group_of[pod.uid] = key

    def _member(self, old: corev1.Pod | None, new: corev1.Pod) -> Member:
        owner = new.metadata.controller
        named = f"{new.namespace}/{owner.name}" if owner is not None else ""
        started = bool(new.node_name) and self._started_by_us(new)
        return Member(new.node_name, new.status.phase == RUNNING, named, self._stranger(old, new), started)

    def _stranger(self, old: corev1.Pod | None, new: corev1.Pod) -> str:
        """Of a binding that was not seen nothing is said: it may have been ours, of a release that left no trace."""
        if not self._serves(new.spec.scheduler_name):
            return new.spec.scheduler_name
        was_bound = new.node_name and old is not None and not old.node_name
        return ELSEWHERE if was_bound and not self._bound_by_us(new) else ""

    def ask(self, key: str) -> None:
        """More may have ended than is known."""
        with self._lock:
            record = self._records.setdefault(key, Record())
            record.leavings += 1
            record.said = None

    def have_ended(self, key: str, ended: Ended, leavings: int) -> None:
        """leavings: of the counts by which it was asked. Of a gang that has lost its PodGroup meanwhile nothing is kept."""
        with self._lock:
            if not self._there(key):
                return
            record = self._records.setdefault(key, Record())
            record.ended, record.answered, record.said = ended, leavings, None

    def forget(self, key: str) -> None:
        """The PodGroup has gone, and with it what has ended, and what members said that are there no more; members that are there stay
        known."""
        with self._lock:
            record = self._records.get(key)
            if record is None:
                return
            record.ended, record.answered, record.said = NONE_ENDED, record.leavings, None
            record.ours = any(each.stranger in ("", ELSEWHERE) for each in record.members.values())
            if not record.members:
                del self._records[key]

    def counts(self, key: str) -> Counts:
        with self._lock:
            record = self._records.get(key)
            return record.counts() if record is not None else Counts()


def _add(numbers: dict[str, int], name: str, by: int) -> None:
    """What is there no more is not kept with a 0; nor is the empty name counted."""
    if name:
        numbers[name] = numbers.get(name, 0) + by
        if not numbers[name]:
            del numbers[name]


def _as_before(known: Member, member: Member) -> Member:
    """A later event of a pod does not show how it came to its node."""
    return replace(member, stranger=member.stranger or known.stranger, started=member.started or known.started)
