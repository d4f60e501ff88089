"""How often parked members are woken because what they were told has become untrue: once for what has stood, not for every change."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.plugins.coscheduling.events.scheduler_feedback import STOOD_SECONDS
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group

Make = Callable[..., World]


def seconds(w: World, count: float) -> None:
    """Ticks once a second."""
    for _ in range(int(count)):
        w.clock.now += 1
        w.run_tasks()
        w.plugin.tick()


def parked(world: Make, minimum: int, cpu: str = "1") -> World:
    w = world([node("n1", cpu)])
    w.plugin.on_pod_group(None, pod_group("g", minimum))
    w.create(pod("p0", "g"))
    assert "current pods number: 1" in w.filter(pod("p0", "g"))
    return w


def test_a_member_that_was_told_what_is_still_true_is_left_alone(world: Make) -> None:
    w = parked(world, 3)
    seconds(w, 10)
    assert w.woken == []


def test_a_member_is_woken_once_for_a_number_that_has_stood(world: Make) -> None:
    w = parked(world, 3)
    w.create(pod("p1", "g"))
    seconds(w, 1)
    assert w.woken == [], "another may come"
    seconds(w, STOOD_SECONDS)
    assert w.woken == ["p0"]
    assert "current pods number: 2" in w.filter(pod("p0", "g"))
    seconds(w, 10)
    assert w.woken == ["p0"], "once"


def test_a_gang_that_grows_wakes_no_member_until_it_has_grown(world: Make) -> None:
    w = parked(world, 16)
    for number in range(1, 15):
        w.create(pod(f"p{number}", "g"))
        seconds(w, 1)
    assert w.woken == []
    seconds(w, STOOD_SECONDS)
    assert w.woken == ["p0"]


def test_a_gang_that_is_complete_and_finds_no_room_tells_those_that_still_blame_the_number(world: Make) -> None:
    w = parked(world, 2)
    w.create(pod("p1", "g"))
    assert "does not fit" in w.filter(pod("p1", "g"))
    seconds(w, STOOD_SECONDS + 1)
    assert w.woken == ["p0"]
    assert "does not fit" in w.filter(pod("p0", "g"))
    seconds(w, 10)
    assert w.woken == ["p0"], "once"


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(["p1", "p0"], id="after the member that finds that there is no room"),
        pytest.param(["p0", "p1"], id="it is itself the one that finds out"),
    ],
)
def test_a_member_that_has_heard_it_because_kube_scheduler_tried_it_again_is_not_woken(
    asked: list[str], world: Make
) -> None:
    w = parked(world, 2)
    w.create(pod("p1", "g"))
    for name in asked:
        assert "does not fit" in w.filter(pod(name, "g"))
    seconds(w, 10)
    assert w.woken == []
