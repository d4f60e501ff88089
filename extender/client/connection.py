"""The real API server: HTTP over urllib3, JSON by msgspec.

Calls share a small pool of kept-alive connections, since a TLS handshake costs more than a binding; bindings have a pool of
their own, so that a commit waits for no patch; each watch has a connection, that can be cut from another thread.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar, cast
from urllib.parse import urlencode

import msgspec
import urllib3
from msgspec import Struct
from urllib3.util import Timeout

from extender import metrics
from extender.api import codec, corev1
from extender.api.metav1 import ListMeta, Object
from extender.client.answers import error_of
from extender.client.connections import PlainPool, TlsPool
from extender.client.errors import ConnectionFailedError, UnauthorizedError
from extender.client.identity import Identity
from extender.client.interface import PODS, Page, PatchType, Preconditions, ResourceType, Watch
from extender.client.unreadable import readable
from extender.client.watch_stream import WatchStream

T = TypeVar("T")

POOL_SIZE = 16
CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 30.0
WATCH_READ_SECONDS = 70.0  # bookmarks come every 60 s: a watch that is silent for longer is dead
USER_AGENT = "gang-extender"

_ACCEPT = {"Accept": "application/json", "User-Agent": USER_AGENT}
_TIMEOUT = Timeout(connect=CONNECT_SECONDS, read=REQUEST_SECONDS)  # a pattern: urllib3 clones it for each call

_KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
]


@lru_cache(maxsize=64)
def _list_type(type_: Any) -> Any:
    return msgspec.defstruct(
        f"{type_.__name__}List", [("metadata", ListMeta), ("items", tuple[type_, ...] | None, ())], frozen=True
    )


class Created(Struct, frozen=True):
    """An answer whose content nobody reads."""


class Connection:
    """Fulfils interface.API. Thread-safe."""

    def __init__(self, identity: Identity, *, watch_read_seconds: float = WATCH_READ_SECONDS) -> None:
        self._identity = identity
        self._watch_read_seconds = watch_read_seconds
        self._lock = threading.Lock()  # guards _watches
        self._watches: set[WatchStream[Any]] = set()
        self._pool = self._new_pool(POOL_SIZE, block=True)
        self._bind_pool = self._new_pool(POOL_SIZE, block=True)
        self._watch_pool = self._new_pool(1, block=False)

    @classmethod
    def from_kubeconfig(cls, path: str | None = None, context: str | None = None) -> Connection:
        return cls(Identity.from_kubeconfig(path, context))

    @classmethod
    def in_cluster(cls) -> Connection:
        return cls(Identity.in_cluster())

    def _new_pool(self, size: int, *, block: bool) -> urllib3.HTTPConnectionPool:
        options: dict[str, Any] = {
            "maxsize": size,
            "block": block,
            "retries": False,
            "timeout": _TIMEOUT,
            "headers": _ACCEPT,
            "socket_options": _KEEPALIVE,
        }
        url = urllib3.util.parse_url(self._identity.host)
        context = self._identity.ssl_context()
        host, port = url.host or "localhost", url.port
        if context is None:
            return PlainPool(host, port or 80, **options)
        if name := self._identity.server_hostname:
            options["server_hostname"] = name
        return TlsPool(
            host, port or 443, ssl_context=context, assert_hostname=None if context.check_hostname else False, **options
        )

    def list_page(
        self,
        resource: ResourceType[T],
        *,
        namespace: str = "",
        field_selector: str = "",
        resource_version: str = "",
        limit: int = 500,
        continue_token: str = "",
    ) -> Page[T]:
        query = {"limit": str(limit), "fieldSelector": field_selector, "continue": continue_token}
        if resource_version and not continue_token:
            # "0" lets the server answer from its cache; with a limit it still pages through etcd, which is exact.
            query["resourceVersion"] = resource_version
            query["resourceVersionMatch"] = "NotOlderThan"
        body = self._call("GET", _path(resource, namespace), query=query)
        try:
            answer: Any = codec.decode(body, _list_type(cast(Any, resource.type)))
            items, metadata = answer.items or (), answer.metadata
        except codec.DecodeError:
            items, metadata = self._readable(body, resource.type)
        return Page(tuple(items), metadata.resource_version, metadata.continue_)

    def _readable(self, body: bytes, type_: type[T]) -> tuple[list[T], ListMeta]:
        try:
            return readable(body, type_)
        except codec.DecodeError as error:
            raise ConnectionFailedError(f"answer could not be read: {error}") from error

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
            "timeoutSeconds": str(int(timeout_seconds)),
        }
        response = self._send(
            self._watch_pool, "GET", _path(resource, namespace), query, stream=True, read=self._watch_read_seconds
        )
        stream: WatchStream[T] = WatchStream(response, resource.type, self._forget)
        with self._lock:
            self._watches.add(stream)
        return stream

    def _forget(self, stream: WatchStream[Any]) -> None:
        with self._lock:
            self._watches.discard(stream)

    def get(self, resource: ResourceType[T], name: str, namespace: str = "") -> T:
        return self._decode(self._call("GET", _path(resource, namespace, name)), resource.type)

    def create(self, resource: ResourceType[T], body: Mapping[str, Any], namespace: str = "") -> T:
        answer = self._call("POST", _path(resource, namespace or _namespace(body, resource)), body=body)
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
        answer = self._call("PATCH", path, body=body, content_type=patch_type.value)
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
        self._call("DELETE", _path(resource, namespace, name), body=body)

    def evict(self, pod: corev1.Pod, *, dry_run: bool = False) -> None:
        options: dict[str, Any] = {"preconditions": {"uid": pod.uid}}
        if dry_run:
            options["dryRun"] = ["All"]
        metadata = {"name": pod.name, "namespace": pod.namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
        self._call("POST", _path(PODS, pod.namespace, pod.name, "eviction"), body=body)

    def may(self, verb: str, resource: ResourceType[Any], subresource: str = "") -> bool:
        wanted = {"verb": verb, "group": resource.group, "resource": resource.plural, "subresource": subresource}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": wanted},
        }
        answer = self._call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=body)
        return self._decode(answer, _AccessReview).status.allowed

    def bind(self, binding: corev1.Binding) -> None:
        meta = binding.metadata
        body = {"apiVersion": "v1", "kind": "Binding", **codec.to_builtins(binding)}
        self._call("POST", _path(PODS, meta.namespace, meta.name, "binding"), body=body, pool=self._bind_pool)

    def create_event(self, namespace: str, body: Mapping[str, Any]) -> None:
        self._call("POST", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", body=body)

    def patch_event(self, namespace: str, name: str, body: Mapping[str, Any]) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events/{name}"
        self._call("PATCH", path, body=body, content_type=PatchType.MERGE.value)

    def version(self) -> tuple[int, int]:
        answer: _Version = self._decode(self._call("GET", "/version"), _Version)
        return version_of(answer.major, answer.minor)

    def close(self) -> None:
        with self._lock:
            watches = list(self._watches)
        for watch in watches:
            watch.stop()
        self._pool.close()
        self._bind_pool.close()
        self._watch_pool.close()

    def _decode(self, body: bytes, type_: type[T]) -> T:
        try:
            return codec.decode(body, type_)
        except codec.DecodeError as error:
            raise ConnectionFailedError(f"answer could not be read: {error}") from error

    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | Sequence[Any] | None = None,
        content_type: str = "application/json",
        pool: urllib3.HTTPConnectionPool | None = None,
    ) -> bytes:
        """The answer's body. A 401 is tried once more with the token read anew."""
        for last in (False, True):
            response = self._send(
                pool if pool is not None else self._pool,
                method,
                path,
                query or {},
                body=body,
                content_type=content_type,
            )
            if response.status == 401 and not last:
                self._identity.refresh()
                continue
            if response.status >= 300:
                raise error_of(response.status, response.data, response.headers.get("Retry-After", ""))
            return response.data
        raise UnauthorizedError("the server does not accept our credentials")

    def _send(
        self,
        pool: urllib3.HTTPConnectionPool,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: Mapping[str, Any] | Sequence[Any] | None = None,
        content_type: str = "application/json",
        stream: bool = False,
        read: float = REQUEST_SECONDS,
    ) -> urllib3.BaseHTTPResponse:
        given = {key: value for key, value in query.items() if value}
        headers = {**_ACCEPT, **self._identity.headers()}
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            response = pool.urlopen(
                method,
                f"{path}?{urlencode(given)}" if given else path,
                body=None if body is None else codec.encode(body),
                headers=headers,
                preload_content=not stream,
                timeout=_TIMEOUT if read == REQUEST_SECONDS else Timeout(connect=CONNECT_SECONDS, read=read),
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            metrics.child(metrics.api_requests, method, "error").inc()
            raise ConnectionFailedError(f"{method} {path}: {error}") from error
        metrics.child(metrics.api_requests, method, str(response.status)).inc()
        if stream and response.status >= 300:
            data, retry_after = response.read(), response.headers.get("Retry-After", "")
            response.close()
            if response.status == 401:
                self._identity.refresh()
            raise error_of(response.status, data, retry_after)
        return response


class _AccessStatus(Object, frozen=True, gc=False):
    allowed: bool = False


class _AccessReview(Object, frozen=True):
    """authorization.k8s.io/v1 SelfSubjectAccessReview."""

    status: _AccessStatus = _AccessStatus()


class _Version(Object, frozen=True, gc=False):
    major: str = ""
    minor: str = ""


def version_of(major: str, minor: str) -> tuple[int, int]:
    """Some providers write `30+`. (0, 0) for what is no number."""
    digits = [re.match(r"\d+", text) for text in (major, minor)]
    first, second = (int(found[0]) if found else 0 for found in digits)
    return first, second


def _namespace(body: Mapping[str, Any], resource: ResourceType[Any]) -> str:
    if not resource.namespaced:
        return ""
    return str((body.get("metadata") or {}).get("namespace") or "default")


def _path(resource: ResourceType[Any], namespace: str = "", name: str = "", subresource: str = "") -> str:
    group = f"/apis/{resource.api_version}" if "/" in resource.api_version else f"/api/{resource.api_version}"
    scope = f"/namespaces/{namespace}" if namespace and resource.namespaced else ""
    return group + scope + "/" + "/".join(filter(None, (resource.plural, name, subresource)))
