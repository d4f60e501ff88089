"""Work that no verb waits for: once for each name, in order, and over when the scheduler is."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from extender.scheduler.background import Background, WorkerPool


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
    background = Background(tick)
    background.start()
    assert seen.wait(5)
    background.stop()
    assert len(ticks) <= (time.monotonic() - began) / 0.05 + 1


def test_a_task_that_fails_is_logged_and_the_next_runs(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()
    background = Background()
    background.submit("bad", lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    background.submit("good", done.set)
    with caplog.at_level(logging.ERROR):
        background.start()
        assert done.wait(5)
        background.stop()
    assert "background task failed" in caplog.text


def test_a_pool_works_side_by_side_up_to_its_size_and_ends() -> None:
    together = threading.Barrier(3)
    pool = WorkerPool("test", 3)
    for _ in range(3):
        pool.submit(lambda: together.wait(5))  # type: ignore[arg-type, return-value]
    pool.flush()
    pool.stop()
    assert not together.broken
    assert not [thread for thread in threading.enumerate() if thread.name == "test"]
