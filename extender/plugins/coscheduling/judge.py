"""The in-tree filters of a profile, on states that do not exist yet: what the planner asks.

Its framework is its own: planning runs beside scheduling cycles, and must not see their snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.runtime.framework import Framework
from extender.framework.runtime.scheduling_points import PreFilterAnswer
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins import names
from extender.plugins.coscheduling.hypothetical import Cluster, snapshot_of

NOT_NAMED = unresolvable("node(s) didn't match Pod's node affinity/selector", plugin=names.NODE_AFFINITY)


class FrameworkTrial:
    """One pod: PreFilter has run, each node is judged by the Filters that it did not skip. Fulfils planner.Trial."""

    def __init__(
        self,
        framework: Framework,
        pod: corev1.Pod,
        snapshot: NodeInfoLister,
        state: CycleState,
        answer: PreFilterAnswer,
    ) -> None:
        self._framework = framework
        self._snapshot = snapshot
        self._pod = pod
        self._state = state
        self._answer = answer
        result, self._refused, _ = answer
        self._allowed = result.node_names if result is not None else None

    @classmethod
    def begin(cls, framework: Framework, pod: corev1.Pod, cluster: Cluster) -> FrameworkTrial:
        snapshot = snapshot_of(cluster)
        framework.set_snapshot(snapshot)
        state = CycleState()
        answer = framework.run_pre_filter_plugins(state, pod, snapshot.list())
        return cls(framework, pod, snapshot, state, answer)

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
        if self._refused.success:
            status = self._framework.run_pre_filter_extension_add_pod(self._state, self._pod, added, node)
            if not status.success:
                raise RuntimeError(status.message)

    def clone(self) -> FrameworkTrial:
        return FrameworkTrial(self._framework, self._pod, self._snapshot, self._state.clone(), self._answer)


class FrameworkJudge:
    """One plan at a time uses it; the framework has in-tree filters only and is nobody else's."""

    def __init__(self, framework: Framework) -> None:
        self._framework = framework

    def begin(self, pod: corev1.Pod, cluster: Cluster) -> FrameworkTrial:
        return FrameworkTrial.begin(self._framework, pod, cluster)
