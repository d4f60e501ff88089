"""Keeps a store like the API server: list in pages, then watch from there, again and again.

What was deleted while nothing was watched is told as a deletion. A list is always of the newest state. A watch is short, and
where it ends without a word the server's version is checked: to a watch from a version that it has not reached, a server
whose etcd was restored is silent. Where one kind finds that out, all kinds list anew. Runs on the informer's thread.
docs/design/0027-reflector.md has the reasons.
kube-scheduler: k8s.io/client-go/tools/cache/reflector.go
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

from extender import failpoints, metrics
from extender.client.backoff import Backoff
from extender.client.decoding import UnreadableObjects
from extender.client.errors import ApiError, ResourceVersionTooLargeError
from extender.client.interface import API, EventType, ResourceType, Unreadable, Watch, WatchEvent
from extender.client.reflector_table import TRANSITIONS, Doing, Input, Then, Wait, input_of
from extender.client.shared_parts import SharedParts
from extender.client.short_steps import ShortSteps
from extender.client.store import Store
from extender.crash import crashed, guarded

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Any)

_LONG_AGO = datetime.min.replace(tzinfo=UTC)

PAGE = 500
WATCH_SECONDS = 30.0  # at most; the server ends it then, and has sent a bookmark before where it had anything to say
BRIEF_SECONDS = 1.0
ONCE_SECONDS = 10.0
LATER_SECONDS = 10.0
# How long a kind that was served counts as it was last seen: an API server that starts refuses all.
REFUSED_SECONDS = 15.0
# Nothing is asked of a server that is not there; one that is back is found within twice that.
CUT_BACKOFF_SECONDS = 10.0
UNEXPECTED_SECONDS = 5.0  # after what not even the back-off was prepared for


class Changes(Protocol):
    """What the reflector reports to, in order, from one thread."""

    def changed(self, old: Any, new: Any) -> None:
        """old None: added; new None: deleted."""
        ...

    def replaced(self) -> None:
        """A whole list was taken in."""
        ...

    def failed(self, error: ApiError) -> None: ...

    def absent(self) -> None:
        """The kind is not served, or not to us; since when it was refused for long enough."""
        ...

    def heard(self) -> None:
        """The server has answered a list or a check, or sent an event or a bookmark."""
        ...


class Restores:
    """How often an etcd was found restored, shared by the reflectors of one API server: each lists anew for what any of them finds.

    A quiet kind may never find it out: by its first check the restored server can have come as far as the kind's own newest version.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _count
        self._count = 0
        self._on_found: list[Callable[[], None]] = []

    @property
    def count(self) -> int:
        return self._count

    def on_found(self, call: Callable[[], None]) -> None:
        """On the thread of the reflector that found it. Before start only."""
        self._on_found.append(call)

    def found(self, listed_at: int) -> int:
        """By a reflector whose last list began at that count: if another one has found the same meanwhile, it is known already.
        Returns the count with it."""
        with self._lock:
            if self._count != listed_at:
                return self._count
            self._count += 1
        for call in self._on_found:
            call()
        return listed_at + 1


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
        may_be_forbidden: bool = False,
        watch_seconds: float = WATCH_SECONDS,
        restores: Restores | None = None,
    ) -> None:
        self.unreadable = UnreadableObjects(resource.kind)
        self._api = api
        self._resource = resource
        self._store = store
        self._changes = changes
        self._clock = clock
        self._selection = {"namespace": namespace, "field_selector": field_selector}
        self._may_be_forbidden = may_be_forbidden
        self._watch_seconds = watch_seconds
        self._backoff = Backoff(clock)
        self._parts = SharedParts()
        self._steps = ShortSteps()
        self._stopping = threading.Event()
        self._lock = threading.Lock()  # guards _open_watch
        self._open_watch: Watch[T] | None = None
        self._version = ""  # the newest that was seen
        self._served = False  # whether a list was taken in and still counts
        self._refused_since: float | None = None
        self._refused_as: Input | None = None
        self._spared_wait = float("-inf")
        self._restores = restores or Restores()
        self._listed_at = self._restores.count  # when the last list began
        self._restores.on_found(self._end_watch)

    def stop(self) -> None:
        self._stopping.set()
        self._end_watch()

    def _end_watch(self) -> None:
        with self._lock:
            if self._open_watch is not None:
                self._open_watch.stop()

    def run(self) -> None:
        doing = Doing.LIST

        def step() -> None:
            nonlocal doing
            then, seconds = self._step(doing)
            doing = then.doing
            self._stopping.wait(seconds)

        while not self._stopping.is_set():
            if not guarded(f"informer-{self._resource}", step):
                doing = Doing.LIST
                self._stopping.wait(UNEXPECTED_SECONDS)

    def _step(self, doing: Doing) -> tuple[Then, float]:
        """Does it, and looks up what follows, after how many seconds."""
        error: ApiError | None = None
        try:
            came = {Doing.LIST: self._list, Doing.CHECK: self._check, Doing.WATCH: self._watch}[doing]()
        except ApiError as failure:
            came, error = input_of(failure), failure
        except Exception as failure:
            crashed(f"informer-{self._resource}")
            came, error = Input.UNEXPECTED, ApiError(f"{type(failure).__name__}: {failure}")
        then = TRANSITIONS[doing][came]
        if error is not None and not self._stopping.is_set():
            self._report(doing, came, error)
        if doing is not Doing.LIST and self._is_outdated:
            then = Then(Doing.LIST, Wait.ONCE)
        return then, self._seconds(then.wait, came, error)

    @property
    def _is_outdated(self) -> bool:
        """An etcd was found restored since the last list began, by this reflector or another."""
        return self._restores.count != self._listed_at

    def _report(self, doing: Doing, came: Input, error: ApiError) -> None:
        if doing is not Doing.LIST:
            metrics.watch_restarts.labels(str(self._resource), came.value).inc()
        self._changes.failed(error)
        if came is Input.NOT_FOUND or (came is Input.FORBIDDEN and self._may_be_forbidden):
            self._note_refusal(came, error)
        elif doing is Doing.LIST:
            log.warning("list failed resource=%s error=%s", self._resource, error)
        else:
            log.info("%s ended resource=%s error=%s", doing.value, self._resource, error)

    def _note_refusal(self, came: Input, error: ApiError) -> None:
        """For a passing one what was last seen goes on to count. Told once, and again where a kind that comes to be served is not
        served to us."""
        now = self._clock()
        if self._refused_since is None:
            self._refused_since = now
        if came is not self._refused_as:
            self._refused_as = came
            log.info("kind is refused resource=%s error=%s", self._resource, error)
        if not self._served or now - self._refused_since >= REFUSED_SECONDS:
            self._served = False
            self.unreadable.keep_only(())
            self._changes.absent()

    def _seconds(self, wait: Wait, came: Input, error: ApiError | None) -> float:
        if wait is Wait.NONE:
            return 0.0
        if wait is Wait.ONCE and self._clock() - self._spared_wait >= ONCE_SECONDS:
            self._spared_wait = self._clock()
            return 0.0
        if wait is Wait.LATER and not self._served:
            return LATER_SECONDS
        longest = CUT_BACKOFF_SECONDS if came is Input.CUT else None
        return self._backoff.next(error.retry_after if error else None, longest)

    # What it does

    def _list(self) -> Input:
        found: dict[str, T] = {}
        unreadable: list[Unreadable] = []
        token = ""
        began_at = self._restores.count
        while True:
            page = self._api.list_page(self._resource, limit=PAGE, continue_token=token, **self._selection)
            for item in page.items:
                self._parts.share(item, self._store.get(item.metadata.key))
                found[item.metadata.key] = item
                self._steps.pause_if_due()
            unreadable += page.unreadable
            if self._stopping.is_set():
                return Input.DONE
            token = page.next
            if not token:
                break
        failpoints.reached("relist")
        if _is_lower(
            page.resource_version, self._version
        ):  # no check has said so: a server that starts refuses these, for one
            log.warning(
                "the API server went back resource=%s version=%s was=%s",
                self._resource,
                page.resource_version,
                self._version,
            )
            metrics.watch_restarts.labels(str(self._resource), Input.BEHIND.value).inc()
            began_at = self._restores.found(self._listed_at)
        self._version = page.resource_version
        self._listed_at = began_at
        self._take_in(found, unreadable)
        return Input.DONE

    def _take_in(self, found: dict[str, T], unreadable: list[Unreadable]) -> None:
        self.unreadable.keep_only({each.metadata.key for each in unreadable})
        for each in unreadable:
            self._take_unreadable(each)
        before = self._store.keys()
        for key in before:
            if key not in found and self.unreadable.get(key) is None:  # deleted while there was no watch
                self._changes.changed(self._store.remove(key), None)
            self._steps.pause_if_due()
        new: list[T] = []
        for key, obj in found.items():
            if self._store.get(key) is None:
                new.append(obj)
            else:
                self._take_listed(obj)
            self._steps.pause_if_due()
        for obj in self._steps.sort(new, key=_age):  # after a restart objects come as they came when they were made
            self._take_listed(obj)
            self._steps.pause_if_due()
        self._served, self._refused_since, self._refused_as = True, None, None
        self._changes.replaced()

    def _take_listed(self, obj: T) -> None:
        old = self._store.put(obj)
        if old is None or old.metadata.resource_version != obj.metadata.resource_version:
            self._changes.changed(old, obj)

    def _check(self) -> Input:
        """A page of one object is enough: its version is the server's."""
        version = self._api.list_page(self._resource, limit=1, **self._selection).resource_version
        if _is_lower(version, self._version):
            before, self._version = self._version, version
            self._restores.found(self._listed_at)
            raise ResourceVersionTooLargeError(
                f"the API server is at version {version}, and was at {before}: was its etcd restored?"
            )
        self._changes.heard()
        return Input.DONE

    def _watch(self) -> Input:
        began = self._clock()
        watch = self._api.watch(
            self._resource,
            resource_version=self._version,
            timeout_seconds=self._watch_seconds * random.uniform(0.8, 1.0),
            **self._selection,
        )
        with self._lock:
            self._open_watch = watch
        heard = False
        try:
            if self._stopping.is_set() or self._is_outdated:
                return Input.DONE
            for event in watch:
                heard = True
                self._changes.heard()
                self._take(event)
                if self._stopping.is_set():
                    return Input.DONE
        finally:
            with self._lock:
                self._open_watch = None
            watch.stop()
        if self._clock() - began < BRIEF_SECONDS and not self._is_outdated:
            metrics.watch_restarts.labels(str(self._resource), Input.BRIEF.value).inc()
            return Input.BRIEF
        return Input.DONE if heard else Input.QUIET

    def _take(self, event: WatchEvent[T]) -> None:
        if event.resource_version:
            self._version = event.resource_version
        obj = event.object
        if obj is None:  # a bookmark
            return
        if event.type is EventType.DELETED:
            self._take_deleted(obj)
        elif isinstance(obj, Unreadable):
            self._take_unreadable(obj)
        else:
            self.unreadable.remove(obj.metadata.key)
            known = self._store.get(obj.metadata.key)
            if known is not None and _not_newer(obj, known):
                return
            self._parts.share(obj, known)
            self._changes.changed(self._store.put(obj), obj)

    def _take_deleted(self, obj: T | Unreadable) -> None:
        self.unreadable.remove(obj.metadata.key)
        old = self._store.remove(obj.metadata.key)
        if old is not None:
            self._changes.changed(old, None)
        elif not isinstance(obj, Unreadable):
            self._changes.changed(obj, None)

    def _take_unreadable(self, obj: Unreadable) -> None:
        """What was read of it before stays, unless that was another object of this name."""
        known = self._store.get(obj.metadata.key)
        if known is not None and known.metadata.uid != obj.metadata.uid:
            self._store.remove(obj.metadata.key)
            self._changes.changed(known, None)
        self.unreadable.put(obj)


def _age(obj: Any) -> datetime:
    age: datetime | None = obj.metadata.creation_timestamp
    return age or _LONG_AGO


def _is_lower(version: str, than: str) -> bool:
    """Versions that are no numbers cannot be compared."""
    return version.isdigit() and than.isdigit() and int(version) < int(than)


def _not_newer(obj: Any, known: Any) -> bool:
    """An event told twice, or out of order. Versions of one object are compared as numbers, as Kubernetes now allows."""
    new, old = obj.metadata.resource_version, known.metadata.resource_version
    if not (new.isdigit() and old.isdigit()):
        return bool(new == old and new)
    return obj.metadata.uid == known.metadata.uid and int(new) <= int(old)
