"""The history of the pods during a test, and THE checker of what no history may show.

The recorder writes it; `violations` judges, over every state that the API server was ever in:
  - all or nothing: no group has 1..minMember-1 members bound for longer than a commit takes, nor at the end;
  - no node carries more than its allocatable, at any resourceVersion.
Used by conftest after every test, whatever the test was about; its own tests are tests/unit/e2e/test_history.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from extender.api.quantity import parse_quantity
from extender.api.schedulingv1alpha1 import LIGHTWEIGHT_MIN_AVAILABLE_LABEL, LIGHTWEIGHT_NAME_LABEL, POD_GROUP_LABEL
from extender.plugins.coscheduling.spec.counts import parse_count
from extender.plugins.coscheduling.spec.roles import ROLE_LABEL
from tests.e2e.api import Json

Spans = Sequence[tuple[float, float]]  # from when to when
Excused = Callable[[str, float, float, float], bool]  # group, since, until, limit
Amounts = Mapping[str, int]  # in thousandths: cpu in milli, memory and counts a thousandfold
KnownSince = Callable[[float], float]  # moment -> from when on what the scheduler knew then may be out of date


def up_to_date(moment: float) -> float:
    return moment


@dataclass(frozen=True, slots=True)
class Seen:
    """A pod as one event of the watch showed it. `node` is empty until it is bound."""

    uid: str
    name: str  # namespace/name
    node: str = ""
    group: str = ""  # namespace/name
    min_member: int = 0  # what the pod's own label says; 0 where a PodGroup object says it
    requests: Amounts = field(default_factory=dict)
    nominated: str = ""  # the node of its nomination
    role: str = ""
    finished: bool = False  # Succeeded or Failed: it uses no room any more
    leaving: bool = False  # deleted, and its kubelet has not yet said that it is gone
    version: int = 0  # metadata.resourceVersion
    gated: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One event: when it arrived (monotonic seconds), and whether it was the pod's last."""

    at: float
    pod: Seen
    deleted: bool = False


def seen(pod: Json) -> Seen:
    metadata, spec = pod["metadata"], pod["spec"]
    labels, namespace = metadata.get("labels", {}), metadata["namespace"]
    in_tree = spec.get("schedulingGroup", {}).get("podGroupName")
    group = labels.get(POD_GROUP_LABEL) or labels.get(LIGHTWEIGHT_NAME_LABEL) or in_tree
    return Seen(
        uid=metadata["uid"],
        name=f"{namespace}/{metadata['name']}",
        node=spec.get("nodeName", ""),
        group=f"{namespace}/{group}" if group else "",
        min_member=parse_count(labels.get(LIGHTWEIGHT_MIN_AVAILABLE_LABEL, "")) or 0,
        requests=_requests(spec),
        nominated=pod.get("status", {}).get("nominatedNodeName", ""),
        role=labels.get(ROLE_LABEL, ""),
        finished=pod.get("status", {}).get("phase") in ("Succeeded", "Failed"),
        leaving="deletionTimestamp" in metadata,
        version=version(metadata),
        gated=bool(spec.get("schedulingGates")),
    )


def version(metadata: Json) -> int:
    """One order for all kinds of objects, as they share one etcd; 0 where there is none."""
    return int(metadata.get("resourceVersion", 0))


def _requests(spec: Json) -> Amounts:
    total: defaultdict[str, int] = defaultdict(int, pods=1000)
    for container in spec["containers"]:
        for resource, amount in container.get("resources", {}).get("requests", {}).items():
            total[resource] += parse_quantity(amount).milli_value
    return dict(total)


def amounts(resources: Mapping[str, Any]) -> Amounts:
    return {resource: parse_quantity(amount).milli_value for resource, amount in resources.items()}


RECOVERY_SECONDS = 15.0


def commit_seconds(members: int, *, killed: bool, recovery: float = RECOVERY_SECONDS) -> float:
    """How long a group may be bound in part: while its bindings are written, or while a killed process comes back."""
    return recovery if killed else 1.0 + 0.010 * members


def violations(
    history: Sequence[Change],
    min_members: Mapping[str, int],
    allocatable: Mapping[str, Amounts],
    *,
    ended: float,
    killed: bool = False,
    recovery: float = RECOVERY_SECONDS,
    restarts: Collection[float] = (),
    excused: Collection[str] = (),
    loose: Mapping[str, int] = MappingProxyType({}),
    excused_fraction: Excused = lambda group, since, until, limit: False,
    known_since: KnownSince = up_to_date,
) -> list[str]:
    """Everything that was wrong, a sentence each.

    `min_members` of the groups that have an object; others are taken from the pods' own labels. Pods that are gone no
    longer count, so a group that loses a bound member to preemption is a fraction. `excused` (namespace/name) are those
    that the test itself deletes: they count for their group as long as members of it run that started with them, and until
    one of those is preempted; `known_since`: up to when the scheduler knew what had gone. `restarts`: when what the test had
    killed was ready again, from which on a recovery counts. `excused_fraction`: whether something excuses one of a group
    that began, and ended, at these moments, and was to end within a limit. `loose`: groups of which no member needs the
    others once the test has taken members out of a whole one, or asked for more than it has (once-satisfied), and the most
    that it has asked for.
    """
    found = [*_over_allocatable(history, allocatable)]
    for group, changes in _by_group(history).items():
        wanted = min_members.get(group) or max(change.pod.min_member for change in changes)
        limit = commit_seconds(len({change.pod.uid for change in changes}), killed=killed, recovery=recovery)
        told = excused, limit, known_since
        tally = LooseTally(wanted, loose[group], *told) if group in loose else Tally(*told)
        found += _fractions(
            group, wanted, changes, tally, ended=ended, limit=limit, restarts=restarts, excused=excused_fraction
        )
    return found


