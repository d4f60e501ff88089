"""What the planner is asked, and what it answers: the request, the judge of hypothetical states, a placement or a verdict."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from extender.api import corev1
from extender.config.types import Packing, TopologyLevel
from extender.framework.giving_way import GIVING_WAY
from extender.framework.handle import Clock
from extender.framework.hypothetical import Cluster
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.resource import Resource
from extender.framework.status import Status

BUDGET_SECONDS = 1.0


class Judge(Protocol):
    """The in-tree filters of a profile, for hypothetical states."""

    def begin(self, pod: corev1.Pod, cluster: Cluster) -> Trial:
        """PreFilter has run on all its nodes."""
        ...

    def ties(self, pod: corev1.Pod) -> object:
        """What tells a pod with ephemeral volumes apart from one with the same spec: their claims may differ."""
        ...


Added = tuple[PodInfo, NodeInfo, Mapping[str, str]]
"""A pod; the node, which has it already; and claim key -> the volume that the pod takes for it, and no other claim can have."""


class Trial(Protocol):
    """One pod against nodes; what `add_pods` was told of counts, where a filter looks beyond the node it judges."""

    def filter(self, node: NodeInfo) -> Status: ...

    def filter_all(self) -> Sequence[Status]:
        """A Status for each node of the cluster that it began with, in their order, before any pod was added."""
        ...

    def volumes_on(self, node_name: str) -> Mapping[str, str]:
        """Claim key -> the existing volume that `filter` found for it there."""
        ...

    def add_pods(self, added: Sequence[Added]) -> None:
        """Those that have come since the last time."""
        ...

    def clone(self) -> Trial: ...


@dataclass(frozen=True, slots=True)
class Topology:
    """Levels from wide to narrow. required, preferred: what the group asks for, a level's name or its label; empty: nothing."""

    levels: tuple[TopologyLevel, ...] = ()
    required: str = ""
    preferred: str = ""
    packing: Packing = Packing.FEWEST_NODES


@dataclass(frozen=True, slots=True)
class Minimum:
    """At least `needed` of these members (UIDs). A role's minimum comes before that of its group, which counts it too.

    name: what the minimum is of, for verdicts: `role worker`. asked: the whole minimum, those with a place counted too.
    """

    uids: frozenset[str]
    needed: int
    name: str = ""
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Foreseen:
    """Room for members that are still to be made, together `total`. like: a pod that may go where they may, as far as is known.

    pieces: how many they are; 0 where that is not known: then the fewest pieces that fit, each of which may be shared by several.
    """

    like: PodInfo
    total: Resource
    pieces: int = 0


@dataclass(frozen=True, slots=True)
class Leaf:
    """One group of several of which not all have to start. uids: of its unplaced members, at least `needed` of which must be placed
    with it. minima, topology, placed: as of a request, its own."""

    name: str
    uids: frozenset[str]
    needed: int
    minima: Sequence[Minimum] = ()
    topology: Topology = Topology()
    placed: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """At least `needed` of its children must be placed, all of them in one domain of the level that its topology requires."""

    name: str
    children: Sequence[Tree]
    needed: int
    topology: Topology = Topology()
    placed: Sequence[str] = ()


Tree = Leaf | Branch


