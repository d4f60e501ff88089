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

    def warn(self, message: str) -> None:
        self.warnings.append(f"{self.object.place}: {self.kind} {self.namespace}/{self.name}: {message}")

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

    def pod_group(self, min_member: int, *, annotated: bool = False, **spec: Any) -> Made:
        """scheduler-plugins' PodGroup of the workload's name. annotated: with the workload's own annotations. spec: what there is
        besides; None is left out."""
        annotations = self.object.section("metadata").texts("annotations") if annotated else {}
        metadata = {"name": self.name, "namespace": self.namespace, "annotations": annotations}
        body = {"minMember": min_member, **{name: value for name, value in spec.items() if value is not None}}
        version = {"apiVersion": POD_GROUPS.api_version, "kind": POD_GROUPS.kind}
        return Made(POD_GROUPS, {**version, "metadata": {**metadata, "ownerReferences": [self.owner]}, "spec": body})


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
                totals[name] = totals.get(name, 0) + _quantity(resources, name, amount).milli_value * count
    return {name: _text(milli) for name, milli in totals.items()}


def _quantity(resources: Section, name: str, amount: object) -> Quantity:
    try:
        return parse_quantity(amount)
    except QuantityError as error:
        raise resources.error(f".{name}", str(error)) from error


def _text(milli: int) -> str:
    return f"{milli}m" if milli % 1000 else str(milli // 1000)
