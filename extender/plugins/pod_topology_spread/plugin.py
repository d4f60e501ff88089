"""The plugin: hard constraints filter, soft ones score.

kube-scheduler: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from extender.api import corev1
from extender.config.plugin_args import PodTopologySpreadArgs, PodTopologySpreadDefaulting
from extender.framework.columnar import (
    FilterColumns,
    IntColumn,
    NodeTable,
    Rows,
    ScoreColumns,
    Verdicts,
    table_of,
)
from extender.framework.cycle_state import CycleState
from extender.framework.handle import Handle
from extender.framework.interface import (
    ClusterEventWithHint,
    EnqueueExtensions,
    FilterPlugin,
    NodeScore,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from extender.framework.node_info import NodeInfo
from extender.framework.node_rows import only, rows_in
from extender.framework.pod_info import PodInfo
from extender.framework.selector_errors import SelectorError
from extender.framework.status import SKIP, SUCCESS, Status, error
from extender.plugins import names
from extender.plugins.pod_topology_spread import columns
from extender.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SYSTEM_DEFAULTS,
    Constraint,
    defaults,
    parse,
)
from extender.plugins.pod_topology_spread.filtering import MISSING_LABEL, SKEWED, SpreadCounts
from extender.plugins.pod_topology_spread.hints import SpreadHints
from extender.plugins.pod_topology_spread.scoring import SpreadScores

STATE = "PreFilterPodTopologySpread"
SCORE_STATE = "PreScorePodTopologySpread"


class PodTopologySpread(
    PreFilterPlugin,
    FilterPlugin,
    FilterColumns,
    PreScorePlugin,
    ScorePlugin,
    ScoreColumns,
    EnqueueExtensions,
    PreFilterExtensions,
):
    name = names.POD_TOPOLOGY_SPREAD

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        self._handle = handle
        self._system = args.defaulting_type is PodTopologySpreadDefaulting.SYSTEM
        self._defaults = SYSTEM_DEFAULTS if self._system else args.default_constraints

    @classmethod
    def create(cls, args: PodTopologySpreadArgs | None, handle: Handle) -> Self:
        return cls(args or PodTopologySpreadArgs(), handle)

    def _constraints(self, pod: corev1.Pod, when: str) -> list[Constraint]:
        own = pod.spec.topology_spread_constraints
        return parse(pod, own, when) if own else defaults(pod, self._defaults, when, self._handle)

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        try:
            constraints = self._constraints(pod, DO_NOT_SCHEDULE)
        except SelectorError as unreadable:
            return None, error(
                f"get constraints from pod: obtaining pod's hard topology spread constraints: {unreadable}"
            )
        if not constraints:
            return None, SKIP
        table = table_of(self._handle.snapshot())
        rows = rows_in(table, nodes) if table is not None else None
        if table is not None and rows is not None:
            state.write(STATE, columns.count_by_columns(pod, constraints, table, only(table, rows)))
        else:
            state.write(STATE, SpreadCounts.of(pod, constraints, nodes))
        return None, SUCCESS

    def pre_filter_extensions(self) -> PreFilterExtensions:
        return self

    def add_pod(self, state: CycleState, pod: corev1.Pod, added: PodInfo, node: NodeInfo) -> Status:
        state.read(STATE, SpreadCounts).update(pod, added.pod, node, 1)
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: corev1.Pod, removed: PodInfo, node: NodeInfo) -> Status:
        state.read(STATE, SpreadCounts).update(pod, removed.pod, node, -1)
        return SUCCESS

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        if node.node is None:
            return MISSING_LABEL
        return state.read(STATE, SpreadCounts).judge(pod, node.node.metadata.labels)

    def filter_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable) -> Verdicts | None:
        codes = columns.judge_by_columns(state.read(STATE, SpreadCounts), pod, table)
        return None if codes is None else Verdicts(codes, (MISSING_LABEL, SKEWED))

    def pre_score(self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Status:
        try:
            constraints = self._constraints(pod, SCHEDULE_ANYWAY)
        except SelectorError as unreadable:
            return error(f"calculating preScoreState: obtaining pod's soft topology spread constraints: {unreadable}")
        if not constraints:
            return SKIP
        scores = SpreadScores(
            tuple(constraints), require_all=bool(pod.spec.topology_spread_constraints) or not self._system
        )
        snapshot = self._handle.snapshot()
        table = table_of(snapshot)
        rows = rows_in(table, nodes) if table is not None else None
        if table is not None and rows is not None:
            columns.prepare_by_columns(scores, pod, table, rows)
        else:
            scores.prepare(pod, nodes, snapshot.list())
        state.write(SCORE_STATE, scores)
        return SUCCESS

    def score(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> tuple[int, Status]:
        return state.read(SCORE_STATE, SpreadScores).score(pod, node), SUCCESS

    def score_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable, rows: Rows) -> IntColumn | None:
        return columns.scores_by_columns(state.read(SCORE_STATE, SpreadScores), table, rows)

    def normalize_columns(self, state: CycleState, pod: corev1.Pod, scores: IntColumn, rows: Rows) -> IntColumn | None:
        return columns.normalized_by_columns(state.read(SCORE_STATE, SpreadScores), scores, rows)

    def normalize_score(self, state: CycleState, pod: corev1.Pod, scores: list[NodeScore]) -> Status:
        state.read(SCORE_STATE, SpreadScores).normalize(scores)
        return SUCCESS

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return SpreadHints(lambda pod: self._constraints(pod, DO_NOT_SCHEDULE)).events_to_register()
