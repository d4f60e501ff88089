"""What the rest of the project may ask of an API server, real or embedded.

Every call may raise the errors of `client.errors`. Objects come back as the frozen structs of `api`.
Kubernetes: k8s.io/client-go
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from extender.api import (
    coordinationv1,
    corev1,
    koordinatorv1alpha1,
    policyv1,
    schedulingv1,
    schedulingv1alpha1,
    schedulingv1alpha2,
    schedulingv1alpha3,
    schedulingv1beta1,
    storagev1,
    volcanov1beta1,
)
from extender.api.metav1 import ObjectMeta

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ResourceType(Generic[T]):
    """One kind of object: where it is served and the struct it decodes to.

    replaced: another version of the kind is read too; the name of this one then has its version, as kubectl knows it.
    """

    api_version: str  # "v1", "scheduling.x-k8s.io/v1alpha1"
    plural: str
    kind: str
    type: type[T]
    namespaced: bool = True
    replaced: bool = False

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    def __str__(self) -> str:
        if not self.group:
            return self.plural
        version = f".{self.version}" if self.replaced else ""
        return f"{self.plural}{version}.{self.group}"


PODS = ResourceType("v1", "pods", "Pod", corev1.Pod)
NON_TERMINAL_PODS = "status.phase!=Succeeded,status.phase!=Failed"  # a field selector
NODES = ResourceType("v1", "nodes", "Node", corev1.Node, namespaced=False)
NAMESPACES = ResourceType("v1", "namespaces", "Namespace", corev1.Namespace, namespaced=False)
SERVICES = ResourceType("v1", "services", "Service", corev1.Service)
REPLICATION_CONTROLLERS = ResourceType(
    "v1", "replicationcontrollers", "ReplicationController", corev1.ReplicationController
)
REPLICA_SETS = ResourceType("apps/v1", "replicasets", "ReplicaSet", corev1.ReplicaSet)
STATEFUL_SETS = ResourceType("apps/v1", "statefulsets", "StatefulSet", corev1.StatefulSet)
PERSISTENT_VOLUMES = ResourceType(
    "v1", "persistentvolumes", "PersistentVolume", corev1.PersistentVolume, namespaced=False
)
PERSISTENT_VOLUME_CLAIMS = ResourceType(
    "v1", "persistentvolumeclaims", "PersistentVolumeClaim", corev1.PersistentVolumeClaim
)
STORAGE_CLASSES = ResourceType(
    "storage.k8s.io/v1", "storageclasses", "StorageClass", storagev1.StorageClass, namespaced=False
)
CSI_NODES = ResourceType("storage.k8s.io/v1", "csinodes", "CSINode", storagev1.CSINode, namespaced=False)
CSI_DRIVERS = ResourceType("storage.k8s.io/v1", "csidrivers", "CSIDriver", storagev1.CSIDriver, namespaced=False)
CSI_STORAGE_CAPACITIES = ResourceType(
    "storage.k8s.io/v1", "csistoragecapacities", "CSIStorageCapacity", storagev1.CSIStorageCapacity
)
VOLUME_ATTACHMENTS = ResourceType(
    "storage.k8s.io/v1", "volumeattachments", "VolumeAttachment", storagev1.VolumeAttachment, namespaced=False
)
POD_DISRUPTION_BUDGETS = ResourceType(
    "policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", policyv1.PodDisruptionBudget
)
PRIORITY_CLASSES = ResourceType(
    "scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", schedulingv1.PriorityClass, namespaced=False
)
POD_GROUPS = ResourceType("scheduling.x-k8s.io/v1alpha1", "podgroups", "PodGroup", schedulingv1alpha1.PodGroup)
IN_TREE_POD_GROUPS = ResourceType("scheduling.k8s.io/v1beta1", "podgroups", "PodGroup", schedulingv1beta1.PodGroup)
IN_TREE_POD_GROUPS_1_36 = ResourceType(
    "scheduling.k8s.io/v1alpha2", "podgroups", "PodGroup", schedulingv1alpha2.PodGroup, replaced=True
)
COMPOSITE_POD_GROUPS = ResourceType(
    "scheduling.k8s.io/v1alpha3", "compositepodgroups", "CompositePodGroup", schedulingv1alpha3.CompositePodGroup
)
IN_TREE_GROUPS = (IN_TREE_POD_GROUPS, IN_TREE_POD_GROUPS_1_36)
OwnPodGroup = schedulingv1alpha1.PodGroup | schedulingv1alpha2.PodGroup
"""PodGroups whose conditions we write; v1beta1's is a subclass of v1alpha2's."""
KOORDINATOR_POD_GROUPS = ResourceType(
    "scheduling.sigs.k8s.io/v1alpha1", "podgroups", "PodGroup", koordinatorv1alpha1.PodGroup
)
VOLCANO_POD_GROUPS = ResourceType("scheduling.volcano.sh/v1beta1", "podgroups", "PodGroup", volcanov1beta1.PodGroup)
FOREIGN_POD_GROUPS: tuple[ResourceType[Any], ...] = (KOORDINATOR_POD_GROUPS, VOLCANO_POD_GROUPS)
"""Other systems' objects: read where they are served to us, and never written."""
RESOURCE_QUOTAS = ResourceType("v1", "resourcequotas", "ResourceQuota", corev1.ResourceQuota)
"""Read by a command with its caller's own rights, and never watched."""
LEASES = ResourceType("coordination.k8s.io/v1", "leases", "Lease", coordinationv1.Lease)

