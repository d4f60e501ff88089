"""DynamicResources, for pods without resource claims. A pod that has one is refused by name: claims are not modelled.

Allocating devices is left to kube-scheduler itself; here nothing is answered as if the claims were not there.
kube-scheduler: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from extender.api import corev1
from extender.config.plugin_args import DynamicResourcesArgs
from extender.framework.columnar import IntColumn, NodeTable, Rows, ScoreColumns
from extender.framework.cycle_state import CycleState
from extender.framework.events import POD, ActionType
from extender.framework.handle import Handle
from extender.framework.interface import (
    ClusterEvent,
    ClusterEventWithHint,
    EnqueueExtensions,
    FilterPlugin,
    NodeScore,
    NodeToStatus,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    ScorePlugin,
)
from extender.framework.node_info import NodeInfo
from extender.framework.pod_requests import pod_requests
from extender.framework.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from extender.plugins import names
from extender.plugins.hints import QUEUE_SKIP
from extender.plugins.normalize import default_normalize_columns, default_normalize_score

STATE = "DynamicResources"
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"  # an extended resource that only devices can satisfy
NOTHING_TO_DEALLOCATE = unschedulable("no new claims to deallocate")
NOT_JUDGED = unresolvable("preemption cannot be judged without the claims")
NOT_FOUND = error("not found")


@dataclass(frozen=True, slots=True)
class ClaimsState:
    """The refusal; "" for a pod without claims. Shared by dry runs."""

    refusal: str


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    ScorePlugin,
    ScoreColumns,
    ReservePlugin,
    PreBindPlugin,
    EnqueueExtensions,
):
    name = names.DYNAMIC_RESOURCES

    @classmethod
    def create(cls, args: DynamicResourcesArgs | None, handle: Handle) -> Self:
        return cls()

    def pre_enqueue(self, pod: corev1.Pod) -> Status:
        """The refusal comes in PreFilter, where it becomes an event of the pod."""
        return SUCCESS

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        refusal = not_modelled(pod)
        state.write(STATE, ClaimsState(refusal))
        return None, unresolvable(refusal) if refusal else SKIP

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        return _refused(state)

    def post_filter(
        self, state: CycleState, pod: corev1.Pod, node_statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """An error where another plugin's PreFilter had ended the cycle before ours ran, as in kube-scheduler."""
        claims = state.get(STATE, ClaimsState)
        if claims is None:
            return None, NOT_FOUND
        return None, NOT_JUDGED if claims.refusal else NOTHING_TO_DEALLOCATE

    def score(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> tuple[int, Status]:
        return 0, _refused(state)

    def normalize_score(self, state: CycleState, pod: corev1.Pod, scores: list[NodeScore]) -> Status:
        default_normalize_score(scores, reverse=False)
        return SUCCESS

    def score_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable, rows: Rows) -> IntColumn | None:
        return np.zeros(len(rows), dtype=np.int64) if _refused(state).success else None

    def normalize_columns(self, state: CycleState, pod: corev1.Pod, scores: IntColumn, rows: Rows) -> IntColumn | None:
        return default_normalize_columns(scores, reverse=False)

    def reserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        return _refused(state)

    def unreserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> None:
        pass

    def pre_bind_pre_flight(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        refused = _refused(state)
        return SKIP if refused.success else error(refused.message)

    def pre_bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        return _refused(state)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Nothing that happens makes claims known here."""
        event = ClusterEvent(POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
        return [ClusterEventWithHint(event, lambda pod, old, new: QUEUE_SKIP)]


def not_modelled(pod: corev1.Pod) -> str:
    """Why nothing can be said of the pod; "" where it needs no claims."""
    named = [claim.name for claim in pod.spec.resource_claims]
    if named:
        return f"DynamicResources: resource claims are not modelled: {', '.join(named)}"
    requests = pod_requests(pod).items()
    devices = sorted(name for name, amount in requests if amount and name.startswith(DEVICE_CLASS_PREFIX))
    if devices:
        return f"DynamicResources: resources that devices satisfy are not modelled: {', '.join(devices)}"
    return ""


def _refused(state: CycleState) -> Status:
    claims = state.get(STATE, ClaimsState)
    if claims is None:
        return NOT_FOUND
    return unresolvable(claims.refusal) if claims.refusal else SUCCESS
