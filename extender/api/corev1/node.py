"""Nodes."""

from __future__ import annotations

from extender.api.corev1.toleration import Taint
from extender.api.metav1 import Condition, Int64, Object, ObjectMeta
from extender.api.quantity import ResourceList


class ContainerImage(Object, frozen=True, gc=False):
    names: tuple[str, ...] = ()
    size_bytes: Int64 = 0


class NodeSpec(Object, frozen=True, gc=False):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(Object, frozen=True, gc=False):
    allocatable: ResourceList = {}
    capacity: ResourceList = {}
    conditions: tuple[Condition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @property
    def not_ready(self) -> bool:
        """True only where the kubelet or the node controller said so: a node without the condition counts as ready."""
        return any(c.type == "Ready" and c.status != "True" for c in self.status.conditions)
