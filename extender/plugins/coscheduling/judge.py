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
from extender.framework.status import Status, unresolvable
from extender.plugins import names

NOT_NAMED = unresolvable("node(s) didn't match Pod's node affinity/selector", plugin=names.NODE_AFFINITY)


class HypotheticalSnapshot:
    """Some nodes as a snapshot. Implements framework.listers.NodeInfoLister."""

    def __init__(self, nodes: Sequence[NodeInfo]) -> None:
        self._nodes = nodes
        self._by_name = {node.name: node for node in nodes}
        self.generation = 0

    def list(self) -> Sequence[NodeInfo]:
        return self._nodes

    def get(self, name: str) -> NodeInfo:
        return self._by_name[name]

    def have_pods_with_affinity(self) -> Sequence[NodeInfo]:
        return [node for node in self._nodes if node.pods_with_affinity]

    def have_pods_with_required_anti_affinity(self) -> Sequence[NodeInfo]:
        return [node for node in self._nodes if node.pods_with_required_anti_affinity]

    def is_pvc_used_by_pods(self, key: str) -> bool:
        return any(key in node.pvc_ref_counts for node in self._nodes)


class FrameworkTrial:
    """One pod: PreFilter has run, each node is judged by the Filters that it did not skip. Fulfils planner.Trial."""

    def __init__(self, framework: Framework, pod: corev1.Pod, state: CycleState, answer: PreFilterAnswer) -> None:
        self._framework = framework
        self._pod = pod
        self._state = state
        self._answer = answer
        result, self._refused, _ = answer
        self._allowed = result.node_names if result is not None else None

    @classmethod
    def begin(cls, framework: Framework, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> FrameworkTrial:
        snapshot: NodeInfoLister = HypotheticalSnapshot(nodes)
        framework.set_snapshot(snapshot)
        state = CycleState()
        return cls(framework, pod, state, framework.run_pre_filter_plugins(state, pod, nodes))

    def filter(self, node: NodeInfo) -> Status:
        if not self._refused.success:
            return self._refused
        if self._allowed is not None and node.name not in self._allowed:
            return NOT_NAMED
        return self._framework.run_filter_plugins(self._state, self._pod, node)

    def filter_all(self, nodes: Sequence[NodeInfo]) -> Sequence[Status]:
        return [self.filter(node) for node in nodes]

    def add_pod(self, added: PodInfo, node: NodeInfo) -> None:
        """Raises RuntimeError for a plugin that breaks its promise."""
        if self._refused.success:
            status = self._framework.run_pre_filter_extension_add_pod(self._state, self._pod, added, node)
            if not status.success:
                raise RuntimeError(status.message)

    def clone(self) -> FrameworkTrial:
        return FrameworkTrial(self._framework, self._pod, self._state.clone(), self._answer)


class FrameworkJudge:
    """One plan at a time uses it; the framework has in-tree filters only and is nobody else's."""

    def __init__(self, framework: Framework) -> None:
        self._framework = framework

    def begin(self, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> FrameworkTrial:
        return FrameworkTrial.begin(self._framework, pod, nodes)
