"""Objects as they will be once a decision is written, beside those that the watch shows.

Assumed ones count until the watch shows another version, or until they are given back; no event is needed for that,
since every look compares the versions. The main cycle assumes, binding cycles give back: thread-safe. Read without a lock, since plans
read on native threads (crash.on_native_thread).
kube-scheduler: pkg/scheduler/framework/plugins/volumebinding/passive_assume_cache.go, assume_cache.go
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from extender.client.store import HasMetadata
from extender.framework.listers import Lister

T = TypeVar("T", bound=HasMetadata)


class AssumeError(Exception):
    """The object cannot be assumed: it is gone, or was changed meanwhile."""


class AssumeCache(Generic[T]):
    """Of one kind. `store` gives the watched objects, asked anew each time. index: of an object as the watch shows it, by what assuming
    leaves alone."""

    def __init__(
        self, store: Callable[[], Lister[T]], resource: str, index: Callable[[T], str] = lambda stored: ""
    ) -> None:
        self._store = store
        self._index = index
        self._indexed: tuple[Sequence[T], dict[str, list[T]]] = ([], {})
        self._resource = resource  # plural, for messages
        # Guards _assumed against a second writer; nothing is called under it but the store's reads.
        self._lock = threading.Lock()
        self._assumed: dict[str, T] = {}

    def get(self, key: str) -> T | None:
        """The assumed object, where the watch still shows the version that it was made of."""
        stored = self._store().get(key)
        return self._current(stored) if stored is not None else None

    def get_api_object(self, key: str) -> T | None:
        """As the watch shows it. Go: GetAPIObj."""
        return self._store().get(key)

    def by_index(self, value: str) -> Sequence[T]:
        """Those of this value, assumed ones as they will be. Sorted anew where the watch has shown another object. Go: ByIndex."""
        stored = self._store().list()
        if self._indexed[0] != stored:  # objects that are the same are not compared further
            sorted_: dict[str, list[T]] = {}
            for each in stored:
                sorted_.setdefault(self._index(each), []).append(each)
            self._indexed = (stored, sorted_)
        found = self._indexed[1].get(value, [])
        return [self._current(each) for each in found] if self._assumed else found

    def _current(self, stored: T) -> T:
        assumed = self._assumed.get(stored.metadata.key)
        if assumed is not None and _version(assumed) == _version(stored):
            return assumed
        return stored

    def assume(self, obj: T) -> None:
        """Raises AssumeError unless the watch shows the very version that the object was made of."""
        key = obj.metadata.key
        store = self._store()
        with self._lock:
            self._expire(store)
            stored = store.get(key)
            if stored is None:
                raise AssumeError(f'{self._resource} "{key}" not found')
            if _version(stored) != _version(obj):
                raise AssumeError(f'"{key}" is out of sync (stored: {_version(stored)}, assume: {_version(obj)})')
            self._assumed[key] = obj

    def restore(self, obj: T) -> None:
        """Gives back what was assumed of this version; harmless where nothing was."""
        key = obj.metadata.key
        with self._lock:
            assumed = self._assumed.get(key)
            if assumed is not None and _version(assumed) == _version(obj):
                del self._assumed[key]

    def _expire(self, store: Lister[T]) -> None:
        """What the watch has overtaken is forgotten, so that the map stays as small as what is under way."""
        for key, assumed in list(self._assumed.items()):
            stored = store.get(key)
            if stored is None or _version(stored) != _version(assumed):
                del self._assumed[key]


def _version(obj: HasMetadata) -> str:
    return obj.metadata.resource_version
