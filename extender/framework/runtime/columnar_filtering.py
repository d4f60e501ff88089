"""Filter for many nodes: by columns where plugins offer them, by their exact rules where they do not.

The scheduling cycle and schedule_one ask. What it answers is what `run_filter_plugins_with_nominated_pods` says node by
node, from the rotating start until enough are found. kube-scheduler: pkg/scheduler/schedule_one.go (findNodesThatPassFilters)
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from extender.api import corev1
from extender.framework.columnar import (
    FEW,
    Codes,
    FilterColumns,
    NodeTable,
    Rows,
    Verdicts,
    table_of,
)
from extender.framework.cycle_state import CycleState
from extender.framework.interface import FilterPlugin
from extender.framework.listers import NodeInfoLister, Nominator
from extender.framework.node_info import NodeInfo
from extender.framework.node_rows import NodeRows, rows_in, taken
from extender.framework.runtime.plugin_calls import broken_promise
from extender.framework.status import SUCCESS, Code, Status

NO_FILTER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Filtered:
    """The nodes that pass, in the order in which they were looked at; why each other that was looked at does not.

    refusals: the different ones. error: a broken promise that ended it, and then nothing else counts.
    """

    feasible: Sequence[NodeInfo]
    statuses: dict[str, Status]
    refusals: Sequence[Status]
    looked: int
    error: Status | None = None


@dataclass(slots=True)
class _Judgement:
    """What the columns say of each row: a number of a Status, 0 for success, and which plugin refused, by its place.

    exact: the plugins, and their places, that are to be asked node by node.
    """

    codes: Codes
    decided_by: Codes
    statuses: list[Status] = field(default_factory=lambda: [SUCCESS])
    numbers: dict[Status, int] = field(default_factory=lambda: {SUCCESS: 0})
    exact: list[tuple[int, FilterPlugin]] = field(default_factory=list)

    def number(self, status: Status) -> int:
        known = self.numbers.setdefault(status, len(self.statuses))
        if known == len(self.statuses):
            self.statuses.append(status)
        return known

    def take(self, place: int, plugin: str, verdicts: Verdicts) -> None:
        """Where no plugin before has refused, this one decides."""
        if verdicts.codes is None:
            return
        numbers = [0, *(self.number(status.with_plugin(plugin)) for status in verdicts.statuses)]
        refused = (verdicts.codes != 0) & (self.codes == 0)
        self.codes[refused] = np.array(numbers, dtype=np.int32)[verdicts.codes[refused]]
        self.decided_by[refused] = place

    def exact_before(self, row: int) -> list[FilterPlugin]:
        """Those to be asked before the plugin that refused."""
        return [plugin for place, plugin in self.exact if place < self.decided_by[row]]


class ColumnarFiltering(ABC):
    """Part of Framework; the attributes are set there."""

    nominator: Nominator
    filter_plugins: list[FilterPlugin]

    @abstractmethod
    def snapshot(self) -> NodeInfoLister: ...

    @abstractmethod
    def run_filter_plugins(
        self, state: CycleState, pod: corev1.Pod, node: NodeInfo, plugins: Sequence[FilterPlugin] | None = None
    ) -> Status: ...

    @abstractmethod
    def run_filter_plugins_with_nominated_pods(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status: ...

    def filter_nodes(
        self,
        state: CycleState,
        pod: corev1.Pod,
        nodes: Sequence[NodeInfo],
        *,
        start: int = 0,
        wanted: int | None = None,
        nominated: bool = True,
    ) -> Filtered:
        """From `start` on, around, until `wanted` pass. nominated: count the pods nominated to a node as well."""
        wanted = len(nodes) if wanted is None else wanted
        if len(nodes) > FEW and self._offers_columns(state):
            table = table_of(self.snapshot())
            rows = rows_in(table, nodes) if table is not None else None
            if table is not None and rows is not None:
                start %= len(rows)
                order = rows if start == 0 else np.concatenate((rows[start:], rows[:start]))
                return self._by_columns(state, pod, table, order, wanted, nominated)
        return self._node_by_node(state, pod, nodes, start, wanted, nominated)

    def _offers_columns(self, state: CycleState) -> bool:
        return any(offers_filter(type(p)) for p in self.filter_plugins if p.name not in state.skip_filter_plugins)

    def _node_by_node(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo], start: int, wanted: int, nominated: bool
    ) -> Filtered:
        judge = self.run_filter_plugins_with_nominated_pods if nominated else self.run_filter_plugins
        feasible: list[NodeInfo] = []
        statuses: dict[str, Status] = {}
        looked = 0
        for i in range(len(nodes)):
            node = nodes[(start + i) % len(nodes)]
            status = judge(state, pod, node)
            if status.code is Code.ERROR:
                return Filtered([], {}, (), looked, status)
            looked += 1
            if status.success:
                feasible.append(node)
                if len(feasible) >= wanted:
                    break
            else:
                statuses[node.name] = status
        return Filtered(feasible, statuses, tuple(dict.fromkeys(statuses.values())), looked)

    def _by_columns(
        self, state: CycleState, pod: corev1.Pod, table: NodeTable, order: Rows, wanted: int, nominated: bool
    ) -> Filtered:
        judgement = self._judge(state, pod, table)
        one_by_one = np.zeros(len(table), dtype=np.bool_)
        if judgement.exact:
            one_by_one |= judgement.decided_by > judgement.exact[0][0]
        with_nominated = self._rows_with_nominated(pod, table) if nominated else set()
        one_by_one[list(with_nominated)] = True
        passes = (judgement.codes[order] == 0) & ~one_by_one[order]
        before, found = np.cumsum(passes), 0
        for at in np.flatnonzero(one_by_one[order]).tolist():
            if before[at] + found >= wanted:
                break
            row = int(order[at])
            if row in with_nominated:
                status = self.run_filter_plugins_with_nominated_pods(state, pod, table.nodes[row])
            else:
                status = self.run_filter_plugins(state, pod, table.nodes[row], judgement.exact_before(row))
                status = judgement.statuses[judgement.codes[row]] if status.success else status
            if status.code is Code.ERROR:
                return Filtered([], {}, (), at, status)
            judgement.codes[row] = judgement.number(status)
            passes[at] = status.success
            found += status.success
        return _cut(table, order, passes, judgement, wanted)

    def _rows_with_nominated(self, pod: corev1.Pod, table: NodeTable) -> set[int]:
        """Where pods are nominated that count for this one."""
        rows = set()
        for name in self.nominator.nominated_nodes():
            row = table.position(name)
            if row is not None and any(
                other.priority >= pod.priority and other.uid != pod.uid
                for other in self.nominator.nominated_pods_for_node(name)
            ):
                rows.add(row)
        return rows

    def _judge(self, state: CycleState, pod: corev1.Pod, table: NodeTable) -> _Judgement:
        """All rows, by every plugin that has columns for this pod."""
        count = len(table)
        judgement = _Judgement(np.zeros(count, dtype=np.int32), np.full(count, NO_FILTER, dtype=np.int32))
        for place, plugin in enumerate(self.filter_plugins):
            if plugin.name in state.skip_filter_plugins:
                continue
            verdicts = _verdicts(plugin, state, pod, table)
            if verdicts is None:
                judgement.exact.append((place, plugin))
            else:
                judgement.take(place, plugin.name, verdicts)
        return judgement


def _cut(table: NodeTable, order: Rows, passes: np.ndarray, judgement: _Judgement, wanted: int) -> Filtered:
    """Up to the node with which there are enough."""
    found = np.flatnonzero(passes)
    if len(found) >= wanted:
        found = found[: max(wanted, 1)]
        order = order[: int(found[-1]) + 1]
    codes = judgement.codes[order]
    refused = np.flatnonzero(codes)
    if not len(refused):
        return Filtered(NodeRows(table, order[found]), {}, (), len(order))
    names, statuses = taken(table.names, order[refused]), taken(judgement.statuses, codes[refused])
    distinct = [judgement.statuses[number] for number in np.unique(codes[refused]).tolist()]
    return Filtered(NodeRows(table, order[found]), dict(zip(names, statuses)), distinct, len(order))


def _verdicts(plugin: FilterPlugin, state: CycleState, pod: corev1.Pod, table: NodeTable) -> Verdicts | None:
    """None where the exact rule has to be asked, also because the columns failed: then it may say why."""
    if not isinstance(plugin, FilterColumns) or not offers_filter(type(plugin)):
        return None
    started = time.perf_counter()
    try:
        verdicts = plugin.filter_columns(state, pod, table)
    except Exception as exception:
        broken_promise("Filter", plugin.name, exception)
        return None
    if verdicts is not None and state.record_plugin is not None:
        state.record_plugin(plugin.name, "Filter", str(Code.SUCCESS), time.perf_counter() - started)
    return verdicts


@lru_cache(maxsize=256)
def offers_filter(plugin: type) -> bool:
    """Whether its columns are those of its own rule: a subclass with another `filter` has to bring its own."""
    return issubclass(plugin, FilterColumns) and overrides_together(plugin, "filter", "filter_columns")


def overrides_together(plugin: type, exact: str, columns: str) -> bool:
    def owner(name: str) -> type:
        return next(cls for cls in plugin.__mro__ if name in cls.__dict__)

    return issubclass(owner(columns), owner(exact))
