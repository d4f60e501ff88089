"""Work of many namespaces, taken from each in turn: one that has much to be written keeps no other waiting, and crowds none out.

Events and the conditions of PodGroups are written from such queues. kube-scheduler has no counterpart for events (client-go's
broadcaster is one channel of 1,000); the API server shares itself out likewise (k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing)
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """In the order of arrival within a share. Not locked: the owner's lock guards it. most: items in all; None for no bound."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._shares: OrderedDict[str, deque[T]] = OrderedDict()  # none is empty; the first has its turn
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def shares(self) -> Iterable[str]:
        return tuple(self._shares)

    def put(self, share: str, item: T) -> bool:
        """Whether nothing was dropped for want of room: if something was, it is the newest of the share that has most."""
        room = self._most is None or self._size < self._most
        if not room:
            longest = max(self._shares, key=lambda name: len(self._shares[name]))
            if len(self._shares.get(share, ())) >= len(self._shares[longest]):
                return False
            self._shares[longest].pop()
            self._drop_if_empty(longest)
            self._size -= 1
        self._shares.setdefault(share, deque()).append(item)
        self._size += 1
        return room

    def take(self) -> T:
        """Takes the oldest item of the next share. Raises KeyError where there is nothing."""
        share, items = self._shares.popitem(last=False)
        item = items.popleft()
        if items:
            self._shares[share] = items  # behind the others
        self._size -= 1
        return item

    def clear(self) -> None:
        self._shares.clear()
        self._size = 0

    def _drop_if_empty(self, share: str) -> None:
        if not self._shares[share]:
            del self._shares[share]
