"""Promised places: against which pods they hold, and which ends of theirs leave room to others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.scheduling.overlay import Overlays
from extender.plugins.coscheduling.state.slots import Slot, Slots
from tests.unit.plugins.coscheduling.conftest import pod


def place(name: str, node_name: str, priority: int = 0) -> Slot:
    return Slot(PodInfo(pod(name, "g", priority=priority)), "default/g", node_name, 100.0)


def test_a_place_holds_against_equal_and_lower_priority_until_it_is_given_up() -> None:
    slots = Slots()
    overlays = Overlays(slots)
    slots.reserve(place("a", "n1", priority=5))
    slots.reserve(place("b", "n1", priority=7))

    def names(priority: int) -> list[str]:
        return [slot.pod.name for slot in overlays.against(priority).on_node("n1")]

    assert names(5) == ["a", "b"]
    assert names(6) == ["b"]
    assert not names(8)
    slots.release("b")
    assert names(5) == ["a"]
    assert not names(6)


@pytest.mark.parametrize(
    ("happened", "given_up"),
    [
        pytest.param(lambda slots: slots.release("a"), True, id="taken back"),
        pytest.param(lambda slots: slots.release("a", bound=True), False, id="the pod came"),
        pytest.param(lambda slots: slots.reserve(place("a", "n2")), True, id="another place instead"),
        pytest.param(lambda slots: slots.reserve(place("a", "n1")), False, id="the same once more"),
        pytest.param(lambda slots: slots.release("b"), False, id="there was none"),
    ],
)
def test_room_is_given_up(happened: Callable[[Slots], object], given_up: bool) -> None:
    slots = Slots()
    slots.reserve(place("a", "n1"))
    happened(slots)
    assert slots.given_up() is given_up
    assert slots.given_up() is False, "said once"
