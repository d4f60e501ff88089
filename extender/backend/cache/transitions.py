"""The edges of a cached pod's state machine (drawn in cache.py), and the refusal of every edge that it does not have.

kube-scheduler: pkg/scheduler/backend/cache/cache.go
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class CacheError(ValueError):
    """The caller asked for an edge that the state machine does not have."""


class PodState(Enum):
    INITIAL = "Initial"
    ASSUMED = "Assumed"
    ADDED = "Added"


class Action(Enum):
    ASSUME = "assume"
    FORGET = "forget"
    FINISH_BINDING = "finish_binding"
    EXPIRE = "expire"
    ADD = "add"
    UPDATE = "update"
    REMOVE = "remove"


TRANSITIONS: Mapping[tuple[PodState, Action], PodState | str] = {
    (PodState.INITIAL, Action.ASSUME): PodState.ASSUMED,
    (PodState.INITIAL, Action.FORGET): PodState.INITIAL,
    (PodState.INITIAL, Action.FINISH_BINDING): PodState.INITIAL,
    (PodState.INITIAL, Action.ADD): PodState.ADDED,
    (PodState.INITIAL, Action.UPDATE): "pod {}({}) is not added to scheduler cache, so cannot be updated",
    (PodState.INITIAL, Action.REMOVE): "pod {}({}) is not found in scheduler cache, so cannot be removed from it",
    (PodState.ASSUMED, Action.ASSUME): "pod {}({}) is in the cache, so can't be assumed",
    (PodState.ASSUMED, Action.FORGET): PodState.INITIAL,
    (PodState.ASSUMED, Action.FINISH_BINDING): PodState.ASSUMED,
    (PodState.ASSUMED, Action.EXPIRE): PodState.INITIAL,
    (PodState.ASSUMED, Action.ADD): PodState.ADDED,
    (PodState.ASSUMED, Action.UPDATE): "assumed pod {}({}) should not be updated",
    (PodState.ASSUMED, Action.REMOVE): PodState.INITIAL,
    (PodState.ADDED, Action.ASSUME): "pod {}({}) is in the cache, so can't be assumed",
    (PodState.ADDED, Action.FORGET): "pod {}({}) wasn't assumed so cannot be forgotten",
    (PodState.ADDED, Action.FINISH_BINDING): PodState.ADDED,
    (PodState.ADDED, Action.ADD): "pod {}({}) was already in added state",
    (PodState.ADDED, Action.UPDATE): PodState.ADDED,
    (PodState.ADDED, Action.REMOVE): PodState.INITIAL,
}
"""(state, action) -> the next state, or the words of the refusal."""
