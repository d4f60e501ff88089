"""Events, written in the background: what users read in `kubectl describe`.

The same event again is a count on the first one, not a new object.
kube-scheduler: k8s.io/client-go/tools/events
"""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from cachetools import TTLCache

from extender import metrics
from extender.api import codec, corev1
from extender.client.errors import ApiError, NotFoundError
from extender.client.fair_queue import FairQueue
from extender.client.interface import API
from extender.crash import guarded
from extender.redaction import redacted

log = logging.getLogger(__name__)

CONTROLLER = "gang-extender"
MAX_QUEUE = 1000
SERIES_SECONDS = 360.0
NOTE_LIMIT = 1024
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_NO_NAME = re.compile(r"[^a-z0-9]+")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
LONGEST_PREFIX = 200  # of an event's name, in characters; the API server takes 253 in all


@dataclass(frozen=True, slots=True)
class _Event:
    regarding: corev1.ObjectReference
    type: str
    reason: str
    action: str
    note: str
    related: corev1.ObjectReference | None

    @property
    def key(self) -> tuple[str, ...]:
        return self.regarding.kind, self.regarding.uid, self.type, self.reason, self.action, self.note


@dataclass(slots=True)
class _Series:
    namespace: str
    name: str
    count: int = 1


class Recorder:
    """Fulfils interface.EventRecorder. Namespaces are served in turn; a full queue drops an event of the namespace that has most
    in it, and counts it. Silent where `enabled` says no."""

    def __init__(
        self,
        api: API,
        *,
        enabled: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._enabled = enabled
        self._changed = threading.Condition()  # guards the three below
        self._queue: FairQueue[_Event] = FairQueue(MAX_QUEUE)
        self._stopping = False
        self._busy = False
        self._series: TTLCache[tuple[str, ...], _Series] = TTLCache(4096, SERIES_SECONDS, timer=clock)
        self._instance = socket.gethostname()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """What is queued by now is still tried, once."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def event(
        self,
        regarding: corev1.ObjectReference,
        event_type: str,
        reason: str,
        action: str,
        note: str,
        related: corev1.ObjectReference | None = None,
    ) -> None:
        if not self._enabled() or not _NAMESPACE.fullmatch(regarding.namespace or "default"):
            return  # no such namespace can exist: what was read of the object is nonsense
        with self._changed:
            if not self._queue.put(
                regarding.namespace, _Event(regarding, event_type, reason, action, cut(redacted(note)), related)
            ):
                metrics.events_dropped.inc()
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Waits until everything that is queued was written, or given up."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._queue and not self._busy, timeout)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                while not self._queue and not self._stopping:
                    self._changed.wait()
                if not self._queue:
                    return
                event = self._queue.take()
                self._busy, stopping = True, self._stopping
            if stopping or self._enabled():  # else another leads by now, and writes its own
                guarded("events", partial(self._write_if_possible, event))

    def _write_if_possible(self, event: _Event) -> None:
        try:
            self._write(event)
        except ApiError as error:
            log.info("event not written reason=%s regarding=%s error=%s", event.reason, event.regarding.name, error)

    def _write(self, event: _Event) -> None:
        series = self._series.get(event.key)
        if series is not None:
            series.count += 1
            body = {"series": {"count": series.count, "lastObservedTime": _micro_time()}}
            try:
                self._api.patch_event(series.namespace, series.name, body)
            except NotFoundError:
                del self._series[event.key]
            else:
                return
        namespace = event.regarding.namespace or "default"
        name = event_name(event.regarding.name)
        self._api.create_event(namespace, self._body(event, namespace, name))
        self._series[event.key] = _Series(namespace, name)

    def _body(self, event: _Event, namespace: str, name: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": _micro_time(),
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
            "action": event.action,
            "reason": event.reason,
            "regarding": codec.to_builtins(event.regarding),
            "note": event.note,
            "type": event.type,
        }
        if event.related is not None:
            body["related"] = codec.to_builtins(event.related)
        return body


def event_name(regarding: str) -> str:
    """A new name for an event about the object of that name: a DNS-1123 subdomain, whatever stands there as a name.

    client-go: tools/internal/events/helper.go (GenerateEventName)
    """
    prefix = regarding[:LONGEST_PREFIX].rstrip("-.")  # cut, it may end in a mark
    if not _SUBDOMAIN.fullmatch(prefix):  # the value of a label that names a group may have capitals
        prefix = _NO_NAME.sub("-", prefix.lower()).strip("-") or "unnamed"
    return f"{prefix}.{uuid.uuid4().hex[:16]}"


def cut(note: str) -> str:
    """To 1024 bytes, marked as cut. What is no character (half of a pair of UTF-16) becomes a question mark."""
    data = note.encode("utf-8", "replace")
    if len(data) <= NOTE_LIMIT:
        return data.decode()
    return data[: NOTE_LIMIT - 4].decode(errors="ignore") + " ..."


def _micro_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
