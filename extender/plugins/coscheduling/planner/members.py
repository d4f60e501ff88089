"""Members sorted into classes that any node treats alike, where the filters let each go, and the minima of roles and groups.

Each minimum gets its members first: all at once if there is room, else exactly as many of each kind as have to be, and the
others beside them as far as they fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from extender.api.corev1 import TopologySpreadConstraint
from extender.api.metav1 import LabelSelector
from extender.framework.listers import NodeInfoLister
from extender.framework.pod_info import AffinityTerm, PodInfo
from extender.framework.status import Status
from extender.plugins import names
from extender.plugins.coscheduling.planner.request import (
    Cause,
    Deadline,
    Judge,
    Minimum,
    NoPlacement,
    Placement,
    Request,
    Trial,
)
from extender.plugins.coscheduling.planner.room import BoolColumn, IntColumn, Room, asked_of
from extender.plugins.node_declared_features import required_features
from extender.plugins.node_volume_limits import attachable
from extender.plugins.volume_restrictions import restricted_disk

DO_NOT_SCHEDULE = "DoNotSchedule"
MAY_LIFT = frozenset({names.POD_TOPOLOGY_SPREAD, names.INTER_POD_AFFINITY})
"""Plugins whose refusal may end when another pod is added. A refusal of any other plugin stands while pods are only added."""


@dataclass(frozen=True)
class MemberClass:
    """Members that every filter judges alike. allowed, excluded: node names that only, or never, may be theirs."""

    members: tuple[PodInfo, ...]
    shape: object
    allowed: frozenset[str] | None = None
    excluded: frozenset[str] = frozenset()

    @property
    def first(self) -> PodInfo:
        return self.members[0]

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def asked(self) -> dict[str, int]:
        return asked_of(self.first.requests)

    @property
    def restricted(self) -> bool:
        return self.allowed is not None or bool(self.excluded)


def classes(request: Request, relevant: frozenset[str] | None, judge: Judge) -> list[MemberClass]:
    """The largest first, of equally large ones those that may go to fewer nodes. relevant: labels that selectors look at."""
    excluded: dict[str, set[str]] = {}
    for uid, node_name in request.excluded:
        excluded.setdefault(uid, set()).add(node_name)
    found: dict[tuple[object, frozenset[str] | None, frozenset[str]], list[PodInfo]] = {}
    for member in request.members:
        uid = member.pod.metadata.uid
        key = judged_shape_of(member, judge, relevant), request.allowed.get(uid), frozenset(excluded.get(uid, ()))
        found.setdefault(key, []).append(member)
    result = [MemberClass(tuple(alike), shape, allowed, never) for (shape, allowed, never), alike in found.items()]
    return sorted(result, key=lambda c: (_size(c.first), c.restricted), reverse=True)


def _size(info: PodInfo) -> tuple[int, int, int]:
    requests = info.requests
    return sum(requests.scalar.values()), requests.milli_cpu, requests.memory


@dataclass(frozen=True)
class Shape:
    """A class and what the filters said of each node before any member was placed.

    open_: nodes that did not refuse it for good. but_for_room: those that pass, and those that lack nothing but room.
    """

    members: MemberClass
    trial: Trial
    passing: BoolColumn
    open_: BoolColumn
    but_for_room: BoolColumn

    @property
    def asked(self) -> dict[str, int]:
        return self.members.asked

    def capacity(self, room: Room) -> IntColumn:
        """How many members each node takes that passes."""
        return np.where(self.passing, room.capacity(self.asked), 0)

    def within(self, members: MemberClass, may: BoolColumn) -> Shape:
        """Of these members, which may go to some nodes only."""
        return Shape(members, self.trial, self.passing & may, self.open_ & may, self.but_for_room & may)


def judged(members: MemberClass, snapshot: NodeInfoLister, judge: Judge) -> tuple[Shape, Counter[Status]]:
    """The shape wherever its members may go, and how many nodes said what. Where claims differ this is done for each member."""
    trial = judge.begin(members.first.pod, snapshot)
    statuses = trial.filter_all()
    different, number_of = _numbered(statuses)
    times = np.bincount(number_of, minlength=len(different)).tolist()
    said: Counter[Status] = Counter()
    for status, count in zip(different, times, strict=True):
        said[status] += count

    def where(holds: Callable[[Status], bool]) -> BoolColumn:
        return np.array([holds(status) for status in different], dtype=np.bool_)[number_of]

    passing = where(lambda status: status.success)
    open_ = passing | where(lambda status: status.plugin in MAY_LIFT)
    but_for_room = passing | where(lambda status: status.plugin == names.NODE_RESOURCES_FIT)
    return Shape(members, trial, passing, open_, but_for_room), said


def _numbered(statuses: Sequence[Status]) -> tuple[list[Status], IntColumn]:
    """Those that differ, which are few, and for each node the number of its own."""
    if statuses and list(statuses) == [statuses[0]] * len(statuses):
        return [statuses[0]], np.zeros(len(statuses), dtype=np.int64)
    ids = np.fromiter(map(id, statuses), dtype=np.int64, count=len(statuses))
    _, first, number_of = np.unique(ids, return_index=True, return_inverse=True)
    return [statuses[row] for row in first.tolist()], number_of


def shape_of(member: PodInfo, relevant: frozenset[str] | None = None) -> object:
    """Equal for members that any node treats alike.

    relevant: the labels that some selector looks at. None: all labels of a member that looks at others, none of one that
    does not, which is right where no member looks at another.
    """
    spec = member.pod.spec
    requests = member.requests
    labels: object = None
    if relevant is not None:
        labels = tuple(sorted((k, v) for k, v in member.pod.metadata.labels.items() if k in relevant))
    elif looks_at_others(member):
        labels = tuple(sorted(member.pod.metadata.labels.items()))
    return (
        requests.milli_cpu,
        requests.memory,
        requests.ephemeral_storage,
        tuple(sorted(requests.scalar.items())) if requests.scalar else None,
        tuple(sorted(spec.node_selector.items())) if spec.node_selector else None,
        repr(spec.affinity) if spec.affinity else None,
        spec.tolerations,
        repr(spec.topology_spread_constraints) if spec.topology_spread_constraints else None,
        member.host_ports,
        repr(spec.volumes) if spec.volumes else None,
        spec.node_name,
        member.pod.metadata.namespace,
        labels,
        required_features(member.pod),
    )


def judged_shape_of(member: PodInfo, judge: Judge, relevant: frozenset[str] | None = None) -> object:
    """The same, with where its ephemeral volumes are: they read alike in all members, and each is another claim."""
    ephemeral = any(volume.ephemeral for volume in member.pod.spec.volumes)
    return shape_of(member, relevant), judge.ties(member.pod) if ephemeral else ()


def hard_spread(member: PodInfo) -> list[TopologySpreadConstraint]:
    """The constraints that a node is refused for."""
    return [c for c in member.pod.spec.topology_spread_constraints if c.when_unsatisfiable == DO_NOT_SCHEDULE]


def asks_for(term: AffinityTerm, member: PodInfo) -> bool:
    """As far as it can be told without the namespaces' labels: a hint for the order, the filters have the word."""
    return term.matches(member.pod, {})


