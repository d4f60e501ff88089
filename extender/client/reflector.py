"""Keeps a store like the API server: list in pages, then watch from there, again and again.

What was deleted while nobody watched is told as a deletion. Runs on the informer's thread.
kube-scheduler: k8s.io/client-go/tools/cache/reflector.go
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from extender import metrics
from extender.client.backoff import Backoff
from extender.client.errors import (
    ApiError,
    ForbiddenError,
    GoneError,
    NotFoundError,
    ResourceVersionTooLargeError,
)
from extender.client.interface import API, EventType, ResourceType, Watch, WatchEvent
from extender.client.shared_parts import SharedParts
from extender.client.store import Store
from extender.crash import crashed, guarded

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Any)

PAGE = 500
NOT_SERVED_RECHECK_SECONDS = 10.0
FORBIDDEN_RECHECK_SECONDS = 10.0
MIN_WATCH_SECONDS = 300.0
UNEXPECTED_SECONDS = 5.0  # after what not even the back-off was prepared for


class Changes(Protocol):
    """Who hears of the changes, in order, from one thread."""

    def changed(self, old: Any, new: Any) -> None:
        """old None: added; new None: deleted."""
        ...

    def replaced(self) -> None:
        """A whole list was taken in."""
        ...

    def failed(self, error: ApiError) -> None: ...

    def heard(self) -> None:
        """The server spoke: an event, a bookmark, a list."""
        ...


class Reflector(Generic[T]):
    """`run` returns after `stop`, at once even in a silent watch or a back-off, and for nothing else."""

    def __init__(
        self,
        api: API,
        resource: ResourceType[T],
        store: Store[T],
        changes: Changes,
        *,
        clock: Callable[[], float],
        namespace: str = "",
        field_selector: str = "",
    ) -> None:
        self._api = api
        self._resource = resource
        self._store = store
        self._changes = changes
        self._namespace = namespace
        self._field_selector = field_selector
        self._backoff = Backoff(clock)
        self._parts = SharedParts()
        self._stopping = threading.Event()
        self._lock = threading.Lock()  # guards _watch
        self._watch: Watch[T] | None = None
        self._version = "0"  # what the next list may not be older than; "0": whatever is there, "": the newest

    def stop(self) -> None:
        self._stopping.set()
        with self._lock:
            if self._watch is not None:
                self._watch.stop()

    def run(self) -> None:
        while not self._stopping.is_set():
            if not guarded(f"informer-{self._resource}", self._list_and_watch):
                self._stopping.wait(UNEXPECTED_SECONDS)

    def _list_and_watch(self) -> None:
        """Once, with the wait after it where that failed."""
        try:
            self._list()
            self._watch_until_relist()
        except ApiError as error:
            self._stopping.wait(self._after(error))
        except Exception as error:
            crashed(f"informer-{self._resource}")
            self._stopping.wait(self._after(ApiError(f"{type(error).__name__}: {error}")))

    def _after(self, error: ApiError) -> float:
        """Seconds to wait after a failed list."""
        if self._stopping.is_set():
            return 0.0
        self._changes.failed(error)
        if isinstance(error, NotFoundError):
            return NOT_SERVED_RECHECK_SECONDS
        log.warning("list failed resource=%s error=%s", self._resource, error)
        seconds = self._backoff.next(error.retry_after)
        return max(seconds, FORBIDDEN_RECHECK_SECONDS) if isinstance(error, ForbiddenError) else seconds

    def _list(self) -> None:
        found: dict[str, T] = {}
        token, version = "", self._version
        while True:
            try:
                page = self._api.list_page(
                    self._resource,
                    namespace=self._namespace,
                    field_selector=self._field_selector,
                    resource_version="" if token else version,
                    limit=PAGE,
                    continue_token=token,
                )
            except (GoneError, ResourceVersionTooLargeError):
                # The token, or the version, means nothing to this server: begin again with what it has.
                if not token and version == "":
                    raise
                found, token, version = {}, "", ""
                continue
            for item in page.items:
                self._parts.share(item)
                found[item.metadata.key] = item
            if self._stopping.is_set():
                return
            token = page.next
            if not token:
                break
        self._version = page.resource_version
        self._take_in(found)

    def _take_in(self, found: dict[str, T]) -> None:
        for gone in self._store.missing_from(found):
            self._store.remove(gone.metadata.key)
            self._changes.changed(gone, None)
        for obj in found.values():
            old = self._store.put(obj)
            if old is None or old.metadata.resource_version != obj.metadata.resource_version:
                self._changes.changed(old, obj)
        self._changes.replaced()

    def _watch_until_relist(self) -> None:
        """Watches from the last version, over and over; returns when only a list can go on."""
        while not self._stopping.is_set():
            try:
                self._one_watch()
            except GoneError:
                metrics.watch_restarts.labels(str(self._resource), "gone").inc()
                self._version = ""  # a server whose cache is behind would take us back in time
                return
            except ApiError as error:
                if self._stopping.is_set():
                    return
                metrics.watch_restarts.labels(str(self._resource), error.reason or type(error).__name__).inc()
                self._changes.failed(error)
                if isinstance(error, NotFoundError):
                    return
                log.info("watch ended resource=%s error=%s", self._resource, error)
                self._stopping.wait(self._backoff.next(error.retry_after))

    def _one_watch(self) -> None:
        watch = self._api.watch(
            self._resource,
            namespace=self._namespace,
            field_selector=self._field_selector,
            resource_version=self._version,
            timeout_seconds=MIN_WATCH_SECONDS * (1 + random.random()),
        )
        with self._lock:
            self._watch = watch
        try:
            if self._stopping.is_set():
                return
            for event in watch:
                self._changes.heard()
                self._take(event)
                if self._stopping.is_set():
                    return
        finally:
            with self._lock:
                self._watch = None
            watch.stop()

    def _take(self, event: WatchEvent[T]) -> None:
        if event.resource_version:
            self._version = event.resource_version
        obj = event.object
        if event.type is EventType.BOOKMARK or obj is None:
            return
        if event.type is EventType.DELETED:
            old = self._store.remove(obj.metadata.key)
            self._changes.changed(old if old is not None else obj, None)
            return
        known = self._store.get(obj.metadata.key)
        if known is not None and _not_newer(obj, known):
            return
        self._parts.share(obj)
        self._changes.changed(self._store.put(obj), obj)


def _not_newer(obj: Any, known: Any) -> bool:
    """An event told twice, or out of order. Versions of one object are compared as numbers, as Kubernetes now allows."""
    new, old = obj.metadata.resource_version, known.metadata.resource_version
    if not (new.isdigit() and old.isdigit()):
        return bool(new == old and new)
    return obj.metadata.uid == known.metadata.uid and int(new) <= int(old)
