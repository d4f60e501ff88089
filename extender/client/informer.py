"""A store that keeps itself up to date and tells its handlers, one event at a time, on one thread.

kube-scheduler: k8s.io/client-go/tools/cache/shared_informer.go, k8s.io/client-go/informers/factory.go
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from extender.client.deliveries import Deliveries, EventHandler
from extender.client.errors import ApiError
from extender.client.interface import API, LEASES, NON_TERMINAL_PODS, PODS, ResourceType, Unreadable
from extender.client.reflector import WATCH_SECONDS, Reflector, Restores
from extender.client.store import Store
from extender.crash import guarded

T = TypeVar("T", bound=Any)

# A watch lasts half a minute, and a silent one is followed by a check: this is four of them in vain.
STALE_SECONDS = 120.0
# Its holder renews it every 2 s and loses it after 15: a watch that has stalled is found before.
LEASE_WATCH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class InformerState:
    """For readiness. age: seconds since the server was heard last. unreadable: how many objects are not as they are there."""

    resource: str
    synced: bool
    served: bool
    optional: bool
    error: str
    age: float
    unreadable: int = 0

    @property
    def ok(self) -> bool:
        """Everything was taken in once, and the server still speaks. An optional kind may be absent."""
        if not self.served:
            return self.optional
        return self.synced and self.age < STALE_SECONDS

    @property
    def reason(self) -> str:
        """Why not; and of one that is ok, what is not as it should be."""
        if not self.served:
            return f"not served: {self.error}"
        parts = [self.error]
        if not self.synced:
            parts.append("not synced")
        elif self.age >= STALE_SECONDS:
            parts.append(f"nothing heard for {self.age:.0f}s")
        if self.unreadable:
            parts.append(f"objects that cannot be read: {self.unreadable}, see the log")
        return "; ".join(filter(None, parts))


@dataclass(slots=True)
class _Progress:
    synced: bool = False
    served: bool = True
    error: str = ""
    heard: float = field(default=0.0)


class Informer(Generic[T]):
    """One kind of object. An optional kind that the server does not serve counts as synced and empty.

    may_be_forbidden: it counts so too where we may not read it. restores: shared with the other informers of the API server.
    """

    def __init__(
        self,
        api: API,
        resource: ResourceType[T],
        *,
        optional: bool = False,
        may_be_forbidden: bool = False,
        namespace: str = "",
        field_selector: str = "",
        watch_seconds: float = WATCH_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        restores: Restores | None = None,
    ) -> None:
        self.resource = resource
        self.field_selector = field_selector
        self.store: Store[T] = Store()
        self._optional = optional
        self._clock = clock
        self._deliveries: list[Deliveries[T]] = []
        self._on_listed: list[Callable[[], None]] = []
        self._progress = _Progress(heard=clock())
        self._synced = threading.Event()
        self._thread: threading.Thread | None = None
        self._reflector = Reflector(
            api,
            resource,
            self.store,
            self,
            clock=clock,
            namespace=namespace,
            field_selector=field_selector,
            may_be_forbidden=may_be_forbidden,
            watch_seconds=watch_seconds,
            restores=restores,
        )

    def add_handler(self, handler: EventHandler) -> None:
        """Before start only."""
        self._deliveries.append(Deliveries(handler, f"handler-{self.resource}", self._clock))

    def on_listed(self, call: Callable[[], None]) -> None:
        """After each whole list, before what it is about counts as synced; on the informer's thread. Before start only."""
        self._on_listed.append(call)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._reflector.run, name=f"informer-{self.resource}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._reflector.stop()
        if self._thread is not None:
            self._thread.join()

    @property
    def has_synced(self) -> bool:
        return self._synced.is_set()

    def wait_for_sync(self, timeout: float) -> bool:
        return self._synced.wait(timeout)

    @property
    def unreadable(self) -> Sequence[Unreadable]:
        """Those that are there now, and count as their last version that could be read, or as absent."""
        return self._reflector.unreadable.all()

    @property
    def state(self) -> InformerState:
        progress = self._progress
        return InformerState(
            str(self.resource),
            progress.synced,
            progress.served,
            self._optional,
            progress.error,
            self._clock() - progress.heard,
            len(self._reflector.unreadable),
        )

    def catch_up(self) -> None:
        """About once a second, from any thread: handlers that raised hear again of what they missed."""
        for each in self._deliveries:
            each.catch_up()

    # What the reflector tells

    def changed(self, old: T | None, new: T | None) -> None:
        for each in self._deliveries:
            each.tell(old, new)

    def replaced(self) -> None:
        for each in self._on_listed:
            guarded(f"listed-{self.resource}", each)
        self._progress.synced = self._progress.served = True
        self.heard()
        self._synced.set()

    def heard(self) -> None:
        self._progress.heard = self._clock()
        self._progress.error = ""

    def failed(self, error: ApiError) -> None:
        self._progress.error = str(error)

    def absent(self) -> None:
        """A kind that has to be there keeps what was last seen of it."""
        self._progress.served = False
        if not self._optional:
            return
        for obj in self.store.list():
            self.store.remove(obj.metadata.key)
            self.changed(obj, None)
        self._synced.set()


class InformerFactory:
    """One informer for each kind; `informer` makes it on first use, before start."""

    def __init__(self, api: API, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._restores = Restores()
        self._informers: dict[ResourceType[Any], Informer[Any]] = {}

    def informer(
        self,
        resource: ResourceType[T],
        *,
        optional: bool = False,
        may_be_forbidden: bool = False,
        namespace: str = "",
        field_selector: str = "",
    ) -> Informer[T]:
        informer = self._informers.get(resource)
        if informer is None:
            if resource is PODS and not field_selector:
                field_selector = NON_TERMINAL_PODS
            informer = self._informers[resource] = Informer(
                self._api,
                resource,
                optional=optional,
                may_be_forbidden=may_be_forbidden,
                namespace=namespace,
                field_selector=field_selector,
                watch_seconds=LEASE_WATCH_SECONDS if resource is LEASES else WATCH_SECONDS,
                clock=self._clock,
                restores=self._restores,
            )
        return informer

    def store_of(self, type_: type[Any]) -> Store[Any]:
        """The objects of one struct type; empty where no informer watches it."""
        for resource, informer in self._informers.items():
            if resource.type is type_:
                return informer.store
        return Store()

    def all(self) -> list[Informer[Any]]:
        return list(self._informers.values())

    def start(self) -> None:
        for informer in self._informers.values():
            informer.start()

    def stop(self) -> None:
        for informer in self._informers.values():
            informer.stop()

    def catch_up(self) -> None:
        """See Informer.catch_up."""
        for informer in self._informers.values():
            informer.catch_up()

    def has_synced(self) -> bool:
        return all(informer.has_synced for informer in self._informers.values())

    def wait_for_sync(self, timeout: float) -> bool:
        deadline = self._clock() + timeout
        return all(i.wait_for_sync(max(0.0, deadline - self._clock())) for i in self._informers.values())

    def states(self) -> list[InformerState]:
        return [informer.state for informer in self._informers.values()]