def _by_group(history: Iterable[Change]) -> Mapping[str, list[Change]]:
    groups: defaultdict[str, list[Change]] = defaultdict(list)
    for change in history:
        if change.pod.group:
            groups[change.pod.group].append(change)
    return groups


def _fractions(
    group: str,
    wanted: int,
    changes: Sequence[Change],
    tally: Tally,
    *,
    ended: float,
    limit: float,
    restarts: Collection[float],
    excused: Excused,
) -> Iterable[str]:
    since: float | None = None
    was = ""
    for change in changes:
        tally.take(change)
        if 0 < tally.count < wanted:
            since = change.at if since is None else since
            was = f"{tally.count} of minMember {wanted} bound ({', '.join(sorted(tally.bound.values()))})"
        elif since is not None:
            counted_from = max((at for at in restarts if since < at < change.at), default=since)
            if change.at - counted_from > limit and not excused(group, since, change.at, limit):
                yield f"{group}: {was} for {change.at - since:.2f} s, longer than a commit takes ({limit:.2f} s)"
            since = None
    if since is not None:
        yield f"{group}: {was} at the end, for {ended - since:.2f} s"


def outside(spans: Spans, since: float, until: float) -> float:
    """Seconds from one moment to the other that are in none of the spans."""
    left, at = 0.0, since
    for start, end in sorted(spans):
        if end <= at:
            continue
        if start >= until:
            break
        left += max(0.0, start - at)
        at = end
    return left + max(0.0, until - at)


class Tally:
    """The members of a group that are bound, with those that have finished, or that the test has taken out of it, since."""

    def __init__(self, excused: Collection[str], limit: float, known_since: KnownSince = up_to_date) -> None:
        self._excused = excused
        self._limit = limit
        self._known_since = known_since
        self._taken_out: dict[str, float] = {}  # UID -> when
        self.bound: dict[str, str] = {}  # UID -> name

    @property
    def count(self) -> int:
        return len(self.bound) + len(self._taken_out) if self.bound else 0

    @property
    def uids(self) -> set[str]:
        """Of those bound and those taken out."""
        return self.bound.keys() | self._taken_out.keys()

    def take(self, change: Change) -> None:
        uid, name = change.pod.uid, change.pod.name
        if change.pod.finished:
            if self.bound.pop(uid, None) is not None:
                self._taken_out[uid] = change.at
        elif change.deleted:
            had_a_node = self.bound.pop(uid, None) is not None
            if name in self._excused:
                self._taken_out[uid] = change.at
            elif had_a_node:  # a victim: the rest of its group goes with it by now
                self._forget_before(self._known_since(change.at) - self._limit)
        elif change.pod.node:
            if not self.bound:  # it starts anew
                self._forget_before(self._known_since(change.at) - self._limit)
            self.bound[uid] = name
        else:
            self.bound.pop(uid, None)  # etcd was restored to a time before it was bound

    def _forget_before(self, decided: float) -> None:
        """A member that went later was still counted on when it was decided."""
        self._taken_out = {uid: at for uid, at in self._taken_out.items() if at >= decided}


class LooseTally(Tally):
    """Of a gang that has been whole and is less by the test's doing, or because some have finished, no member is counted. most: that the
    test has asked for, at a time that is not known."""

    def __init__(self, wanted: int, most: int, excused: Collection[str], limit: float, known_since: KnownSince) -> None:
        super().__init__(excused, limit, known_since)
        self._wanted = wanted
        self._most = most
        self._peak = 0  # how many were bound at once since the first of them
        self._was_whole = self._loose = False

    @property
    def count(self) -> int:
        return 0 if self._loose or (self._was_whole and self._peak < self._most) else super().count

    def take(self, change: Change) -> None:
        super().take(change)
        self._was_whole = bool(self.bound) and (self._was_whole or len(self.bound) >= self._wanted)
        gone = change.pod.finished or (change.deleted and change.pod.name in self._excused)
        self._peak = max(self._peak, len(self.bound)) if self.bound else 0
        less_by_the_test = gone and len(self.bound) < max(self._wanted, self._most)
        self._loose = self._was_whole and (self._loose or less_by_the_test)


def _over_allocatable(history: Sequence[Change], allocatable: Mapping[str, Amounts]) -> Iterable[str]:
    pods: dict[str, Seen] = {}
    used: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for change in history:
        before = pods.pop(change.pod.uid, None)
        if before is not None:
            _count(used[before.node], before.requests, -1)
        if change.deleted or change.pod.finished or not change.pod.node:
            continue
        pods[change.pod.uid] = change.pod
        node = used[change.pod.node]
        _count(node, change.pod.requests, +1)
        if before is None and change.pod.node in allocatable:
            room = allocatable[change.pod.node]
            for resource, amount in sorted(node.items()):
                if change.pod.requests.get(resource) and amount > room.get(resource, 0):
                    yield (
                        f"node {change.pod.node}: {amount / 1000:g} {resource} of {room.get(resource, 0) / 1000:g} "
                        f"once {change.pod.name} was bound"
                    )


def _count(used: defaultdict[str, int], requests: Amounts, sign: int) -> None:
    for resource, amount in requests.items():
        used[resource] += sign * amount
