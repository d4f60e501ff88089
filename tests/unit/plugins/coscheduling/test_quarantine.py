"""How long a gang is set aside, what is run for it meanwhile, and which exceptions are a gang's at all."""

from __future__ import annotations

import threading

import pytest

from extender.plugins.coscheduling.quarantine import FORGIVEN_SECONDS, Quarantine
from tests.unit.plugins.coscheduling.conftest import FakeClock

pytestmark = pytest.mark.faults


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def quarantine(clock: FakeClock) -> Quarantine:
    return Quarantine(threading.RLock(), clock)


def fails() -> str:
    raise KeyError("a fault of ours")


def fault(quarantine: Quarantine, key: str = "default/bad") -> str:
    return quarantine.for_gang(key, "test", fails, "otherwise")


@pytest.mark.parametrize("kind", [ValueError, OverflowError, RecursionError, KeyError, AssertionError, MemoryError])
def test_an_exception_of_any_kind_ends_there_and_sets_the_gang_aside(
    quarantine: Quarantine, kind: type[Exception]
) -> None:
    def raises() -> str:
        raise kind

    assert quarantine.for_gang("default/bad", "test", raises, "otherwise") == "otherwise"
    assert list(quarantine) == ["default/bad"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_the_thread_is_no_gang_s_fault(quarantine: Quarantine, kind: type[BaseException]) -> None:
    def ends() -> str:
        raise kind

    with pytest.raises(kind):
        quarantine.for_gang("default/bad", "test", ends, "otherwise")
    assert len(quarantine) == 0


def test_nothing_is_run_for_a_gang_that_is_set_aside_until_its_time_is_up(
    quarantine: Quarantine, clock: FakeClock
) -> None:
    fault(quarantine)
    assert quarantine.for_gang("default/bad", "test", lambda: "done", "otherwise") == "otherwise"
    assert quarantine.for_gang("default/good", "test", lambda: "done", "otherwise") == "done"
    clock.now += 1.0
    assert quarantine.for_gang("default/bad", "test", lambda: "done", "otherwise") == "done"


@pytest.mark.parametrize(
    ("pauses", "seconds"),
    [
        pytest.param([], 1, id="the first fault"),
        pytest.param([0], 2, id="at once again, when it is looked at again"),
        pytest.param([0] * 8, 256, id="eight times"),
        pytest.param([0] * 9, 300, id="never longer than five minutes"),
        pytest.param([0] * 5000, 300, id="ever"),
        pytest.param([0, 0, FORGIVEN_SECONDS - 1], 8, id="after a time that is not long enough"),
        pytest.param([0, 0, FORGIVEN_SECONDS], 1, id="after a long time without a fault, as the first"),
    ],
)
def test_the_back_off_grows_and_is_forgiven(
    quarantine: Quarantine, clock: FakeClock, pauses: list[float], seconds: float
) -> None:
    fault(quarantine)
    for pause in pauses:
        clock.now = quarantine.until("default/bad") + pause
        fault(quarantine)
    assert quarantine.until("default/bad") - clock.now == seconds


def test_a_gang_that_asks_for_something_else_is_tried_at_once_and_the_fault_counts_all_the_same(
    quarantine: Quarantine, clock: FakeClock
) -> None:
    fault(quarantine)
    quarantine.try_now("default/bad")
    quarantine.try_now("default/good")
    assert len(quarantine) == 0
    fault(quarantine)
    assert quarantine.until("default/bad") - clock.now == 2.0


def test_further_faults_of_a_gang_that_is_set_aside_prolong_nothing(quarantine: Quarantine, clock: FakeClock) -> None:
    """A handler of events is called for each of its pods."""
    fault(quarantine)
    for _ in range(100):
        with pytest.raises(KeyError), quarantine.blame(lambda: "default/bad"):
            fails()
    assert quarantine.until("default/bad") - clock.now == 1.0


def test_what_has_to_be_done_all_the_same_goes_on_to_its_caller(quarantine: Quarantine) -> None:
    with pytest.raises(KeyError), quarantine.blame(lambda: "default/bad"):
        fails()
    assert list(quarantine) == ["default/bad"]


def test_a_pod_of_no_gang_sets_nothing_aside(quarantine: Quarantine) -> None:
    assert fault(quarantine, "") == "otherwise"
    with pytest.raises(KeyError), quarantine.blame(str):
        fails()
    assert len(quarantine) == 0


@pytest.mark.parametrize(
    ("seconds", "known", "left"),
    [
        pytest.param(0.5, [], True, id="a group that went while it is set aside: it may come again"),
        pytest.param(1.0, [], False, id="a group that has gone"),
        pytest.param(1.0, ["default/bad"], True, id="a group that is there: its next back-off is longer"),
        pytest.param(1.0 + FORGIVEN_SECONDS, ["default/bad"], False, id="forgiven"),
    ],
)
def test_what_is_over_is_forgotten(
    quarantine: Quarantine, clock: FakeClock, seconds: float, known: list[str], left: bool
) -> None:
    fault(quarantine)
    clock.now += seconds
    quarantine.prune(known)
    assert bool(quarantine._faults) is left
