"""DefaultPreemption: where no node fits, makes room on one by evicting pods of lower priority.

kube-scheduler: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from extender import metrics
from extender.api import corev1, policyv1
from extender.config.plugin_args import DefaultPreemptionArgs
from extender.framework.cycle_state import CycleState
from extender.framework.events import POD, ActionType
from extender.framework.handle import Handle
from extender.framework.interface import (
    ClusterEvent,
    ClusterEventWithHint,
    EnqueueExtensions,
    NodeToStatus,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    QueueingHint,
)
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.preemption.disruption_budgets import split_by_violation
from extender.framework.preemption.evaluator import Evaluator
from extender.framework.preemption.executor import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER, Executor
from extender.framework.preemption.interface import PreemptionInterface
from extender.framework.preemption.node_trial import BrokenTrialError, NodeTrial
from extender.framework.preemption.ordering import more_important_pod, sort_by_importance
from extender.framework.sort_slice import sort_slice
from extender.framework.status import SUCCESS, Code, Status, error, unresolvable
from extender.plugins import names

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
RUNNING = unresolvable("waiting for the preemption for this pod to be finished")
NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."


class DefaultPreemption(PostFilterPlugin, PreEnqueuePlugin, EnqueueExtensions, PreemptionInterface):
    name = names.DEFAULT_PREEMPTION

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self.executor = Executor(handle)
        self.evaluator = Evaluator(self.name, handle, self, self.executor)

    @classmethod
    def create(cls, args: DefaultPreemptionArgs | None, handle: Handle) -> Self:
        return cls(args or DefaultPreemptionArgs(), handle)

    def pre_enqueue(self, pod: corev1.Pod) -> Status:
        """A preemptor is not tried again before the calls that evict its victims have ended."""
        return RUNNING if self.executor.is_running_preemption(pod.uid) else SUCCESS

    def post_filter(
        self, state: CycleState, pod: corev1.Pod, node_statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        metrics.preemption_attempts.inc()
        result, status = self.evaluator.preempt(state, pod, node_statuses)
        if status.message:
            status = replace(status, reasons=("preemption: " + status.message,))
        return result, status

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Deleting a victim only takes the gate off; whether that helps is for the plugins that refused to say."""
        return [ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE), _no_help)]

    def get_offset_and_num_candidates(self, nodes: int) -> tuple[int, int]:
        enough = max(nodes * self._args.min_candidate_nodes_percentage // 100, self._args.min_candidate_nodes_absolute)
        return self._handle.rng.randrange(nodes), min(nodes, enough)

    def pod_eligible_to_preempt_others(self, pod: corev1.Pod, nominated_node_status: Status) -> tuple[bool, str]:
        """Not a pod that may never preempt, nor one whose victims are terminating already."""
        if pod.spec.preemption_policy == "Never":
            return False, NEVER
        nominated = pod.status.nominated_node_name
        if not nominated or nominated_node_status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return True, ""
        try:
            node = self._handle.snapshot().get(nominated)
        except KeyError:
            return True, ""
        if any(_may_preempt(pod, info) and _terminating_by_preemption(info.pod) for info in node.pods):
            return False, TERMINATING
        return True, ""

    def select_victims_on_node(
        self,
        state: CycleState,
        pod: corev1.Pod,
        node: NodeInfo,
        pdbs: Sequence[policyv1.PodDisruptionBudget],
    ) -> tuple[tuple[corev1.Pod, ...], int, Status]:
        """All pods of lower priority leave; then as many as fit come back, budgets first, the important before others."""
        priority = pod.priority
        potential = [info for info in node.pods if info.pod.priority < priority]
        if not potential:
            return (), 0, NO_VICTIMS
        trial = NodeTrial(self._handle, state, pod, node)
        try:
            for info in potential:
                trial.remove(info)
            status = trial.fits()
            if not status.success:
                return (), 0, status
            sort_slice(potential, lambda first, second: more_important_pod(first.pod, second.pod))
            violating, others = split_by_violation(potential, pdbs)
            unspared = [info.pod for info in violating if not trial.reprieved(info)]
            victims = unspared + [info.pod for info in others if not trial.reprieved(info)]
        except BrokenTrialError as failure:
            return (), 0, error(str(failure))
        if violating and others:
            sort_by_importance(victims)
        return tuple(victims), len(unspared), SUCCESS


def _may_preempt(preemptor: corev1.Pod, victim: PodInfo) -> bool:
    return victim.pod.priority < preemptor.priority


def _terminating_by_preemption(pod: corev1.Pod) -> bool:
    """Going because a scheduler chose it; only the first DisruptionTarget condition counts."""
    if not pod.deleting:
        return False
    first = next((known for known in pod.status.conditions if known.type == DISRUPTION_TARGET), None)
    return first is not None and first.status == "True" and first.reason == PREEMPTION_BY_SCHEDULER


def _no_help(pod: corev1.Pod, old: object, new: object) -> QueueingHint:
    return QueueingHint.SKIP
