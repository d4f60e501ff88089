"""Places that kube-scheduler did not take, and members whose bind call failed: left out of plans for a while.

What kube-scheduler knows that we do not may be an addedAffinity, a plugin, a claim for a device, or a pod that was faster. Verdicts
quote it (fit_error) once it has refused often enough. After an error it lets a pod serve its back-off in a queue that no event and
no patch empties early: a plan before that would hold the other members in vain.
kube-scheduler: pkg/scheduler/backend/queue/backoff_queue.go (podErrorBackoffQ)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from extender import metrics
from extender.retry import Retry

BACK_OFF = Retry(1.0, 10.0)  # podInitialBackoffSeconds, podMaxBackoffSeconds
ROUNDING_SECONDS = 1.5  # it counts in whole seconds, and looks once a second


class ErrorBackOffs:
    """The members of one group whose bind call failed, and when kube-scheduler brings each back: after 1 s, then 2, 4, 8, 10, rounded
    to its whole seconds. Not locked: the manager's lock guards it."""

    def __init__(self) -> None:
        self._errors: dict[str, int] = {}  # UID -> in a row
        self._due: dict[str, float] = {}  # UID -> when it is back at the latest

    def failed(self, uid: str, now: float) -> float:
        """Its bind call was answered with an error. Returns when it is back at the latest."""
        errors = self._errors[uid] = self._errors.get(uid, 0) + 1
        self._due[uid] = now + BACK_OFF.seconds(errors) + ROUNDING_SECONDS
        return self._due[uid]

    def came(self, uid: str) -> None:
        """kube-scheduler asks about it."""
        self._due.pop(uid, None)

    def refused(self, uid: str) -> None:
        """By a filter: from now on it is parked, and errors are counted anew."""
        self.forget(uid)

    def back_at(self, now: float) -> float | None:
        """When the next of them is back; None where none is away."""
        return min((due for due in self._due.values() if due > now), default=None)

    def away(self, now: float) -> AbstractSet[str]:
        return {uid for uid, due in self._due.items() if due > now}

    def forget(self, uid: str) -> None:
        self._errors.pop(uid, None)
        self._due.pop(uid, None)


LEFT_OUT = Retry(2.0, 64.0)  # a place that was refuted
QUOTED_AFTER = 3  # refusals
NOWHERE: frozenset[str] = frozenset()
ANYWHERE: frozenset[str] = frozenset(("*",))  # what so many candidates say; no node has this name
NO_EPOCH = -1  # for one that, whenever it comes, was woken by something that we have not seen
ENOUGH_CANDIDATES = 100  # minCandidateNodesAbsolute: of as many there may be more that were not looked at


class How(StrEnum):
    """A closed list: the label `reason` of gang_extender_plan_refuted_total, explained in docs/operations.md."""

    REFUSED = "refused"  # kube-scheduler's filters let no node pass
    NOT_OFFERED = "not_offered"  # it asked us about other nodes
    DID_NOT_COME = "did_not_come"  # it took our answer, and never asked us to bind


Pair = tuple[str, str]
"""The UID of a member, and a node."""


@dataclass(frozen=True, slots=True)
class _LeftOut:
    times: int
    until: float


@dataclass(frozen=True, slots=True)
class _Confined:
    nodes: frozenset[str]
    until: float
    epoch: int


