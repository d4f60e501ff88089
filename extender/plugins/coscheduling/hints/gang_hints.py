"""Whether an event may help a gang that waits: the in-tree plugins' queueing hints, asked for its members.

WakeUps asks, for gangs that a plan has found no places for. A hint says whether one plugin may judge one pod otherwise than
before; a gang is helped where that is so for one of its kinds of members, and, where the plugin judges a node by itself, that
node takes a member at all. Hints that leave a case to kube-scheduler's retries are made wider here: nothing tries a gated gang
again. kube-scheduler: pkg/scheduler/backend/queue/scheduling_queue.go (isPodWorthRequeuing)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain

from extender.api import corev1
from extender.crash import plugin_crashed
from extender.framework.events import NODE, POD, ActionType, matches
from extender.framework.hint_rows import HintRow
from extender.framework.interface import ClusterEvent, QueueingHint
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.resource import Resource
from extender.plugins import names
from extender.plugins.coscheduling.hints.helpful_events import Happened, changed_labels, grew
from extender.plugins.coscheduling.waits_for import Demand, MemberKind, Trait, WaitIndex, brings_volumes
from extender.plugins.inter_pod_affinity.topology_counts import matches_all
from extender.plugins.node_unschedulable import tolerates_cordon

LOCAL = frozenset(
    {names.NODE_UNSCHEDULABLE, names.NODE_NAME, names.TAINT_TOLERATION, names.NODE_AFFINITY, names.NODE_RESOURCES_FIT}
)
"""Plugins that judge a node by itself, and by more than which ports are taken."""
VOLUMES = frozenset({names.VOLUME_BINDING, names.VOLUME_RESTRICTIONS, names.VOLUME_ZONE, names.NODE_VOLUME_LIMITS})
NODE_ADDED = ClusterEvent(NODE, ActionType.ADD)

Stays = Callable[[PodInfo, int], bool]
"""Whether a pod on a node stays there whatever a gang of that priority does."""


class GangHints:
    """rows: of the plugins that plans are judged by; without any, what may help some pod helps every gang. Stateless."""

    def __init__(self, rows: Sequence[HintRow]) -> None:
        self._rows = [row for row in rows if row.event.resource in (NODE, POD)]
        local = LOCAL - {names.NODE_UNSCHEDULABLE}  # its hint does not know pods that tolerate a cordon
        self._static = [row for row in self._rows if row.plugin in local and matches(row.event, NODE_ADDED)]

    def judge(
        self, happened: Happened, snapshot: NodeInfoLister, stays: Stays, anti_affinity_keys: Collection[str]
    ) -> EventJudge:
        """snapshot: no older than the event. anti_affinity_keys: topology keys of existing pods' required anti-affinity."""
        return EventJudge(self._rows, self._static, happened, snapshot, stays, anti_affinity_keys)


