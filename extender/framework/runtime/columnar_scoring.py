"""Scores for many nodes: by columns where plugins offer them, and a result that is unfolded only where it is read.

scoring_points asks plugin by plugin. kube-scheduler has no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import overload

import numpy as np

from extender.api import corev1
from extender.framework.columnar import FEW, IntColumn, NodeTable, Rows, ScoreColumns, table_of
from extender.framework.cycle_state import CycleState
from extender.framework.interface import NodePluginScores, ScorePlugin
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.node_rows import rows_in
from extender.framework.runtime.columnar_filtering import overrides_together
from extender.framework.runtime.plugin_calls import broken_promise

Numbers = Sequence[int] | IntColumn


@dataclass(frozen=True, slots=True)
class Placed:
    """The nodes to be scored as rows of a table."""

    table: NodeTable
    rows: Rows


def placed(snapshot: NodeInfoLister, nodes: Sequence[NodeInfo], plugins: Sequence[ScorePlugin]) -> Placed | None:
    """None where columns are of no use."""
    if len(nodes) <= FEW or not any(offers_score(type(plugin)) for plugin in plugins):
        return None
    table = table_of(snapshot)
    rows = rows_in(table, nodes) if table is not None else None
    return Placed(table, rows) if table is not None and rows is not None else None


def scores_by_columns(
    plugin: ScorePlugin, state: CycleState, pod: corev1.Pod, where: Placed | None
) -> IntColumn | None:
    """None where `score` has to be asked, also because the columns failed: then it may say why."""
    if where is None or not isinstance(plugin, ScoreColumns) or not offers_score(type(plugin)):
        return None
    try:
        return plugin.score_columns(state, pod, where.table, where.rows)
    except Exception as exception:
        broken_promise("Score", plugin.name, exception)
        return None


def normalized_by_columns(
    plugin: ScorePlugin, state: CycleState, pod: corev1.Pod, scores: Numbers, where: Placed | None
) -> Numbers | None:
    """None where `normalize_score` has to be asked."""
    if type(plugin).normalize_score is ScorePlugin.normalize_score:
        return scores
    if where is None or not isinstance(scores, np.ndarray) or not isinstance(plugin, ScoreColumns):
        return None
    if not overrides_together(type(plugin), "normalize_score", "normalize_columns"):
        return None
    try:
        return plugin.normalize_columns(state, pod, scores, where.rows)
    except Exception as exception:
        broken_promise("NormalizeScore", plugin.name, exception)
        return None


def as_list(scores: Numbers) -> list[int]:
    return scores.tolist() if isinstance(scores, np.ndarray) else list(scores)


@lru_cache(maxsize=256)
def offers_score(plugin: type) -> bool:
    """Whether its columns are those of its own rule: a subclass with another `score` has to bring its own."""
    return issubclass(plugin, ScoreColumns) and overrides_together(plugin, "score", "score_columns")


@dataclass(frozen=True, slots=True)
class Scored:
    """What one plugin said of all nodes, by columns or not."""

    plugin: str
    weight: int
    raw: Numbers
    normalized: Numbers


class NodeScores(Sequence[NodePluginScores]):
    """Every node's scores; an entry is made when it is read: with thousands of nodes hardly any is."""

    __slots__ = ("_by_plugin", "names", "totals")

    def __init__(self, names: Sequence[str], by_plugin: Sequence[Scored]) -> None:
        self.names = names
        self.totals: IntColumn = np.zeros(len(names), dtype=np.int64)
        for scores in by_plugin:
            self.totals += np.asarray(scores.normalized, dtype=np.int64) * scores.weight
        self._by_plugin = by_plugin

    @overload
    def __getitem__(self, index: int) -> NodePluginScores: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[NodePluginScores]: ...

    def __getitem__(self, index: int | slice) -> NodePluginScores | Sequence[NodePluginScores]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return NodePluginScores(self.names[index], int(self.totals[index]), _OneNode(self._by_plugin, index))

    def __len__(self) -> int:
        return len(self.names)

    def best(self) -> list[int]:
        """Where those with the highest total are."""
        at: list[int] = np.flatnonzero(self.totals == self.totals.max()).tolist()
        return at


class _OneNode(Mapping[str, int]):
    """One node's weighted scores by plugin."""

    __slots__ = ("_by_plugin", "_index")

    def __init__(self, by_plugin: Sequence[Scored], index: int) -> None:
        self._by_plugin = by_plugin
        self._index = index

    def __getitem__(self, plugin: str) -> int:
        for scores in self._by_plugin:
            if scores.plugin == plugin:
                return int(scores.normalized[self._index]) * scores.weight
        raise KeyError(plugin)

    def __iter__(self) -> Iterator[str]:
        return (scores.plugin for scores in self._by_plugin)

    def __len__(self) -> int:
        return len(self._by_plugin)

    def __repr__(self) -> str:
        return repr(dict(self))
