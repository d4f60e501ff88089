"""Which nodes a backfill reservation takes: those of the domain where least is missing for the gang, and of them as few as will do.

A pure function of a snapshot and the planner's own request; `BackfillReservations` runs it where it stalls no call. Emptied of all pods
but those that belong to a node (DaemonSets, static pods) the chosen nodes hold the gang: a plan on them says so. For a gang in slices
they are those of whole slices.
No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.api import corev1
from extender.framework.hypothetical import HypotheticalSnapshot, with_pods
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.node_selector import METADATA_NAME
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.planner.domains import Domains, UnknownLevelError, level_of
from extender.plugins.coscheduling.planner.members import MemberClass, judged
from extender.plugins.coscheduling.planner.room import IntColumn, Room, asked_of
from extender.plugins.coscheduling.planner.slicing.node_order import in_slices

DAEMON_SET = ("apps/v1", "DaemonSet")
NODE = ("v1", "Node")  # controls the mirror pod of a static pod
TRIED_DOMAINS = 8  # in which a plan is made
BUDGET_SECONDS = 0.5  # for one of these plans
CLUSTER = "the cluster"


@dataclass(frozen=True, slots=True)
class Choice:
    domain: str
    nodes: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Kind:
    """Members that are alike, and how many of them have to be placed; slots: for one of them, by node."""

    count: int
    weight: float  # one member's share of the whole cluster's resources, summed
    now: IntColumn
    empty: IntColumn


@dataclass(frozen=True, slots=True)
class _Order:
    """rows: of nodes, the first come first. least: as many of them are kept at least."""

    rows: IntColumn
    least: int


def controlled_by(pod: corev1.Pod, *kinds: tuple[str, str]) -> bool:
    """Whether an object of one of these kinds (apiVersion, kind) controls the pod, as the pod itself says."""
    owner = pod.metadata.controller
    return owner is not None and (owner.api_version, owner.kind) in kinds


def choose_nodes(
    snapshot: NodeInfoLister,
    request: planner.Request,
    judge: planner.Judge,
    most: int,
    but: frozenset[str] = frozenset(),
) -> Choice | None:
    """At most `most` nodes, and none of `but`; None where no domain would hold the gang on so few, however empty, and where it asks for
    no member, as one whose PodGroup has gone."""
    if not request.needed:
        return None
    promised = with_pods(snapshot, request.promised).list()
    emptied = [_emptied(node) for node in promised]
    kinds = _kinds(request, promised, emptied, judge, but)
    found = []
    for name, at in _domains(snapshot, request):
        orders = _orders(kinds, at, snapshot, request)
        chosen = _fewest(kinds, orders, most)
        if chosen is not None:
            found.append((_missing(kinds, chosen), name, orders[0], chosen))
    found.sort(key=lambda entry: entry[:2])
    for _, name, order, chosen in found[:TRIED_DOMAINS]:
        nodes = _confirmed(order, chosen, emptied, request, judge, most)
        if nodes is not None:
            return Choice(name, nodes)
    return None


def _emptied(node: NodeInfo) -> NodeInfo:
    if node.node is None:
        return node
    empty = NodeInfo(node.node)
    for info in node.pods:
        if controlled_by(info.pod, DAEMON_SET, NODE):
            empty.add_pod(info)
    return empty


def _kinds(
    request: planner.Request,
    now: Sequence[NodeInfo],
    emptied: Sequence[NodeInfo],
    judge: planner.Judge,
    but: frozenset[str],
) -> list[_Kind]:
    """The largest first, of as many members as have to be placed."""
    members: dict[object, list[PodInfo]] = {}
    for info in request.members:
        members.setdefault(planner.judged_shape_of(info, judge), []).append(info)
    empty_cluster, cluster = HypotheticalSnapshot(emptied), HypotheticalSnapshot(now)
    names = {name for info in request.members for name in asked_of(info.requests)}
    empty_room, room = Room.of(empty_cluster, names), Room.of(cluster, names)
    totals = {name: max(1, sum(node.allocatable.amount(name) for node in now)) for name in names}
    kinds, left = [], request.needed
    usable = np.array([node.name not in but for node in emptied], dtype=np.int64)
    weighed = [
        (sum(amount / totals[name] for name, amount in asked_of(alike[0].requests).items()), alike)
        for alike in members.values()
    ]
    for weight, alike in sorted(weighed, key=lambda entry: (-entry[0], entry[1][0].pod.name)):
        count = min(left, len(alike))
        if not count:
            break
        left -= count
        shape, _ = judged(MemberClass(tuple(alike), None), empty_cluster, judge)
        kinds.append(_Kind(count, weight, shape.capacity(room) * usable, shape.capacity(empty_room) * usable))
    return kinds


def _domains(snapshot: NodeInfoLister, request: planner.Request) -> Iterator[tuple[str, IntColumn]]:
    """Of the level that is required; else of the one that is preferred, and the cluster after them."""
    topology = request.topology
    everywhere = np.arange(len(snapshot.list()), dtype=np.int64)
    try:
        required, preferred = level_of(topology, topology.required), level_of(topology, topology.preferred)
    except UnknownLevelError:
        return
    level = required if required is not None else preferred
    if level is not None:
        domains = Domains(snapshot, topology.levels)
        here = set(request.placed)
        placed = [at for at, node in enumerate(snapshot.list()) if node.name in here] if here else []
        pinned = domains.with_nodes(level, placed)
        for domain, name in enumerate(domains.names[level]):
            if not pinned or domain in pinned:
                yield f"{topology.levels[level].name} {name}", domains.nodes_of(level, domain)
    if required is None:
        yield CLUSTER, everywhere


def _placed(kinds: Sequence[_Kind], at: IntColumn, *, empty: bool) -> list[int]:
    """How many of each kind find room on these nodes, as if the kinds were not in each other's way."""
    slots = (kind.empty if empty else kind.now for kind in kinds)
    return [min(kind.count, int(each[at].sum())) for kind, each in zip(kinds, slots, strict=True)]


