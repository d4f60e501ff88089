"""One call of a plugin, and one run of an extension point: exceptions become Code.ERROR here, and nowhere else.

All the extension points use it. A framework that is measured hands in a recorder; that of the planner, which runs off the
event loop and may take no lock, has none, and `crash` reports its exceptions later.
kube-scheduler: pkg/scheduler/framework/runtime/framework.go
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from extender.crash import plugin_crashed
from extender.framework.cycle_state import CycleState
from extender.framework.status import Code, Status

EXTENSION_POINTS = {
    "AddPod": "PreFilterExtensionAddPod",
    "RemovePod": "PreFilterExtensionRemovePod",
    "NormalizeScore": "ScoreExtensionNormalize",
}
"""kube-scheduler's names for the metrics of plugins, where they are not those of the methods."""

T = TypeVar("T")
P = ParamSpec("P")

Recorder = Callable[[str, str, str, float], None]
"""(extension point, status code, profile, seconds) of one run of an extension point."""


class Recording(Protocol):
    """What `timed` needs of the framework."""

    record: Recorder | None

    @property
    def profile_name(self) -> str: ...


S = TypeVar("S", bound=Recording)


def broken_promise(point: str, plugin: str, exception: Exception) -> Status:
    """What a plugin's exception is to the scheduler. Called from the except clause: it is logged and counted here."""
    plugin_crashed(plugin, EXTENSION_POINTS.get(point, point))
    return Status(Code.ERROR, (f"{type(exception).__name__}: {exception}",), plugin)


def called(
    point: str, plugin: str, call: Callable[[], T], failed: Callable[[Status], T], state: CycleState | None = None
) -> T:
    """One call of a plugin; `failed` makes an answer of the Status that an exception becomes.

    state: of the cycle, where the call is to be seen in the metrics of plugins.
    """
    record = state.record_plugin if state is not None else None
    started = time.perf_counter() if record is not None else 0.0
    try:
        result = call()
    except Exception as exception:
        result = failed(broken_promise(point, plugin, exception))
    if record is not None:
        record(plugin, point, _code_in(result), time.perf_counter() - started)
    return result


def as_is(status: Status) -> Status:
    return status


def plugin_error(text: str, plugin: str = "") -> Status:
    """An error that names its plugin only where kube-scheduler's does."""
    return Status(Code.ERROR, (text,), plugin)


def why(status: Status) -> str:
    """The error of a Status that should not have come; a code without words is named. Go: AsError."""
    return status.message or str(status.code)


def timed(point: str) -> Callable[[Callable[Concatenate[S, P], T]], Callable[Concatenate[S, P], T]]:
    """Reports each run of an extension point with the Status in its result."""

    def decorate(run: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
        @wraps(run)
        def run_and_record(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            if self.record is None:
                return run(self, *args, **kwargs)
            started = time.perf_counter()
            result = run(self, *args, **kwargs)
            self.record(point, _code_in(result), self.profile_name, time.perf_counter() - started)
            return result

        return run_and_record

    return decorate


def _code_in(result: object) -> str:
    for part in result if isinstance(result, tuple) else (result,):
        if isinstance(part, Status):
            return str(part.code)
    return str(Code.SUCCESS)
