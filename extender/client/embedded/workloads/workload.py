"""An object of which a controller makes pods, and the pods and PodGroups that are made.

Each controller's file makes `Made` of a `Workload`; `load` creates them, those that come later excepted: `simulate` makes these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from extender.api.quantity import Quantity, QuantityError, parse_quantity
from extender.client.embedded.workloads.section import Raw, Section
from extender.client.interface import POD_GROUPS, PODS, ResourceType

POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"


@dataclass(frozen=True, slots=True, eq=False)
class After:
    """pods: namespace/name of those that have to run first; with ended: to have succeeded. One for all pods that wait for them."""

    pods: tuple[str, ...]
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """after: what the controller waits for before it makes the object; None where it is made at once."""

    resource: ResourceType[Any]
    object: Raw
    after: After | None = None

    @property
    def key(self) -> str:
        meta = self.object["metadata"]
        return f"{meta['namespace']}/{meta['name']}"


@dataclass(frozen=True, slots=True)
class Workload:
    """gang_scheduler: the name that operators with a flag for it put on the pods. templates: objects of the files that others name, by
    kind, namespace (empty where it has none) and name. warnings: what of it is not simulated."""

    object: Section
    gang_scheduler: str
    templates: Mapping[tuple[str, str, str], Section] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return self.object.text("kind")

    @property
    def name(self) -> str:
        name = self.object.section("metadata").text("name")
        if not name:
            raise self.object.error(".metadata.name", "Required value")
        return name

    @property
    def namespace(self) -> str:
        return self.object.section("metadata").text("namespace", "default")

    @property
    def spec(self) -> Section:
        return self.object.section("spec")

    def has(self, key: str) -> bool:
        """Whether it has that label or annotation, with whatever value."""
        meta = self.object.section("metadata")
        return key in meta.texts("labels") or key in meta.texts("annotations")

    @property
    def owner(self) -> Raw:
        """An ownerReference to it."""
        return owner_reference(self.object.text("apiVersion"), self.kind, self.namespace, self.name)

    def suspended(self, section: Section | None = None) -> bool:
        """Whether `suspend` is set in its spec, or in that section; said in a warning."""
        if found := (section or self.spec).is_set("suspend"):
            self.warn("it is suspended: its pods are not simulated")
        return found

    def warn(self, message: str) -> None:
        """Once, however often it is said."""
        warning = f"{self.object.place}: {self.kind} {self.namespace}/{self.name}: {message}"
        if warning not in self.warnings:
            self.warnings.append(warning)

    def pod(
        self,
        template: Section,
        name: str,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        owner: Raw | None = None,
        after: After | None = None,
        **spec: Any,
    ) -> Made:
        """A pod of that template; what is given comes before what the template has."""
        meta, pod_spec = template.section("metadata"), template.section("spec").value
        metadata = {
            **meta.value,
            "name": name,
            "namespace": self.namespace,
            "ownerReferences": [owner or self.owner],
            "labels": {**meta.texts("labels"), **(labels or {})},
            "annotations": {**meta.texts("annotations"), **(annotations or {})},
        }
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**pod_spec, **spec}}
        return Made(PODS, body, after)

    def pod_group(
        self, min_member: int, *, name: str = "", annotated: bool = False, owner: Raw | None = None, **spec: Any
    ) -> Made:
        """scheduler-plugins' PodGroup, of the workload's name unless another is given. annotated: with the workload's own annotations.
        spec: what there is besides; None is left out."""
        annotations = self.object.section("metadata").texts("annotations") if annotated else {}
        body = {"minMember": min_member, **{field: value for field, value in spec.items() if value is not None}}
        return self.group(POD_GROUPS, body, name=name, owner=owner, annotations=annotations)

    def group(
        self,
        resource: ResourceType[Any],
        spec: Raw,
        *,
        name: str = "",
        owner: Raw | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> Made:
        """A PodGroup of that kind, of the workload's name unless another is given."""
        metadata = {
            "name": name or self.name,
            "namespace": self.namespace,
            "annotations": annotations or {},
            "ownerReferences": [owner or self.owner],
        }
        version = {"apiVersion": resource.api_version, "kind": resource.kind}
        return Made(resource, {**version, "metadata": metadata, "spec": spec})


def owner_reference(api_version: str, kind: str, namespace: str, name: str) -> Raw:
    """Of a controller that is in no API; its UID follows from its name."""
    digest = hashlib.sha256(f"{api_version}/{kind}/{namespace}/{name}".encode()).hexdigest()
    uid = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
    reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}
    return {**reference, "controller": True, "blockOwnerDeletion": True}


def requests_of(parts: Iterable[tuple[Section, int]]) -> dict[str, str]:
    """What so many pods of each template ask for together, a limit where there is no request; of their containers alone."""
    totals: dict[str, int] = {}
    for template, count in parts:
        for container in template.section("spec").sections("containers"):
            resources = container.section("resources")
            asked = {**resources.section("limits").value, **resources.section("requests").value}
            for name, amount in asked.items():
                totals[name] = totals.get(name, 0) + quantity_of(resources, name, amount).milli_value * count
    return amounts(totals)


def quantity_of(section: Section, field: str, amount: object) -> Quantity:
    """Raises DecodeError with the field's place."""
    try:
        return parse_quantity(amount)
    except QuantityError as error:
        raise section.error(f".{field}", str(error)) from error


def amounts(totals: Mapping[str, int]) -> dict[str, str]:
    """Of thousandths, by the resource's name."""
    return {name: f"{milli}m" if milli % 1000 else str(milli // 1000) for name, milli in totals.items()}
