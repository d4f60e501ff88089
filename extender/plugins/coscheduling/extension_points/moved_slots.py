"""Slots that are moved to a node that kube-scheduler offers, in the filter call and without a plan.

With a percentageOfNodesToScore kube-scheduler offers a sample, which need hold no node of the gang's free slots. Any other node that is
as good will do for a member that looks at no other, of a gang to which nothing is promised of where it is: the slot that the member has
is moved to the one that a plan of this member alone would choose. All other slots are refuted, and planned anew. Admission asks.
No counterpart upstream
"""

from __future__ import annotations

import numpy as np
from cachetools import LRUCache

from extender import metrics
from extender.framework.columnar import NodeTable, Rows, table_of
from extender.framework.interface import MIN_FEASIBLE_NODES_TO_FIND
from extender.framework.listers import NodeInfoLister
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.dispatch.free_to_move import is_free_to_move
from extender.plugins.coscheduling.planner.room import BoolColumn
from extender.plugins.coscheduling.scheduling.backfill_reservation import BackfillReservations
from extender.plugins.coscheduling.scheduling.overlay import BELOW_ANY_PRIORITY
from extender.plugins.coscheduling.scheduling.plan_request import PlanRequests
from extender.plugins.coscheduling.scheduling.topology import places_of, topology_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

KEPT_SHAPES = 64  # of which it is known what nodes they may go to


class MovedSlots:
    """The manager's lock guards everything here."""

    def __init__(
        self,
        manager: PodGroupManager,
        dependencies: CoschedulingDependencies,
        requests: PlanRequests,
        reservations: BackfillReservations,
    ) -> None:
        self._manager = manager
        self._with = dependencies
        self._requests = requests
        self._reservations = reservations
        self._judge = dependencies.judges.new()
        self._open: LRUCache[tuple[object, int, int], BoolColumn] = LRUCache(KEPT_SHAPES)

    def move(self, group: Group, uid: str, offered: frozenset[str]) -> str | None:
        """The offered node that the member's slot is on now; None where it stays, and there has to be a plan.

        It costs some look-ups by column, whatever number of slots there are. The room of all slots counts, of lower priority too: none has
        to give way. kube-scheduler has tried all nodes where it offers fewer than a sample: then it has refused the slot's node.
        """
        slot, spec = self._manager.slots.get(uid), self._manager.specs.of(group)
        if len(offered) < MIN_FEASIBLE_NODES_TO_FIND or slot is None or spec is None:
            return None
        member, snapshot = group.members[uid], self._with.newest_snapshot()
        table = table_of(snapshot)
        if member.is_nominated or table is None or not is_free_to_move(self._manager, group, slot):
            return None
        laid = self._requests.overlays.against(BELOW_ANY_PRIORITY).over(snapshot)
        rows = self._rows(member.info, self._left(group, uid, offered), snapshot, table)
        if rows is None or is_kept_off(member.info, laid):
            return None
        topology = topology_of(self._requests.topology, [spec.topology])
        placed = list(places_of(self._manager, group, but=uid)) if topology.levels else ()
        try:
            row = planner.place_one(member.info, laid, rows, topology, placed)
        except planner.UnknownLevelError:
            return None
        if row is None:
            return None
        node_name = table.names[row]
        self._manager.slots.move(uid, node_name)
        if member.nomination is not None:
            member.nomination = node_name
        metrics.moved_slots.inc()
        return node_name

    def _left(self, group: Group, uid: str, offered: frozenset[str]) -> frozenset[str]:
        """Of the nodes offered those that a plan might give the member."""
        manager = self._manager
        left = group.refuted.without(uid, offered, manager.clock(), manager.notes.cluster_epoch)
        left -= self._reservations.kept_from_gang_set((group,))
        nominated = self._requests.nominated((group,), BELOW_ANY_PRIORITY)
        return left.difference(name for name, _ in nominated) if nominated else left

    def _rows(self, member: PodInfo, names: frozenset[str], snapshot: NodeInfoLister, table: NodeTable) -> Rows | None:
        """The rows of those of the named nodes that refuse the member for nothing but want of room, ascending; None if a name is not
        known yet."""
        rows = table.rows_named(list(names))
        if rows is None:
            return None
        rows = np.sort(rows)
        return rows[self._open_to(member, snapshot)[rows]]

    def _open_to(self, member: PodInfo, snapshot: NodeInfoLister) -> BoolColumn:
        """The nodes that refuse the member for nothing but want of room: judged once for all of its shape, until a node changes."""
        generation = getattr(snapshot, "node_generation", None)
        if generation is None:
            return planner.open_nodes(member, snapshot, self._judge)
        key = planner.shape_of(member), generation, len(snapshot.list())
        known = self._open.get(key)
        if known is None:
            known = self._open[key] = planner.open_nodes(member, snapshot, self._judge)
        return known


def is_kept_off(member: PodInfo, laid: NodeInfoLister) -> bool:
    """Whether a pod, bound or to come, may mind where this one goes: kube-scheduler has looked at those alone that it knows of."""
    if not laid.have_pods_with_required_anti_affinity():
        return False
    table = table_of(laid)
    if table is None:
        return True
    return any(
        term.namespace_selector is not None or term.matches(member.pod, {})
        for _, known in table.affinity().of_namespace(member.pod.namespace)
        for term in known.required_anti
    )
