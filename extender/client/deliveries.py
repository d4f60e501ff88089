"""What one handler of an informer is told, and told again where it raised an unexpected exception.

The informer has one for each handler. A handler that raised is *behind* for that object: it may know all of the event, a
part or nothing. It hears of the object again, as it is by then, with the object's next event or once a back-off is over, so
a handler has to take an event that comes twice. No other object waits for that, and no other handler.
Kubernetes: k8s.io/client-go/tools/cache/shared_informer.go (processorListener), where a panic ends the process
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from extender.crash import guarded
from extender.retry import Retry

T = TypeVar("T", bound=Any)

RETRY = Retry(1.0, 60.0)
MAX_BEHIND = 10_000  # objects; one beyond that comes with its next event


class EventHandler(Protocol):
    """What an informer calls. An exception is logged and counted, and the event comes again; see Deliveries."""

    def on_add(self, obj: Any) -> None: ...

    def on_update(self, old: Any, new: Any) -> None: ...

    def on_delete(self, obj: Any) -> None: ...


@dataclass(slots=True)
class _Behind(Generic[T]):
    """now: the object as it is, None if it is gone. taken: as the handler took it last without raising. known: by UID,
    what the handler may have taken at least a part of, the newest of each."""

    taken: T | None
    now: T | None = None
    known: dict[str, T] = field(default_factory=dict)
    failures: int = 0
    due: float = 0.0


class Deliveries(Generic[T]):
    """`tell` for each event, in order; `catch_up` about once a second, from any thread.

    Lock order: this one is the outermost of all. It is held while the handler runs, which does no I/O, and belongs to this object alone.
    """

    def __init__(self, handler: EventHandler, where: str, clock: Callable[[], float]) -> None:
        self._handler = handler
        self._where = where
        self._clock = clock
        self._telling = threading.Lock()  # guards _behind
        self._behind: dict[str, _Behind[T]] = {}

    def tell(self, old: T | None, new: T | None) -> None:
        """old None: added; new None: deleted."""
        key = (new if new is not None else old).metadata.key  # type: ignore[union-attr]
        with self._telling:
            behind = self._behind.get(key)
            if behind is None:
                if guarded(self._where, partial(self._call, old, new)):
                    return
                behind = _Behind(taken=old)
                _note(behind, old, new)
                self._later(behind)
                if len(self._behind) < MAX_BEHIND:
                    self._behind[key] = behind
            else:
                _note(behind, old, new)
                self._again(key, behind)

    def catch_up(self) -> None:
        """Delivers the events whose back-off is over. A turn ends with the first handler that raises again: a lasting fault costs one
        exception a turn, however many objects it concerns, and a fault that has ended is caught up with at once."""
        if not self._behind:
            return
        with self._telling:
            now = self._clock()
            due = [key for key, behind in self._behind.items() if behind.due <= now]
            for key in sorted(due, key=lambda key: self._behind[key].due):
                if not self._again(key, self._behind[key]):
                    return

    # Under the lock

    def _again(self, key: str, behind: _Behind[T]) -> bool:
        done = guarded(self._where, partial(self._make_up, behind))
        if done:
            del self._behind[key]
        else:
            self._later(behind)
        return done

    def _later(self, behind: _Behind[T]) -> None:
        behind.failures += 1
        behind.due = self._clock() + RETRY.seconds(behind.failures)

    def _make_up(self, behind: _Behind[T]) -> None:
        """The object that had the name before is gone; then the one that has it now, if there is one."""
        now = behind.now
        for uid in [uid for uid in behind.known if now is None or uid != now.metadata.uid]:
            self._handler.on_delete(behind.known[uid])
            del behind.known[uid]
            if behind.taken is not None and behind.taken.metadata.uid == uid:
                behind.taken = None
        if now is not None:
            self._call(behind.taken, now)

    def _call(self, old: T | None, new: T | None) -> None:
        if new is None:
            self._handler.on_delete(old)
        elif old is None:
            self._handler.on_add(new)
        else:
            self._handler.on_update(old, new)


def _note(behind: _Behind[T], old: T | None, new: T | None) -> None:
    behind.now = new
    for each in (old, new):
        if each is not None:
            behind.known[each.metadata.uid] = each
