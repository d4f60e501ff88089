"""Numbers for kinds of things on nodes: equal kinds have one number for as long as a line of snapshots lasts.

The pod columns keep one for each sort of kind. No locks, since planning reads them on native threads: what is put in is
never taken out, a number is published last, and every step is one atomic operation on a dict or list.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

import numpy as np

from extender.framework.columnar import Codes, Mask

T = TypeVar("T")

MOST_REMEMBERED = 256  # answers to selectors that are kept
CROWDED = 8192  # and four times those in use: so many numbers before those of kinds that are gone are given up


class ClassIds(Generic[T]):
    """key -> (number, kind). A number that lost the race to be its key's stays unused, which does no harm."""

    __slots__ = ("_all", "_by_id", "_by_namespace", "_crowded_at", "_ids", "_next", "_remembered")

    def __init__(self, crowded_at: int = CROWDED) -> None:
        self._ids: dict[bytes, int] = {}
        self._by_id: dict[int, T] = {}
        self._all: list[int] = []
        self._by_namespace: dict[str | None, list[int]] = {}  # None: those that belong to no single namespace
        self._next = itertools.count()
        self._crowded_at = crowded_at
        self._remembered: dict[Hashable, tuple[tuple[int, ...], list[int]]] = {}

    @property
    def crowded(self) -> bool:
        return len(self._ids) > self._crowded_at

    def get(self, key: bytes) -> int | None:
        return self._ids.get(key)

    def add(self, key: bytes, kind: T, namespace: str | None = None) -> tuple[int, T]:
        """The key's number, and the kind that has it: the first that came."""
        number = self._ids.get(key)
        if number is None:
            fresh = next(self._next)
            self._by_id[fresh] = kind
            self._all.append(fresh)
            self._by_namespace.setdefault(namespace, []).append(fresh)
            number = self._ids.setdefault(key, fresh)
        return number, self._by_id[number]

    def candidates(self, namespace: str) -> list[tuple[int, T]]:
        """Of the namespace, and those of none."""
        numbers = (*self._by_namespace.get(namespace, ()), *self._by_namespace.get(None, ()))
        return [(number, self._by_id[number]) for number in numbers]

    def matching(
        self, key: Hashable, matches: Callable[[T], bool], namespaces: frozenset[str] | None, bound: int
    ) -> Mask:
        """By number, at least up to `bound`: whether the kind matches. Under a key other than None only new kinds are
        asked. namespaces: no kind of another namespace can match."""
        lists = [self._all] if namespaces is None else [self._by_namespace.get(name, []) for name in sorted(namespaces)]
        lengths = tuple(
            map(len, lists)
        )  # the lists may grow meanwhile, by kinds that the asking snapshot does not have
        seen, hits = self._remembered.get(key, ((0,) * len(lists), []))
        if lengths != seen:
            fresh = [number for numbers, since, end in zip(lists, seen, lengths) for number in numbers[since:end]]
            hits = [*hits, *(number for number in fresh if matches(self._by_id[number]))]
            if key is not None:
                if len(self._remembered) >= MOST_REMEMBERED:
                    self._remembered.clear()
                self._remembered[key] = (lengths, hits)
        mask = np.zeros(max(bound, max(hits, default=-1) + 1), dtype=np.bool_)
        mask[hits] = True
        return mask

    def settle(self) -> None:
        """All kinds that it has are in use."""
        self._crowded_at = max(CROWDED, 4 * len(self._ids))

    def kept(self, numbers: Iterable[int]) -> tuple[ClassIds[T], Codes]:
        """Only these, numbered anew: what is asked from now on, and old number -> new number."""
        numbers = list(numbers)
        fresh: ClassIds[T] = ClassIds()
        moved = np.zeros(max(numbers, default=-1) + 1, dtype=np.int32)
        keys = {number: key for key, number in list(self._ids.items())}
        namespaces = {number: name for name, members in list(self._by_namespace.items()) for number in list(members)}
        for number in numbers:
            moved[number], _ = fresh.add(keys[number], self._by_id[number], namespaces[number])
        fresh.settle()
        return fresh, moved
