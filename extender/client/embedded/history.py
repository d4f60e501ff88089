"""What happened to the objects, in order, for watches.

A window of the last changes: a watch from an older version is told 410 and has to list again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from extender.client.errors import GoneError
from extender.client.interface import EventType, ResourceType, WatchEvent

T = TypeVar("T")

WINDOW = 100_000
BOOKMARK_SECONDS = 60.0  # as the real server: a watch that is silent for longer has lost it

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """One version of one object. `previous` is what it was before, for selectors; `value` the object as a struct, where
    it was made already."""

    version: int
    resource: str
    type: EventType
    object: Raw
    previous: Raw | None
    value: Any = None


class History:
    """`changed` is the API's own condition: it guards the objects as well."""

    def __init__(self, changed: threading.Condition) -> None:
        self.changed = changed
        self.version = 0
        self._changes: deque[Change] = deque(maxlen=WINDOW)
        self._dropped = 0  # the highest version that is no longer in the window

    def next_version(self) -> int:
        self.version += 1
        return self.version

    def append(self, change: Change) -> None:
        if len(self._changes) == WINDOW:
            self._dropped = self._changes[0].version
        self._changes.append(change)
        self.changed.notify_all()

    def since(self, version: int) -> list[Change]:
        """Raises GoneError for what is out of the window."""
        if version < self._dropped:
            raise GoneError(f"too old resource version: {version} ({self._dropped})", reason="Expired")
        found: list[Change] = []
        for change in reversed(self._changes):
            if change.version <= version:
                break
            found.append(change)
        found.reverse()
        return found


class EmbeddedWatch(Generic[T]):
    """Fulfils interface.Watch. An object that leaves the selection is told as deleted, as the real server does."""

    def __init__(
        self,
        history: History,
        resource: ResourceType[T],
        decode: Callable[[Raw], T],
        selects: Callable[[Raw], bool],
        version: int,
    ) -> None:
        self._history = history
        self._resource = str(resource)
        self._decode = decode
        self._selects = selects
        self._version = version
        self._stopped = False

    def stop(self) -> None:
        with self._history.changed:
            self._stopped = True
            self._history.changed.notify_all()

    def __iter__(self) -> Iterator[WatchEvent[T]]:
        while True:
            with self._history.changed:
                changes = self._history.since(self._version)
                heard = True
                while not changes and not self._stopped and heard:
                    heard = self._history.changed.wait(BOOKMARK_SECONDS)
                    changes = self._history.since(self._version)
                if self._stopped:
                    return
            if not changes:
                yield WatchEvent(EventType.BOOKMARK, None, str(self._version))
            for change in changes:
                self._version = change.version
                event = self._event(change)
                if event is not None:
                    yield event

    def _event(self, change: Change) -> WatchEvent[T] | None:
        if change.resource != self._resource:
            return None
        now = change.type is not EventType.DELETED and self._selects(change.object)
        before = change.previous is not None and self._selects(change.previous)
        if now:
            event_type = EventType.MODIFIED if before else EventType.ADDED
        elif before:
            event_type = EventType.DELETED
        else:
            return None
        value = change.value if change.value is not None else self._decode(change.object)
        return WatchEvent(event_type, value, str(change.version))
