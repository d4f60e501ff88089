"""The in-tree filters of a profile, on states that do not exist yet: what the planner asks.

Its framework is its own: planning runs beside scheduling cycles, and must not see their snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.runtime.framework import Framework
from extender.framework.status import Status


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
    """One pod: PreFilter has run, each node is judged by the Filters that it did not skip."""

    def __init__(self, framework: Framework, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> None:
        snapshot: NodeInfoLister = HypotheticalSnapshot(nodes)
        framework.set_snapshot(snapshot)
        self._framework = framework
        self._pod = pod
        self._state = CycleState()
        result, self._refused, _ = framework.run_pre_filter_plugins(self._state, pod, nodes)
        self._allowed = result.node_names if result is not None else None

    def filter(self, node: NodeInfo) -> Status:
        if not self._refused.success:
            return self._refused
        if self._allowed is not None and node.name not in self._allowed:
            return Status(
                self._refused.code.UNSCHEDULABLE_AND_UNRESOLVABLE,
                ("node(s) didn't match Pod's node affinity/selector",),
            )
        return self._framework.run_filter_plugins(self._state, self._pod, node)


class FrameworkJudge:
    """One plan at a time uses it; the framework has in-tree filters only and is nobody else's."""

    def __init__(self, framework: Framework) -> None:
        self._framework = framework

    def begin(self, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> FrameworkTrial:
        return FrameworkTrial(self._framework, pod, nodes)