RESOURCE_TYPES: tuple[ResourceType[Any], ...] = (
    PODS,
    NODES,
    NAMESPACES,
    SERVICES,
    REPLICATION_CONTROLLERS,
    REPLICA_SETS,
    STATEFUL_SETS,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
    POD_DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    POD_GROUPS,
    IN_TREE_POD_GROUPS,
    IN_TREE_POD_GROUPS_1_36,
    *FOREIGN_POD_GROUPS,
    COMPOSITE_POD_GROUPS,
    LEASES,
)


class EventType(Enum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that our structs cannot hold. metadata: its name, namespace, UID and version. error: what cannot be read."""

    metadata: ObjectMeta
    error: str


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T_co]):
    """`object` is None for a bookmark, which only moves `resource_version` on."""

    type: EventType
    object: T_co | Unreadable | None
    resource_version: str


@dataclass(frozen=True, slots=True)
class Page(Generic[T_co]):
    """A piece of a list; `next` is the `continue_token` of the following one, empty at the end."""

    items: Sequence[T_co]
    resource_version: str
    next: str = ""
    unreadable: Sequence[Unreadable] = ()


class Watch(Protocol[T_co]):
    """Iterates until the server ends it (plain end), or raises: GoneError for 410, TimedOutError for silence, UnreadableError
    for a line that is no event, ConnectionFailedError for a cut."""

    def __iter__(self) -> Iterator[WatchEvent[T_co]]: ...

    def stop(self) -> None:
        """Ends the iteration from another thread, at once."""
        ...


class PatchType(Enum):
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"


@dataclass(frozen=True, slots=True)
class Preconditions:
    uid: str = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class User:
    """As the API server's authenticator knows the bearer of a token. extra: what authorizers may look at besides."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


class API(Protocol):
    """An API server. Thread-safe."""

    def list_page(
        self,
        resource: ResourceType[T],
        *,
        namespace: str = "",
        field_selector: str = "",
        limit: int = 500,
        continue_token: str = "",
    ) -> Page[T]:
        """As the server has it now, never an older state of a cache."""
        ...

    def watch(
        self,
        resource: ResourceType[T],
        *,
        namespace: str = "",
        field_selector: str = "",
        resource_version: str = "",
        timeout_seconds: float = 300,
    ) -> Watch[T]:
        """The server ends it after the timeout; a server that is silent for longer is a TimedOutError."""
        ...

    def get(self, resource: ResourceType[T], name: str, namespace: str = "") -> T: ...

    def create(self, resource: ResourceType[T], body: Mapping[str, Any], namespace: str = "") -> T:
        """`body` is the object in JSON spelling."""
        ...

    def patch(
        self,
        resource: ResourceType[T],
        name: str,
        body: Mapping[str, Any] | Sequence[Any],
        *,
        namespace: str = "",
        subresource: str = "",
        patch_type: PatchType = PatchType.MERGE,
    ) -> T:
        """A metadata.uid or resourceVersion in a merge or strategic patch is a precondition: ConflictError where it differs."""
        ...

    def delete(
        self,
        resource: ResourceType[Any],
        name: str,
        namespace: str = "",
        *,
        preconditions: Preconditions | None = None,
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None: ...

    def evict(self, pod: corev1.Pod, *, dry_run: bool = False) -> None:
        """POST pods/{name}/eviction, with the UID as precondition. Raises TooManyRequestsError where a budget forbids it."""
        ...

    def may(
        self,
        verb: str,
        resource: ResourceType[Any],
        subresource: str = "",
        *,
        namespace: str = "",
        name: str = "",
        user: str = "",
    ) -> bool:
        """Whether we have the permission (SelfSubjectAccessReview), or another user has it (SubjectAccessReview).

        namespace empty: in every one. name empty: for every object. user: as in `system:serviceaccount:kube-system:gang-scheduler`, with
        the groups that every user of its kind has.
        """
        ...

    def user_of(self, token: str) -> User | None:
        """The bearer of the token (TokenReview); None where the API server knows none."""
        ...

    def user_may(
        self, user: User, verb: str, resource: ResourceType[Any], *, namespace: str = "", name: str = ""
    ) -> bool:
        """Whether the user has the permission (SubjectAccessReview), as its token says it is."""
        ...

    def bind(self, binding: corev1.Binding) -> None:
        """POST pods/{name}/binding. Raises ConflictError for a UID that differs, a pod assigned already, deleting or gated."""
        ...

    def create_event(self, namespace: str, body: Mapping[str, Any]) -> None:
        """events.k8s.io/v1."""
        ...

    def patch_event(self, namespace: str, name: str, body: Mapping[str, Any]) -> None: ...

    def version(self) -> tuple[int, int]:
        """Of the API server: major and minor, such as (1, 36)."""
        ...

    def served_versions(self, group: str) -> tuple[str, ...]:
        """Of an API group, as in `("v1", "v1alpha2")`; none where the group is not served."""
        ...

    def server_time(self) -> datetime | None:
        """What the API server's clock shows, in whole seconds, by the `Date` of an answer; None where that has none."""
        ...

    def close(self) -> None:
        """Ends watches and connections."""
        ...


def list_all(
    api: API, resource: ResourceType[T], *, namespace: str = "", field_selector: str = "", limit: int = 500
) -> Iterator[T]:
    """The objects of a list, page by page. Go: pager.ListPager.EachListItem"""
    token = ""
    while True:
        page = api.list_page(
            resource, namespace=namespace, field_selector=field_selector, limit=limit, continue_token=token
        )
        yield from page.items
        if not (token := page.next):
            return


class EventRecorder(Protocol):
    """Writes Events in the background; never blocks, never raises. Go: events.EventRecorder."""

    def event(
        self,
        regarding: corev1.ObjectReference,
        event_type: str,
        reason: str,
        action: str,
        note: str,
        related: corev1.ObjectReference | None = None,
    ) -> None:
        """event_type Normal or Warning; reason and action in CamelCase; the note is cut at 1024 bytes."""
        ...


def pod_reference(pod: corev1.Pod) -> corev1.ObjectReference:
    return corev1.ObjectReference("Pod", "v1", pod.namespace, pod.name, pod.uid)


def resource_of(group: OwnPodGroup) -> ResourceType[Any]:
    """Also of one that cannot be read (client/unreadable), which is of a type of its own. That of 1.37 is one of 1.36's too."""
    return next(each for each in (POD_GROUPS, *IN_TREE_GROUPS) if isinstance(group, each.type))


def pod_group_reference(group: OwnPodGroup) -> corev1.ObjectReference:
    meta, of = group.metadata, resource_of(group)
    return corev1.ObjectReference(of.kind, of.api_version, meta.namespace, meta.name, meta.uid)
