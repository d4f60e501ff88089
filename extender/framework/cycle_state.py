"""What the plugins of one cycle leave for each other and for their later extension points.

kube-scheduler: pkg/scheduler/framework/cycle_state.go
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


PluginRecorder = Callable[[str, str, str, float], None]
"""(plugin, extension point, status code, seconds) of one call of a plugin."""


@runtime_checkable
class StateData(Protocol):
    """Data that a dry run changes says how it is copied; any other value is shared by clones."""

    def clone(self) -> Any: ...


AWAITED = "Awaited"
"""Key under which a PreFilter plugin leaves an Awaited, where its refusal may be another in a moment."""


class Awaited(Protocol):
    """What a scheduling cycle waits for with none of its locks held, before it runs PreFilter again with this in its state.

    kube-scheduler has no counterpart: its PreFilter plugins wait for nothing.
    """

    def wait(self, at_most: float) -> None:
        """For at most so many seconds."""
        ...

    def give_up(self) -> None:
        """The cycle ends instead."""
        ...


_COPIES_ITSELF: dict[type, bool] = {}  # a handful of classes; each is compared with the protocol once


def _copies_itself(data: type) -> bool:
    """Kept: a dry run clones for every node, and a protocol is compared member by member."""
    known = _COPIES_ITSELF.get(data)
    if known is None:
        known = _COPIES_ITSELF[data] = issubclass(data, StateData)
    return known


class CycleStateNotFoundError(KeyError):
    """No plugin wrote that key in this cycle. Go: ErrNotFound."""


class CycleState:
    """Belongs to one cycle and is not shared between threads; a dry run works on a clone.

    record_plugin: told of each call of a plugin, in the few cycles that are looked at so closely. Go: recordPluginMetrics.
    """

    __slots__ = ("_data", "record_plugin", "skip_filter_plugins", "skip_pre_bind_plugins", "skip_score_plugins")

    def __init__(self) -> None:
        self._data: dict[str, Any] = {}
        self.skip_filter_plugins: frozenset[str] = frozenset()
        self.skip_score_plugins: frozenset[str] = frozenset()
        self.skip_pre_bind_plugins: frozenset[str] = frozenset()
        self.record_plugin: PluginRecorder | None = None

    def write(self, key: str, value: object) -> None:
        self._data[key] = value

    def read(self, key: str, type_: type[T]) -> T:
        """Raises CycleStateNotFoundError if the key was not written, TypeError if it holds something else."""
        try:
            value = self._data[key]
        except KeyError:
            raise CycleStateNotFoundError(key) from None
        if not isinstance(value, type_):
            raise TypeError(f"cycle state {key!r} holds {type(value).__name__}, not {type_.__name__}")
        return value

    def get(self, key: str, type_: type[T]) -> T | None:
        """None where nothing was written."""
        return self.read(key, type_) if key in self._data else None

    @property
    def awaited(self) -> Awaited | None:
        awaited: Awaited | None = self._data.get(AWAITED)
        return awaited

    def delete(self, key: str) -> None:
        self._data.pop(key, None)

    def clone(self) -> CycleState:
        copy = CycleState()
        copy._data = {key: value.clone() if _copies_itself(type(value)) else value for key, value in self._data.items()}
        copy.skip_filter_plugins = self.skip_filter_plugins
        copy.skip_score_plugins = self.skip_score_plugins
        copy.skip_pre_bind_plugins = self.skip_pre_bind_plugins
        copy.record_plugin = self.record_plugin
        return copy
