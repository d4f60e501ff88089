"""Work that no verb waits for: once for each name, in order, and over when the scheduler is."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from extender import metrics
from extender.client.short_steps import pause
from extender.retry import Retry
from extender.scheduler import background as background_module
from extender.scheduler.background import Background, WorkerPool

pytestmark = pytest.mark.faults

FAST = 0.02  # for a back-off that a test waits out


@contextmanager
def running(background: Background) -> Iterator[Background]:
    background.start()
    try:
        yield background
    finally:
        background.stop()


def failures(where: str) -> float:
    return float(metrics.unexpected_errors.labels(where)._value.get())


def fails() -> None:
    raise KeyError("a fault of ours")


def settle(background: Background) -> None:
    """Until what runs now has run, and what follows from it is noted."""
    settled = threading.Event()
    background.submit("settle", settled.set)
    assert settled.wait(5)


def failing(times: int, then: Callable[[], None], runs: list[float]) -> Callable[[], None]:
    """Raises so often; then does what it is to do."""

    def task() -> None:
        runs.append(time.monotonic())
        if len(runs) <= times:
            raise KeyError("a fault of ours")
        then()

    return task


def test_a_task_asked_for_twice_before_it_begins_runs_once() -> None:
    runs: list[str] = []
    done = threading.Event()
    background = Background()
    background.submit("plan", lambda: runs.append("first"))
    background.submit("plan", lambda: runs.append("second"))
    background.submit("end", done.set)
    background.start()
    assert done.wait(5)
    background.stop()
    assert runs == ["second"]


def test_a_tick_that_asks_for_a_task_comes_no_sooner_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run of the task would else bring the next tick, and the next task, at once: a loop that never rests."""
    monkeypatch.setattr("extender.scheduler.background.TICK_SECONDS", 0.05)
    ticks: list[str] = []
    seen = threading.Event()

    def tick() -> None:
        ticks.append("tick")
        background.submit("task", lambda: seen.set() if len(ticks) >= 3 else None)

    began = time.monotonic()
    background = Background({"test": tick})
    background.start()
    assert seen.wait(5)
    background.stop()
    assert len(ticks) <= (time.monotonic() - began) / 0.05 + 1


