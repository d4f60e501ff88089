"""The objects of one kind as the watch last showed them, by key and by namespace.

Written by the reflector; read by all without a lock, since plans read it on native threads (crash.on_native_thread): CPython makes a
list of a dict's values in one step.
kube-scheduler: k8s.io/client-go/tools/cache/thread_safe_store.go
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from extender.api.metav1 import ObjectMeta


class HasMetadata(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=Any)


class Store(Generic[T]):
    """Key: `namespace/name`, or the name alone. Implements framework.listers.Lister."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards both maps against a second writer
        self._objects: dict[str, T] = {}
        self._by_namespace: dict[str, dict[str, T]] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> T | None:
        return self._objects.get(key)

    def list(self) -> Sequence[T]:
        return [*self._objects.values()]

    def by_namespace(self, namespace: str) -> Iterable[T]:
        return [*self._by_namespace.get(namespace, {}).values()]

    def keys(self) -> Iterable[str]:
        return [*self._objects]

    def put(self, obj: T) -> T | None:
        """Returns what it replaces."""
        meta = obj.metadata
        with self._lock:
            old = self._objects.get(meta.key)
            self._objects[meta.key] = obj
            self._by_namespace.setdefault(meta.namespace, {})[meta.name] = obj
            return old

    def remove(self, key: str) -> T | None:
        """Returns what was there."""
        with self._lock:
            old = self._objects.pop(key, None)
            if old is not None:
                meta = old.metadata
                in_namespace = self._by_namespace[meta.namespace]
                del in_namespace[meta.name]
                if not in_namespace:
                    del self._by_namespace[meta.namespace]
            return old
