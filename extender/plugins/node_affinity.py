"""NodeAffinity: nodeSelector, required and preferred node affinity, and what the scheduler's configuration adds.

kube-scheduler: pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from extender.api import corev1
from extender.config.plugin_args import NodeAffinityArgs
from extender.framework.columnar import FilterColumns, IntColumn, NodeTable, Rows, ScoreColumns, Verdicts
from extender.framework.cycle_state import CycleState
from extender.framework.events import NODE, ActionType
from extender.framework.handle import Handle
from extender.framework.interface import (
    ClusterEvent,
    ClusterEventWithHint,
    EnqueueExtensions,
    FilterPlugin,
    NodeScore,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueingHint,
    ScorePlugin,
)
from extender.framework.node_info import NodeInfo
from extender.framework.node_selector import (
    METADATA_NAME,
    required_node_affinity_matches,
    selector_matches,
    term_matches,
)
from extender.framework.node_selector_columns import required_node_affinity_nodes, selector_nodes, term_nodes
from extender.framework.selector_errors import preferred_terms_error
from extender.framework.status import SKIP, SUCCESS, Status, error, unresolvable
from extender.plugins import names
from extender.plugins.hints import QUEUE, QUEUE_SKIP, modified
from extender.plugins.normalize import default_normalize_columns, default_normalize_score

REFUSED = unresolvable("node(s) didn't match Pod's node affinity/selector")
REFUSED_BY_ADDED = unresolvable("node(s) didn't match scheduler-enforced node affinity")
CONFLICT = "pod affinity terms conflict"

Terms = tuple[corev1.NodeSelectorTerm, ...]
Preferred = tuple[corev1.PreferredSchedulingTerm, ...]


class NodeAffinity(
    PreFilterPlugin, FilterPlugin, FilterColumns, PreScorePlugin, ScorePlugin, ScoreColumns, EnqueueExtensions
):
    name = names.NODE_AFFINITY

    def __init__(self, args: NodeAffinityArgs) -> None:
        added = args.added_affinity
        required = added.required_during_scheduling_ignored_during_execution if added else None
        self._added: Terms | None = required.node_selector_terms if required else None
        self._added_preferred: Preferred = (
            (added.preferred_during_scheduling_ignored_during_execution or ()) if added else ()
        )

    @classmethod
    def create(cls, args: NodeAffinityArgs | None, handle: Handle) -> Self:
        return cls(args or NodeAffinityArgs())

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Where every term names its nodes, only those are looked at."""
        terms = _required_terms(pod)
        if terms is None and self._added is None and pod.spec.node_selector is None:
            return None, SKIP
        if not terms:
            return None, SUCCESS
        found: set[str] = set()
        for term in terms:
            named = _named_nodes(term)
            if named is None:
                return None, SUCCESS
            found |= named
        if not found:
            return None, unresolvable(CONFLICT)
        return PreFilterResult(frozenset(found)), SUCCESS

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        if node.node is None:
            return REFUSED
        if self._added is not None and not selector_matches(self._added, node.node):
            return REFUSED_BY_ADDED
        return SUCCESS if required_node_affinity_matches(pod, node.node) else REFUSED

    def filter_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable) -> Verdicts | None:
        codes = np.zeros(len(table), dtype=np.int32)
        required = required_node_affinity_nodes(table, pod)
        if required is not None:
            codes[~required] = 1
        if self._added is not None:
            codes[~selector_nodes(table, self._added)] = 2
        return Verdicts(codes, (REFUSED, REFUSED_BY_ADDED))

    def pre_score(self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Status:
        preferred = _preferred_terms(pod)
        if preferred is None and not self._added_preferred:
            return SKIP
        unreadable = preferred_terms_error(preferred or ())
        return error(unreadable) if unreadable else SUCCESS

    def score(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> tuple[int, Status]:
        """The weights of the preferred terms that match."""
        if node.node is None:
            return 0, SUCCESS
        terms = (*self._added_preferred, *(_preferred_terms(pod) or ()))
        return sum(t.weight for t in terms if t.weight and term_matches(t.preference, node.node)), SUCCESS

    def normalize_score(self, state: CycleState, pod: corev1.Pod, scores: list[NodeScore]) -> Status:
        default_normalize_score(scores, reverse=False)
        return SUCCESS

    def score_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable, rows: Rows) -> IntColumn | None:
        scores = np.zeros(len(table), dtype=np.int64)
        for term in (*self._added_preferred, *(_preferred_terms(pod) or ())):
            if term.weight:
                scores[term_nodes(table, term.preference)] += term.weight
        return scores[rows]

    def normalize_columns(self, state: CycleState, pod: corev1.Pod, scores: IntColumn, rows: Rows) -> IntColumn | None:
        return default_normalize_columns(scores, reverse=False)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        event = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return [ClusterEventWithHint(event, self.after_node_change)]

    def after_node_change(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """A node that matches, and did not before."""
        before, after = modified(corev1.Node, old, new)
        if self._added is not None and not selector_matches(self._added, after):
            return QUEUE_SKIP
        if not required_node_affinity_matches(pod, after):
            return QUEUE_SKIP
        return QUEUE_SKIP if before is not None and required_node_affinity_matches(pod, before) else QUEUE


def _required_terms(pod: corev1.Pod) -> Terms | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    return required.node_selector_terms if required is not None else None


def _preferred_terms(pod: corev1.Pod) -> Preferred | None:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.preferred_during_scheduling_ignored_during_execution


def _named_nodes(term: corev1.NodeSelectorTerm) -> set[str] | None:
    """The nodes that a term names by metadata.name, all its fields together; None where it names none."""
    named: set[str] | None = None
    for requirement in term.match_fields:
        if requirement.key == METADATA_NAME and requirement.operator == "In":
            values = set(requirement.values)
            named = values if named is None else named & values
    return named
