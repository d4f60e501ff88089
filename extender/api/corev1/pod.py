"""Pods."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import field

from extender.api.corev1.affinity import Affinity
from extender.api.corev1.toleration import Toleration
from extender.api.corev1.volume import Volume
from extender.api.metav1 import Int32, Int64, LabelSelector, Object, ObjectMeta, Time
from extender.api.quantity import ResourceList

POD_PENDING = "Pending"
POD_RUNNING = "Running"
POD_SUCCEEDED = "Succeeded"
POD_FAILED = "Failed"
DEFAULT_SCHEDULER_NAME = "default-scheduler"


class ContainerPort(Object, frozen=True, gc=False):
    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = "TCP"
    name: str = ""


class ResourceClaimRef(Object, frozen=True, gc=False):
    name: str = ""


class ResourceRequirements(Object, frozen=True, gc=False):
    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[ResourceClaimRef, ...] = ()


class ContainerRestartRule(Object, frozen=True, gc=False):
    action: str = ""


class Container(Object, frozen=True, gc=False):
    name: str = ""
    image: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()

    @property
    def restartable(self) -> bool:
        """An init container that keeps running: a sidecar."""
        return self.restart_policy == "Always"


class PodSchedulingGate(Object, frozen=True, gc=False):
    name: str


class TopologySpreadConstraint(Object, frozen=True, gc=False):
    max_skew: Int32
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PodResourceClaim(Object, frozen=True, gc=False):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Object, frozen=True, gc=False):
    pod_group_name: str | None = None


class PodSpec(Object, frozen=True, gc=False):
    node_name: str = ""
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: ResourceList = {}
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    termination_grace_period_seconds: Int64 | None = None
    host_network: bool = False
    host_users: bool | None = None


POD_SCHEDULED = "PodScheduled"
UNSCHEDULABLE = "Unschedulable"  # the reason of PodScheduled where no node was left
SCHEDULING_GATED = "SchedulingGated"  # the reason of PodScheduled while there are gates


class PodCondition(Object, frozen=True, gc=False):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0


class ContainerStatus(Object, frozen=True, gc=False):
    name: str = ""
    allocated_resources: ResourceList = {}
    resources: ResourceRequirements | None = None


class PodStatus(Object, frozen=True, gc=False):
    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    nominated_node_name: str = ""
    start_time: Time | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class Pod(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def node_name(self) -> str:
        return self.spec.node_name

    @property
    def priority(self) -> int:
        """Go: corev1helpers.PodPriority; nil is 0."""
        return self.spec.priority or 0

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def terminal(self) -> bool:
        """Succeeded or Failed: kube-scheduler's informer no longer sees it."""
        return self.status.phase in (POD_SUCCEEDED, POD_FAILED)

    @property
    def gated(self) -> bool:
        return bool(self.spec.scheduling_gates)

    def all_containers(self) -> Iterator[Container]:
        yield from self.spec.init_containers
        yield from self.spec.containers
