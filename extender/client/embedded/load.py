"""A cluster from YAML files: what `kubectl get -o yaml` prints, lists and multi-documents, into the embedded API.

Workloads are expanded into their pods, since there are no controllers here. Every error names file, line and field.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from extender.api.codec import DecodeError, convert, without_nulls
from extender.client import unreadable
from extender.client.embedded.api import EmbeddedAPI
from extender.client.embedded.documents import Document, collected_afterwards, read_documents
from extender.client.embedded.unknown_fields import unknown_fields
from extender.client.embedded.workloads.kinds import BUILT_IN, CONTROLLERS
from extender.client.embedded.workloads.section import MOST_PODS, Section
from extender.client.embedded.workloads.trainer import CLUSTER_RUNTIME, RUNTIMES, VERSION
from extender.client.embedded.workloads.workload import Made, Workload
from extender.client.errors import ApiError
from extender.client.interface import (
    COMPOSITE_POD_GROUPS,
    FOREIGN_POD_GROUPS,
    IN_TREE_GROUPS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_TYPES,
    ResourceType,
)

Raw = dict[str, Any]

BY_KIND: Mapping[tuple[str, str], ResourceType[Any]] = {(r.api_version, r.kind): r for r in RESOURCE_TYPES}
TEMPLATES = (*RUNTIMES, PRIORITY_CLASSES.kind)
CLUSTER_SCOPED = (CLUSTER_RUNTIME, PRIORITY_CLASSES.kind)
GANG_SCHEDULER = "gang-scheduler"  # as manifests/sidecar has it
VERSIONS: Mapping[tuple[str, str], str] = {
    (version.rpartition("/")[0], kind): version
    for version, kind in {*BY_KIND, *BUILT_IN}
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


Places = dict[tuple[str, str, str], str]
"""Kind, namespace and name of what was created -> the file and line of the object that it is, or that it was made of."""


@dataclass(slots=True)
class Loaded:
    """What was made of the files. created: objects by kind. ignored: by kinds that do not matter here. unknown: by apiVersion
    and kind, of kinds that are not known; left_out: each of these with its place. misspelt: fields that no such object has, each
    with its place. later: what controllers make once other pods run. warnings: what of workloads is not simulated."""

    created: dict[str, int] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    misspelt: list[str] = field(default_factory=list)
    later: list[Made] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    pods_made: int = 0


def load_files(
    api: EmbeddedAPI,
    paths: Sequence[Path | str],
    gang_scheduler: str = GANG_SCHEDULER,
    *,
    all_at_once: bool = True,
    places: Places | None = None,
) -> Loaded:
    """Creates everything in the files, what others refer to first; `-` is standard input. Raises DecodeError or OSError; then nothing
    was created.

    gang_scheduler: the scheduler's name that operators with a flag for it are taken to run with. all_at_once: no pod of a workload waits
    for others; otherwise such pods are not created, and are in Loaded.later. places: filled in, where they are wanted.
    """
    with collected_afterwards():
        documents = [document for path in paths for document in read_documents(Path(path))]
        return load_documents(api, documents, gang_scheduler, all_at_once=all_at_once, places=places)


def load_documents(
    api: EmbeddedAPI,
    documents: Sequence[Document],
    gang_scheduler: str = GANG_SCHEDULER,
    *,
    all_at_once: bool = True,
    places: Places | None = None,
) -> Loaded:
    """The same of what has been read already: a pipe can be read once only."""
    loaded = Loaded()
    objects = []
    there = _There.of(documents)
    for document in documents:
        for made in _objects(document, loaded, there, gang_scheduler):
            _check(document, made.resource, made.object)
            if made.after is None or all_at_once:
                objects.append((document, made.resource, made.object))
            else:
                loaded.later.append(made)
    if loaded.unknown and not objects and not loaded.ignored:
        raise DecodeError(f"{documents[0].place}: $.kind: {next(iter(loaded.unknown))} is not known here")
    objects.sort(key=lambda entry: _rank(entry[1]))
    for document, resource, obj in objects:
        try:
            created = api.create(resource, obj, namespace=_metadata(obj).get("namespace", ""))
        except ApiError as error:
            raise DecodeError(f"{document.place}: {error}") from error
        if places is not None:
            places[resource.kind, created.metadata.namespace or "default", created.metadata.name] = document.place
        loaded.created[resource.kind] = loaded.created.get(resource.kind, 0) + 1
    return loaded


def _rank(resource: ResourceType[Any]) -> int:
    """Pods come last, groups before them: what is created names what exists."""
    if resource in (POD_GROUPS, *IN_TREE_GROUPS, COMPOSITE_POD_GROUPS, *FOREIGN_POD_GROUPS):
        return 2
    return {NAMESPACES: 0, PODS: 3}.get(resource, 1)


@dataclass(frozen=True, slots=True)
class _There:
    """What controllers have made already: owners by kind, namespace and name, and PodGroups by apiVersion, namespace and name.
    templates: what they make pods by, by kind, namespace and name."""

    owners: Collection[tuple[str, str, str]]
    pod_groups: Collection[tuple[str, str, str]]
    templates: Mapping[tuple[str, str, str], Section]

    @classmethod
    def of(cls, documents: Iterable[Document]) -> _There:
        owners, pod_groups = set(), set()
        templates: dict[tuple[str, str, str], Section] = {}
        for document in documents:
            kind, (namespace, name) = document.object["kind"], _key(document.object)
            references = _metadata(document.object).get("ownerReferences")
            if kind in TEMPLATES:
                namespace = "" if kind in CLUSTER_SCOPED else namespace
                templates[kind, namespace, name] = Section(document.place, "$", without_nulls(document.object))
            elif kind == POD_GROUPS.kind:
                pod_groups.add((str(document.object.get("apiVersion")), namespace, name))
            elif isinstance(references, list):
                named = [each for each in references if isinstance(each, dict)]
                owners |= {(str(each.get("kind")), namespace, str(each.get("name"))) for each in named}
        return cls(owners, pod_groups, templates)


def _objects(document: Document, loaded: Loaded, there: _There, gang_scheduler: str) -> Iterator[Made]:
    obj = without_nulls(document.object)
    kind, version = obj["kind"], str(obj.get("apiVersion", ""))
    resource, is_workload = BY_KIND.get((version, kind)), (version, kind) in CONTROLLERS
    made_by_others = is_workload and (version, kind) not in BUILT_IN
    if version == VERSION and kind in RUNTIMES:
        return
    if resource is None and (not is_workload or (made_by_others and "spec" not in obj)):  # no server would let that in
        _left_out(document, kind, version, loaded)
        return
    if not _from_a_cluster(obj):
        loaded.misspelt += [f"{document.place}: {each}" for each in unknown_fields(obj)]
    if resource is not None:
        yield Made(resource, obj)
    if not is_workload or _from_a_cluster(obj) or (kind, *_key(obj)) in there.owners:
        return
    for made in _made_of(document, obj, loaded, there, gang_scheduler):
        if (made.resource.api_version, *_key(made.object)) not in there.pod_groups or made.resource is PODS:
            yield made


def _key(obj: Raw) -> tuple[str, str]:
    """Namespace and name."""
    meta = _metadata(obj)
    return str(meta.get("namespace") or "default"), str(meta.get("name", ""))


def _metadata(obj: Raw) -> Raw:
    """Empty where it is no object."""
    meta = obj.get("metadata")
    return meta if isinstance(meta, dict) else {}


def _left_out(document: Document, kind: str, version: str, loaded: Loaded) -> None:
    """An object of a kind that scheduling knows nothing of changes no answer. Raises DecodeError where it could: without a
    version, or in another than the one that is read."""
    read = VERSIONS.get((version.rpartition("/")[0], kind))
    if read is not None or not version:
        told = f"; {read} is" if read else ""
        raise DecodeError(f"{document.place}: $.kind: {version or '(no apiVersion)'} {kind} is not known here{told}")
    counts, name = (loaded.ignored, kind) if kind in IGNORED else (loaded.unknown, f"{version} {kind}")
    if counts is loaded.unknown:
        loaded.left_out.append(f"{document.place}: {kind} {'/'.join(_key(document.object))}")
    counts[name] = counts.get(name, 0) + 1


def _from_a_cluster(workload: Raw) -> bool:
    """Those with pods that their controller has made already: these are among the objects, or were left out on purpose."""
    return bool(_metadata(workload).get("uid"))


def _made_of(document: Document, workload: Raw, loaded: Loaded, there: _There, gang_scheduler: str) -> Iterator[Made]:
    """What the workload's controller would make, under the names that it would have. Raises DecodeError for too much of it."""
    found = Workload(Section(document.place, "$", workload), gang_scheduler, there.templates, loaded.warnings)
    key = (str(workload["apiVersion"]), str(workload["kind"]))
    for made in CONTROLLERS[key](found):
        if made.resource is PODS:
            loaded.pods_made += 1
            if loaded.pods_made > MOST_PODS:
                raise DecodeError(f"{document.place}: $.spec: more than the {MOST_PODS} pods that a cluster may have")
            if key not in BUILT_IN:
                told = [f"{document.place}: in its pods: {each}" for each in unknown_fields(made.object)]
                loaded.misspelt += [each for each in told if each not in loaded.misspelt]
        yield made


def _check(document: Document, resource: ResourceType[Any], obj: Raw) -> None:
    """What an API server has let in is taken as the extender takes it from there."""
    try:
        if _from_a_cluster(obj):
            unreadable.convert(obj, resource.type)
        else:
            convert(obj, resource.type, nulls=False)
    except DecodeError as error:
        raise DecodeError(f"{document.place}: {error}") from error