def may_be_first(shape: Shape) -> bool:
    """Whether required affinity lets a member go anywhere as long as there is no pod that it asks for: it asks for its like."""
    first = shape.members.first
    terms = first.required_affinity_terms
    return bool(terms) and all(term.namespace_selector is not None or asks_for(term, first) for term in terms)


def looks_at_others(member: PodInfo) -> bool:
    """Whether where one member goes changes where the next can go, by more than the room it takes."""
    spec = member.pod.spec
    return bool(
        member.required_affinity_terms
        or member.required_anti_affinity_terms
        or hard_spread(member)
        or member.host_ports
        or any(attachable(volume) or restricted_disk(volume) for volume in spec.volumes)
    )


def relevant_labels(members: Sequence[PodInfo], snapshot: NodeInfoLister) -> frozenset[str]:
    """The label keys that a required term or constraint of a member, or an existing pod's anti-affinity, looks at."""
    keys: set[str] = set()
    for selector in _selectors(members, snapshot):
        keys.update(selector.match_labels)
        keys.update(requirement.key for requirement in selector.match_expressions)
    for member in members:
        for constraint in member.pod.spec.topology_spread_constraints:
            keys.update(constraint.match_label_keys)
    return frozenset(keys)


def _selectors(members: Iterable[PodInfo], snapshot: NodeInfoLister) -> Iterator[LabelSelector]:
    for member in members:
        for constraint in member.pod.spec.topology_spread_constraints:
            if constraint.label_selector is not None:
                yield constraint.label_selector
        for term in (*member.required_affinity_terms, *member.required_anti_affinity_terms):
            if term.selector is not None:
                yield term.selector
    for node in snapshot.have_pods_with_required_anti_affinity():
        for existing in node.pods_with_required_anti_affinity:
            for term in existing.required_anti_affinity_terms:
                if term.selector is not None:
                    yield term.selector


