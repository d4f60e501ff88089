"""The extension points that decide whether a pod fits: PreEnqueue, QueueSort, PreFilter, Filter, PostFilter.

| caller     | Skip              | Unschedulable        | UnschedulableAndUnresolvable | Pending | Wait  | Error |
| PreEnqueue | gated             | gated                | gated                        | gated   | gated | gated |
| PreFilter  | its Filter is off | others run, returned | returned at once             | error   | error | error |
| AddPod     | error             | error                | error                        | error   | error | error |
| Filter     | error             | returned             | returned                     | returned | error | error |
| PostFilter | error             | collected            | returned at once             | collected | error | error |
kube-scheduler: pkg/scheduler/framework/runtime/framework.go
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.interface import (
    FilterPlugin,
    NodeToStatus,
    NominatingMode,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    QueuedPodInfo,
    QueueSortPlugin,
)
from extender.framework.listers import Nominator
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.runtime.columnar_filtering import ColumnarFiltering
from extender.framework.runtime.plugin_calls import Recorder, as_is, broken_promise, called, plugin_error, timed, why
from extender.framework.status import SUCCESS, Code, Status, unresolvable

PreFilterAnswer = tuple[PreFilterResult | None, Status, frozenset[str]]


class SchedulingPoints(ColumnarFiltering):
    """Part of Framework; the attributes are set there."""

    record: Recorder | None
    profile_name: str
    nominator: Nominator
    pre_enqueue_plugins: list[PreEnqueuePlugin]
    queue_sort_plugins: list[QueueSortPlugin]
    pre_filter_plugins: list[PreFilterPlugin]
    filter_plugins: list[FilterPlugin]
    post_filter_plugins: list[PostFilterPlugin]

    def run_pre_enqueue_plugins(self, pod: corev1.Pod) -> Status:
        """The first that does not succeed gates the pod."""
        for plugin in self.pre_enqueue_plugins:
            status = called("PreEnqueue", plugin.name, partial(plugin.pre_enqueue, pod), as_is)
            if not status.success:
                return status.with_plugin(plugin.name)
        return SUCCESS

    def less(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
        """Go: QueueSortFunc."""
        return self.queue_sort_plugins[0].less(first, second)

    @timed("PreFilter")
    def run_pre_filter_plugins(self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> PreFilterAnswer:
        """(narrowed nodes, status, plugins that narrowed).

        A plain refusal lets the others run, so that preemption has their state; which plugins skip is noted in the
        cycle's state however it ends.
        """
        skipped: set[str] = set()
        try:
            return self._pre_filter(state, pod, nodes, skipped)
        finally:
            state.skip_filter_plugins = frozenset(skipped)

    def _pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo], skipped: set[str]
    ) -> PreFilterAnswer:
        result = PreFilterResult()
        narrowing: set[str] = set()
        refused = SUCCESS
        for plugin in self.pre_filter_plugins:
            narrowed, status = called(
                "PreFilter",
                plugin.name,
                partial(plugin.pre_filter, state, pod, nodes),
                lambda status: (None, status),
                state,
            )
            if status.skip:
                skipped.add(plugin.name)
            elif status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return None, status.with_plugin(plugin.name), frozenset()
            elif status.code is Code.UNSCHEDULABLE:
                refused = status.with_plugin(plugin.name)
            elif not status.success:
                text = f'running PreFilter plugin "{plugin.name}": {why(status)}'
                return None, plugin_error(text, plugin.name), frozenset()
            elif narrowed is not None and not narrowed.all_nodes:
                narrowing.add(plugin.name)
                result = result.merge(narrowed)
                if not result.node_names:
                    return result, unresolvable(_nothing_left(narrowing)), frozenset(narrowing)
        return result, refused, frozenset(narrowing)

    def listens_to_added_pods(self, state: CycleState) -> bool:
        """Whether any plugin would hear of one, and of one that is removed."""
        return any(
            plugin.name not in state.skip_filter_plugins and plugin.pre_filter_extensions() is not None
            for plugin in self.pre_filter_plugins
        )

    def run_pre_filter_extension_add_pod(
        self, state: CycleState, pod: corev1.Pod, added: PodInfo, node: NodeInfo
    ) -> Status:
        """Of every plugin that did not skip; the first that does not succeed ends it with an error."""
        for plugin in self.pre_filter_plugins:
            extensions = plugin.pre_filter_extensions()
            if extensions is None or plugin.name in state.skip_filter_plugins:
                continue
            status = called("AddPod", plugin.name, partial(extensions.add_pod, state, pod, added, node), as_is, state)
            if not status.success:
                return plugin_error(f'running AddPod on PreFilter plugin "{plugin.name}": {why(status)}')
        return SUCCESS

    def run_pre_filter_extension_remove_pod(
        self, state: CycleState, pod: corev1.Pod, removed: PodInfo, node: NodeInfo
    ) -> Status:
        for plugin in self.pre_filter_plugins:
            extensions = plugin.pre_filter_extensions()
            if extensions is None or plugin.name in state.skip_filter_plugins:
                continue
            status = called(
                "RemovePod", plugin.name, partial(extensions.remove_pod, state, pod, removed, node), as_is, state
            )
            if not status.success:
                return plugin_error(f'running RemovePod on PreFilter plugin "{plugin.name}": {why(status)}')
        return SUCCESS

    def run_filter_plugins(
        self, state: CycleState, pod: corev1.Pod, node: NodeInfo, plugins: Sequence[FilterPlugin] | None = None
    ) -> Status:
        """The first that refuses decides. Runs for every node: nothing here but the calls. plugins: only these."""
        skipped = state.skip_filter_plugins
        for plugin in self.filter_plugins if plugins is None else plugins:
            if plugin.name in skipped:
                continue
            if state.record_plugin is not None:
                status = called("Filter", plugin.name, partial(plugin.filter, state, pod, node), as_is, state)
            else:
                try:
                    status = plugin.filter(state, pod, node)
                except Exception as exception:
                    status = broken_promise("Filter", plugin.name, exception)
            if status.code is Code.SUCCESS:
                continue
            if not status.rejected:
                return plugin_error(f'running "{plugin.name}" filter plugin: {why(status)}', plugin.name)
            return status.with_plugin(plugin.name)
        return SUCCESS

    def run_filter_plugins_with_nominated_pods(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        """Once with the nominated pods of equal or higher priority in place, and, if there were any, once without.

        With them the pod must not take what they need; without them it must not need what only they would bring.
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
        """Clones with them added; None where there are none. Go: addGENominatedPods."""
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

    @timed("PostFilter")
    def run_post_filter_plugins(
        self, state: CycleState, pod: corev1.Pod, node_statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """The first success, or unresolvable, ends it; other refusals are collected, with the last nomination that says something."""
        reasons: list[str] = []
        kept: PostFilterResult | None = None
        refused_by = ""
        for plugin in self.post_filter_plugins:
            result, status = called(
                "PostFilter",
                plugin.name,
                partial(plugin.post_filter, state, pod, node_statuses),
                lambda status: (None, status),
                state,
            )
            if status.success:
                return result, status
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return result, status.with_plugin(plugin.name)
            if not status.rejected:
                return None, plugin_error(why(status), plugin.name)
            if result is not None and result.mode is not NominatingMode.NOOP:
                kept = result
            reasons += status.reasons
            refused_by = refused_by or plugin.name
        return kept, Status(Code.UNSCHEDULABLE, tuple(reasons), refused_by)

    def has_filter_plugins(self) -> bool:
        return bool(self.filter_plugins)

    def has_filter_plugins_left(self, state: CycleState) -> bool:
        """Whether a Filter is left that PreFilter did not skip."""
        return any(plugin.name not in state.skip_filter_plugins for plugin in self.filter_plugins)

    def has_post_filter_plugins(self) -> bool:
        return bool(self.post_filter_plugins)


def _nothing_left(plugins: set[str]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {next(iter(plugins))}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously"
