"""The extender's wire: what kube-scheduler posts and what it reads back.

Go's types have no JSON tags, so the keys are the Go field names. Maps and lists may be null as a whole (Go's nil),
never inside: a null victim crashes kube-scheduler. Scores are integers; a float is a decode error there.
Kubernetes: k8s.io/kube-scheduler/extender/v1/types.go
"""

from __future__ import annotations

from msgspec import Struct, field

from extender.api.corev1 import Pod
from extender.api.metav1 import Int64

MIN_EXTENDER_PRIORITY = 0
MAX_EXTENDER_PRIORITY = 10


class Wire(Struct, frozen=True, gc=False):
    """Base: every field is always written, as Go does without omitempty."""


class NodeList(Struct, frozen=True, gc=False):
    """Whole nodes, which kube-scheduler sends without nodeCacheCapable. That they were sent is all that counts: none is read."""


class ExtenderArgs(Wire, frozen=True, gc=False):
    """The body of filter and prioritize."""

    pod: Pod = field(name="Pod")
    nodes: NodeList | None = field(name="Nodes", default=None)
    node_names: tuple[str, ...] | None = field(name="NodeNames", default=None)


class ExtenderFilterResult(Wire, frozen=True, gc=False):
    nodes: None = field(name="Nodes", default=None)
    node_names: list[str] = field(name="NodeNames", default_factory=list)
    failed_nodes: dict[str, str] = field(name="FailedNodes", default_factory=dict)
    failed_and_unresolvable_nodes: dict[str, str] = field(name="FailedAndUnresolvableNodes", default_factory=dict)
    error: str = field(name="Error", default="")


class HostPriority(Wire, frozen=True, gc=False):
    host: str = field(name="Host")
    score: Int64 = field(name="Score")


class MetaPod(Wire, frozen=True, gc=False):
    uid: str = field(name="UID")


class MetaVictims(Wire, frozen=True, gc=False):
    """Victims in descending priority: kube-scheduler takes the first as the highest."""

    pods: tuple[MetaPod, ...] = field(name="Pods", default=())
    num_pdb_violations: Int64 = field(name="NumPDBViolations", default=0)


class WireVictims(Wire, frozen=True, gc=False):
    """Full victims, sent where nodeCacheCapable is false."""

    pods: tuple[Pod, ...] | None = field(name="Pods", default=None)
    num_pdb_violations: Int64 = field(name="NumPDBViolations", default=0)


class ExtenderPreemptionArgs(Wire, frozen=True, gc=False):
    pod: Pod = field(name="Pod")
    node_name_to_victims: dict[str, WireVictims] | None = field(name="NodeNameToVictims", default=None)
    node_name_to_meta_victims: dict[str, MetaVictims] | None = field(name="NodeNameToMetaVictims", default=None)


class ExtenderPreemptionResult(Wire, frozen=True, gc=False):
    node_name_to_meta_victims: dict[str, MetaVictims] = field(name="NodeNameToMetaVictims", default_factory=dict)


class ExtenderBindingArgs(Wire, frozen=True, gc=False):
    pod_name: str = field(name="PodName")
    pod_namespace: str = field(name="PodNamespace")
    pod_uid: str = field(name="PodUID")
    node: str = field(name="Node")


class ExtenderBindingResult(Wire, frozen=True, gc=False):
    error: str = field(name="Error", default="")
