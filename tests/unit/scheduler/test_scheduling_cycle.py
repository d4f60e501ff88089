"""One cycle at a time, which keeps no other waiting; and how a refusal is worded for kube-scheduler: one text, and not for every
node of a large cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, cast

import pytest

from extender.api import corev1
from extender.api.extenderv1 import ExtenderFilterResult
from extender.framework.cycle_state import AWAITED, CycleState
from extender.framework.hypothetical import HypotheticalSnapshot
from extender.framework.runtime.framework import Framework
from extender.framework.status import SUCCESS, Code, Status, unresolvable
from extender.scheduler.scheduling_cycle import BUSY, FILTER_SECONDS, NAMED_IN_REFUSAL, SchedulingCycle, refusal
from tests.objects import make_pod
from tests.unit.framework.runtime.fakes import FakeClock

SECONDS = 5.0
GANG, SINGLE = make_pod().name("gang").obj(), make_pod().name("single").obj()
NAMES = [f"n{number}" for number in range(1000)]


@pytest.mark.parametrize(
    ("offered", "named"),
    [
        pytest.param(NAMES[:1], 1, id="one node: it is named"),
        pytest.param(NAMES[:NAMED_IN_REFUSAL], NAMED_IN_REFUSAL, id="few nodes: all are named"),
        pytest.param(NAMES, NAMED_IN_REFUSAL, id="many: some are, the others are refused by being in no list"),
    ],
)
def test_a_refusal_has_one_text_and_lets_no_node_through(offered: list[str], named: int) -> None:
    answer = refusal(offered, unresolvable("gang waits"))
    assert not answer.node_names
    assert not answer.failed_nodes
    assert answer.failed_and_unresolvable_nodes == dict.fromkeys(offered[:named], "gang waits")


def test_an_error_is_not_worded_as_a_refusal() -> None:
    answer = refusal(NAMES, Status(Code.ERROR, ("broken",)))
    assert (answer.error, answer.failed_and_unresolvable_nodes) == ("broken", {})


class Plan:
    """What a gang's member waits for. Fulfils Awaited."""

    def __init__(self) -> None:
        self.waits, self.made = threading.Event(), threading.Event()
        self.at_most: list[float] = []
        self.given_up = False
        self.on_wait: Callable[[], object] = lambda: self.made.wait(SECONDS)

    def wait(self, at_most: float) -> None:
        self.at_most.append(at_most)
        self.waits.set()
        self.on_wait()

    def give_up(self) -> None:
        self.given_up = True


class Lock:
    """Had once, and then another's."""

    def __init__(self) -> None:
        self.timeouts: list[float] = []

    def acquire(self, timeout: float) -> bool:
        self.timeouts.append(timeout)
        return len(self.timeouts) == 1

    def release(self) -> None:
        """Taken by another at once."""


class PreFilters:
    """A framework in which `gang` passes once there is a plan, and asks for it as often as it may."""

    def __init__(self, plan: Plan, asks: int = 1) -> None:
        self.plan, self._asks = plan, asks

    def set_snapshot(self, snapshot: object) -> None:
        """Nothing looks at it."""

    def has_filter_plugins_left(self, state: CycleState) -> bool:
        return False

    def run_pre_filter_plugins(self, state: CycleState, pod: corev1.Pod, nodes: object) -> tuple[Any, Status, Any]:
        if pod is SINGLE or self.plan.made.is_set():
            state.delete(AWAITED)
            return None, SUCCESS, frozenset()
        if self._asks:
            self._asks -= 1
            state.write(AWAITED, self.plan)
        else:
            state.delete(AWAITED)
        return None, unresolvable("no plan yet"), frozenset()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def cycle(clock: FakeClock) -> SchedulingCycle:
    return SchedulingCycle(lambda: HypotheticalSnapshot(()), clock)


@pytest.fixture
def plan() -> Iterator[Plan]:
    made = Plan()
    yield made
    made.made.set()


def filtered(cycle: SchedulingCycle, plan: Plan, pod: corev1.Pod, asks: int = 1) -> ExtenderFilterResult:
    return cycle.filter(cast("Framework", PreFilters(plan, asks)), pod, ["n1"])


def test_a_single_pod_is_answered_while_a_member_waits_for_its_plan(cycle: SchedulingCycle, plan: Plan) -> None:
    answer: Future[ExtenderFilterResult] = Future()
    thread = threading.Thread(target=lambda: answer.set_result(filtered(cycle, plan, GANG)))
    thread.start()
    assert plan.waits.wait(SECONDS)
    assert filtered(cycle, plan, SINGLE).node_names == ["n1"]
    assert not answer.done()
    plan.made.set()
    thread.join(SECONDS)
    assert answer.result(0).node_names == ["n1"]


def test_all_waits_of_a_call_together_end_before_its_time_is_up(
    cycle: SchedulingCycle, plan: Plan, clock: FakeClock
) -> None:
    plan.on_wait = lambda: clock.step(max(0.0, plan.at_most[-1]))
    answer = filtered(cycle, plan, GANG, asks=3)
    assert answer.failed_and_unresolvable_nodes == {"n1": "no plan yet"}
    assert clock() < FILTER_SECONDS
    assert len(plan.at_most) == 3


def test_a_call_does_not_wait_for_another_cycle_beyond_its_time(
    cycle: SchedulingCycle, plan: Plan, clock: FakeClock
) -> None:
    """Its answer is an error: kube-scheduler tries the pod again by itself."""
    lock = Lock()
    cycle.lock = cast("threading.Lock", lock)
    plan.on_wait = lambda: clock.step(FILTER_SECONDS / 2)
    assert filtered(cycle, plan, GANG).error == BUSY
    assert plan.given_up
    assert lock.timeouts == pytest.approx([FILTER_SECONDS, FILTER_SECONDS / 2])
