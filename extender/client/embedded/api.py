"""The embedded API server: interface.API over dictionaries.

kube-scheduler's counterpart is the real kube-apiserver; what it does with bindings, UIDs and versions is done here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from extender.api import codec, corev1
from extender.client.embedded.defaults import with_group_priority, with_metadata, with_pod_defaults
from extender.client.embedded.history import Change, EmbeddedWatch, History
from extender.client.embedded.patching import json_patch, merge, strategic
from extender.client.embedded.selectors import field_selector as _selector
from extender.client.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidError,
    NotFoundError,
    TooManyRequestsError,
)
from extender.client.interface import (
    COMPOSITE_POD_GROUPS,
    IN_TREE_GROUPS,
    POD_DISRUPTION_BUDGETS,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_TYPES,
    EventType,
    Page,
    PatchType,
    Preconditions,
    ResourceType,
    User,
    Watch,
)
from extender.client.status_patch import now_text
from extender.client.unreadable import convert

T = TypeVar("T")
Raw = dict[str, Any]

HAVE_STATUS = frozenset(
    {
        "pods",
        "nodes",
        "persistentvolumes",
        "persistentvolumeclaims",
        *map(str, (POD_GROUPS, *IN_TREE_GROUPS, COMPOSITE_POD_GROUPS)),
    }
)


class EmbeddedAPI:
    """Thread-safe. Not served: kinds in `absent`, as where a CRD is not installed."""

    def __init__(self, *, absent: Sequence[ResourceType[Any]] = (), now: Callable[[], str] = now_text) -> None:
        """now: the time of creations and bindings, as it is written in objects."""
        self._now = now
        self._changed = threading.Condition(threading.RLock())  # guards everything, the history included
        self._history = History(self._changed)
        self._objects: dict[str, dict[str, Raw]] = {}
        self._values: dict[str, dict[str, Any]] = {}  # the same objects as structs: frozen, so handed out as they are
        self._absent = {str(resource) for resource in absent}
        self._created = 0
        self._events: dict[str, Raw] = {}
        self._watches: list[EmbeddedWatch[Any]] = []

    def list_page(
        self,
        resource: ResourceType[T],
        *,
        namespace: str = "",
        field_selector: str = "",
        limit: int = 500,
        continue_token: str = "",
    ) -> Page[T]:
        selects = _selector(field_selector, namespace)
        with self._changed:
            keys = [key for key, obj in sorted(self._of(resource).items()) if selects(obj)]
            start = int(continue_token or 0)
            part = keys[start : start + limit]
            following = str(start + limit) if start + limit < len(keys) else ""
            values = self._values[str(resource)] if part else {}
            return Page([values[key] for key in part], str(self._history.version), following)

    def watch(
        self,
        resource: ResourceType[T],
        *,
        namespace: str = "",
        field_selector: str = "",
        resource_version: str = "",
        timeout_seconds: float = 300,
    ) -> Watch[T]:
        self._of(resource)
        version = int(resource_version) if resource_version else self._history.version
        watch = EmbeddedWatch(
            self._history, resource, lambda obj: _decode(obj, resource), _selector(field_selector, namespace), version
        )
        with self._changed:
            self._watches.append(watch)
        return watch

    def get(self, resource: ResourceType[T], name: str, namespace: str = "") -> T:
        with self._changed:
            return self._value(resource, self._find(resource, name, namespace))

    def create(self, resource: ResourceType[T], body: Mapping[str, Any], namespace: str = "") -> T:
        with self._changed:
            objects = self._of(resource)
            self._created += 1
            obj = with_metadata(body, namespace, resource.namespaced, self._created, self._now())
            key = _key(obj)
            if key in objects:
                raise AlreadyExistsError(
                    f'{resource} "{obj["metadata"]["name"]}" already exists', reason="AlreadyExists"
                )
            if resource is PODS:
                with_pod_defaults(obj, self._of(PRIORITY_CLASSES))
            elif resource in (*IN_TREE_GROUPS, COMPOSITE_POD_GROUPS):
                with_group_priority(obj, self._of(PRIORITY_CLASSES))
            elif str(resource) in ("persistentvolumes", "persistentvolumeclaims"):
                obj["status"] = {"phase": "Pending", **(obj.get("status") or {})}
            return self._store(resource, obj)

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
        with self._changed:
            old = self._find(resource, name, namespace)
            _check_preconditions(resource, old, body)
            if isinstance(body, Mapping):
                new = strategic(old, body) if patch_type is PatchType.STRATEGIC else merge(old, body)
            else:
                new = json_patch(old, body)
            if str(resource) in HAVE_STATUS:
                kept = "status" if subresource != "status" else "spec"
                new = {**new, kept: old[kept]} if kept in old else {k: v for k, v in new.items() if k != kept}
            if new == old:
                return self._value(resource, old)
            return self._store(resource, new)

    def delete(
        self,
        resource: ResourceType[Any],
        name: str,
        namespace: str = "",
        *,
        preconditions: Preconditions | None = None,
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """At once: there is no kubelet here that a grace period would be for."""
        with self._changed:
            old = self._find(resource, name, namespace)
            meta = old["metadata"]
            if preconditions is not None and preconditions.uid and preconditions.uid != meta["uid"]:
                raise ConflictError(_uid_text(resource, name, preconditions.uid, meta["uid"]), reason="Conflict")
            if dry_run:
                return
            del self._of(resource)[_key(old)], self._values[str(resource)][_key(old)]
            version = self._history.next_version()
            gone = {**old, "metadata": {**meta, "resourceVersion": str(version)}}
            self._history.append(Change(version, str(resource), EventType.DELETED, gone, old))

    def evict(self, pod: corev1.Pod, *, dry_run: bool = False) -> None:
        """A budget that is used up forbids it; nothing counts it down here: there is no disruption controller."""
        with self._changed:
            for raw in self._of(POD_DISRUPTION_BUDGETS).values():
                budget = self._value(POD_DISRUPTION_BUDGETS, raw)
                selector = budget.spec.selector
                concerned = selector is not None and not selector.empty and selector.matches(pod.labels)
                if budget.metadata.namespace == pod.namespace and concerned and budget.status.disruptions_allowed <= 0:
                    text = "Cannot evict pod as it would violate the pod's disruption budget."
                    raise TooManyRequestsError(text, reason="TooManyRequests")
            self.delete(PODS, pod.name, pod.namespace, preconditions=Preconditions(uid=pod.uid), dry_run=dry_run)

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
        """No caller is refused anything here."""
        return True

    def user_of(self, token: str) -> User | None:
        """There are no users here."""
        return None

    def user_may(
        self, user: User, verb: str, resource: ResourceType[Any], *, namespace: str = "", name: str = ""
    ) -> bool:
        return False

    def bind(self, binding: corev1.Binding) -> None:
        meta, node = binding.metadata, binding.target.name
        with self._changed:
            pod = self._find(PODS, meta.name, meta.namespace)
            if meta.uid and meta.uid != pod["metadata"]["uid"]:
                raise ConflictError(_uid_text(PODS, meta.name, meta.uid, pod["metadata"]["uid"]), reason="Conflict")
            refused = _binding_refused(pod)
            if refused:
                raise ConflictError(
                    f'Operation cannot be fulfilled on pods/binding "{meta.name}": {refused}', reason="Conflict"
                )
            status = {key: value for key, value in pod["status"].items() if key != "nominatedNodeName"}
            scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": self._now()}
            bound = {
                **pod,
                "metadata": _annotated(pod["metadata"], meta.annotations),
                "spec": {**pod["spec"], "nodeName": node},
                "status": strategic(status, {"conditions": [scheduled]}),
            }
            self._store(PODS, bound)

    def create_event(self, namespace: str, body: Mapping[str, Any]) -> None:
        with self._changed:
            self._events[f"{namespace}/{body['metadata']['name']}"] = dict(body)

    def patch_event(self, namespace: str, name: str, body: Mapping[str, Any]) -> None:
        with self._changed:
            key = f"{namespace}/{name}"
            if key not in self._events:
                raise NotFoundError(f'events "{name}" not found', reason="NotFound")
            self._events[key] = merge(self._events[key], body)

    def events(self) -> list[Raw]:
        """Every Event that was written, in order."""
        with self._changed:
            return list(self._events.values())

    def version(self) -> tuple[int, int]:
        return 1, 36

    def served_versions(self, group: str) -> tuple[str, ...]:
        served = (each for each in RESOURCE_TYPES if each.group == group and str(each) not in self._absent)
        return tuple(dict.fromkeys(each.version for each in served))

    def server_time(self) -> datetime | None:
        return datetime.now(UTC).replace(microsecond=0)

    def changes(self, version: int) -> list[Change]:
        """What happened after that resourceVersion, for a reader without a watch. Raises GoneError."""
        with self._changed:
            return self._history.since(version)

    def close(self) -> None:
        with self._changed:
            watches, self._watches = self._watches, []
        for watch in watches:
            watch.stop()

    def _of(self, resource: ResourceType[Any]) -> dict[str, Raw]:
        if str(resource) in self._absent:
            raise NotFoundError("the server could not find the requested resource", reason="NotFound")
        return self._objects.setdefault(str(resource), {})

    def _find(self, resource: ResourceType[Any], name: str, namespace: str) -> Raw:
        key = f"{namespace or 'default'}/{name}" if resource.namespaced else name
        obj = self._of(resource).get(key)
        if obj is None:
            raise NotFoundError(f'{resource} "{name}" not found', reason="NotFound")
        return obj

    def _store(self, resource: ResourceType[T], obj: Raw) -> T:
        """A new version of an object, decodable, told to the watches."""
        objects = self._of(resource)
        key = _key(obj)
        version = self._history.next_version()
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
        try:
            decoded = _decode(obj, resource)
        except codec.DecodeError as error:
            raise InvalidError(f'{resource.kind} "{obj["metadata"]["name"]}" is invalid: {error}') from error
        previous = objects.get(key)
        objects[key] = obj
        self._values.setdefault(str(resource), {})[key] = decoded
        event_type = EventType.ADDED if previous is None else EventType.MODIFIED
        self._history.append(Change(version, str(resource), event_type, obj, previous, decoded))
        return decoded

    def _value(self, resource: ResourceType[T], obj: Raw) -> T:
        """Of an object that is there."""
        value: T = self._values[str(resource)][_key(obj)]
        return value


def _decode(obj: Raw, resource: ResourceType[T]) -> T:
    return convert(obj, resource.type)


def _key(obj: Raw) -> str:
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def _check_preconditions(resource: ResourceType[Any], old: Raw, body: Mapping[str, Any] | Sequence[Any]) -> None:
    """A UID or a resourceVersion that a patch names must be that of the object."""
    wanted = (body.get("metadata") or {}) if isinstance(body, Mapping) else {}
    uid, version, meta = wanted.get("uid"), wanted.get("resourceVersion"), old["metadata"]
    if uid and uid != meta["uid"]:
        raise ConflictError(_uid_text(resource, meta["name"], uid, meta["uid"]), reason="Conflict")
    if version and version != meta["resourceVersion"]:
        text = "the object has been modified; please apply your changes to the latest version and try again"
        raise ConflictError(f'Operation cannot be fulfilled on {resource} "{meta["name"]}": {text}', reason="Conflict")


def _uid_text(resource: ResourceType[Any], name: str, wanted: str, found: str) -> str:
    return (
        f'Operation cannot be fulfilled on {resource} "{name}": the UID in the precondition ({wanted}) '
        f"does not match the UID in record ({found})"
    )


def _annotated(metadata: Raw, annotations: Mapping[str, str]) -> Raw:
    if not annotations:
        return metadata
    return {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}


def _binding_refused(pod: Raw) -> str:
    if pod["spec"].get("nodeName"):
        return f'pod {pod["metadata"]["name"]} is already assigned to node "{pod["spec"]["nodeName"]}"'
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {pod['metadata']['name']} is being deleted, cannot be assigned to a host"
    if pod["spec"].get("schedulingGates"):
        return f"pod {pod['metadata']['name']} has non-empty .spec.schedulingGates"
    return ""
