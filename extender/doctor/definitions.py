"""The definition of PodGroups that the cluster has: whether it serves the version that is read, and has the fields that are written.

kube-scheduler has no counterpart: its kinds are the API server's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec

from extender.api.metav1 import Object, ObjectMeta
from extender.client import interface as kinds
from extender.client.errors import NotFoundError
from extender.client.interface import ResourceType
from extender.config.findings import Finding, Severity
from extender.doctor.questions import Questions

FIX = "kubectl apply --server-side -k manifests/crd"


class Schema(Object, frozen=True, gc=False):
    """Of a part of an object, as far as the names of its fields go."""

    properties: dict[str, Schema] = {}

    def has(self, *path: str) -> bool:
        if not path:
            return True
        below = self.properties.get(path[0])
        return below is not None and below.has(*path[1:])


class Validation(Object, frozen=True, gc=False):
    schema: Schema = msgspec.field(default_factory=Schema, name="openAPIV3Schema")


class Version(Object, frozen=True, gc=False):
    name: str
    served: bool = False
    schema: Validation = Validation()


class DefinitionSpec(Object, frozen=True, gc=False):
    versions: tuple[Version, ...] = ()


class Definition(Object, frozen=True, gc=False):
    """Kubernetes: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1 (CustomResourceDefinition)"""

    metadata: ObjectMeta
    spec: DefinitionSpec = DefinitionSpec()


DEFINITIONS = ResourceType(
    "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", Definition, namespaced=False
)


def examine(ask: Questions) -> Iterator[Finding]:
    definition, forbidden = _read(ask)
    yield from forbidden
    if definition is None:
        return
    _, wanted = kinds.POD_GROUPS.api_version.split("/")
    version = next((each for each in definition.spec.versions if each.name == wanted), None)
    name = definition.metadata.name
    if version is None or not version.served:
        served = ", ".join(each.name for each in definition.spec.versions if each.served) or "none"
        message = f"{wanted} is not served, but {served}: pods that name a PodGroup wait"
        yield ask.finding(Severity.ERROR, "VersionNotServed", name, message, FIX)
    elif not version.schema.schema.has("status", "conditions"):
        message = (
            "it has no status.conditions, as that of scheduler-plugins: what is decided of a gang is an event, and `kubectl get podgroup` "
            "does not say it"
        )
        fix = "docs/tasks/beside-scheduler-plugins.md says what both definitions have"
        yield ask.finding(Severity.INFO, "NoConditions", name, message, fix)
    elif not version.schema.schema.has("status", "reason"):
        message = (
            "it is of an earlier version: the API server drops fields that the extender writes, and REASON stays blank"
        )
        yield ask.finding(Severity.WARNING, "OldDefinition", name, message, FIX)


def _read(ask: Questions) -> tuple[Definition | None, list[Finding]]:
    """None where there is none either: then the kind is not served, which is a finding of its own."""
    name = str(kinds.POD_GROUPS)
    try:
        return ask.read(f"customresourcedefinitions {name}", partial(ask.api.get, DEFINITIONS, name, ""))
    except NotFoundError:
        return None, []
