"""A bind call is answered before its caller gives up; and what of it no other call may come between."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.framework.binding_deadline import binding_ends_by
from extender.framework.cycle_state import CycleState
from extender.framework.runtime.framework import Framework
from extender.framework.status import SUCCESS, Status, wait
from extender.scheduler.binding_cycle import BindingCycle
from extender.scheduler.gang_settings import COMMIT_SECONDS, bind_seconds
from extender.scheduler.in_flight import BindCall
from tests.objects import make_pod

POD = make_pod().name("p").obj()
TIMEOUT = 120.0


class Plugins:
    """A framework whose Permit wants to hold the pod for a while, and lets it go at once."""

    def __init__(self, now: float, hold: float) -> None:
        self.now, self.hold = now, hold
        self.held: Mapping[str, float] = {}
        self.ends_by = 0.0
        self.nominator = SimpleNamespace(delete_nominated_pod_if_exists=lambda pod: None)

    def clock(self) -> float:
        return self.now

    def run_permit_plugins(self, state: CycleState, pod: corev1.Pod, node: str) -> tuple[Status, dict[str, float]]:
        return wait(), {"Coscheduling": self.hold}

    def add_waiting_pod(self, pod: corev1.Pod, node: str, timeouts: Mapping[str, float]) -> None:
        self.held = timeouts

    def run_bind_plugins(self, state: CycleState, pod: corev1.Pod, node: str) -> Status:
        self.ends_by = binding_ends_by(state)
        return SUCCESS

    def __getattr__(self, name: str) -> Any:
        return lambda *args: SUCCESS


def bound(plugins: Plugins, call: BindCall) -> Plugins:
    cache = SimpleNamespace(assume_pod=lambda pod, node: pod, finish_binding=lambda pod: None)
    assert BindingCycle(cast("Cache", cache)).run(cast("Framework", plugins), POD, "n1", call).success
    return plugins


@pytest.mark.parametrize(
    ("spent", "hold"),
    [
        pytest.param(0.0, 60.0, id="there is time: as long as Permit says"),
        pytest.param(70.0, TIMEOUT - COMMIT_SECONDS - 70.0, id="the call has waited for its pod's older call"),
        pytest.param(118.0, 0.0, id="there is time for the commit alone"),
    ],
)
def test_a_hold_ends_in_time_for_the_commit_and_the_answer(spent: float, hold: float) -> None:
    call = BindCall("p", deadline=bind_seconds(TIMEOUT))
    assert bound(Plugins(spent, 60.0), call).held == {"Coscheduling": pytest.approx(hold)}


def test_the_binding_itself_knows_when_the_call_has_to_be_answered() -> None:
    call = BindCall("p", deadline=bind_seconds(TIMEOUT))
    assert bound(Plugins(0.0, 60.0), call).ends_by == call.deadline < TIMEOUT


def test_without_a_deadline_permit_decides() -> None:
    assert bound(Plugins(0.0, 60.0), BindCall("p")).held == {"Coscheduling": 60.0}


def test_no_other_permit_comes_between_a_permit_and_its_waiting_pod() -> None:
    """The member that completes a gang lifts the holds of all others: one without a waiting pod would be missed."""
    cache = SimpleNamespace(assume_pod=lambda pod, node: pod, finish_binding=lambda pod: None)
    cycle = BindingCycle(cast("Cache", cache))
    steps: list[tuple[str, bool]] = []

    class Watched(Plugins):
        def run_permit_plugins(self, *args: Any) -> tuple[Status, dict[str, float]]:
            steps.append(("Permit", cycle._permitting.locked()))
            return super().run_permit_plugins(*args)

        def add_waiting_pod(self, *args: Any) -> None:
            steps.append(("waiting pod", cycle._permitting.locked()))

        def wait_on_permit(self, pod: corev1.Pod) -> Status:
            steps.append(("wait", cycle._permitting.locked()))
            return SUCCESS

    assert cycle.run(cast("Framework", Watched(0.0, 60.0)), POD, "n1", BindCall("p")).success
    assert steps == [("Permit", True), ("waiting pod", True), ("wait", False)]
