"""NodeResourcesFit: what a pod asks for has to be free; and how well it packs, by the configured strategy.

kube-scheduler: pkg/scheduler/framework/plugins/noderesources/fit.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from extender.api import corev1
from extender.config.plugin_args import NodeResourcesFitArgs
from extender.framework.columnar import FilterColumns, IntColumn, NodeTable, Rows, ScoreColumns, Verdicts
from extender.framework.cycle_state import CycleState
from extender.framework.handle import Handle
from extender.framework.interface import (
    ClusterEventWithHint,
    EnqueueExtensions,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from extender.framework.node_info import NodeInfo
from extender.framework.pod_requests import Amounts, pod_requests
from extender.framework.resource import Resource
from extender.framework.shared_requests import NON_ZERO_DEFAULTS
from extender.framework.status import SUCCESS, Status, unresolvable, unschedulable
from extender.plugins import names, node_resources_fit_hints
from extender.plugins.node_resources_fit_columns import fit_verdicts
from extender.plugins.resource_allocation import scorer_of
from extender.plugins.resource_allocation_columns import column_scorer_of

STATE = "PreFilterNodeResourcesFit"
SCORE_STATE = "PreScoreNodeResourcesFit"


class NodeResourcesFit(
    PreFilterPlugin, FilterPlugin, FilterColumns, PreScorePlugin, ScorePlugin, ScoreColumns, EnqueueExtensions
):
    name = names.NODE_RESOURCES_FIT

    def __init__(self, args: NodeResourcesFitArgs) -> None:
        self._ignored = args.ignored_resources
        self._ignored_groups = args.ignored_resource_groups
        self._score = scorer_of(args.scoring_strategy)
        self._score_columns = column_scorer_of(args.scoring_strategy)

    @classmethod
    def create(cls, args: NodeResourcesFitArgs | None, handle: Handle) -> Self:
        return cls(args or NodeResourcesFitArgs())

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        state.write(STATE, Resource.from_amounts(pod_requests(pod)))
        return None, SUCCESS

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        """Every resource that runs short is named; one that the node could never have makes it unresolvable."""
        asked = state.read(STATE, Resource)
        allocatable, requested = node.allocatable, node.requested
        reasons: list[str] = []
        never = False
        if len(node.pods) + 1 > allocatable.allowed_pod_number:
            reasons.append("Too many pods")
        for name, want, there, taken in (
            ("cpu", asked.milli_cpu, allocatable.milli_cpu, requested.milli_cpu),
            ("memory", asked.memory, allocatable.memory, requested.memory),
            ("ephemeral-storage", asked.ephemeral_storage, allocatable.ephemeral_storage, requested.ephemeral_storage),
        ):
            if want > 0 and want > there - taken:
                reasons.append(f"Insufficient {name}")
                never = never or want > there
        for name, want in asked.scalar.items():
            if want <= 0 or self._is_ignored(name):
                continue
            there = allocatable.scalar.get(name, 0)
            if want > there - requested.scalar.get(name, 0):
                reasons.append(f"Insufficient {name}")
                never = never or want > there
        if not reasons:
            return SUCCESS
        return unresolvable(*reasons) if never else unschedulable(*reasons)

    def filter_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable) -> Verdicts | None:
        return fit_verdicts(state.read(STATE, Resource), self._is_ignored, table)

    def _is_ignored(self, name: str) -> bool:
        """Extended resources only, by name or by the group before the slash."""
        if "/" not in name or "kubernetes.io/" in name:
            return False
        return name in self._ignored or name.partition("/")[0] in self._ignored_groups

    def pre_score(self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Status:
        """The scorer's view of the pod leaves pod-level resources out, as kube-scheduler's does."""
        state.write(SCORE_STATE, pod_requests(pod, non_missing=NON_ZERO_DEFAULTS, skip_pod_level=True))
        return SUCCESS

    def score(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> tuple[int, Status]:
        asked: Amounts = state.read(SCORE_STATE, dict)
        return self._score(asked, node), SUCCESS

    def score_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable, rows: Rows) -> IntColumn | None:
        return self._score_columns(state.read(SCORE_STATE, dict), table, rows)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return node_resources_fit_hints.events_to_register()
