"""The extension points that say how good a node is: PreScore, Score, NormalizeScore, and the weights.

Everything but success is an error here, except PreScore's Skip, which leaves the plugin's Score out of the cycle.
`evaluate` shows what each plugin said before and after it was normalised: score_by_plugin.
kube-scheduler: pkg/scheduler/framework/runtime/framework.go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

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
from extender.framework.node_info import NodeInfo
from extender.framework.runtime.plugin_calls import Recorder, as_is, broken_promise, called, plugin_error, timed, why
from extender.framework.status import SUCCESS, Code, Status


@dataclass(frozen=True, slots=True)
class PluginScores:
    """One plugin's scores of all nodes, in their order; `normalized` times `weight` is what counts."""

    plugin: str
    weight: int
    raw: Sequence[int]
    normalized: Sequence[int]


class ScoringPoints:
    """Part of Framework; the attributes are set there."""

    record: Recorder | None
    profile_name: str
    pre_score_plugins: list[PreScorePlugin]
    score_plugins: list[ScorePlugin]
    score_weights: dict[str, int]

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
    ) -> tuple[list[NodePluginScores], Status]:
        """Every node's weighted scores by plugin, and their sum."""
        by_plugin, status = self.score_by_plugin(state, pod, nodes)
        if not status.success:
            return [], status
        totals = [0] * len(nodes)
        for scores in by_plugin:
            weight = scores.weight
            totals = [total + score * weight for total, score in zip(totals, scores.normalized)]
        return [
            NodePluginScores(node.name, totals[index], _NodeScores(by_plugin, index))
            for index, node in enumerate(nodes)
        ], SUCCESS

    def score_by_plugin(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[list[PluginScores], Status]:
        """What each plugin that PreScore left in says; all are asked, then all normalised, then all checked."""
        plugins = [plugin for plugin in self.score_plugins if plugin.name not in state.skip_score_plugins]
        names = [node.name for node in nodes]
        raw: list[list[int]] = []
        for plugin in plugins:
            score = partial(_score, plugin, state, pod, nodes)
            numbers, status = called("Score", plugin.name, score, lambda status: ([], status), state)
            if not status.success:
                return [], status
            raw.append(numbers)
        lists = [list(map(NodeScore, names, numbers)) for numbers in raw]
        for plugin, scores in zip(plugins, lists):
            status = called(
                "NormalizeScore", plugin.name, partial(plugin.normalize_score, state, pod, scores), as_is, state
            )
            if not status.success:
                text = f'running Normalize on Score plugins: plugin "{plugin.name}" failed with: {why(status)}'
                return [], plugin_error(text)
        results = []
        for plugin, before, scores in zip(plugins, raw, lists):
            normalized = [entry.score for entry in scores]
            if normalized and (min(normalized) < MIN_NODE_SCORE or max(normalized) > MAX_NODE_SCORE):
                return [], plugin_error(_out_of_range(plugin.name, normalized))
            results.append(PluginScores(plugin.name, self.score_weights[plugin.name], before, normalized))
        return results, SUCCESS

    def total_score_weight(self, state: CycleState) -> int:
        """Of the score plugins that run in this cycle."""
        return sum(self.score_weights[p.name] for p in self.score_plugins if p.name not in state.skip_score_plugins)

    def has_score_plugins(self) -> bool:
        return bool(self.score_plugins)


class _NodeScores(Mapping[str, int]):
    """One node's weighted scores by plugin, computed when somebody looks: with thousands of nodes hardly anybody does."""

    __slots__ = ("_by_plugin", "_index")

    def __init__(self, by_plugin: Sequence[PluginScores], index: int) -> None:
        self._by_plugin = by_plugin
        self._index = index

    def __getitem__(self, plugin: str) -> int:
        for scores in self._by_plugin:
            if scores.plugin == plugin:
                return scores.normalized[self._index] * scores.weight
        raise KeyError(plugin)

    def __iter__(self) -> Iterator[str]:
        return (scores.plugin for scores in self._by_plugin)

    def __len__(self) -> int:
        return len(self._by_plugin)

    def __repr__(self) -> str:
        return repr(dict(self))


def _score(
    plugin: ScorePlugin, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
) -> tuple[list[int], Status]:
    """Runs for every node: nothing here but the calls."""
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


def _out_of_range(plugin: str, scores: Sequence[int]) -> str:
    score = next(score for score in scores if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE)
    return (
        f'applying score defaultWeights on Score plugins: plugin "{plugin}" returns an invalid score {score}, '
        f"it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing"
    )
