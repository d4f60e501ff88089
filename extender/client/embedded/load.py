"""A cluster from YAML files: what `kubectl get -o yaml` prints, lists and multi-documents, into the embedded API.

Workloads are expanded into their pods, since there are no controllers here. Every error names file, line and field.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from extender.api.codec import DecodeError, convert, without_nulls
from extender.client import unreadable
from extender.client.embedded.api import EmbeddedAPI
from extender.client.embedded.defaults import suffix
from extender.client.embedded.documents import Document, collected_afterwards, read_documents
from extender.client.embedded.unknown_fields import unknown_fields
from extender.client.errors import ApiError
from extender.client.interface import (
    COMPOSITE_POD_GROUPS,
    FOREIGN_POD_GROUPS,
    IN_TREE_GROUPS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    RESOURCE_TYPES,
    ResourceType,
)

Raw = dict[str, Any]

BY_KIND: Mapping[tuple[str, str], ResourceType[Any]] = {(r.api_version, r.kind): r for r in RESOURCE_TYPES}
WORKLOADS = frozenset(
    (("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job"))
)
VERSIONS: Mapping[tuple[str, str], str] = {
    (version.rpartition("/")[0], kind): version
    for version, kind in {*BY_KIND, *WORKLOADS}
    - {(r.api_version, r.kind) for r in (*IN_TREE_GROUPS, COMPOSITE_POD_GROUPS)}
}
"""Group and kind -> the version that is read, of APIs that are read in one version."""
IGNORED = frozenset(
    {
        "ConfigMap", "Secret", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Event",
        "Endpoints", "EndpointSlice", "CustomResourceDefinition", "Ingress", "NetworkPolicy", "Lease", "LimitRange",
        "ResourceQuota", "HorizontalPodAutoscaler", "ControllerRevision", "Binding", "ComponentStatus",
    }
)  # fmt: skip


@dataclass(slots=True)
class Loaded:
    """What was made of the files. created: objects by kind. ignored: by kinds that do not matter here. unknown: by apiVersion
    and kind, of kinds that are not known. misspelt: fields that no such object has, each with its
    place."""

    created: dict[str, int] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    misspelt: list[str] = field(default_factory=list)


def load_files(api: EmbeddedAPI, paths: Sequence[Path | str]) -> Loaded:
    """Creates everything in the files, what others refer to first. Raises DecodeError or OSError; then nothing was created."""
    with collected_afterwards():
        return _load(api, [document for path in paths for document in read_documents(Path(path))])


def _load(api: EmbeddedAPI, documents: Sequence[Document]) -> Loaded:
    loaded = Loaded()
    objects = []
    for document in documents:
        for resource, obj in _objects(document, loaded):
            _check(document, resource, obj)
            objects.append((document, resource, obj))
    if loaded.unknown and not objects and not loaded.ignored:
        raise DecodeError(f"{documents[0].place}: $.kind: {next(iter(loaded.unknown))} is not known here")
    objects.sort(key=lambda entry: _rank(entry[1]))
    for document, resource, obj in objects:
        try:
            api.create(resource, obj, namespace=(obj.get("metadata") or {}).get("namespace", ""))
        except ApiError as error:
            raise DecodeError(f"{document.place}: {error}") from error
        loaded.created[resource.kind] = loaded.created.get(resource.kind, 0) + 1
    return loaded


def _rank(resource: ResourceType[Any]) -> int:
    """Pods come last, groups before them: what is created names what exists."""
    if resource in (POD_GROUPS, *IN_TREE_GROUPS, COMPOSITE_POD_GROUPS, *FOREIGN_POD_GROUPS):
        return 2
    return {NAMESPACES: 0, PODS: 3}.get(resource, 1)


def _objects(document: Document, loaded: Loaded) -> Iterable[tuple[ResourceType[Any], Raw]]:
    obj = without_nulls(document.object)
    kind, version = obj["kind"], str(obj.get("apiVersion", ""))
    resource, is_workload = BY_KIND.get((version, kind)), (version, kind) in WORKLOADS
    if resource is None and not is_workload:
        _left_out(document, kind, version, loaded)
        return
    if not _from_a_cluster(obj):
        loaded.misspelt += [f"{document.place}: {each}" for each in unknown_fields(obj)]
    if resource is not None:
        yield resource, obj
    if is_workload and not _from_a_cluster(obj):
        for pod in _pods_of(document, obj):
            yield PODS, pod


def _left_out(document: Document, kind: str, version: str, loaded: Loaded) -> None:
    """An object of a kind that scheduling knows nothing of changes no answer. Raises DecodeError where it could: without a
    version, or in another than the one that is read."""
    read = VERSIONS.get((version.rpartition("/")[0], kind))
    if read is not None or not version:
        told = f"; {read} is" if read else ""
        raise DecodeError(f"{document.place}: $.kind: {version or '(no apiVersion)'} {kind} is not known here{told}")
    counts, name = (loaded.ignored, kind) if kind in IGNORED else (loaded.unknown, f"{version} {kind}")
    counts[name] = counts.get(name, 0) + 1


def _from_a_cluster(workload: Raw) -> bool:
    """Those with pods that their controller has made already: these are among the objects, or were left out on purpose."""
    return bool((workload.get("metadata") or {}).get("uid"))


def _pods_of(document: Document, workload: Raw) -> Iterator[Raw]:
    """The pods that the workload's controller would make, under the names that they would have."""
    spec = workload.get("spec") or {}
    template = spec.get("template") or {}
    meta = workload.get("metadata") or {}
    count = spec.get("parallelism" if workload["kind"] == "Job" else "replicas", 1)
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise DecodeError(f"{document.place}: $.spec.replicas: a number of 0 or more is wanted, got {count!r}")
    name = str(meta.get("name", ""))
    if workload["kind"] == "Deployment":
        name += "-" + hashlib.sha256(repr(template).encode()).hexdigest()[:9]
    for index in range(count):
        ending = str(index) if workload["kind"] == "StatefulSet" else suffix(f"{name}-{index}")
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **(template.get("metadata") or {}),
                "name": f"{name}-{ending}",
                "namespace": meta.get("namespace", "default"),
            },
            "spec": template.get("spec") or {},
        }


def _check(document: Document, resource: ResourceType[Any], obj: Raw) -> None:
    """What an API server has let in is taken as the extender takes it from there."""
    try:
        if _from_a_cluster(obj):
            unreadable.convert(obj, resource.type)
        else:
            convert(obj, resource.type, nulls=False)
    except DecodeError as error:
        raise DecodeError(f"{document.place}: {error}") from error
