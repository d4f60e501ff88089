"""The extension points of the scheduling cycle: PreEnqueue to Score.

What each does with each code is the table of the Status codes in kube-scheduler's framework.go; a plugin's exception
becomes Code.ERROR in `called`, and nowhere else.
kube-scheduler: pkg/scheduler/framework/runtime/framework.go
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.interface import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    FilterPlugin,
    NodePluginScores,
    NodeScore,
    NodeToStatus,
    NominatingMode,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueuedPodInfo,
    QueueSortPlugin,
    ScorePlugin,
)
from extender.framework.listers import Nominator
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.status import SUCCESS, Code, Status, error, unresolvable

log = logging.getLogger(__name__)

T = TypeVar("T")


def called(what: str, plugin: str, call: Callable[[], T], failed: Callable[[Status], T]) -> T:
    """One call of a plugin; an exception is a broken promise and becomes an error Status."""
    try:
        return call()
    except Exception as exception:
        log.exception("plugin failed plugin=%s point=%s", plugin, what)
        return failed(error(f"{type(exception).__name__}: {exception}", plugin=plugin))


class SchedulingPoints:
    """Part of Framework; the attributes are set there."""

    nominator: Nominator
    pre_enqueue_plugins: list[PreEnqueuePlugin]
    queue_sort_plugins: list[QueueSortPlugin]
    pre_filter_plugins: list[PreFilterPlugin]
    filter_plugins: list[FilterPlugin]
    post_filter_plugins: list[PostFilterPlugin]
    pre_score_plugins: list[PreScorePlugin]
    score_plugins: list[ScorePlugin]
    score_weights: dict[str, int]

    def run_pre_enqueue_plugins(self, pod: corev1.Pod) -> Status:
        """The first that does not succeed gates the pod."""
        for plugin in self.pre_enqueue_plugins:
            status = called("PreEnqueue", plugin.name, partial(plugin.pre_enqueue, pod), _as_is)
            if not status.success:
                return replace(status, plugin=plugin.name)
        return SUCCESS

    def less(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
        """Go: QueueSortFunc."""
        return self.queue_sort_plugins[0].less(first, second)

    def run_pre_filter_plugins(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status, frozenset[str]]:
        """(narrowed nodes, status, plugins that narrowed). A plain refusal lets the others run, so that preemption has their state."""
        skipped: set[str] = set()
        result = PreFilterResult()
        narrowing: set[str] = set()
        refused: Status | None = None
        try:
            for plugin in self.pre_filter_plugins:
                narrowed, status = called(
                    "PreFilter",
                    plugin.name,
                    partial(plugin.pre_filter, state, pod, nodes),
                    lambda status: (None, status),
                )
                if status.skip:
                    skipped.add(plugin.name)
                    continue
                if not status.success:
                    status = replace(status, plugin=plugin.name)
                    if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                        return None, status, frozenset()
                    if status.code is Code.UNSCHEDULABLE:
                        refused = status
                        continue
                    return (
                        None,
                        _wrapped(f"running PreFilter plugin {plugin.name}: {status.message}", plugin.name),
                        frozenset(),
                    )
                if narrowed is not None and not narrowed.all_nodes:
                    narrowing.add(plugin.name)
                    result = result.merge(narrowed)
                    if not result.node_names:
                        return result, unresolvable(_nothing_left(narrowing)), frozenset(narrowing)
        finally:
            state.skip_filter_plugins = frozenset(skipped)
        if refused is not None:
            return result, refused, frozenset(narrowing)
        return result, SUCCESS, frozenset(narrowing)

    def run_pre_filter_extension_add_pod(
        self, state: CycleState, pod: corev1.Pod, added: PodInfo, node: NodeInfo
    ) -> Status:
        return self._run_extensions("AddPod", state, pod, added, node)

    def run_pre_filter_extension_remove_pod(
        self, state: CycleState, pod: corev1.Pod, removed: PodInfo, node: NodeInfo
    ) -> Status:
        return self._run_extensions("RemovePod", state, pod, removed, node)

    def _run_extensions(
        self, what: str, state: CycleState, pod: corev1.Pod, changed: PodInfo, node: NodeInfo
    ) -> Status:
        for plugin in self.pre_filter_plugins:
            extensions = plugin.pre_filter_extensions()
            if extensions is None or plugin.name in state.skip_filter_plugins:
                continue
            run = extensions.add_pod if what == "AddPod" else extensions.remove_pod
            status = called(what, plugin.name, partial(run, state, pod, changed, node), _as_is)
            if not status.success:
                return _wrapped(f"running {what} on PreFilter plugin {plugin.name}: {status.message}", plugin.name)
        return SUCCESS

    def run_filter_plugins(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        """The first that refuses decides."""
        skipped = state.skip_filter_plugins
        for plugin in self.filter_plugins:
            if plugin.name in skipped:
                continue
            try:
                status = plugin.filter(state, pod, node)
            except Exception as exception:
                log.exception("plugin failed plugin=%s point=Filter", plugin.name)
                status = error(f"{type(exception).__name__}: {exception}")
            if status.code is Code.SUCCESS:
                continue
            if not status.rejected:
                return _wrapped(f"running {plugin.name} filter plugin: {status.message}", plugin.name)
            return replace(status, plugin=plugin.name)
        return SUCCESS

    def run_filter_plugins_with_nominated_pods(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        """Once with the nominated pods of equal or higher priority in place, and, if there were any, once without.

        With them the pod must not take what they need; without them it must not need what they only may bring.
        """
        with_pods = self._with_nominated_pods(state, pod, node)
        if isinstance(with_pods, Status):
            return with_pods
        if with_pods is None:
            return self.run_filter_plugins(state, pod, node)
        status = self.run_filter_plugins(with_pods[0], pod, with_pods[1])
        if not status.success:
            return status
        return self.run_filter_plugins(state, pod, node)

    def _with_nominated_pods(
        self, state: CycleState, pod: corev1.Pod, node: NodeInfo
    ) -> tuple[CycleState, NodeInfo] | Status | None:
        nominated = [
            other
            for other in self.nominator.nominated_pods_for_node(node.name)
            if other.priority >= pod.priority and other.uid != pod.uid
        ]
        if not nominated:
            return None
        state, node = state.clone(), node.clone()
        for other in nominated:
            info = PodInfo(other)
            node.add_pod(info)
            status = self.run_pre_filter_extension_add_pod(state, pod, info, node)
            if not status.success:
                return status
        return state, node

    def run_post_filter_plugins(
        self, state: CycleState, pod: corev1.Pod, node_statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """The first success, or unresolvable, ends it; refusals are collected."""
        reasons: list[str] = []
        kept: PostFilterResult | None = None
        refused_by = ""
        for plugin in self.post_filter_plugins:
            result, status = called(
                "PostFilter",
                plugin.name,
                partial(plugin.post_filter, state, pod, node_statuses),
                lambda status: (None, status),
            )
            if status.success:
                return result, status
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return result, replace(status, plugin=plugin.name)
            if not status.rejected:
                return None, _wrapped(status.message, plugin.name)
            if result is not None and result.mode is not NominatingMode.NOOP:
                kept = result
            reasons += status.reasons
            refused_by = refused_by or plugin.name
        return kept, Status(Code.UNSCHEDULABLE, tuple(reasons), refused_by)

    def run_pre_score_plugins(self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Status:
        skipped: set[str] = set()
        for plugin in self.pre_score_plugins:
            status = called("PreScore", plugin.name, partial(plugin.pre_score, state, pod, nodes), _as_is)
            if status.skip:
                skipped.add(plugin.name)
            elif not status.success:
                return _wrapped(f"running PreScore plugin {plugin.name}: {status.message}", plugin.name)
        state.skip_score_plugins = frozenset(skipped)
        return SUCCESS

    def run_score_plugins(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[list[NodePluginScores], Status]:
        """Every node's weighted scores by plugin, and their sum."""
        by_plugin: dict[str, list[NodeScore]] = {}
        for plugin in self.score_plugins:
            if plugin.name in state.skip_score_plugins:
                continue
            scores, status = self.run_score_plugin(plugin, state, pod, nodes)
            if not status.success:
                return [], status
            by_plugin[plugin.name] = scores
        result = []
        for index, node in enumerate(nodes):
            weighted = {name: scores[index].score * self.score_weights[name] for name, scores in by_plugin.items()}
            result.append(NodePluginScores(node.name, sum(weighted.values()), weighted))
        return result, SUCCESS

    def run_score_plugin(
        self, plugin: ScorePlugin, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[list[NodeScore], Status]:
        """One plugin's normalised scores, unweighted."""
        scores, status = self.run_raw_score(plugin, state, pod, nodes)
        if not status.success:
            return [], status
        return scores, self.run_normalize(plugin, state, pod, scores)

    def run_raw_score(
        self, plugin: ScorePlugin, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[list[NodeScore], Status]:
        scores = []
        for node in nodes:
            score, status = called(
                "Score", plugin.name, partial(plugin.score, state, pod, node), lambda status: (0, status)
            )
            if not status.success:
                return [], _wrapped(f'plugin "{plugin.name}" failed with: {status.message}', plugin.name)
            scores.append(NodeScore(node.name, score))
        return scores, SUCCESS

    def run_normalize(self, plugin: ScorePlugin, state: CycleState, pod: corev1.Pod, scores: list[NodeScore]) -> Status:
        status = called("NormalizeScore", plugin.name, partial(plugin.normalize_score, state, pod, scores), _as_is)
        if not status.success:
            return _wrapped(f'plugin "{plugin.name}" failed with: {status.message}', plugin.name)
        for entry in scores:
            if not MIN_NODE_SCORE <= entry.score <= MAX_NODE_SCORE:
                return _wrapped(
                    f'plugin "{plugin.name}" returns an invalid score {entry.score}, it should in the range of '
                    f"[{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing",
                    plugin.name,
                )
        return SUCCESS

    def total_score_weight(self, state: CycleState) -> int:
        """Of the score plugins that ran in this cycle."""
        return sum(self.score_weights[p.name] for p in self.score_plugins if p.name not in state.skip_score_plugins)

    def has_filter_plugins(self) -> bool:
        return bool(self.filter_plugins)

    def has_filter_plugins_left(self, state: CycleState) -> bool:
        """Whether a Filter is left that PreFilter did not skip."""
        return any(plugin.name not in state.skip_filter_plugins for plugin in self.filter_plugins)

    def has_post_filter_plugins(self) -> bool:
        return bool(self.post_filter_plugins)

    def has_score_plugins(self) -> bool:
        return bool(self.score_plugins)


def _as_is(status: Status) -> Status:
    return status


def _wrapped(text: str, plugin: str) -> Status:
    return Status(Code.ERROR, (text,), plugin)


def _nothing_left(plugins: set[str]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {next(iter(plugins))}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously"
