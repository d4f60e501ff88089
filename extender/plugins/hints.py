"""What queueing hints share: reading the objects of an event, and the two answers.

Every plugin that can refuse a pod says by hints which events are worth another try. A hint that raises counts as QUEUE.
kube-scheduler: pkg/scheduler/util/utils.go (As)
"""

from __future__ import annotations

from typing import TypeVar

from extender.api import corev1
from extender.framework.interface import QueueingHint

QUEUE = QueueingHint.QUEUE
QUEUE_SKIP = QueueingHint.SKIP

T = TypeVar("T")


def pair(type_: type[T], old: object, new: object) -> tuple[T | None, T | None]:
    """The event's objects as what they are: (None, new) for a creation, (old, None) for a deletion.

    Raises TypeError for anything else, neither of them among it.
    """
    if old is None and new is None:
        raise TypeError("an event without an object")
    return _as(type_, old), _as(type_, new)


def _as(type_: type[T], obj: object) -> T | None:
    if obj is None or isinstance(obj, type_):
        return obj
    raise TypeError(f"expected {type_.__name__}, got {type(obj).__name__}")


def modified(type_: type[T], old: object, new: object) -> tuple[T | None, T]:
    """The same for events that are never deletions: the new object is there."""
    before, after = pair(type_, old, new)
    if after is None:
        raise TypeError(f"{type_.__name__}: a deletion where none was registered")
    return before, after


def deleted(type_: type[T], old: object) -> T:
    """The object of a deletion."""
    before, _ = pair(type_, old, None)
    if before is None:
        raise TypeError(f"{type_.__name__}: a deletion without an object")
    return before


def placed(pod: corev1.Pod) -> bool:
    """On a node, or nominated to one: it counts against others."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)
