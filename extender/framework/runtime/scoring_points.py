"""The extension points that say how good a node is: PreScore, Score, NormalizeScore, and the weights.

Everything but success is an error here, except PreScore's Skip, which leaves the plugin's Score out of the cycle.
`evaluate` shows what each plugin said before and after it was normalised: score_by_plugin.
kube-scheduler: pkg/scheduler/framework/runtime/framework.go
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.interface import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    NodePluginScores,
    NodeScore,
    PreScorePlugin,
    ScorePlugin,
)
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.node_rows import names_of
from extender.framework.runtime.columnar_scoring import (
    NodeScores,
    Numbers,
    Placed,
    Scored,
    as_list,
    normalized_by_columns,
    placed,
    scores_by_columns,
)
from extender.framework.runtime.plugin_calls import Recorder, as_is, broken_promise, called, plugin_error, timed, why
from extender.framework.status import SUCCESS, Code, Status


@dataclass(frozen=True, slots=True)
class PluginScores:
    """One plugin's scores of all nodes, in their order; `normalized` times `weight` is what counts."""

    plugin: str
    weight: int
    raw: Sequence[int]
    normalized: Sequence[int]


class ScoringPoints(ABC):
    """Part of Framework; the attributes are set there."""

    record: Recorder | None
    profile_name: str
    pre_score_plugins: list[PreScorePlugin]
    score_plugins: list[ScorePlugin]
    score_weights: dict[str, int]

    @abstractmethod
    def snapshot(self) -> NodeInfoLister: ...

    @timed("PreScore")
    def run_pre_score_plugins(self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Status:
        skipped: set[str] = set()
        try:
            for plugin in self.pre_score_plugins:
                status = called("PreScore", plugin.name, partial(plugin.pre_score, state, pod, nodes), as_is, state)
                if status.skip:
                    skipped.add(plugin.name)
                elif not status.success:
                    return plugin_error(f'running PreScore plugin "{plugin.name}": {why(status)}')
            return SUCCESS
        finally:
            state.skip_score_plugins = frozenset(skipped)

    @timed("Score")
    def run_score_plugins(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[Sequence[NodePluginScores], Status]:
        """Every node's weighted scores by plugin, and their sum."""
        names = names_of(nodes)
        by_plugin, status = self._score_by_plugin(state, pod, nodes, names)
        return (NodeScores(names, by_plugin) if status.success else []), status

    def score_by_plugin(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[list[PluginScores], Status]:
        """What each plugin that PreScore left in says."""
        by_plugin, status = self._score_by_plugin(state, pod, nodes, names_of(nodes))
        return [PluginScores(s.plugin, s.weight, as_list(s.raw), as_list(s.normalized)) for s in by_plugin], status

    def _score_by_plugin(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo], names: Sequence[str]
    ) -> tuple[list[Scored], Status]:
        """All are asked, then all normalised, then all checked."""
        plugins = [plugin for plugin in self.score_plugins if plugin.name not in state.skip_score_plugins]
        where = placed(self.snapshot(), nodes, plugins)
        raw: list[Numbers] = []
        for plugin in plugins:
            score = partial(_score, plugin, state, pod, nodes, where)
            numbers, status = called("Score", plugin.name, score, lambda status: ([], status), state)
            if not status.success:
                return [], status
            raw.append(numbers)
        normalized: list[Numbers] = []
        for plugin, numbers in zip(plugins, raw):
            normalize = partial(_normalized, plugin, state, pod, names, numbers, where)
            numbers, status = called("NormalizeScore", plugin.name, normalize, lambda status: ([], status), state)
            if not status.success:
                text = f'running Normalize on Score plugins: plugin "{plugin.name}" failed with: {why(status)}'
                return [], plugin_error(text)
            normalized.append(numbers)
        for plugin, numbers in zip(plugins, normalized):
            if _beyond(numbers):
                return [], plugin_error(_out_of_range(plugin.name, as_list(numbers)))
        return [Scored(p.name, self.score_weights[p.name], r, n) for p, r, n in zip(plugins, raw, normalized)], SUCCESS

    def total_score_weight(self, state: CycleState) -> int:
        """Of the score plugins that run in this cycle."""
        return sum(self.score_weights[p.name] for p in self.score_plugins if p.name not in state.skip_score_plugins)

    def has_score_plugins(self) -> bool:
        return bool(self.score_plugins)


def _score(
    plugin: ScorePlugin, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo], where: Placed | None
) -> tuple[Numbers, Status]:
    """By columns, or node by node: runs for every node, nothing there but the calls."""
    by_columns = scores_by_columns(plugin, state, pod, where)
    if by_columns is not None:
        return by_columns, SUCCESS
    numbers = []
    status = SUCCESS
    try:
        for node in nodes:
            score, status = plugin.score(state, pod, node)
            if status.code is not Code.SUCCESS:
                break
            numbers.append(score)
    except Exception as exception:
        status = broken_promise("Score", plugin.name, exception)
    if status.success:
        return numbers, SUCCESS
    return [], plugin_error(f'running Score plugins: plugin "{plugin.name}" failed with: {why(status)}')


def _normalized(
    plugin: ScorePlugin,
    state: CycleState,
    pod: corev1.Pod,
    names: Sequence[str],
    numbers: Numbers,
    where: Placed | None,
) -> tuple[Numbers, Status]:
    by_columns = normalized_by_columns(plugin, state, pod, numbers, where)
    if by_columns is not None:
        return by_columns, SUCCESS
    scores = list(map(NodeScore, names, as_list(numbers)))
    status = plugin.normalize_score(state, pod, scores)
    return [entry.score for entry in scores], status


def _beyond(numbers: Numbers) -> bool:
    if isinstance(numbers, np.ndarray):
        return numbers.size > 0 and bool(numbers.min() < MIN_NODE_SCORE or numbers.max() > MAX_NODE_SCORE)
    return bool(numbers) and (min(numbers) < MIN_NODE_SCORE or max(numbers) > MAX_NODE_SCORE)


def _out_of_range(plugin: str, scores: Sequence[int]) -> str:
    score = next(score for score in scores if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE)
    return (
        f'applying score defaultWeights on Score plugins: plugin "{plugin}" returns an invalid score {score}, '
        f"it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
    )