def topology_keys(members: Iterable[PodInfo]) -> frozenset[str]:
    """The node labels by which members look at others."""
    keys: set[str] = set()
    for member in members:
        keys.update(constraint.topology_key for constraint in hard_spread(member))
        keys.update(term.topology_key for term in member.required_affinity_terms)
        keys.update(term.topology_key for term in member.required_anti_affinity_terms)
    return frozenset(keys)


PlanOne = Callable[[Request], Placement | NoPlacement]
"""A plan of a request without minima."""


def plan_minima(request: Request, plan: PlanOne) -> Placement | NoPlacement:
    """All within the request's budget, of which the plan of all members at once gets half if there are fewer to try after it.

    The verdict names the minimum that does not even fit alone, if there is one.
    """
    minima, deadline = request.minima, Deadline.of(request)
    request = replace(request, minima=())
    if any(len(minimum.uids) < minimum.needed for minimum in minima):
        return NoPlacement("not enough members", len(request.members), request.needed, Cause.MEMBERS)
    cores = list(_cores(request.members, minima))
    share = 0.5 if len(cores[-1]) < len(request.members) else 1.0
    result = plan(replace(request, budget_seconds=deadline.left * share))
    if isinstance(result, Placement) and _met(result, minima):
        return result
    for core in cores:
        placed = plan(replace(request, members=core, needed=len(core), budget_seconds=deadline.left))
        if isinstance(placed, Placement):
            return _with_the_others(replace(request, budget_seconds=deadline.left), core, placed, plan)
        result = placed  # it says what the minima lack
    return _named(request, minima, result, plan, deadline) if isinstance(result, NoPlacement) else result


def _named(
    request: Request, minima: Sequence[Minimum], verdict: NoPlacement, plan: PlanOne, deadline: Deadline
) -> NoPlacement:
    all_members = {info.pod.uid for info in request.members}
    for minimum in minima:
        if not minimum.name or minimum.uids >= all_members or verdict.cause is Cause.BUDGET or deadline.spent(1.0):
            continue
        core = core_of(sorted(request.members, key=_size), [minimum])
        alone = plan(replace(request, members=core, needed=minimum.needed, budget_seconds=deadline.left))
        if isinstance(alone, NoPlacement) and alone.cause is not Cause.BUDGET:
            return replace(alone, reason=f"{minimum.name}: {alone.reason}")
    return verdict


def _met(placement: Placement, minima: Sequence[Minimum]) -> bool:
    return all(len(minimum.uids & placement.nodes.keys()) >= minimum.needed for minimum in minima)


def _cores(members: Sequence[PodInfo], minima: Sequence[Minimum]) -> Iterator[list[PodInfo]]:
    """The members to be placed for the minima: the smallest, or, if those are others, the first in the order of preference."""
    smallest = core_of(sorted(members, key=_size), minima)
    first = core_of(members, minima)
    if {info.pod.uid for info in smallest} != {info.pod.uid for info in first}:
        yield first
    yield smallest


def core_of(members: Sequence[PodInfo], minima: Sequence[Minimum]) -> list[PodInfo]:
    chosen: set[str] = set()
    for minimum in minima:
        missing = minimum.needed - len(minimum.uids & chosen)
        for info in members:
            if missing <= 0:
                break
            if info.pod.uid in minimum.uids and info.pod.uid not in chosen:
                chosen.add(info.pod.uid)
                missing -= 1
    return [info for info in members if info.pod.uid in chosen]


def _with_the_others(request: Request, core: Sequence[PodInfo], placed: Placement, plan: PlanOne) -> Placement:
    """Members beyond the minima come after them, as far as they fit."""
    others = [info for info in request.members if info.pod.uid not in placed.nodes]
    taken = [(placed.nodes[info.pod.uid], info) for info in core]
    nodes = [*request.placed, *placed.nodes.values()]
    more = plan(replace(request, members=others, needed=0, promised=[*request.promised, *taken], placed=nodes))
    if not isinstance(more, Placement) or not more.nodes:
        return placed
    waves: tuple[frozenset[str], ...] = ()
    if placed.waves or more.waves:
        waves = (*(placed.waves or (frozenset(placed.nodes),)), *(more.waves or (frozenset(more.nodes),)))
    return Placement({**placed.nodes, **more.nodes}, waves, placed.domain)
