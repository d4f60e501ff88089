"""Where an unexpected exception ends, so that the thread can go on: it is logged and counted.

For every loop that lives as long as the process (informers, background tasks, workers), and for what the plugins raise. An
expected outcome is handled where it happens and never comes here. What follows for the gang at which something raised
is the quarantine's (plugins/coscheduling/state/quarantine.py). In kube-scheduler a panic ends the process.
Kubernetes: k8s.io/apimachinery/pkg/util/runtime (HandleCrash, HandleError)
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from extender import metrics

log = logging.getLogger(__name__)

MAX_DEFERRED = 100  # exceptions of native threads; of more at a time the oldest are dropped


@dataclass(frozen=True, slots=True)
class _Crash:
    """plugin: (its name, the extension point), where a plugin raised."""

    where: str
    about: str
    error: BaseException | None
    plugin: tuple[str, str] | None = None


_on_native_thread: ContextVar[bool] = ContextVar("on_native_thread", default=False)
_deferred: deque[_Crash] = deque(maxlen=MAX_DEFERRED)  # appended to without a lock


def guarded(where: str, work: Callable[[], object]) -> bool:
    """Runs it. False, and never an exception, if it raised; where is a name out of few, for the metric.

    An interrupt of the main thread is passed on.
    """
    try:
        work()
    except BaseException as error:
        if not isinstance(error, Exception) and threading.current_thread() is threading.main_thread():
            raise
        crashed(where)
        return False
    return True


def every(*steps: Callable[[], object]) -> None:
    """Runs all of them, though one raises; then raises the first exception. For an event that several parts have to hear of."""
    tell_every(steps)


def tell_every(listeners: Iterable[Callable[..., object]], *event: object) -> None:
    """Calls each with the event, likewise."""
    first: Exception | None = None
    for listener in listeners:
        try:
            listener(*event)
        except Exception as error:
            if first is not None:
                crashed("event")
            first = first or error
    if first is not None:
        raise first


def crashed(where: str, about: str = "") -> None:
    """Called from the except clause. about: the object that was being handled, for the log: `group=default/train`."""
    _note(_Crash(where, about, sys.exception()))


def plugin_crashed(plugin: str, point: str) -> None:
    """Likewise, for an exception of a plugin. point: the extension point, under kube-scheduler's name."""
    _note(_Crash("plugin", f"plugin={plugin} point={point}", sys.exception(), (plugin, point)))


def on_native_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Runs it, on a thread that must not take locks which the event loop may hold: under gevent neither would get on.

    Logging, metrics and a first import take such locks. What crashes meanwhile is kept, and reported by `report_deferred`.
    """
    token = _on_native_thread.set(True)
    try:
        return function(*args)
    finally:
        _on_native_thread.reset(token)


def report_deferred() -> None:
    """Called on the event loop after such a computation."""
    while _deferred:
        _report(_deferred.popleft())


def _note(crash: _Crash) -> None:
    if _on_native_thread.get():
        _deferred.append(crash)
    else:
        _report(crash)


def _report(crash: _Crash) -> None:
    with contextlib.suppress(Exception):  # an exception that cannot even be shown
        if crash.plugin is not None:
            metrics.plugin_errors.labels(*crash.plugin).inc()
        metrics.unexpected_errors.labels(crash.where).inc()
        text = f" {crash.about}" if crash.about else ""
        log.error("unexpected error where=%s%s", crash.where, text, exc_info=crash.error)
