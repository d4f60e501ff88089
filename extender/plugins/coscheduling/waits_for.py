"""What gangs that were refused wait for: their members' kinds, what else an event may change for them, and an index of both.

Noted with the refusal (GangSetPlanning, in the gang queue), read with each event (hints/gang_hints): an event asks each kind once, and
only the kinds that it may concern. kube-scheduler notes the plugins that refused a pod, and asks the hints of each pod:
pkg/scheduler/framework/types.go (QueuedPodInfo.UnschedulablePlugins)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import count
from operator import itemgetter

from msgspec import structs

from extender.api import corev1
from extender.framework.index import Index
from extender.framework.pod_info import PodInfo
from extender.framework.resource import CPU, EPHEMERAL_STORAGE, MEMORY, Resource
from extender.plugins.coscheduling.planner.members import hard_spread, shape_of
from extender.plugins.coscheduling.planner.room import Amounts, asked_of

COMMON = (CPU, MEMORY, EPHEMERAL_STORAGE)
NO_VOLUME = corev1.Volume()
Label = tuple[str, str]


def brings_volumes(pod: corev1.Pod) -> bool:
    """Whether it uses storage that plugins look at; a token or a config map, which nearly every pod brings, is none."""
    return any(structs.replace(each, name="", image=None) != NO_VOLUME for each in pod.spec.volumes)


@dataclass(frozen=True, slots=True, eq=False)
class MemberKind:
    """Members that any node treats alike. first: one of them, by which plugins are asked.

    keys: node labels that say where they may go. domain_keys: the topology keys of required affinity and anti-affinity.
    """

    shape: object
    first: PodInfo
    asked: Amounts
    keys: frozenset[str]
    domain_keys: frozenset[str]
    spreads: bool

    @property
    def minds_pods(self) -> bool:
        return bool(self.domain_keys)

    @property
    def has_volumes(self) -> bool:
        return brings_volumes(self.first.pod)

    @property
    def scarce(self) -> str:
        """The resource by which nodes are looked through: one that few nodes have, if it asks for such; empty if for none."""
        return next((name for name in sorted(self.asked) if name not in COMMON), next(iter(self.asked), ""))

    @property
    def selected(self) -> Label | None:
        """A label that its nodes have; None if any may do."""
        return min((self.first.pod.spec.node_selector or {}).items(), default=None)


@dataclass(frozen=True, slots=True, eq=False)
class WaitsFor:
    """priority: the gang's; pods below it may be evicted for it. level_keys: labels of the topology levels that it may require.

    anything: every event that could help any pod may help it, since its refusal does not say what it lacks. room_anywhere: it
    waits for room in the cluster as a whole (minResources), whatever node it is on.
    """

    kinds: Sequence[MemberKind]
    priority: int = 0
    level_keys: frozenset[str] = frozenset()
    anything: bool = False
    room_anywhere: bool = False


ANYTHING = WaitsFor((), anything=True)
OWN_EVENTS = WaitsFor(())
"""Of a gang that no plan could help: its members, its object and its gang set alone can change that."""


class Trait(Enum):
    """What a kind looks at beside the node that it would go to."""

    PODS = auto()  # required affinity or anti-affinity
    SPREAD = auto()
    PORTS = auto()
    VOLUMES = auto()


@dataclass(slots=True, eq=False)
class Demand:
    """Members of one kind and priority. keys: of the gangs that wait for a place for one."""

    kind: MemberKind
    priority: int
    number: int
    keys: set[str] = field(default_factory=set)

    def traits(self) -> Iterator[Trait]:
        kind = self.kind
        found = {
            Trait.PODS: kind.minds_pods,
            Trait.SPREAD: kind.spreads,
            Trait.PORTS: kind.first.host_ports,
            Trait.VOLUMES: kind.has_volumes,
        }
        return (trait for trait, has in found.items() if has)


Line = list[tuple[int, int, Demand]]
"""Demands with how much of the scarce resource each asks for and their numbers, the smallest first."""


class WaitIndex:
    """Gangs by what can cure their refusals. Not locked: the manager's lock guards it.

    Gangs that are alike share a demand; a gang with different members has several. Demands for room are kept by priority, node label and
    scarce resource, in order of its amount, so that the few demands which a node with new room can satisfy are found at once.
    """

    def __init__(self) -> None:
        self.anything: set[str] = set()
        self.room_anywhere: set[str] = set()
        self._of_level = Index()  # topology key -> gangs that may require it
        self._demands: dict[tuple[object, int], Demand] = {}
        self._with_trait: dict[Trait, dict[int, Demand]] = {trait: {} for trait in Trait}
        self._room: dict[int, dict[Label | None, dict[str, Line]]] = {}  # by priority, label and resource
        self._numbers = count()

    def add(self, key: str, waits_for: WaitsFor) -> None:
        for keys in self._sets(waits_for):
            keys.add(key)
        for level in waits_for.level_keys:
            self._of_level.add(level, key)
        for kind in waits_for.kinds:
            demand = self._demands.get((kind.shape, waits_for.priority))
            if demand is None:
                demand = self._new(kind, waits_for.priority)
            demand.keys.add(key)

    def remove(self, key: str, waits_for: WaitsFor) -> None:
        """waits_for: as it was added."""
        for keys in self._sets(waits_for):
            keys.discard(key)
        for level in waits_for.level_keys:
            self._of_level.discard(level, key)
        for kind in waits_for.kinds:
            demand = self._demands.get((kind.shape, waits_for.priority))
            if demand is not None:
                demand.keys.discard(key)
                if not demand.keys:
                    self._drop(demand)

    def _sets(self, waits_for: WaitsFor) -> Iterator[set[str]]:
        if waits_for.anything:
            yield self.anything
        if waits_for.room_anywhere:
            yield self.room_anywhere

    def _new(self, kind: MemberKind, priority: int) -> Demand:
        demand = Demand(kind, priority, next(self._numbers))
        traits, selected, scarce = list(demand.traits()), kind.selected, kind.scarce
        self._demands[kind.shape, priority] = demand
        for trait in traits:
            self._with_trait[trait][demand.number] = demand
        line = self._room.setdefault(priority, {}).setdefault(selected, {}).setdefault(scarce, [])
        insort(line, (kind.asked.get(scarce, 0), demand.number, demand))
        return demand

    def _drop(self, demand: Demand) -> None:
        kind, priority = demand.kind, demand.priority
        del self._demands[kind.shape, priority]
        for trait in demand.traits():
            del self._with_trait[trait][demand.number]
        by_label = self._room[priority]
        lines = by_label[kind.selected]
        line = lines[kind.scarce]
        del line[bisect_left(line, (kind.asked.get(kind.scarce, 0), demand.number))]
        if not line:
            del lines[kind.scarce]
        if not lines:
            del by_label[kind.selected]
        if not by_label:
            del self._room[priority]

    @property
    def looks_beyond_nodes(self) -> bool:
        """Whether a gang waits that an event may help which gives no node more room."""
        return bool(self._of_level) or any(self._with_trait.values())

    def keys(self) -> set[str]:
        """Of all gangs but those that wait for their own events."""
        return self.anything.union(self.room_anywhere, *(demand.keys for demand in self._demands.values()))

    def bringing_volumes(self) -> set[str]:
        """The gangs that may."""
        return self.anything.union(*(demand.keys for demand in self.with_trait(Trait.VOLUMES)))

    def demands(self) -> Collection[Demand]:
        return self._demands.values()

    def with_trait(self, trait: Trait) -> Collection[Demand]:
        return self._with_trait[trait].values()

    def levels(self) -> Collection[str]:
        return self._of_level.keys()

    def of_level(self, key: str) -> AbstractSet[str]:
        """The gangs that may require this topology key."""
        return self._of_level[key]

    def for_room(self, labels: Mapping[str, str] | None, left: Callable[[int], Resource]) -> Iterator[Demand]:
        """Those that a node may have room for, by their scarce resource. labels: the node's; None if no filter looks at them.
        left: what it has for pods of a priority."""
        for priority, by_label in self._room.items():
            amounts = left(priority)
            for label in by_label if labels is None else (None, *labels.items()):
                for resource, line in by_label.get(label, {}).items():
                    upto = bisect_right(line, amounts.amount(resource), key=itemgetter(0))
                    yield from (demand for _, _, demand in line[:upto])


def kinds_of(members: Iterable[PodInfo]) -> list[MemberKind]:
    found: dict[object, PodInfo] = {}
    for member in members:
        found.setdefault(shape_of(member), member)
    return [_kind(shape, member) for shape, member in found.items()]


def _kind(shape: object, member: PodInfo) -> MemberKind:
    hard = hard_spread(member)
    terms = (*member.required_affinity_terms, *member.required_anti_affinity_terms)
    return MemberKind(
        shape,
        member,
        asked_of(member.requests),
        frozenset(_node_keys(member)) | {constraint.topology_key for constraint in hard},
        frozenset(term.topology_key for term in terms),
        bool(hard),
    )


def _node_keys(member: PodInfo) -> Collection[str]:
    spec = member.pod.spec
    keys = set(spec.node_selector or ())
    node_affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = node_affinity.required_during_scheduling_ignored_during_execution if node_affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        keys.update(requirement.key for requirement in term.match_expressions)
    return keys
