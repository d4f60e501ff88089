"""A snapshot of which only framework.listers.NodeInfoLister is to be seen, so that every plugin goes by its exact rule."""

from __future__ import annotations

from collections.abc import Sequence

from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo


class WithoutColumns:
    def __init__(self, snapshot: NodeInfoLister) -> None:
        self._snapshot = snapshot

    @property
    def generation(self) -> int:
        return self._snapshot.generation

    def list(self) -> Sequence[NodeInfo]:
        return self._snapshot.list()

    def get(self, name: str) -> NodeInfo:
        return self._snapshot.get(name)

    def have_pods_with_affinity(self) -> Sequence[NodeInfo]:
        return self._snapshot.have_pods_with_affinity()

    def have_pods_with_required_anti_affinity(self) -> Sequence[NodeInfo]:
        return self._snapshot.have_pods_with_required_anti_affinity()

    def is_pvc_used_by_pods(self, key: str) -> bool:
        return any(key in node.pvc_ref_counts for node in self.list())
