"""Read-only views that plugins get: the snapshot of nodes, and named objects from the informers.

kube-scheduler: k8s.io/kube-scheduler/framework/listers.go
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Protocol, TypeVar

from extender.api import corev1
from extender.framework.node_info import NodeInfo

T_co = TypeVar("T_co", covariant=True)


class NodeInfoLister(Protocol):
    """An immutable snapshot; `list` is in the node tree's order."""

    def list(self) -> Sequence[NodeInfo]: ...

    def get(self, name: str) -> NodeInfo:
        """Raises KeyError for a node that is not in the snapshot."""
        ...

    def have_pods_with_affinity(self) -> Sequence[NodeInfo]: ...

    def have_pods_with_required_anti_affinity(self) -> Sequence[NodeInfo]: ...

    def is_pvc_used_by_pods(self, key: str) -> bool:
        """Whether a pod on any node uses the claim `namespace/name`. Go: StorageInfoLister."""
        ...

    @property
    def generation(self) -> int: ...


class Lister(Protocol[T_co]):
    """Objects of one kind, as the informer last saw them. Key: `namespace/name`, or the name of a cluster object."""

    def list(self) -> Sequence[T_co]: ...

    def by_namespace(self, namespace: str) -> Iterable[T_co]: ...

    def get(self, key: str) -> T_co | None: ...


class Nominator(Protocol):
    """Where pods are nominated to run. kube-scheduler: framework.PodNominator."""

    def nominated_nodes(self) -> Sequence[str]:
        """The nodes that pods are nominated to."""
        ...

    def nominated_pods_for_node(self, node_name: str) -> Sequence[corev1.Pod]: ...

    def nominated_pods_but(self, uids: Set[str]) -> Sequence[tuple[str, corev1.Pod]]:
        """Node name and pod, of all but these."""
        ...

    def add_nominated_pod(self, pod: corev1.Pod, node_name: str) -> None: ...

    def delete_nominated_pod_if_exists(self, pod: corev1.Pod) -> None: ...