class Refutations:
    """Of one group. Not locked: the manager's lock guards it.

    A pair is left out for some seconds, twice as long each time that it is refuted again; all is forgotten when the gang
    starts, and what is of a pod when that goes. A refusal says more than that of the one node: those that passed were offered.
    So the member is confined to the nodes that it says nothing about, as long and until the cluster changes (epoch); without
    that a gang would be led from node to node through the whole cluster. One that no node was left for sleeps: no patch wakes
    it, so it has no place in any plan until kube-scheduler asks about it.

    A plan that evicts pods may give it more: the candidates of its last preempt call, on which kube-scheduler's filters would let it
    pass without pods of lower priority. What a call says is good for one such plan.
    """

    def __init__(self) -> None:
        self._pairs: dict[Pair, _LeftOut] = {}  # the latest last
        self._confined: dict[str, _Confined] = {}
        self._asleep: dict[str, int] = {}  # UID -> epoch
        self._candidates: dict[str, frozenset[str]] = {}
        self._latest = NOWHERE  # of the candidates: members that are alike share one set

    def add(self, uid: str, node_name: str, how: How, now: float) -> None:
        metrics.plan_refuted.labels(how).inc()
        before = self._pairs.pop((uid, node_name), None)
        times = before.times + 1 if before is not None else 1
        self._pairs[uid, node_name] = _LeftOut(times, now + LEFT_OUT.seconds(times))

    def confine(self, uid: str, node_name: str, nodes: frozenset[str], epoch: int) -> None:
        """As long as that node, which was refuted just now, is left out."""
        self._confined[uid] = _Confined(nodes, self._pairs[uid, node_name].until, epoch)

    def sleeps(self, uid: str, epoch: int) -> None:
        self._asleep[uid] = epoch

    def stays_out(self, uid: str, epoch: int) -> None:
        """It has no place until the cluster changes."""
        self._confined[uid] = _Confined(NOWHERE, math.inf, epoch)

    def came(self, uid: str, epoch: int) -> bool:
        """kube-scheduler asks about it: a node has passed its filters. Whether that is news to what was decided of the gang: it
        was woken by what changed the cluster, or by what we do not see."""
        self._candidates.pop(uid, None)
        news = self._asleep.pop(uid, epoch) != epoch
        if (confined := self._confined.get(uid)) is not None and not confined.nodes:
            del self._confined[uid]
            return True
        return news

    def may_preempt(self, uid: str, candidates: frozenset[str]) -> bool:
        """kube-scheduler asks where pods may be evicted for it. The call comes before its attempt's refusal can be seen, and so before what
        that keeps it from. Returns whether this opens nodes to a member that was kept from them."""
        kept = uid in self._asleep or uid in self._confined
        if len(candidates) >= ENOUGH_CANDIDATES:
            candidates = ANYWHERE
        if self._candidates.get(uid) == candidates:
            return False
        self._latest = self._latest if candidates == self._latest else candidates
        self._candidates[uid] = self._latest
        return kept

    def was_refused(self, uid: str) -> bool:
        """Whether a preempt call has come since kube-scheduler has last asked about it: no node has passed then. Where the refusal says the
        same as the one before, and the nomination stays, nothing is patched, and the call is all that tells of it."""
        return uid in self._candidates

    def has_preempted(self) -> None:
        """A plan that evicts pods was made of what preempt calls said."""
        self._candidates.clear()

    def confined(self, now: float, epoch: int, *, evicting: bool = False) -> dict[str, frozenset[str]]:
        """UID -> the only nodes that it may have. evicting: in a plan that evicts pods."""
        nodes = {uid: each.nodes for uid, each in self._confined.items() if each.until > now and each.epoch == epoch}
        nodes |= dict.fromkeys(self._asleep, NOWHERE)
        if not (evicting and self._candidates):
            return nodes
        candidates = {uid: self._candidates.get(uid, NOWHERE) for uid in nodes}
        return {uid: nodes[uid] | more for uid, more in candidates.items() if more != ANYWHERE}

    def nowhere(self, now: float, epoch: int) -> set[str]:
        """UIDs of those that no plan has a place for."""
        return {uid for uid, nodes in self.confined(now, epoch).items() if not nodes}

    def left_out(self, now: float) -> frozenset[Pair]:
        return frozenset(pair for pair, left_out in self._pairs.items() if left_out.until > now)

    def without(self, uid: str, offered: frozenset[str], now: float, epoch: int) -> frozenset[str]:
        """The offered nodes that a plan may give this member."""
        if not (self._pairs or self._confined or self._asleep):
            return offered
        never = {node_name for other, node_name in self.left_out(now) if other == uid}
        return (offered & self.confined(now, epoch).get(uid, offered)) - never

    @property
    def times(self) -> int:
        """How often places were refuted since the gang has started last."""
        return sum(each.times for each in self._pairs.values())

    def uids(self) -> Iterator[str]:
        """Members whose places were refuted, the latest first."""
        yield from dict.fromkeys(uid for uid, _ in reversed(self._pairs))

    def forget(self, uid: str) -> None:
        for pair in [pair for pair in self._pairs if pair[0] == uid]:
            del self._pairs[pair]
        for noted in (self._confined, self._asleep, self._candidates):
            noted.pop(uid, None)

    def clear(self) -> None:
        for noted in (self._pairs, self._confined, self._asleep, self._candidates):
            noted.clear()
