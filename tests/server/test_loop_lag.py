"""The histogram sees what keeps the event loop busy, in the real worker too, and nothing is left of it after its end."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import gevent
import pytest
from gevent.event import Event

from extender import metrics
from extender.server.loop_lag import PERIOD_SECONDS, LoopLag
from tests.e2e.processes import eventually
from tests.server.service import Service

BUSY_SECONDS = 5 * PERIOD_SECONDS
WITHIN_SECONDS = 10.0
COUNT = re.compile(r"^gang_extender_event_loop_lag_seconds_count (\d+)", re.MULTILINE)


class Observed:
    """In place of the histogram's `observe`."""

    def __init__(self) -> None:
        self.lags: list[float] = []
        self.next = Event()

    def __call__(self, lag: float) -> None:
        self.lags.append(lag)
        self.next.set()

    def await_one(self) -> float:
        self.next.clear()
        assert self.next.wait(WITHIN_SECONDS)
        return self.lags[-1]


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> Observed:
    made = Observed()
    monkeypatch.setattr(metrics.event_loop_lag, "observe", made)
    return made


@pytest.fixture
def lag() -> Iterator[LoopLag]:
    made = LoopLag()
    made.start()
    yield made
    made.stop()


def test_work_that_does_not_give_way_is_lag(lag: LoopLag, observed: Observed) -> None:
    observed.await_one()
    until = time.monotonic() + BUSY_SECONDS
    while time.monotonic() < until:
        pass
    assert observed.await_one() >= BUSY_SECONDS - PERIOD_SECONDS


def test_after_its_end_nothing_is_measured(lag: LoopLag, observed: Observed) -> None:
    observed.await_one()
    lag.stop()
    measured = len(observed.lags)
    gevent.sleep(3 * PERIOD_SECONDS)
    assert len(observed.lags) == measured
    lag.stop()


def test_the_worker_measures_from_its_start(service: Service) -> None:
    def measured() -> bool:
        found = COUNT.search(service.ops("/metrics")[1])
        return found is not None and int(found[1]) > 0

    eventually(measured, within=WITHIN_SECONDS, what="the lag is measured")
