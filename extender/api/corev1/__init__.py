"""core/v1, a file for each family of objects; `from extender.api import corev1` gives them all.

Kubernetes: k8s.io/api/core/v1/types.go
"""

from extender.api.corev1.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    WeightedPodAffinityTerm,
)
from extender.api.corev1.node import ContainerImage, Node, NodeSpec, NodeStatus
from extender.api.corev1.objects import (
    Binding,
    Namespace,
    ObjectReference,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from extender.api.corev1.pod import (
    Container,
    ContainerPort,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    TopologySpreadConstraint,
)
from extender.api.corev1.quota import (
    ResourceQuota,
    ResourceQuotaSpec,
    ResourceQuotaStatus,
    ScopedResourceSelectorRequirement,
    ScopeSelector,
)
from extender.api.corev1.toleration import Taint, Toleration
from extender.api.corev1.volume import (
    ClaimReference,
    PersistentVolume,
    PersistentVolumeClaim,
    Volume,
    VolumeNodeAffinity,
)

__all__ = [
    "Affinity",
    "Binding",
    "ClaimReference",
    "Container",
    "ContainerImage",
    "ContainerPort",
    "ContainerStatus",
    "Namespace",
    "Node",
    "NodeAffinity",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "ObjectReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodCondition",
    "PodSchedulingGate",
    "PodSpec",
    "PodStatus",
    "PreferredSchedulingTerm",
    "ReplicaSet",
    "ReplicationController",
    "ResourceQuota",
    "ResourceQuotaSpec",
    "ResourceQuotaStatus",
    "ResourceRequirements",
    "ScopeSelector",
    "ScopedResourceSelectorRequirement",
    "Service",
    "StatefulSet",
    "Taint",
    "Toleration",
    "TopologySpreadConstraint",
    "Volume",
    "VolumeNodeAffinity",
    "WeightedPodAffinityTerm",
]