@dataclass(frozen=True, slots=True)
class Sliced:
    """Members that are placed in slices, each of them in one domain of its level, or by rank alone where there are no sizes.

    uids: of those without a place. sizes: (a level's name or label, members of a slice), each slice of a narrower level inside of one
    of a wider; 0 members: all of them. ranks: of those with and without a place, by UID; of all of them, or of none: then any member
    will do for any slice. placed: (UID, node) of those that have a place. balanced: as many slices in each domain, of as few
    domains as can be. name: of the role, controller or group, for verdicts; kind: the same, for slots. Empty, and None, where the gang
    has one Sliced.
    """

    uids: frozenset[str]
    sizes: tuple[tuple[str, int], ...] = ()
    ranks: Mapping[str, int] = field(default_factory=dict)
    placed: Sequence[tuple[str, str]] = ()
    balanced: bool = False
    name: str = ""
    kind: tuple[str, str] | None = None

    def ranks_beside(self, uid: str) -> range | None:
        """The ranks of the narrowest slice that this member is in; None where no rank is kept to its slice."""
        size = next((size for _, size in reversed(self.sizes) if size), 0)
        if uid not in self.ranks or not size:
            return None
        first = self.ranks[uid] // size * size
        return range(first, first + size)


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be planned.

    members: unplaced members in the order of preference, at least `needed` of which must be placed.
    allowed: where kube-scheduler has said which nodes pass for a member (by UID); the others are not tried.
    excluded: (UID, node) pairs that were tried and refused.
    promised: places of others that hold against this gang, and places of this gang that stay.
    placed: the nodes of this gang's members that have their places (bound, held or reserved): its domain is theirs.
    minima: where there is more to meet than `needed`: of roles, and of groups that start together.
    tree: groups of which not all have to start; then it says what is needed, and `needed` is no more than the least of it.
    foreseen: room that has to be found beside the members'.
    sliced: the members that have to be near some others of the gang, or are in an order. No member is in two.
    """

    members: Sequence[PodInfo]
    needed: int
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    excluded: frozenset[tuple[str, str]] = frozenset()
    promised: Sequence[tuple[str, PodInfo]] = ()
    topology: Topology = Topology()
    placed: Sequence[str] = ()
    budget_seconds: float = BUDGET_SECONDS
    clock: Clock = time.monotonic
    minima: Sequence[Minimum] = ()
    tree: Branch | None = None
    foreseen: Foreseen | None = None
    sliced: Sequence[Sliced] = ()

    def for_one_of(self, members: Sequence[PodInfo]) -> Request:
        """What would do for any one of these, where their groups need no further member: in a tree too, and where its parts are."""
        uids = frozenset(info.pod.uid for info in members)
        tree = _for_one_of(self.tree, uids) if self.tree is not None else None
        return replace(self, members=members, needed=min(1, len(members)), minima=(), foreseen=None, tree=tree)


def _for_one_of(branch: Branch, uids: frozenset[str]) -> Branch | None:
    """Without the parts that have none of these members."""
    children: list[Tree] = []
    for child in branch.children:
        if isinstance(child, Branch):
            if (below := _for_one_of(child, uids)) is not None:
                children.append(below)
        elif own := child.uids & uids:
            children.append(replace(child, uids=own, needed=1, minima=()))
    return replace(branch, children=children, needed=1) if children else None


@dataclass(frozen=True, slots=True)
class Placement:
    """nodes: UID -> node name. domain: the narrowest topology domain that holds all of these places, if any.

    waves: an order of arrival in which kube-scheduler, which judges one pod at a time, accepts each: a member waits for
    the waves before its own to be held; within a wave any order will do. All UIDs are in exactly one.
    kept: (node name, piece) of the room for members that are still to be made.
    """

    nodes: Mapping[str, str]
    waves: tuple[frozenset[str], ...] = ()
    domain: str = ""
    kept: tuple[tuple[str, PodInfo], ...] = ()

    def keeping(self, pieces: Iterable[PodInfo]) -> Placement:
        """The same, where the places of these are room for members that are still to be made."""
        kept = tuple((self.nodes[info.pod.uid], info) for info in pieces if info.pod.uid in self.nodes)
        uids = {info.pod.uid for _, info in kept}
        nodes = {uid: name for uid, name in self.nodes.items() if uid not in uids}
        return replace(self, nodes=nodes, waves=tuple(wave - uids for wave in self.waves if wave - uids), kept=kept)


class Cause(StrEnum):
    """What stopped a gang, for metrics and explanations."""

    MEMBERS = "members"  # there are fewer than have to be placed
    ROOM = "room"
    NODES = "nodes"  # selectors, taints, cordons, ports: no node takes them whatever room there is
    AFFINITY = "affinity"  # spread, or affinity to other pods
    TOPOLOGY = "topology"  # there would be room beyond the domain that is required
    BUDGET = "budget"  # the planner ran out of time: the cluster may have room


@dataclass(frozen=True, slots=True)
class DomainFit:
    """How many of the members that were asked for a domain holds."""

    name: str
    holds: int


@dataclass(frozen=True, slots=True)
class NoPlacement:
    """Why the gang does not fit. `reason` is constant text for one cause, no amounts: it reaches the pod. The rest may
    change with every plan and is for explanations: `placed` of `needed` found a place at best.

    resource: what runs out first. missing: of it, for those that found no place.
    level: what the group requires. domains: the best ones of that level, best first.
    fits_at: the narrowest wider level that would do ("cluster": without any); empty if none would.
    composite: the CompositePodGroup of which too few groups fit.
    slices: which slice found no domain, and how many domains have room for one like it; empty where no slice is what is short.
    """

    reason: str
    placed: int
    needed: int
    cause: Cause = Cause.ROOM
    resource: str = ""
    missing: int = 0
    level: str = ""
    domains: tuple[DomainFit, ...] = ()
    fits_at: str = ""
    composite: str = ""
    slices: str = ""

    @property
    def short(self) -> int:
        """Members for which there is no place."""
        return max(0, self.needed - self.placed)


class OutOfTimeError(Exception):
    """The plan's time budget is spent."""


@dataclass(frozen=True, slots=True)
class Deadline:
    clock: Clock
    started: float
    seconds: float

    @classmethod
    def of(cls, request: Request) -> Deadline:
        return cls(request.clock, request.clock(), request.budget_seconds)

    def spent(self, share: float) -> bool:
        """Whether this share of the time is gone."""
        return self.clock() - self.started > self.seconds * share

    @property
    def left(self) -> float:
        """In seconds."""
        return max(0.0, self.seconds - (self.clock() - self.started))

    def check(self) -> None:
        """Between two pieces of work, the smaller the better."""
        GIVING_WAY.look_up()
        if self.spent(1.0):
            raise OutOfTimeError
