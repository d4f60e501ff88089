"""The in-tree filters of a profile, on states that do not exist yet: what the planner asks.

Its framework is its own: planning runs beside scheduling cycles, and must not see their snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.runtime.framework import Framework
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins import names
from extender.plugins.coscheduling.hypothetical import Cluster, snapshot_of, with_pods

NOT_NAMED = unresolvable("node(s) didn't match Pod's node affinity/selector", plugin=names.NODE_AFFINITY)


class FrameworkTrial:
    """One pod: PreFilter has run, each node is judged by the Filters that it did not skip. Fulfils planner.Trial."""

    def __init__(self, framework: Framework, pod: corev1.Pod, snapshot: NodeInfoLister) -> None:
        self._framework = framework
        self._pod = pod
        self._snapshot = snapshot
        self._added: list[tuple[str, PodInfo]] = []
        self._pre_filter(snapshot)

    def _pre_filter(self, snapshot: NodeInfoLister) -> None:
        self._state = CycleState()
        self._framework.set_snapshot(snapshot)
        result, self._refused, _ = self._framework.run_pre_filter_plugins(self._state, self._pod, snapshot.list())
        self._allowed = result.node_names if result is not None else None

    def filter(self, node: NodeInfo) -> Status:
        if not self._refused.success:
            return self._refused
        if self._allowed is not None and node.name not in self._allowed:
            return NOT_NAMED
        return self._framework.run_filter_plugins(self._state, self._pod, node)

    def filter_all(self) -> Sequence[Status]:
        """By columns, where the snapshot has them."""
        nodes = self._snapshot.list()
        if not self._refused.success or self._allowed is not None:
            return [self.filter(node) for node in nodes]
        self._framework.set_snapshot(self._snapshot)
        filtered = self._framework.filter_nodes(self._state, self._pod, nodes, nominated=False)
        if filtered.error is not None:
            return [filtered.error] * len(nodes)
        statuses = filtered.statuses
        return [statuses.get(node.name, SUCCESS) for node in nodes] if statuses else [SUCCESS] * len(nodes)

    def add_pod(self, added: PodInfo, node: NodeInfo) -> None:
        """Raises RuntimeError for a plugin that breaks its promise."""
        self._added.append((node.name, added))
        if not self._refused.success:
            return
        if self._overlooks(added):
            self._pre_filter(with_pods(self._snapshot, self._added))
            return
        status = self._framework.run_pre_filter_extension_add_pod(self._state, self._pod, added, node)
        if not status.success:
            raise RuntimeError(status.message)

    def _overlooks(self, added: PodInfo) -> bool:
        """InterPodAffinity skips a pod that nobody minds, and then does not hear of one that comes and minds it."""
        return names.INTER_POD_AFFINITY in self._state.skip_filter_plugins and any(
            term.namespace_selector is not None or term.matches(self._pod, {})
            for term in added.required_anti_affinity_terms
        )

    def clone(self) -> FrameworkTrial:
        copied = copy(self)
        copied._state = self._state.clone()
        copied._added = list(self._added)
        return copied


class FrameworkJudge:
    """One plan at a time uses it; the framework has in-tree filters only and is nobody else's."""

    def __init__(self, framework: Framework) -> None:
        self._framework = framework

    def begin(self, pod: corev1.Pod, cluster: Cluster) -> FrameworkTrial:
        return FrameworkTrial(self._framework, pod, snapshot_of(cluster))
