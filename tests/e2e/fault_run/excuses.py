"""What a fault excuses: of which judge, of which replica, and for how long. Read from the record alone.

A fault touches parts: programs and lines of one replica, or of both where it is at etcd or at the rights. It excuses the replica that
leads while it touches that one; a fault of the standby excuses nothing of the leader. Used by the judges; docs/fault-runs.md tells it
in words.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import chain
from typing import Any

from extender.client.reflector import CUT_BACKOFF_SECONDS
from tests.e2e.history import Spans, outside

Line = Mapping[str, Any]
ALWAYS: Spans = ((-math.inf, math.inf),)
REPLICAS = ("first", "second")
LEASE = "gang-scheduler"

EXTENDER, SCHEDULER, SERVER = "extender", "kube-scheduler", "API server"
VERBS, API, OWN_API = "verbs", "extender's API", "kube-scheduler's API"
ALL_PARTS = frozenset((EXTENDER, SCHEDULER, SERVER, VERBS, API, OWN_API))

ENDS = ("kill", "terminate", "failpoint", "little memory", "few descriptors", "few threads")  # a program may end by it
STALLS = ("freeze", "line", "partition", "failing writes", "restored etcd", "failpoint")

# A fraction may begin by these alone: a commit, or the eviction of a gang, is stopped in the middle by them.
CUTS_A_COMMIT = frozenset(
    (*ENDS, *STALLS, "full etcd", "role without a rule", "no PodGroups", "new certificates")
)  # fmt: skip
RECORD_SECONDS = 1.0  # between a write and the record of it
# The next leader has placed a gang within 60 s where the Lease is of 15 s, as shipped (docs/operations.md, test_sick_leader); here it
# is of 6 s. So long may a gang stay a fraction in which no fault is at work on the leader.
FINISH_SECONDS = 24.0
AWAY_SECONDS = 60.0  # at most, until an extender that ended is ready again: as long as it may take to start on a rig, and as shipped
SCHEDULER_AWAY_SECONDS = 5.0

DELAYS_AN_ANSWER = frozenset((*ENDS, "freeze", "line"))
ANSWER_PARTS = frozenset((EXTENDER, SCHEDULER, VERBS))
ANSWER_GRACE = 2.0  # what came in meanwhile is answered

HOLDS_A_WRITE = frozenset(STALLS)
WRITE_PARTS = frozenset((EXTENDER, API, SERVER))
WRITE_GRACE = 5.0  # what lay on the line arrives; a server that stood still reads it by and by on a busy machine
LEASE_SECONDS = 6.0  # the Lease's: an extender that is told nothing leads for so long by the last version that it saw
# An API server that has just begun to serve knows no roles yet, and forbids what has lain with it since before; one that stood still may
# find that what it is about has gone. It is ready within 15 s, and a request may be on its way for 30.
UNREADY_SECONDS = 45.0

BLINDS = frozenset(
    (*STALLS, *ENDS, "failing reads", "disturbed watches", "cut watches", "compact etcd", "full etcd", "role without a rule")
)  # fmt: skip
MIRROR_PARTS = frozenset((EXTENDER, API, SERVER))
MIRROR_GRACE = 5.0  # a watch has begun again, or all is listed anew
AWAY_FROM_ETCD = frozenset((*ENDS, "restored etcd", "line"))
# A watch may wait before it asks again, and so may the server's own, of its etcd.
SERVER_GRACE = MIRROR_GRACE + 2 * CUT_BACKOFF_SECONDS

DELAYS_THE_RECORD = frozenset(
    ("freeze", "line", "restored etcd")
)  # of an API server, either one: the record follows one of them


def touched(fault: Line) -> Collection[tuple[str, str]]:
    """(replica, part) of all that it is done to; nothing where it could not be done."""
    if not fault.get("done", True):
        return ()
    target = str(fault.get("target", ""))
    if target in REPLICAS:
        parts = _PARTS_OF_A_REPLICA.get(fault["name"], (EXTENDER,))
        return [(target, part) for part in parts]
    for replica in REPLICAS:
        if target == f"kube-apiserver-{replica}" or target == f"{replica} API server's etcd":
            return ((replica, SERVER),)
        if target.startswith(f"{replica} "):
            return ((replica, target.partition(" ")[2]),)
    if target == "etcd":
        return [(replica, SERVER) for replica in REPLICAS]
    return [(replica, API) for replica in REPLICAS]  # rights


_PARTS_OF_A_REPLICA: Mapping[str, Sequence[str]] = {
    "partition": (API, OWN_API),
    "new certificates": (VERBS,),
    **dict.fromkeys(("failing writes", "failing reads", "disturbed watches", "cut watches"), (API,)),
}


class Leaders:
    """The holders of the Lease, by every version of it."""

    def __init__(self, leases: Iterable[tuple[float, str, Any]]) -> None:
        self._moments: list[float] = []
        self._holders: list[str] = []
        self.begun: list[tuple[float, str]] = []  # when a kube-scheduler came to lead, and of which replica
        identity = ""
        for at, kind, lease in leases:
            if lease["metadata"]["name"] != LEASE or kind == "DELETED":
                continue
            before, identity = identity, str(lease["spec"].get("holderIdentity") or "")
            if self._holders and identity == before:
                continue
            holder, since = identity.partition("_")[0], self._since(at, lease["spec"].get("acquireTime"))
            if holder:
                self.begun.append((since, holder))
            if not self._holders or holder != self._holders[-1]:
                self._moments.append(since)
                self._holders.append(holder)

    def _since(self, recorded: float, acquired: str | None) -> float:
        """As the Lease itself says, which may come to the record later; not where etcd was restored to an older one."""
        at = datetime.fromisoformat(acquired).timestamp() if acquired else recorded
        return at if max(self._moments, default=at) <= at <= recorded else recorded

    def between(self, since: float, until: float) -> set[str]:
        """The replicas that held it at any time from one moment to the other. Before its first version: all."""
        first = bisect_right(self._moments, since) - 1
        last = bisect_right(self._moments, until)
        if first < 0 and last == 0:
            return set(REPLICAS)
        return set(self._holders[max(0, first) : last]) - {""}

    def spans(self, replica: str) -> Spans:
        """From when to when it held the Lease."""
        found: list[tuple[float, float]] = []
        ends = [*self._moments[1:], math.inf]
        for at, end, holder in zip(self._moments, ends, self._holders, strict=True):
            if holder != replica:
                continue
            if found and found[-1][1] == at:
                found[-1] = (found[-1][0], end)
            else:
                found.append((at, end))
        return found


@dataclass(frozen=True)
class Excuses:
    """faults: as the record has them. samples: of the extenders' metrics, by replica."""

    faults: Sequence[Line]
    leaders: Leaders
    samples: Mapping[str, Sequence[Line]]
    followed: Mapping[tuple[str, str], Spans] = field(default_factory=dict)  # (kind, API server of a replica) -> when
    _delays: dict[str, Spans] = field(default_factory=dict)

    # A gang in part

    def of_a_fraction(self, since: float, until: float, limit: float, besides: Spans = ()) -> bool:
        """Whether it may have lasted that long: a fault of the leader's overlaps its beginning, and besides such faults, and the times
        that are given, it took no longer than the next leader takes."""
        leaders = self.leaders.between(since - RECORD_SECONDS, since + limit)
        spans = [*self._late("pods"), *(span for replica in leaders for span in self._cuts[replica])]
        begun = _overlaps(spans, since - RECORD_SECONDS, since + limit)
        return begun and outside(merged([*self.at_work_on_the_leader, *besides]), since, until) <= FINISH_SECONDS

    def of_the_rest_of_a_gang(self, since: float, until: float) -> bool:
        """Whether the leader may not have been told that the first members of a gang were evicted: kube-scheduler evicts those on the
        preemptor's node, and the extender the rest as it sees them go. Once it could know it took no longer than the next leader takes."""
        cut_or_blind = [*self.at_work_on_the_leader, *self._of_the_leader(self._mirrors)]
        return self.blind_since(since) < since and outside(cut_or_blind, since, until) <= FINISH_SECONDS

    @cached_property
    def _cuts(self) -> Mapping[str, Spans]:
        return {replica: self._spans(replica, CUTS_A_COMMIT, ALL_PARTS, back=True) for replica in REPLICAS}

    @cached_property
    def at_work_on_the_leader(self) -> Spans:
        """A fault of a replica counts for as long as that one holds the Lease."""
        return merged([*self._of_the_leader(self._cuts), *self._late("pods")])

    def _of_the_leader(self, spans: Mapping[str, Spans]) -> Iterable[tuple[float, float]]:
        """What of each replica's is while it holds the Lease."""
        return chain.from_iterable(common(spans[replica], self.leaders.spans(replica)) for replica in REPLICAS)

    # Answers, writes, and what is known of nodes

    def of_an_answer(self, replica: str, began: float, ended: float) -> bool:
        return _overlaps(self._answers[replica], began - ANSWER_GRACE, ended)

    @cached_property
    def _answers(self) -> Mapping[str, Spans]:
        return {replica: self._spans(replica, DELAYS_AN_ANSWER, ANSWER_PARTS, back=True) for replica in REPLICAS}

    def of_a_write(self, replica: str, at: float) -> bool:
        """Whether it may have lain on its line, or in a program that stood still. No client can take that back."""
        return _overlaps(self._writes[replica], at - WRITE_GRACE, at)

    def of_an_ended_lease(self, replica: str, at: float) -> bool:
        """Whether its extender may not have been told that the Lease had ended, and led by the version before until that expired."""
        lost = max((ended for _, ended in self.leaders.spans(replica) if ended <= at), default=-math.inf)
        untold = any(began <= lost + RECORD_SECONDS and at <= ended for began, ended in self._mirrors[replica])
        return untold and at - lost <= LEASE_SECONDS

    def of_a_refused_write(self, replica: str, at: float) -> bool:
        """Whether it may have been sent long before, to an API server that ended or stood still. It has changed nothing."""
        return _overlaps(self._unready[replica], at - UNREADY_SECONDS, at)

    @cached_property
    def _unready(self) -> Mapping[str, Spans]:
        return {replica: self._spans(replica, (*ENDS, *STALLS), frozenset((SERVER,))) for replica in REPLICAS}

    @cached_property
    def _writes(self) -> Mapping[str, Spans]:
        return {replica: self._spans(replica, HOLDS_A_WRITE, WRITE_PARTS) for replica in REPLICAS}

    def blind_since(self, moment: float) -> float:
        """From when on what the leader of that moment knows may be out of date."""
        leaders = self.leaders.between(moment - RECORD_SECONDS, moment)
        return min(
            [
                moment,
                *(began for replica in leaders for began, ended in self._mirrors[replica] if began <= moment <= ended),
            ]
        )

    def decided_since(self, moment: float) -> float:
        """From when on a write of that moment may have been decided: it may have lain on a line while another came to lead."""
        held = (
            began
            for replica, spans in self._writes.items()
            for began, ended in spans
            if began <= moment <= ended + WRITE_GRACE and replica in self.leaders.between(began, moment)
        )
        return min([self.blind_since(moment), *held])

    @cached_property
    def _mirrors(self) -> Mapping[str, Spans]:
        return {
            replica: [
                *_longer(self._spans(replica, BLINDS, MIRROR_PARTS, back=True), MIRROR_GRACE),
                *_longer(self._spans(replica, AWAY_FROM_ETCD, frozenset((SERVER,))), SERVER_GRACE),
            ]
            for replica in REPLICAS
        }

    def recorded_until(self, kind: str, moment: float) -> float:
        """Until when what was true at that moment of objects of a kind may have come to the record."""
        return max([moment, *(ended for began, ended in self._late(kind) if began <= moment <= ended)])

    def _late(self, kind: str) -> Spans:
        """When the API server of which the record has objects of that kind stood still."""
        if kind not in self._delays:
            stalls = {each: self._spans(each, DELAYS_THE_RECORD, frozenset((SERVER,))) for each in REPLICAS}
            self._delays[kind] = merged(
                span for each in REPLICAS for span in common(stalls[each], self.followed.get((kind, each), ALWAYS))
            )
        return self._delays[kind]

    def lack(self, replica: str, names: Collection[str], grace: float) -> Spans:
        """When that extender lacked something."""
        return _longer(self._spans(replica, names, frozenset((EXTENDER,))), grace)

    # How much is judged

    def shares(self, since: float, until: float) -> Mapping[str, float]:
        """By judge, of the seconds between: how many would not be excused to the leader of that moment. All others judge at any time."""
        seconds = [since + second for second in range(int(until - since))]
        judged: Mapping[str, Callable[[float, str], bool]] = {
            FRACTIONS: lambda at, replica: not _overlaps(self._cuts[replica], at - RECORD_SECONDS, at + 1),
            ANSWERS: lambda at, replica: not self.of_an_answer(replica, at, at),
            NODES: lambda at, replica: self.blind_since(at) == at and self.recorded_until("nodes", at) == at,
        }
        found = {
            name: sum(all(judges(at, replica) for replica in self.leaders.between(at, at)) for at in seconds)
            for name, judges in judged.items()
        }
        found[WRITES] = min(sum(not self.of_a_write(replica, at) for at in seconds) for replica in REPLICAS)
        return {name: count / max(1, len(seconds)) for name, count in found.items()}

    # What all of these rest on

    def _spans(self, replica: str, names: Collection[str], parts: Collection[str], *, back: bool = False) -> Spans:
        """When such faults were at work on those parts of that replica; back: and until what ended by them is back."""
        return sorted(
            (fault["began"], self._back(fault, replica) if back else fault["ended"])
            for fault in self.faults
            if fault["name"] in names and any(of == replica and part in parts for of, part in touched(fault))
        )

    def _back(self, fault: Line, replica: str) -> float:
        began, ended = float(fault["began"]), float(fault["ended"])
        if fault["name"] not in ENDS:
            return ended
        if (replica, SCHEDULER) in touched(fault):
            return ended + SCHEDULER_AWAY_SECONDS
        if (replica, EXTENDER) not in touched(fault):
            return ended
        samples = self.samples.get(replica, ())
        first = bisect_left(samples, began, key=lambda sample: float(sample["at"]))
        before = _started(samples[first - 1]) if first else 0.0
        for sample in samples[first:]:
            if sample["at"] > ended + AWAY_SECONDS:
                break
            back = fault["name"] in LIMITS or _started(sample) != before
            if sample["at"] > ended and back and sample.get("gang_extender_ready"):
                return float(sample["at"])
        return ended + AWAY_SECONDS


FRACTIONS, ANSWERS, NODES, WRITES = "gangs", "answers", "nodes", "writes"
LIMITS = ("failpoint", "little memory", "few descriptors", "few threads")  # by these it need not end


def _started(sample: Line) -> float:
    return float(sample.get("process_start_time_seconds", 0))


def _longer(spans: Spans, grace: float) -> Spans:
    return [(began, ended + grace) for began, ended in spans]


def merged(spans: Iterable[tuple[float, float]]) -> Spans:
    found: list[tuple[float, float]] = []
    for began, ended in sorted(spans):
        if found and began <= found[-1][1]:
            found[-1] = (found[-1][0], max(ended, found[-1][1]))
        else:
            found.append((began, ended))
    return found


def common(one: Spans, other: Spans) -> Spans:
    """What is in both."""
    found = ((max(a, c), min(b, d)) for a, b in one for c, d in other)
    return [(began, ended) for began, ended in found if began <= ended]


def _overlaps(spans: Spans, since: float, until: float) -> bool:
    return any(began <= until and ended >= since for began, ended in spans)
