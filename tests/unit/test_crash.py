"""Exceptions that were not expected are logged and counted, those of native threads when they are over."""

from __future__ import annotations

import logging
import threading

import pytest

from extender import crash, metrics

pytestmark = pytest.mark.faults


def count(where: str) -> float:
    return float(metrics.unexpected_errors.labels(where)._value.get())


def fails() -> None:
    raise KeyError("a fault of ours")


def test_the_log_names_the_place_and_what_it_was_about(caplog: pytest.LogCaptureFixture) -> None:
    before = count("test")
    try:
        fails()
    except KeyError:
        crash.crashed("test", "group=default/bad")
    assert "unexpected error where=test group=default/bad" in caplog.text
    assert "a fault of ours" in caplog.text
    assert count("test") == before + 1


def test_an_exception_of_a_plugin_counts_by_plugin_and_point_and_as_unexpected() -> None:
    plugin = metrics.plugin_errors.labels("NodePorts", "Filter")
    before = count("plugin"), plugin._value.get()
    try:
        fails()
    except KeyError:
        crash.plugin_crashed("NodePorts", "Filter")
    assert (count("plugin"), plugin._value.get()) == (before[0] + 1, before[1] + 1)


def test_a_native_thread_takes_no_lock_of_logging_or_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under gevent such a lock, waited for from two native threads, is never got: the event loop stood still."""

    def locked(*args: object, **kwargs: object) -> None:
        raise AssertionError("on a native thread")

    def computes() -> None:
        try:
            fails()
        except KeyError:
            crash.plugin_crashed("NodePorts", "Filter")

    before = count("plugin")
    with monkeypatch.context() as patched:
        patched.setattr(crash.log, "error", locked)
        patched.setattr(metrics.unexpected_errors, "labels", locked)
        thread = threading.Thread(target=crash.on_native_thread, args=(computes,))
        thread.start()
        thread.join()
    assert count("plugin") == before
    crash.report_deferred()
    assert count("plugin") == before + 1


def test_what_a_native_thread_returns_or_raises_is_its_caller_s(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert crash.on_native_thread(lambda: 7) == 7
    with pytest.raises(KeyError):
        crash.on_native_thread(fails)
    crash.report_deferred()
    assert caplog.text == ""


def test_of_very_many_the_last_are_kept() -> None:
    def computes() -> None:
        for _ in range(10 * crash.MAX_DEFERRED):
            try:
                fails()
            except KeyError:
                crash.crashed("flood")

    before = count("flood")
    crash.on_native_thread(computes)
    crash.report_deferred()
    assert count("flood") == before + crash.MAX_DEFERRED
