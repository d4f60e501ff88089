"""The real API server: its verbs over HTTP (client/transport), JSON by msgspec.

A watch's connection can be cut from another thread.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, TypeVar

from extender.api import codec, corev1
from extender.api.metav1 import Object
from extender.client import port_forward
from extender.client.decoding import read_list
from extender.client.errors import ApiError, ForbiddenError, NotFoundError, UnreadableError
from extender.client.identity import Identity
from extender.client.interface import PODS, Page, PatchType, Preconditions, ResourceType, User, Watch
from extender.client.kubeconfig import KubeconfigFiles
from extender.client.transport import Pool, Transport
from extender.client.unreadable import decode
from extender.client.watch_stream import WatchStream

T = TypeVar("T")

SILENT_SHARE, SILENT_SECONDS = 1.2, 1.0
"""A watch that the server has not ended by then, and in which nothing came, has lost its server."""


class Connection:
    """Fulfils interface.API. Thread-safe."""

    def __init__(self, identity: Identity) -> None:
        self._transport = Transport(identity)
        self._lock = threading.Lock()  # guards _watches
        self._watches: set[WatchStream[Any]] = set()

    @classmethod
    def from_kubeconfig(cls, given: str | Path | KubeconfigFiles, context: str | None = None) -> Connection:
        return cls(Identity.from_kubeconfig(given, context))

    @classmethod
    def in_cluster(cls) -> Connection:
        return cls(Identity.in_cluster())

    def list_page(
        self,
        resource: ResourceType[T],
        *,
        namespace: str = "",
        field_selector: str = "",
        limit: int = 500,
        continue_token: str = "",
    ) -> Page[T]:
        query = {"limit": str(limit), "fieldSelector": field_selector, "continue": continue_token}
        try:
            body = self._transport.call("GET", _path(resource, namespace), query=query)
        except ForbiddenError:
            if resource.group and not self._may_be_served(resource):
                raise NotFoundError(f"{resource} is not served") from None
            raise
        items, unreadable, metadata = read_list(body, resource.type)
        return Page(items, metadata.resource_version, metadata.continue_, unreadable)

    def watch(
        self,
        resource: ResourceType[T],
        *,
        namespace: str = "",
        field_selector: str = "",
        resource_version: str = "",
        timeout_seconds: float = 300,
    ) -> Watch[T]:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "fieldSelector": field_selector,
            "resourceVersion": resource_version,
            "timeoutSeconds": str(max(1, int(timeout_seconds))),
        }
        silent_seconds = timeout_seconds * SILENT_SHARE + SILENT_SECONDS
        response = self._transport.stream(_path(resource, namespace), query, silent_seconds)
        stream: WatchStream[T] = WatchStream(response, resource.type, self._forget)
        with self._lock:
            self._watches.add(stream)
        return stream

    def _forget(self, stream: WatchStream[Any]) -> None:
        with self._lock:
            self._watches.discard(stream)

    def get(self, resource: ResourceType[T], name: str, namespace: str = "") -> T:
        return self._decode(self._transport.call("GET", _path(resource, namespace, name)), resource.type)

    def create(self, resource: ResourceType[T], body: Mapping[str, Any], namespace: str = "") -> T:
        answer = self._transport.call("POST", _path(resource, namespace or _namespace(body, resource)), body=body)
        return self._decode(answer, resource.type)

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
        path = _path(resource, namespace, name, subresource)
        answer = self._transport.call("PATCH", path, body=body, content_type=patch_type.value)
        return self._decode(answer, resource.type)

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
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if preconditions is not None:
            held = {"uid": preconditions.uid, "resourceVersion": preconditions.resource_version}
            body["preconditions"] = {key: value for key, value in held.items() if value}
        if grace_period_seconds is not None:
            body["gracePeriodSeconds"] = grace_period_seconds
        if dry_run:
            body["dryRun"] = ["All"]
        self._transport.call("DELETE", _path(resource, namespace, name), body=body)

    def evict(self, pod: corev1.Pod, *, dry_run: bool = False) -> None:
        options: dict[str, Any] = {"preconditions": {"uid": pod.uid}}
        if dry_run:
            options["dryRun"] = ["All"]
        metadata = {"name": pod.name, "namespace": pod.namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
        self._transport.call("POST", _path(PODS, pod.namespace, pod.name, "eviction"), body=body)

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
        wanted = _Wanted(verb, resource, subresource, namespace, name)
        return self._review(wanted, User(user, groups=_groups_of(user)) if user else None)

    def user_may(
        self, user: User, verb: str, resource: ResourceType[Any], *, namespace: str = "", name: str = ""
    ) -> bool:
        return self._review(_Wanted(verb, resource, "", namespace, name), user)

    def _review(self, wanted: _Wanted, user: User | None) -> bool:
        """user: None for ourselves."""
        spec: dict[str, Any] = {"resourceAttributes": wanted.attributes()}
        kind = "SelfSubjectAccessReview"
        if user is not None:
            kind = "SubjectAccessReview"
            extra = {key: list(values) for key, values in user.extra.items()}
            spec |= {"user": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
        answer = self._transport.call("POST", f"/apis/authorization.k8s.io/v1/{kind.lower()}s", body=body)
        return self._decode(answer, _AccessReview).status.allowed

    def user_of(self, token: str) -> User | None:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        answer = self._transport.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body=body)
        status = self._decode(answer, _TokenReview).status
        if not status.authenticated or not status.user.username:
            return None
        return User(status.user.username, status.user.uid, status.user.groups, status.user.extra)

    def bind(self, binding: corev1.Binding) -> None:
        meta = binding.metadata
        body = {"apiVersion": "v1", "kind": "Binding", **codec.to_builtins(binding)}
        self._transport.call("POST", _path(PODS, meta.namespace, meta.name, "binding"), body=body, pool=Pool.BINDINGS)

    def create_event(self, namespace: str, body: Mapping[str, Any]) -> None:
        self._transport.call("POST", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", body=body)

    def patch_event(self, namespace: str, name: str, body: Mapping[str, Any]) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events/{name}"
        self._transport.call("PATCH", path, body=body, content_type=PatchType.MERGE.value)

    def call_pod(
        self,
        namespace: str,
        name: str,
        port: int,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        seconds: float = 30.0,
    ) -> tuple[int, bytes]:
        """Status and body of an HTTP call to a port on the loopback address of the pod. seconds: of silence, at most."""
        path = _path(PODS, namespace, name, "portforward")
        socket = self._transport.websocket(path, {"ports": str(port)}, port_forward.PROTOCOL, seconds)
        return port_forward.exchange(socket, port, method, target, headers or {}, body)

    def _may_be_served(self, resource: ResourceType[Any]) -> bool:
        """By the server's discovery, which every account may read: a kind that is forbidden need not be there at all."""
        try:
            self._transport.call("GET", f"/apis/{resource.api_version}")
        except NotFoundError:
            return False
        except ApiError:
            return True
        return True

    def version(self) -> tuple[int, int]:
        answer: _Version = self._decode(self._transport.call("GET", "/version"), _Version)
        return version_of(answer.major, answer.minor)

    def served_versions(self, group: str) -> tuple[str, ...]:
        try:
            answer: _APIGroup = self._decode(self._transport.call("GET", f"/apis/{group}"), _APIGroup)
        except NotFoundError:
            return ()
        return tuple(each.version for each in answer.versions)

    def server_time(self) -> datetime | None:
        try:
            return parsedate_to_datetime(self._transport.date("/version")).astimezone(UTC)
        except ValueError:
            return None

    def close(self) -> None:
        with self._lock:
            watches = list(self._watches)
        for watch in watches:
            watch.stop()
        self._transport.close()

    def _decode(self, body: bytes, type_: type[T]) -> T:
        try:
            return decode(body, type_)
        except codec.DecodeError as error:
            raise UnreadableError(f"answer could not be read: {error}") from error


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A permission."""

    verb: str
    resource: ResourceType[Any]
    subresource: str
    namespace: str
    name: str

    def attributes(self) -> Mapping[str, str]:
        of = {"group": self.resource.group, "resource": self.resource.plural, "subresource": self.subresource}
        return {"verb": self.verb, **of, "namespace": self.namespace, "name": self.name}


class _AccessStatus(Object, frozen=True, gc=False):
    allowed: bool = False


class _AccessReview(Object, frozen=True):
    """authorization.k8s.io/v1 SelfSubjectAccessReview."""

    status: _AccessStatus = _AccessStatus()


class _UserInfo(Object, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _TokenStatus(Object, frozen=True):
    authenticated: bool = False
    user: _UserInfo = _UserInfo()


class _TokenReview(Object, frozen=True):
    """authentication.k8s.io/v1 TokenReview."""

    status: _TokenStatus = _TokenStatus()


class _GroupVersion(Object, frozen=True, gc=False):
    version: str = ""


class _APIGroup(Object, frozen=True, gc=False):
    """What discovery says of a group of the API."""

    versions: tuple[_GroupVersion, ...] = ()


class _Version(Object, frozen=True, gc=False):
    major: str = ""
    minor: str = ""


def version_of(major: str, minor: str) -> tuple[int, int]:
    """Some providers write `30+`. (0, 0) for what is no number."""
    digits = [re.match(r"\d+", text) for text in (major, minor)]
    first, second = (int(found[0]) if found else 0 for found in digits)
    return first, second


def _groups_of(user: str) -> tuple[str, ...]:
    """Those that the API server's authenticator gives every user of this kind."""
    parts = user.split(":")
    if parts[:2] == ["system", "serviceaccount"] and len(parts) == 4:
        return "system:serviceaccounts", f"system:serviceaccounts:{parts[2]}", "system:authenticated"
    return ("system:authenticated",)


def _namespace(body: Mapping[str, Any], resource: ResourceType[Any]) -> str:
    if not resource.namespaced:
        return ""
    return str((body.get("metadata") or {}).get("namespace") or "default")


def _path(resource: ResourceType[Any], namespace: str = "", name: str = "", subresource: str = "") -> str:
    group = f"/apis/{resource.api_version}" if "/" in resource.api_version else f"/api/{resource.api_version}"
    scope = f"/namespaces/{namespace}" if namespace and resource.namespaced else ""
    return group + scope + "/" + "/".join(filter(None, (resource.plural, name, subresource)))
