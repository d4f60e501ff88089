"""Room that is kept from a pod: by the slots of others, and by the backfill reservation of a gang that waits.

Coscheduling's PreFilter and Filter ask it. It also watches over the places themselves: a pod of higher priority may take
the room of one, and then that one alone is planned again. A pod that was refused for kept room is noted, and woken when a place
or a reservation has ended without a binding: nothing that happens in the cluster would wake them then.
No counterpart upstream: kube-scheduler keeps nominated pods' room in its own filters
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.api import corev1
from extender.framework.columnar import ALL_PASS, NodeTable, Verdicts
from extender.framework.hypothetical import without_pods
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.planner.room import Amounts, Room, asked_of
from extender.plugins.coscheduling.pod_conditions import refusal_says, was_sent
from extender.plugins.coscheduling.scheduling.backfill_reservation import BackfillReservations
from extender.plugins.coscheduling.scheduling.lost_slots import fits_beside, recheck
from extender.plugins.coscheduling.scheduling.overlay import Overlays
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.slots import Slot

WAKE_SECONDS = 1.0  # between two wakings of all
MAX_NOTED = 10_000
RESERVED = unresolvable(messages.ROOM_RESERVED)
NODES_RESERVED = unresolvable(messages.NODES_RESERVED)


@dataclass(frozen=True, slots=True)
class KeptRoom:
    """The room that Filter keeps from one pod. promised: node -> the slots there that hold against the pod. cluster: the cycle's snapshot
    with these slots in it. reserved: nodes of a backfill reservation."""

    asked: Amounts
    promised: Mapping[str, Sequence[Slot]]
    cluster: NodeInfoLister
    reserved: frozenset[str]


class ReservedRoom:
    """The manager's lock guards everything here. schedule_planning: has active gangs planned."""

    def __init__(
        self,
        manager: PodGroupManager,
        overlays: Overlays,
        dependencies: CoschedulingDependencies,
        reservations: BackfillReservations,
        schedule_planning: Callable[[], None],
    ) -> None:
        self._manager = manager
        self._overlays = overlays
        self._with = dependencies
        self._reservations = reservations
        self._schedule_planning = schedule_planning
        self._turned_away: dict[str, corev1.Pod] = {}
        self._ended = False  # kept room has ended without a binding, and no pod has been told
        self._wake_from = 0.0
        self._found = False  # a pod that was refused before we began to lead, and none has been told since

    # PreFilter and Filter

    def kept_from(self, pod: corev1.Pod, snapshot: NodeInfoLister) -> KeptRoom | None:
        """The room that is kept from the pod; None where there is none. Its own slot, for which victims have gone, is not kept from it, and
        neither are the slots for members of its gang that come later."""
        with self._manager.lock:
            overlay = self._overlays.against(pod.priority)
            promised, cluster = overlay.by_node(), overlay.over(snapshot)
            slots = self._manager.slots
            own = [*filter(None, [slots.get(pod.uid)]), *slots.to_come(self._manager.key_of(pod))]
            reserved = self._reservations.kept_from(pod)
        if own := [slot for slot in own if slot.node_name in promised]:
            uids = {slot.uid for slot in own}
            names = {slot.node_name for slot in own}
            promised = {
                **promised,
                **{name: [place for place in promised[name] if place.uid not in uids] for name in names},
            }
            cluster = without_pods(cluster, dict.fromkeys(names, uids))
        return KeptRoom(asked_of(PodInfo(pod).requests), promised, cluster, reserved) if promised or reserved else None

    def judge(self, kept: KeptRoom, pod: corev1.Pod, node: NodeInfo) -> Status:
        if node.name in kept.reserved:
            self._turn_away(pod)
            return NODES_RESERVED
        here = {info.pod.uid for info in node.pods} if node.name in kept.promised else frozenset[str]()
        coming = [place.pod_info for place in kept.promised.get(node.name, ()) if place.uid not in here]
        if coming and not fits_beside(kept.asked, node, coming):
            self._turn_away(pod)
            return RESERVED
        return SUCCESS

    def judge_all(self, kept: KeptRoom, pod: corev1.Pod, table: NodeTable) -> Verdicts:
        """`judge` for each node, by the columns of the snapshot with the places in it."""
        codes = np.zeros(len(table), dtype=np.int32)
        statuses = (RESERVED, NODES_RESERVED)
        full = Room.of(kept.cluster, kept.asked).capacity(kept.asked) < 1
        laid = kept.cluster.list()
        rows = [row for name in kept.promised if (row := table.position(name)) is not None]
        promised = np.array([row for row in rows if laid[row] is not table.nodes[row]], dtype=np.intp)
        codes[promised[full[promised]]] = 1 + statuses.index(RESERVED)
        codes[[row for name in kept.reserved if (row := table.position(name)) is not None]] = 1 + statuses.index(
            NODES_RESERVED
        )
        if not codes.any():
            return ALL_PASS
        self._turn_away(pod)
        return Verdicts(codes, statuses)

    def _turn_away(self, pod: corev1.Pod) -> None:
        with self._manager.lock:
            if len(self._turned_away) < MAX_NOTED:
                self._turned_away.setdefault(pod.uid, pod)

    # What happens to places

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """Before the groups hear of it: a pod that came to a node may have taken room that was promised there."""
        pod = new or old
        if pod is None:
            return
        if new is None or new.node_name or new.deleting:
            with self._manager.lock:
                self._turned_away.pop(pod.uid, None)
        if old is None and new is not None and not new.node_name and _was_turned_away(new):
            with self._manager.lock:
                self._turn_away(new)
                self._found = True
        if new is not None and new.node_name and (old is None or not old.node_name):
            self.arrived(new, new.node_name)
        if old is not None and old.status.nominated_node_name and self._gave_up_nomination(old, new):
            with self._manager.lock:
                self._manager.notes.on_capacity_freed()
            self._schedule_planning()

    def _gave_up_nomination(self, old: corev1.Pod, new: corev1.Pod | None) -> bool:
        """Room that kube-scheduler kept for a preemptor is free now, and no pod has gone from any node. What we keep ourselves
        ends with its slot."""
        kept = old.status.nominated_node_name
        if old.node_name or was_sent(old):
            return False
        return new is None or kept not in (new.node_name, new.status.nominated_node_name)

    def arrived(self, pod: corev1.Pod, node_name: str) -> None:
        """A pod is on a node, bound or assumed. One that took its own place, or its gang's, has taken no other's."""
        with self._manager.lock:
            slot = self._manager.slots.get(pod.uid)
            if slot is not None and slot.node_name == node_name:
                return
            others = [place for place in self._manager.slots.on_node(node_name) if place.pod_info.pod.uid != pod.uid]
            own = self._manager.group_known_of(pod) if others else None
            if all(own is not None and place.group == own.key for place in others):
                return
        self._recheck(node_name)

    def on_node(self, old: corev1.Node | None, new: corev1.Node | None) -> None:
        """A node that was cordoned, or has less to give, keeps only the places that it still has room for."""
        if old is None or new is None:
            return
        if old.spec != new.spec or old.status.allocatable != new.status.allocatable:
            with self._manager.lock:
                promised = bool(list(self._manager.slots.on_node(new.name)))
            if promised:
                self._recheck(new.name)

    def _recheck(self, node_name: str) -> None:
        """Gives up the places there that are good no more, and has their members planned again."""
        if recheck(self._manager, [node_name], self._with.newest_snapshot()):
            self._schedule_planning()

    # Waking

    def tick(self) -> None:
        """After plans were made: pods that were refused for room that is still free are woken, all by one event.

        What was kept before we began to lead is kept no more, if no plan has renewed it by the tick after.
        """
        manager = self._manager
        if not self._with.may_plan():
            return
        with manager.lock:
            if self._found:
                self._found, self._ended = False, True
                return
            given_up, reservation_ended = manager.slots.given_up(), self._reservations.ended()
            self._ended = self._ended or given_up or reservation_ended
            now = manager.clock()
            if not self._ended or now < self._wake_from:
                return
            self._ended = False
            pods, self._turned_away = list(self._turned_away.values()), {}
            if pods:
                self._wake_from = now + WAKE_SECONDS
        if pods:
            self._with.wake_refused(pods)


def _was_turned_away(pod: corev1.Pod) -> bool:
    """By the text of its last refusal."""
    return refusal_says(pod, messages.ROOM_RESERVED, messages.NODES_RESERVED)
