"""A cluster from YAML files: what `kubectl get -o yaml` prints, lists and multi-documents, into the embedded API.

Workloads are expanded into their pods, since there are no controllers here. Every error names file, line and field.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from extender.api.codec import DecodeError, convert, without_nulls
from extender.client.embedded.api import EmbeddedAPI
from extender.client.embedded.defaults import suffix
from extender.client.errors import ApiError
from extender.client.interface import NAMESPACES, POD_GROUPS, PODS, RESOURCE_TYPES, ResourceType
from extender.config.yaml_file import StrictLoader

Raw = dict[str, Any]

BY_KIND: Mapping[tuple[str, str], ResourceType[Any]] = {(r.api_version, r.kind): r for r in RESOURCE_TYPES}
WORKLOADS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "Job"})
IGNORED = frozenset(
    {
        "ConfigMap", "Secret", "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Event",
        "Endpoints", "EndpointSlice", "CustomResourceDefinition", "Ingress", "NetworkPolicy", "Lease", "LimitRange",
        "ResourceQuota", "HorizontalPodAutoscaler", "ControllerRevision", "Binding", "ComponentStatus",
    }
)  # fmt: skip


class _Loader(StrictLoader):
    """Refuses a key that stands twice: YAML would silently keep the last."""


def _mapping(loader: Any, node: yaml.MappingNode) -> Raw:
    loader.flatten_mapping(node)
    result: Raw = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in result:
            raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key!r}", key_node.start_mark)
        result[key] = loader.construct_object(value_node, deep=True)
    return result


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


@dataclass(frozen=True, slots=True)
class Document:
    """One object, and where it stands."""

    path: Path
    line: int
    object: Raw

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(slots=True)
class Loaded:
    """What was made of the files: objects by kind, and the kinds that do not matter here."""

    created: dict[str, int] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)


def load_files(api: EmbeddedAPI, paths: Sequence[Path | str]) -> Loaded:
    """Creates everything in the files, what others refer to first. Raises DecodeError or OSError; then nothing was created."""
    documents = [document for path in paths for document in read_documents(Path(path))]
    loaded = Loaded()
    objects = []
    for document in documents:
        for resource, obj in _objects(document, loaded):
            _check(document, resource, obj)
            objects.append((document, resource, obj))
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
    return {str(NAMESPACES): 0, str(POD_GROUPS): 2, str(PODS): 3}.get(str(resource), 1)


def read_documents(path: Path) -> Iterator[Document]:
    """Each object of a file; the items of a List one by one."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            line = node.start_mark.line + 1
            obj = loader.construct_document(node)
            yield from _items(path, line, obj)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise DecodeError(f"{path}:{mark.line + 1 if mark else 1}: {error.problem or error}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DecodeError(f"{path}: {error}") from error
    finally:
        loader.dispose()


def _items(path: Path, line: int, obj: Any) -> Iterator[Document]:
    if obj is None:
        return
    if not isinstance(obj, dict) or not isinstance(obj.get("kind"), str):
        raise DecodeError(f"{path}:{line}: $.kind: an object with apiVersion and kind is wanted")
    if obj["kind"].endswith("List") and isinstance(obj.get("items"), list):
        for item in obj["items"]:
            if isinstance(item, dict) and "kind" not in item:  # kubectl get --raw leaves it out
                item = {**item, "kind": obj["kind"].removesuffix("List"), "apiVersion": obj.get("apiVersion", "v1")}
            yield from _items(path, line, item)
        return
    yield Document(path, line, obj)


def _objects(document: Document, loaded: Loaded) -> Iterable[tuple[ResourceType[Any], Raw]]:
    obj = without_nulls(document.object)
    kind, version = obj["kind"], obj.get("apiVersion", "")
    resource = BY_KIND.get((version, kind))
    if resource is not None:
        yield resource, obj
    elif kind in IGNORED:
        loaded.ignored[kind] = loaded.ignored.get(kind, 0) + 1
    elif kind not in WORKLOADS:
        raise DecodeError(f"{document.place}: $.kind: {version or '(no apiVersion)'} {kind} is not known here")
    if kind in WORKLOADS and not _from_a_cluster(obj):
        for pod in _pods_of(document, obj):
            yield PODS, pod


def _from_a_cluster(workload: Raw) -> bool:
    """Whose controller has made its pods already: they are among the objects, or were left out on purpose."""
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
    try:
        convert(obj, resource.type)
    except DecodeError as error:
        raise DecodeError(f"{document.place}: {error}") from error
