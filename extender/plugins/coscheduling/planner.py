"""Places a whole gang at once: a pure function of a snapshot, the members and what is promised to others.

It takes no lock, does no I/O and does not log, so that it can run on a native thread. Members that are alike and do not
look at each other are placed by the free room of each node; the others one by one, by the profile's own filters on a
hypothetical state. minMember is placed or nothing; further members as far as they fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from extender.api import corev1
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.resource import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resource
from extender.framework.status import Status

UNLIMITED = 2**31


class Judge(Protocol):
    """The in-tree filters of a profile, for hypothetical states."""

    def begin(self, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Trial: ...


class Trial(Protocol):
    """One pod against nodes: PreFilter has run on the nodes that `begin` was given."""

    def filter(self, node: NodeInfo) -> Status: ...


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be planned.

    members: unplaced members in the order of preference, at least `needed` of which must be placed.
    allowed: where kube-scheduler has said which nodes pass for a member (by UID); the others are not tried.
    excluded: (UID, node) pairs that were tried and refused.
    promised: places of others that hold against this gang, and places of this gang that stay.
    """

    members: Sequence[PodInfo]
    needed: int
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    excluded: frozenset[tuple[str, str]] = frozenset()
    promised: Sequence[tuple[str, PodInfo]] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """UID -> node name."""

    nodes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why the gang does not fit: constant text for one cause, no amounts. `placed` of `needed` found a place."""

    reason: str
    placed: int
    needed: int


def plan(nodes: Sequence[NodeInfo], request: Request, judge: Judge) -> Placement | Verdict:
    """Alike members by free room, members that look at each other one by one."""
    if len(request.members) < request.needed:
        return Verdict("not enough members", len(request.members), request.needed)
    hypothetical = _with_promises(nodes, request.promised)
    places: dict[str, str] = {}
    reasons: Counter[str] = Counter()
    for alike in _classes(request.members):
        if _looks_at_others(alike[0]):
            _place_one_by_one(hypothetical, alike, request, judge, places, reasons)
        else:
            _place_alike(hypothetical, alike, request, judge, places, reasons)
    if len(places) >= request.needed:
        return Placement(places)
    return Verdict(_main_reason(reasons), len(places), request.needed)


def _with_promises(nodes: Sequence[NodeInfo], promised: Iterable[tuple[str, PodInfo]]) -> list[NodeInfo]:
    """The snapshot with the promised pods in place; nodes without promises are shared, not copied."""
    by_node: dict[str, list[PodInfo]] = {}
    for node_name, pod in promised:
        by_node.setdefault(node_name, []).append(pod)
    if not by_node:
        return list(nodes)
    result = []
    for node in nodes:
        if pods := by_node.get(node.name):
            node = node.clone()
            present = {info.pod.uid for info in node.pods}
            for pod in pods:
                if pod.pod.uid not in present:
                    node.add_pod(pod)
        result.append(node)
    return result


def _classes(members: Sequence[PodInfo]) -> list[list[PodInfo]]:
    """Members that every filter judges alike, the largest first."""
    classes: dict[object, list[PodInfo]] = {}
    for member in members:
        classes.setdefault(shape_of(member), []).append(member)
    return sorted(classes.values(), key=_size, reverse=True)


def _size(alike: list[PodInfo]) -> tuple[int, int, int]:
    requests = alike[0].requests
    return sum(requests.scalar.values()), requests.milli_cpu, requests.memory


def shape_of(member: PodInfo) -> object:
    """Equal for members that any node treats alike. Labels and namespace count only where terms look at other pods."""
    spec = member.pod.spec
    requests = member.requests
    shape = (
        requests.milli_cpu,
        requests.memory,
        requests.ephemeral_storage,
        tuple(sorted(requests.scalar.items())),
        tuple(sorted(spec.node_selector.items())) if spec.node_selector else None,
        repr(spec.affinity) if spec.affinity else None,
        repr(spec.tolerations) if spec.tolerations else None,
        repr(spec.topology_spread_constraints) if spec.topology_spread_constraints else None,
        member.host_ports,
        repr(spec.volumes) if spec.volumes else None,
        spec.node_name,
    )
    if _looks_at_others(member):
        return (*shape, tuple(sorted(member.pod.labels.items())))
    return shape


def _looks_at_others(member: PodInfo) -> bool:
    """Whether where one member goes changes where the next can go, by more than the room it takes."""
    spec = member.pod.spec
    return bool(
        member.with_affinity
        or spec.topology_spread_constraints
        or member.host_ports
        or any(volume.persistent_volume_claim or volume.ephemeral for volume in spec.volumes)
    )


def _place_alike(
    nodes: list[NodeInfo],
    alike: list[PodInfo],
    request: Request,
    judge: Judge,
    places: dict[str, str],
    reasons: Counter[str],
) -> None:
    """Fills the nodes that take most first, so that the gang spreads over as few as it can."""
    trial = judge.begin(alike[0].pod, nodes)
    room: list[tuple[int, int]] = []
    for index, node in enumerate(nodes):
        status = trial.filter(node)
        if not status.success:
            reasons.update(status.reasons)
            continue
        capacity = capacity_for(node, alike[0].requests)
        if capacity > 0:
            room.append((-capacity, index))
    room.sort()
    waiting = list(alike)
    for negative, index in room:
        if not waiting:
            return
        node = nodes[index]
        left = -negative
        taken = [member for member in waiting if _may_go(member, node.name, request)][:left]
        if not taken:
            continue
        nodes[index] = _with_pods(node, taken)
        for member in taken:
            places[member.pod.uid] = node.name
        gone = {member.pod.uid for member in taken}
        waiting = [member for member in waiting if member.pod.uid not in gone]
    if waiting:
        reasons.update(_short_of(nodes, waiting[0].requests))


def _place_one_by_one(
    nodes: list[NodeInfo],
    alike: list[PodInfo],
    request: Request,
    judge: Judge,
    places: dict[str, str],
    reasons: Counter[str],
) -> None:
    """Each on the fullest node that takes it, judged with those before it in place."""
    for member in alike:
        trial = judge.begin(member.pod, nodes)
        best: int | None = None
        least = UNLIMITED
        for index, node in enumerate(nodes):
            if not _may_go(member, node.name, request):
                continue
            status = trial.filter(node)
            if not status.success:
                reasons.update(status.reasons)
                continue
            capacity = capacity_for(node, member.requests)
            if 0 < capacity < least:
                best, least = index, capacity
        if best is not None:
            places[member.pod.uid] = nodes[best].name
            nodes[best] = _with_pods(nodes[best], [member])


def _may_go(member: PodInfo, node_name: str, request: Request) -> bool:
    allowed = request.allowed.get(member.pod.uid)
    if allowed is not None and node_name not in allowed:
        return False
    return (member.pod.uid, node_name) not in request.excluded


def _with_pods(node: NodeInfo, pods: Sequence[PodInfo]) -> NodeInfo:
    node = node.clone()
    for pod in pods:
        node.add_pod(pod)
    return node


def capacity_for(node: NodeInfo, requests: Resource) -> int:
    """How many pods of these requests the node still takes."""
    allocatable, requested = node.allocatable, node.requested
    capacity = allocatable.allowed_pod_number - len(node.pods)
    for asked, free in (
        (requests.milli_cpu, allocatable.milli_cpu - requested.milli_cpu),
        (requests.memory, allocatable.memory - requested.memory),
        (requests.ephemeral_storage, allocatable.ephemeral_storage - requested.ephemeral_storage),
    ):
        if asked > 0:
            capacity = min(capacity, free // asked)
    for name, asked in requests.scalar.items():
        if asked > 0:
            capacity = min(capacity, (allocatable.scalar.get(name, 0) - requested.scalar.get(name, 0)) // asked)
    return max(0, capacity)


def _short_of(nodes: Sequence[NodeInfo], requests: Resource) -> Counter[str]:
    """What runs out on the nodes once the members that fit are placed."""
    reasons: Counter[str] = Counter()
    for node in nodes:
        for name in insufficient(node, requests):
            reasons["Too many pods" if name == PODS else f"Insufficient {name}"] += 1
    return reasons


def insufficient(node: NodeInfo, requests: Resource) -> list[str]:
    """The resources of which the node has too little for one more pod."""
    allocatable, requested = node.allocatable, node.requested
    short = []
    if len(node.pods) + 1 > allocatable.allowed_pod_number:
        short.append(PODS)
    for name, asked, free in (
        (CPU, requests.milli_cpu, allocatable.milli_cpu - requested.milli_cpu),
        (MEMORY, requests.memory, allocatable.memory - requested.memory),
        (EPHEMERAL_STORAGE, requests.ephemeral_storage, allocatable.ephemeral_storage - requested.ephemeral_storage),
    ):
        if asked > 0 and asked > free:
            short.append(name)
    for name, asked in requests.scalar.items():
        if asked > 0 and asked > allocatable.scalar.get(name, 0) - requested.scalar.get(name, 0):
            short.append(name)
    return short


def _main_reason(reasons: Mapping[str, int]) -> str:
    """The most frequent one; of equally frequent ones the first in the alphabet, so that the text stays the same."""
    if not reasons:
        return "no node takes it"
    return min(reasons, key=lambda reason: (-reasons[reason], reason))


Offload = Callable[..., object]
"""Runs a pure function away from the event loop and returns its result."""
