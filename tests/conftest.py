"""For all tests: an exception that a loop has outlived is a fault all the same, and a slow machine is none."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings

from extender import metrics
from extender.plugins.coscheduling.planner.request import Deadline, Request

PATIENCE = 60.0  # times the time budget of a plan, where the test has given it no clock of its own

# As with CI=true, where examples are the same ones each time besides: no example is late, and none slow to be made.
settings.register_profile("untimed", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_collection_finish() -> None:
    """What was collected stays to the end: it is looked through for garbage no more."""
    gc.collect()
    gc.freeze()


def _unexpected() -> dict[str, float]:
    samples = [sample for family in metrics.unexpected_errors.collect() for sample in family.samples]
    return {sample.labels["where"]: sample.value for sample in samples if sample.value}


@pytest.fixture(autouse=True)
def no_unexpected_errors(request: pytest.FixtureRequest) -> Iterator[None]:
    """Unless the test is about them: then it carries the mark `faults`."""
    before = _unexpected()
    yield
    if request.node.get_closest_marker("faults") is None:
        assert _unexpected() == before, "swallowed by extender.crash, see the log"


@pytest.fixture(autouse=True)
def plans_have_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine no plan fails for want of time: a test of the time budget brings its own clock."""
    of = Deadline.of

    def patient(request: Request) -> Deadline:
        deadline = of(request)
        return replace(deadline, seconds=deadline.seconds * PATIENCE) if request.clock is time.monotonic else deadline

    monkeypatch.setattr(Deadline, "of", patient)
