"""PreFilter and Filter: a member goes to the node of its place, and other pods stay out of the room that is kept for gangs.

The plugin hands on what the framework asks. Admission decides on members, SinglePods and ReservedRoom on pods of no gang.
scheduler-plugins: pkg/coscheduling/coscheduling.go (PreFilter)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from extender.api import corev1
from extender.framework.columnar import (
    ALL_PASS,
    NodeTable,
    Verdicts,
)
from extender.framework.cycle_state import AWAITED, CycleState
from extender.framework.interface import (
    PreFilterResult,
)
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.node_rows import names_of
from extender.framework.status import SKIP, SUCCESS, Code, Status, unresolvable
from extender.plugins import names
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.extension_points.admission import Admission, Decision
from extender.plugins.coscheduling.extension_points.reserved_room import KeptRoom, ReservedRoom
from extender.plugins.coscheduling.extension_points.single_pods import SinglePods, outside_domain
from extender.plugins.coscheduling.extension_points.unshown_pods import UnshownPods
from extender.plugins.coscheduling.plan_call import PlanCall
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

T = TypeVar("T")

KEPT = "Kept" + names.COSCHEDULING


class GangPreFilter:
    """unshown: where groups may be in spec.schedulingGroup, and calls may wait. snapshot: of the scheduling cycle."""

    def __init__(
        self,
        manager: PodGroupManager,
        rounds: PlanningRounds,
        admission: Admission,
        single_pods: SinglePods,
        room: ReservedRoom,
        unshown: UnshownPods | None,
        snapshot: Callable[[], NodeInfoLister],
    ) -> None:
        self._manager = manager
        self._rounds = rounds
        self._admission = admission
        self._single_pods = single_pods
        self._room = room
        self._unshown = unshown
        self._snapshot = snapshot

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """A member of a gang that is set aside is refused; a pod of no gang passes whatever the state of gangs raises."""
        if self._unshown is not None and not self._unshown.has_shown(state, pod):
            return None, Status(Code.ERROR, (messages.NOT_SHOWN,))  # kube-scheduler tries it again by itself
        if not self._begun_is_planned(state, pod):
            return None, unresolvable(messages.BEGUN_FIRST)
        key = self._manager.key_of(pod)
        step = partial(self._pre_filter, state, pod, nodes)
        answer = self._manager.quarantine.for_gang(key, "filter", step, None)
        if answer is not None:
            return answer
        self._stop_waiting(state)
        return None, self._admission.set_aside(pod, key) if key else SKIP

    def _pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        node_name, status = self._decide(state, pod, nodes)
        if not status.success:
            return None, status
        if node_name is not None:
            return PreFilterResult(frozenset((node_name,))), SUCCESS
        level, inside = self._single_pods.confined_to(pod, nodes, self._snapshot())
        if inside is not None and not inside:
            return None, unresolvable(outside_domain(level))
        kept = self._room.kept_from(pod, self._snapshot())
        if kept is not None:
            state.write(KEPT, kept)
        elif inside is None:
            return None, SKIP
        return PreFilterResult(inside) if inside is not None else None, SUCCESS

    def _begun_is_planned(self, state: CycleState, pod: corev1.Pod) -> bool:
        """Whether the pod may be answered; what to wait for is in the state then, once."""
        if self._rounds.begun.is_planned():
            return True
        if not self._rounds.beside_the_verbs:
            self._rounds.begun.finish()
            return True
        if state.awaited is None:
            state.write(AWAITED, self._rounds.begun.call(pod))
        else:
            self._stop_waiting(state)
        return False

    def _decide(self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Decision:
        """Where a thread plans beside the verbs the plan is waited for with no lock held; elsewhere it is made here."""
        if not self._rounds.beside_the_verbs:
            return self._admission.admit(pod, frozenset(names_of(nodes)))
        before = state.awaited
        decision, call = self._admission.decide(
            pod, lambda: frozenset(names_of(nodes)), before if isinstance(before, PlanCall) else None
        )
        state.delete(AWAITED)
        if call is not None:
            state.write(AWAITED, call)
        return decision

    def _stop_waiting(self, state: CycleState) -> None:
        if state.awaited is not None:
            state.awaited.give_up()
            state.delete(AWAITED)

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        kept = state.get(KEPT, KeptRoom)
        return self._kept(state, partial(self._room.judge, kept, pod, node), SUCCESS) if kept is not None else SUCCESS

    def filter_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable) -> Verdicts | None:
        kept = state.get(KEPT, KeptRoom)
        return self._kept(state, partial(self._room.judge_all, kept, pod, table), ALL_PASS) if kept else ALL_PASS

    def _kept(self, state: CycleState, judge: Callable[[], T], passes: T) -> T:
        """Where what is kept for others raises nothing is kept: they can be planned again, and this pod would never pass."""
        verdict = self._manager.quarantine.for_gang("", "filter", lambda: (judge(),), None)
        if verdict is None:
            state.delete(KEPT)
            return passes
        return verdict[0]