def _missing(kinds: Sequence[_Kind], at: IntColumn) -> float:
    """What those ask for that find no room there now, as a share of what the cluster has, all resources summed."""
    placed = _placed(kinds, at, empty=False)
    return sum((kind.count - count) * kind.weight for kind, count in zip(kinds, placed, strict=True))


def _fewest(kinds: Sequence[_Kind], orders: Sequence[_Order], most: int) -> IntColumn | None:
    """The first nodes of an order, as many as it takes to hold all once they are empty."""
    for order in orders:
        for count in range(min(most, len(order.rows), order.least), min(most, len(order.rows)) + 1):
            if _placed(kinds, order.rows[:count], empty=True) == [kind.count for kind in kinds]:
                return order.rows[:count]
    return None


def _orders(kinds: Sequence[_Kind], at: IntColumn, snapshot: NodeInfoLister, request: planner.Request) -> list[_Order]:
    """Those with free slots first, by what is free now; and, where so few nodes are too small, by what they have at all. For a gang in
    slices those that together hold a slice, where the fewest slots have to come free."""
    now = sum((np.minimum(kind.now, kind.count)[at] * kind.weight for kind in kinds), np.zeros(len(at)))
    empty = sum((np.minimum(kind.empty, kind.count)[at] * kind.weight for kind in kinds), np.zeros(len(at)))
    usable = int((empty > 0).sum())
    by_room = at[np.lexsort((-empty, -now))][:usable]
    steps = in_slices(snapshot, request, by_room.tolist(), kinds[0].empty, _lacking(kinds[0])) if kinds else None
    if steps is not None:
        return [_Order(np.array([row for rows in steps for row in rows], dtype=np.int64), 1)]
    return [_Order(rows, _useful(kinds, rows)) for rows in (by_room, at[np.lexsort((-now, -empty))][:usable])]


def _lacking(kind: _Kind) -> Callable[[int], tuple[float, ...]]:
    """The price of a node: how many slots have to come free; of as many, it is better that they are on few nodes."""
    return lambda row: (float(kind.empty[row] - kind.now[row]), 1.0)


def _useful(kinds: Sequence[_Kind], order: IntColumn) -> int:
    """The nodes that have room for a member now; at least one."""
    now = sum((kind.now[order] for kind in kinds), np.zeros(len(order), dtype=np.int64))
    return max(1, int((now > 0).sum()))


def _confirmed(
    order: _Order,
    chosen: IntColumn,
    emptied: Sequence[NodeInfo],
    request: planner.Request,
    judge: planner.Judge,
    most: int,
) -> frozenset[str] | None:
    """The chosen nodes, or twice as many where members are in each other's way, as long as a plan on them finds places."""
    rows = np.concatenate([chosen, order.rows[~np.isin(order.rows, chosen)]])[:most]
    inside = replace(request, allowed={}, promised=(), placed=(), budget_seconds=BUDGET_SECONDS)
    inside = replace(inside, topology=replace(request.topology, required="", preferred=""))
    count = len(chosen)
    while True:
        nodes = [emptied[int(i)] for i in rows[:count]]
        if isinstance(planner.plan(nodes, inside, judge), planner.Placement):
            return frozenset(node.name for node in nodes)
        if count >= len(rows):
            return None
        count = min(2 * count, len(rows))


def is_pinned(pod: corev1.Pod) -> bool:
    """Whether it is a DaemonSet's pod: controlled by one, and its required node affinity names the one node for which it was made.

    The affinity alone, which any tenant may write, pins nothing: any pod would pass a reservation by it.
    """
    if not controlled_by(pod, DAEMON_SET):
        return False
    affinity = pod.spec.affinity
    preferences = affinity.node_affinity if affinity is not None else None
    required = preferences.required_during_scheduling_ignored_during_execution if preferences is not None else None
    if required is None or len(required.node_selector_terms) != 1:
        return False
    fields = required.node_selector_terms[0].match_fields
    return any(field.key == METADATA_NAME and field.operator == "In" and len(field.values) == 1 for field in fields)
