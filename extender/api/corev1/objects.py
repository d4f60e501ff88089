"""Small objects around pods: bindings, namespaces, and what default spreading selects by."""

from __future__ import annotations

from extender.api.metav1 import LabelSelector, Object, ObjectMeta


class ObjectReference(Object, frozen=True, gc=False):
    kind: str = ""
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Binding(Object, frozen=True, gc=False):
    """POST pods/{name}/binding; metadata.uid is the precondition."""

    metadata: ObjectMeta
    target: ObjectReference


class Namespace(Object, frozen=True, gc=False):
    metadata: ObjectMeta


class ServiceSpec(Object, frozen=True, gc=False):
    selector: dict[str, str] | None = None


class Service(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: ServiceSpec = ServiceSpec()


class ReplicationController(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: ServiceSpec = ServiceSpec()


class SelectorSpec(Object, frozen=True, gc=False):
    selector: LabelSelector | None = None


class ReplicaSet(Object, frozen=True, gc=False):
    """apps/v1."""

    metadata: ObjectMeta
    spec: SelectorSpec = SelectorSpec()


class StatefulSet(Object, frozen=True, gc=False):
    """apps/v1."""

    metadata: ObjectMeta
    spec: SelectorSpec = SelectorSpec()