class EventJudge:
    """One event: which gangs it may help, of those that an index holds."""

    def __init__(
        self,
        rows: Sequence[HintRow],
        static: Sequence[HintRow],
        happened: Happened,
        snapshot: NodeInfoLister,
        stays: Stays,
        anti_affinity_keys: Collection[str],
    ) -> None:
        self._happened = happened
        self._rows = [row for row in rows if any(matches(row.event, event) for event in happened.events)]
        self._static = static
        self._known_plugins = bool(static)
        self._selects = any(row.plugin == names.NODE_AFFINITY for row in static)
        self._stays = stays
        self._left: dict[int, Resource] = {}
        self._node = _node_of(happened, snapshot)
        old, new = happened.old, happened.new
        both = isinstance(old, corev1.Node) and isinstance(new, corev1.Node)
        self._changed = changed_labels(old, new) if both else frozenset()  # type: ignore[arg-type]
        self._node_went = isinstance(old, corev1.Node) and new is None
        self._anti_affinity_moved = bool(self._changed.intersection(anti_affinity_keys)) or (
            self._node_went and bool(anti_affinity_keys)
        )
        self._gone = old if isinstance(old, corev1.Pod) and new is None else None
        self._anti_affinity_gone = self._gone is not None and bool(PodInfo(self._gone).required_anti_affinity_terms)

    @property
    def may_help(self) -> bool:
        """Some pod of which nothing is known."""
        return self._happened.may_help

    def helped_whatever_they_ask(self, index: WaitIndex) -> set[str]:
        """The keys of the gangs that the event may help, as far as that shows without a look at their members. Lock held."""
        found: set[str] = set()
        if self._happened.may_help:
            found |= index.anything if self._known_plugins else index.keys()
            if self._adds_room():
                found |= index.room_anywhere
        for level in index.levels() if self._node_went else self._changed:
            found |= index.of_level(level)
        return found

    def candidates(self, index: WaitIndex) -> Sequence[Demand]:
        """The demands to ask. None that it may help is missing: what frees no room may help only those that look beyond their node.
        Lock held."""
        if self._anti_affinity_gone or self._anti_affinity_moved:
            return list(index.demands())
        node = self._node
        room: Iterator[Demand] = iter(())
        if self._happened.may_help and node is not None and node.node is not None:
            labels = node.node.metadata.labels if self._selects else None
            room = index.for_room(labels, self._room_for)
        found = chain(room, *(index.with_trait(trait) for trait in self._concerns()))
        return list({demand.number: demand for demand in found}.values())

    def _concerns(self) -> Iterator[Trait]:
        yield from (Trait.PODS, Trait.SPREAD)
        if self._gone is not None:
            yield Trait.PORTS
        if isinstance(self._happened.new, corev1.Node) or (self._gone is not None and brings_volumes(self._gone)):
            yield Trait.VOLUMES

    def _adds_room(self) -> bool:
        """Somewhere: it is summed up over all nodes that are not cordoned."""
        old, new = self._happened.old, self._happened.new
        if not (isinstance(old, corev1.Node) and isinstance(new, corev1.Node)):
            return True
        uncordoned = old.spec.unschedulable and not new.spec.unschedulable
        return uncordoned or grew(old.status.allocatable, new.status.allocatable)

    def helps(self, demand: Demand) -> bool:
        kind, priority = demand.kind, demand.priority
        if isinstance(self._happened.new or self._happened.old, corev1.Pod):
            return self._pod_helps(kind, priority)
        return self._node_helps(kind, priority)

    # Pods on their nodes

    def _pod_helps(self, kind: MemberKind, priority: int) -> bool:
        if self._anti_affinity_gone:
            return True
        if kind.has_volumes and self._gone is not None and brings_volumes(self._gone):
            return True  # what it used alone, or was attached with it, may be had by another
        if kind.minds_pods and (_selects_namespaces(kind) or self._wanted_no_more(kind)):
            return True
        return any(self._lets_pass(row, kind, priority) for row in self._rows)

    def _wanted_no_more(self, kind: MemberKind) -> bool:
        """Where members ask for each other, and no such pod is left that runs, they may go anywhere."""
        old, new = self._happened.old, self._happened.new
        wanted = kind.first.required_affinity_terms
        before = isinstance(old, corev1.Pod) and matches_all(wanted, old)
        return before and not (isinstance(new, corev1.Pod) and matches_all(wanted, new))

    def _lets_pass(self, row: HintRow, kind: MemberKind, priority: int) -> bool:
        old, new = self._happened.old, self._happened.new
        match row.plugin:
            case names.NODE_RESOURCES_FIT:
                return self._happened.may_help and self._takes(kind, priority)
            case names.NODE_PORTS:
                return bool(kind.first.host_ports) and self._gone is not None and self._asks(row, kind)
            case names.POD_TOPOLOGY_SPREAD if isinstance(new, corev1.Pod) and new.deleting and old is not None:
                return kind.spreads and _ask(row, kind.first.pod, old, None)  # it counts no longer
            case names.POD_TOPOLOGY_SPREAD:
                return kind.spreads and self._asks(row, kind)
            case names.INTER_POD_AFFINITY:
                return kind.minds_pods and self._asks(row, kind)
        return False

    # Nodes

    def _node_helps(self, kind: MemberKind, priority: int) -> bool:
        old, new = self._happened.old, self._happened.new
        if not isinstance(new, corev1.Node):
            return kind.spreads or kind.minds_pods or self._anti_affinity_moved
        before = old if isinstance(old, corev1.Node) else None
        if self._anti_affinity_moved or (kind.spreads and self._moves_spread(kind, before, new)):
            return True
        for row in self._rows:
            if row.plugin in LOCAL:
                if self._asks(row, kind) and self._takes(kind, priority):
                    return True
            elif row.plugin == names.INTER_POD_AFFINITY:
                if self._changed & kind.domain_keys or (kind.minds_pods and self._asks(row, kind)):
                    return True
            elif row.plugin in VOLUMES and kind.has_volumes and self._asks(row, kind):
                return True
        ready_again = before is not None and before.not_ready and not new.not_ready
        return ready_again and self._takes(kind, priority)

    def _moves_spread(self, kind: MemberKind, before: corev1.Node | None, new: corev1.Node) -> bool:
        """Whether domains, or which nodes count for them, may be others now: labels and taints say so, in either direction."""
        if before is None:
            return True
        return bool(self._changed & kind.keys) or before.spec.taints != new.spec.taints

    # Either

    def _takes(self, kind: MemberKind, priority: int) -> bool:
        """Whether the event's node is for such a member, and has room for one if all pods go that may be evicted for it."""
        info = self._node
        if info is None or info.node is None:
            return False
        left = self._room_for(priority)
        if left.allowed_pod_number < 1 or any(left.amount(name) < asked for name, asked in kind.asked.items()):
            return False
        node, pod = info.node, kind.first.pod
        if info.unschedulable and not tolerates_cordon(pod):
            return False
        return all(_ask(row, pod, None, node) for row in self._static)

    def _room_for(self, priority: int) -> Resource:
        """What the event's node has for a pod of that priority."""
        left = self._left.get(priority)
        if left is None and self._node is not None:
            left = self._left[priority] = _room_beside(self._node, lambda pod: self._stays(pod, priority))
        return left if left is not None else Resource()

    def _asks(self, row: HintRow, kind: MemberKind) -> bool:
        return _ask(row, kind.first.pod, self._happened.old, self._happened.new)


def _ask(row: HintRow, pod: corev1.Pod, old: object, new: object) -> bool:
    """A hint that fails is a yes: better one plan too many than a gang that is forgotten."""
    if row.hint is None:
        return True
    try:
        return row.hint(pod, old, new) is QueueingHint.QUEUE
    except Exception:
        plugin_crashed(row.plugin, "QueueingHint")
        return True


def _selects_namespaces(kind: MemberKind) -> bool:
    terms = (*kind.first.required_affinity_terms, *kind.first.required_anti_affinity_terms)
    return any(term.namespace_selector is not None for term in terms)


def _node_of(happened: Happened, snapshot: NodeInfoLister) -> NodeInfo | None:
    """The node that the event is of, as it is by now."""
    known = happened.new or happened.old
    name = known.node_name if isinstance(known, corev1.Pod) else known.name if known is not None else ""
    try:
        return snapshot.get(name)
    except KeyError:
        return None


def _room_beside(node: NodeInfo, stays: Callable[[PodInfo], bool]) -> Resource:
    """What the node has for a pod if those go that do not stay."""
    left = node.allocatable.clone()
    for info in node.pods:
        if stays(info):
            left.subtract(info.requests)
            left.allowed_pod_number -= 1
    return left
