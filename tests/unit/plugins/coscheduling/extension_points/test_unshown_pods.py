"""Filter calls of a kube-scheduler that sends pods without spec.schedulingGroup, before our watch has shown the pod."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from extender.api import corev1
from extender.framework.cycle_state import AWAITED, CycleState
from extender.framework.status import Code
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.extension_points import unshown_pods
from extender.plugins.coscheduling.extension_points.unshown_pods import UnshownPods
from extender.plugins.coscheduling.plan_call import LONGEST_SECONDS, PlanCall, WaitingTime
from tests.unit.plugins.coscheduling.conftest import FakeClock, World, node, pod, pod_group
from tests.unit.plugins.coscheduling.managing import in_tree
from tests.unit.plugins.coscheduling.scheduling.test_tree_request import named
from tests.unit.plugins.coscheduling.test_plan_call import Beside

Make = Callable[..., World]


@pytest.fixture
def beside(world: Make) -> Beside:
    """A gang of two of kube-scheduler's own API, which fits on n1 alone."""
    made = Beside(world([node("n1", "2"), node("n2", "1", unschedulable=True)], in_tree_pod_groups=True))
    made.world.plugin.rounds.begun.finish()
    made.world.plugin.on_pod_group(None, in_tree("g", 2))
    return made


def stripped(whole: corev1.Pod) -> corev1.Pod:
    """As a kube-scheduler sends it that does not know the field."""
    return structs.replace(whole, spec=structs.replace(whole.spec, scheduling_group=None))


def test_the_call_waits_for_the_watch_and_the_member_goes_where_its_gang_goes(beside: Beside) -> None:
    """It passed as a single pod, onto any node, and was bound outside of its gang's rack."""
    members = [named("g", number) for number in range(2)]

    def shown() -> None:
        beside.world.create(*members)
        beside.meanwhile = beside.world.run_tasks

    beside.meanwhile = shown
    assert beside.filter(stripped(members[0])) == "n1"
    assert not beside.waited, "no longer than until it is shown"
    assert beside.filter(stripped(members[1])) == "n1"


def test_a_pod_that_the_watch_does_not_show_in_time_is_tried_again(beside: Beside) -> None:
    single = pod("single")
    assert beside.filter(single) == messages.NOT_SHOWN
    assert beside.waited == [LONGEST_SECONDS]
    beside.world.create(single)
    assert beside.filter(single) == "any"
    assert len(beside.waited) == 1


def test_it_is_an_error_after_which_kube_scheduler_tries_by_itself(beside: Beside) -> None:
    status = beside.world.plugin.pre_filter(CycleState(), pod("single"), [])[1]
    assert status.code is Code.ERROR


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(named("g", 0), id="it is sent with its group"),
        pytest.param(pod("p", "crd"), id="its group is a label"),
    ],
)
def test_a_pod_that_says_its_group_waits_for_no_watch(asked: corev1.Pod, beside: Beside) -> None:
    beside.world.plugin.on_pod_group(None, pod_group("crd", 2))
    assert "cannot find enough sibling pods" in beside.filter(asked)
    assert not beside.waited


def test_without_groups_of_kube_scheduler_s_own_nothing_is_waited_for(world: Make) -> None:
    beside = Beside(world([node("n1")]))
    beside.world.plugin.rounds.begun.finish()
    assert beside.filter(pod("single")) == "any"
    assert not beside.waited


def test_what_is_known_of_a_pod_goes_with_it(beside: Beside) -> None:
    unshown = UnshownPods(beside.world.plugin.manager, WaitingTime(FakeClock()))
    single, state = pod("single"), CycleState()
    assert not unshown.has_shown(state, single)
    assert (state.awaited is not None, len(unshown._calls)) == (True, 1)
    unshown.on_pod(None, single)
    assert unshown.has_shown(state, single)
    assert state.get(AWAITED, object) is None
    unshown.on_pod(single, pod("single", node_name="n1"))
    assert not unshown._calls
    assert not unshown._waiting
    unshown.on_pod(None, single)
    unshown.on_pod(single, None)
    assert not unshown._waiting


def test_a_call_that_has_waited_for_its_plan_is_answered_by_that(beside: Beside) -> None:
    """Its pod went meanwhile: the plan's call is ended by its own rules, and is not put aside."""
    unshown = UnshownPods(beside.world.plugin.manager, WaitingTime(FakeClock()))
    call, state = PlanCall("single", None, WaitingTime(FakeClock())), CycleState()
    state.write(AWAITED, call)
    assert unshown.has_shown(state, pod("single"))
    assert state.awaited is call
    assert not unshown._calls


def test_a_pod_that_kube_scheduler_sends_with_its_node_is_waited_for_by_no_call(beside: Beside) -> None:
    unshown, state = UnshownPods(beside.world.plugin.manager, WaitingTime(FakeClock())), CycleState()
    assert unshown.has_shown(state, pod("single", node_name="n1"))
    assert state.awaited is None


def test_a_call_that_has_waited_in_vain_is_noted_no_more(beside: Beside) -> None:
    unshown = UnshownPods(beside.world.plugin.manager, WaitingTime(FakeClock()))
    single, state = pod("single"), CycleState()
    assert not unshown.has_shown(state, single)
    assert not unshown.has_shown(state, single)
    assert state.awaited is None, "it is refused now, and tried again"
    assert not unshown._calls


def test_no_more_calls_wait_for_the_watch_than_may(beside: Beside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unshown_pods, "MOST_CALLS", 2)
    unshown = UnshownPods(beside.world.plugin.manager, WaitingTime(FakeClock()))
    waiting = []
    for name in ("a", "b", "c"):
        state = CycleState()
        assert not unshown.has_shown(state, pod(name))
        waiting.append(state.awaited is not None)
    assert waiting == [True, True, False]
    unshown.on_pod(None, pod("b"))
    state = CycleState()
    assert unshown.has_shown(state, pod("b"))
    assert state.awaited is None, "nor does one that is known"