def test_a_task_that_fails_is_logged_and_the_next_runs(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()
    background = Background()
    background.submit("bad", fails)
    background.submit("good", done.set)
    with caplog.at_level(logging.ERROR):
        background.start()
        assert done.wait(5)
        background.stop()
    assert "unexpected error where=bad" in caplog.text


def test_a_task_that_failed_is_tried_again_by_itself_ever_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing asks for it again: a gang that was to be planned waited for ever."""
    monkeypatch.setattr(background_module, "RETRY", Retry(FAST, 60.0))
    runs: list[float] = []
    done = threading.Event()
    before = failures("plan")
    with running(Background()) as background:
        background.submit("plan", failing(3, done.set, runs))
        assert done.wait(5)
    assert failures("plan") - before == 3
    pauses = [later - earlier for earlier, later in pairwise(runs)]
    assert all(pause >= FAST * 2**number for number, pause in enumerate(pauses)), pauses


def test_a_success_ends_the_back_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_module, "RETRY", Retry(FAST, 60.0))
    done, again = threading.Event(), threading.Event()
    with running(Background()) as background:
        background.submit("plan", failing(1, done.set, []))
        assert done.wait(5)
        settle(background)
        monkeypatch.setattr(background_module, "RETRY", Retry(3600.0, 3600.0))
        background.submit("plan", again.set)
        assert again.wait(5)


def test_a_newer_task_takes_the_place_of_the_one_that_failed_and_need_not_wait_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background_module, "RETRY", Retry(FAST, 3600.0))
    runs: list[str] = []
    failed, done = threading.Event(), threading.Event()

    def bad() -> None:
        runs.append("bad")
        monkeypatch.setattr(background_module, "RETRY", Retry(3600.0, 3600.0))
        failed.set()
        raise KeyError("a fault of ours")

    def good() -> None:
        runs.append("good")
        done.set()

    with running(Background()) as background:
        background.submit("plan", bad)
        assert failed.wait(5)
        settle(background)
        monkeypatch.setattr(background_module, "RETRY", Retry(0.0, 0.0))
        background.submit("plan", good)
        assert done.wait(5)
    assert runs == ["bad", "good"]


def test_a_task_that_asks_for_itself_and_fails_rests_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_module, "RETRY", Retry(3600.0, 3600.0))
    runs: list[str] = []
    others = [threading.Event() for _ in range(20)]
    background = Background()

    def bad() -> None:
        runs.append("bad")
        background.submit("plan", bad)
        raise KeyError("a fault of ours")

    with running(background):
        background.submit("plan", bad)
        for number, other in enumerate(others):
            background.submit(f"other-{number}", other.set)
            assert other.wait(5)
    assert runs == ["bad"]


def test_a_tick_that_fails_keeps_no_other_tick_from_coming(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_module, "TICK_SECONDS", FAST)
    ticks: list[str] = []
    seen = threading.Event()

    def bad() -> None:
        ticks.append("bad")
        raise KeyError("a fault of ours")

    def good() -> None:
        if len(ticks) >= 2:
            seen.set()

    with running(Background({"bad": bad, "good": good})):
        assert seen.wait(5)


class _NotEvenAnException(BaseException):
    """As gevent's timeouts are."""


@pytest.mark.parametrize("fault", [KeyError, _NotEvenAnException])
def test_the_thread_outlives_a_fault_outside_of_any_task(
    monkeypatch: pytest.MonkeyPatch, fault: type[BaseException]
) -> None:
    """It was gone for good, and nothing was ever planned again."""
    monkeypatch.setattr(background_module, "RETRY", Retry(FAST, 60.0))
    faults = iter([True])

    def once_broken() -> None:
        if next(faults, False):
            raise fault("a fault of ours")
        pause()

    monkeypatch.setattr(background_module, "pause", once_broken)
    first, second = threading.Event(), threading.Event()
    before = failures("background")
    with running(Background()) as background:
        background.submit("first", first.set)
        assert first.wait(5)
        background.submit("second", second.set)
        assert second.wait(5)
        assert not background.trouble
    assert failures("background") - before == 1


def test_a_background_says_when_it_is_stuck() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def stuck() -> None:
        begun.set()
        go_on.wait(5)

    background = Background(stuck_seconds=0.01)
    assert not background.trouble, "one that has not been started is not stuck"
    with running(background):
        background.submit("plan", stuck)
        assert begun.wait(5)
        time.sleep(0.02)
        assert "has been running for" in background.trouble
        go_on.set()
    assert not background.trouble, "nor one that was stopped"


def test_a_pool_works_side_by_side_up_to_its_size_and_ends() -> None:
    together = threading.Barrier(3)
    pool = WorkerPool("test", 3)

    def meet() -> None:
        together.wait(5)

    for _ in range(3):
        pool.submit(meet)
    pool.flush()
    pool.stop()
    assert not together.broken
    assert not [thread for thread in threading.enumerate() if thread.name == "test"]


def test_a_pool_goes_on_after_work_that_fails() -> None:
    done = threading.Event()
    pool = WorkerPool("test", 1)
    before = failures("test")
    pool.submit(fails)
    pool.submit(done.set)
    assert done.wait(5)
    pool.stop()
    assert failures("test") - before == 1


def test_a_pool_that_gets_no_thread_gets_one_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that could not be started counted as one of those that work, and all work waited for it."""
    done = threading.Event()
    pool = WorkerPool("test", 1)
    with monkeypatch.context() as patched:

        def no_thread(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        patched.setattr(threading.Thread, "start", no_thread)
        pool.submit(done.set)
    pool.submit(lambda: None)
    assert done.wait(5)
    pool.stop()


def test_a_pool_serves_shares_in_turn_and_flush_waits_for_all_of_them() -> None:
    pool, go_on, done = WorkerPool("test", 1), threading.Event(), list[str]()

    def waits() -> None:
        assert go_on.wait(5)

    pool.submit(waits, "loud")
    for number in range(4):
        pool.submit(lambda number=number: done.append(f"loud {number}"), "loud")  # type: ignore[misc]
    pool.submit(lambda: done.append("quiet"), "quiet")
    go_on.set()
    pool.flush()
    pool.stop()
    assert sorted(done) == [*(f"loud {number}" for number in range(4)), "quiet"]
    assert "quiet" in done[:2]


def test_what_is_shared_out_is_answered_in_order_and_an_exception_ends_it_once_none_is_at_work() -> None:
    pool, ended = WorkerPool("test", 1), list[int]()
    together = threading.Barrier(2, timeout=5)

    def act(number: int) -> int:
        if number == 3:
            raise KeyError(number)
        if number < 2:
            together.wait()  # the caller's thread and the pool's
        ended.append(number)
        return 10 * number

    try:
        assert pool.share_out([0, 1, 2], act) == [0, 10, 20]
        with pytest.raises(KeyError):
            pool.share_out([2, 3, 2, 2], act)
        assert len(ended) <= 5
        assert pool.share_out([], act) == []
    finally:
        pool.stop()
