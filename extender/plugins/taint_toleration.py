"""TaintToleration: untolerated taints keep a pod off; those that only advise against cost score.

kube-scheduler: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from extender.api import corev1
from extender.api.corev1.toleration import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE
from extender.framework.columnar import FilterColumns, IntColumn, NodeTable, Rows, ScoreColumns, Verdicts
from extender.framework.cycle_state import CycleState
from extender.framework.events import NODE, POD, ActionType
from extender.framework.handle import Handle
from extender.framework.interface import (
    ClusterEvent,
    ClusterEventWithHint,
    EnqueueExtensions,
    FilterPlugin,
    NodeScore,
    PreScorePlugin,
    QueueingHint,
    ScorePlugin,
)
from extender.framework.node_info import NodeInfo
from extender.framework.node_selector_columns import repelled_nodes
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins import names
from extender.plugins.hints import QUEUE, QUEUE_SKIP, modified
from extender.plugins.normalize import default_normalize_columns, default_normalize_score

REFUSED = unresolvable("node(s) had untolerated taint(s)")
STATE = "PreScoreTaintToleration"


class TaintToleration(FilterPlugin, FilterColumns, PreScorePlugin, ScorePlugin, ScoreColumns, EnqueueExtensions):
    name = names.TAINT_TOLERATION

    @classmethod
    def create(cls, args: None, handle: Handle) -> Self:
        return cls()

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        return REFUSED if node.node is not None and _repels(node.node, pod) else SUCCESS

    def filter_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable) -> Verdicts | None:
        return Verdicts.refused(repelled_nodes(table, pod), REFUSED)

    def pre_score(self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Keeps the tolerations that can speak of advice."""
        state.write(STATE, tuple(t for t in pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE)))
        return SUCCESS

    def score(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> tuple[int, Status]:
        """The number of taints that advise against the node; the fewer the better."""
        if node.node is None or not node.node.spec.taints:
            return 0, SUCCESS
        return _intolerable(node.node.spec.taints, state.read(STATE, tuple)), SUCCESS

    def normalize_score(self, state: CycleState, pod: corev1.Pod, scores: list[NodeScore]) -> Status:
        default_normalize_score(scores, reverse=True)
        return SUCCESS

    def score_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable, rows: Rows) -> IntColumn | None:
        taints, tolerations = table.taints(), state.read(STATE, tuple)
        scores = np.array([_intolerable(each, tolerations) for each in taints.sets], dtype=np.int64)
        return scores[taints.codes[rows]]

    def normalize_columns(self, state: CycleState, pod: corev1.Pod, scores: IntColumn, rows: Rows) -> IntColumn | None:
        return default_normalize_columns(scores, reverse=True)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [
            ClusterEventWithHint(
                ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), self.after_node_change
            ),
            ClusterEventWithHint(ClusterEvent(POD, ActionType.UPDATE_POD_TOLERATION), self.after_toleration_change),
        ]

    def after_node_change(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """A node whose taints the pod tolerates, if it is new, or had a taint before that the pod does not tolerate."""
        before, after = modified(corev1.Node, old, new)
        opened = not _repels(after, pod) and (before is None or _repels(before, pod))
        return QUEUE if opened else QUEUE_SKIP

    def after_toleration_change(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """The pod itself tolerates more."""
        _, after = modified(corev1.Pod, old, new)
        return QUEUE if after.uid == pod.uid else QUEUE_SKIP


def _repels(node: corev1.Node, pod: corev1.Pod) -> bool:
    return any(
        taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(t.tolerates(taint) for t in pod.spec.tolerations)
        for taint in node.spec.taints
    )


def _intolerable(taints: Sequence[corev1.Taint], tolerations: Sequence[corev1.Toleration]) -> int:
    return sum(t.effect == PREFER_NO_SCHEDULE and not any(one.tolerates(t) for one in tolerations) for t in taints)
