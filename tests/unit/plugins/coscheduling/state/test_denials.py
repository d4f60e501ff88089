"""For how long a refusal stands."""

from __future__ import annotations

from collections.abc import Callable

from extender.plugins.coscheduling.state.denials import LONGEST_SECONDS, Denials
from tests.unit.plugins.coscheduling.conftest import FakeClock, World, node, pod, pod_group

Make = Callable[..., World]


def stands(denials: Denials, clock: FakeClock) -> float:
    """Seconds until it is over, to the second."""
    seconds = 0
    while "g" in denials:
        clock.now += 1
        seconds += 1
    return seconds


def test_the_same_end_once_more_stands_twice_as_long_up_to_a_minute() -> None:
    clock = FakeClock()
    denials = Denials(3, clock)
    found = []
    for _ in range(7):
        denials.again("g", "no room")
        assert denials.get("g") == "no room"
        found.append(stands(denials, clock))
        assert denials.get("g") is None
    assert found == [3, 6, 12, 24, 48, 60, 60]
    denials.again("g", "another cause")
    assert stands(denials, clock) == 3


def test_what_was_forgotten_begins_anew() -> None:
    clock = FakeClock()
    denials = Denials(3, clock)
    ways: tuple[Callable[[], object], ...] = (lambda: denials.pop("g"), denials.clear)
    for forget in ways:
        denials.again("g", "no room")
        denials.again("g", "no room")
        forget()
        denials.again("g", "no room")
        assert stands(denials, clock) == 3


def test_a_note_that_is_no_plan_s_stands_as_long_as_is_configured() -> None:
    clock = FakeClock()
    denials = Denials(90, clock)
    denials["g"] = "members did not come"
    denials["g"] = "members did not come"
    assert stands(denials, clock) == 90
    denials.again("g", "no room")
    denials.again("g", "no room")
    assert stands(denials, clock) == 90 > LONGEST_SECONDS


def test_what_is_asked_of_a_denial_whose_time_is_over() -> None:
    """It is none any more; only how often plans came to that end is kept, until it is forgotten."""
    clock = FakeClock()
    denials = Denials(3, clock)
    denials["g"] = "no room"
    assert (denials.until("g"), denials.until("h")) == (clock.now + 3, 0.0)
    clock.now += 3
    assert ("g" in denials, denials.get("g"), list(denials), len(denials)) == (False, None, ["g"], 1)
    denials.again("g", "no room")
    assert stands(denials, clock) == 6
    assert denials.pop("g") is None
    assert (list(denials), denials.until("g")) == ([], 0.0)


def test_those_that_gave_the_room_up_stay_denied() -> None:
    denials = Denials(3, FakeClock())
    for key in "abc":
        denials[key] = "no room"
    denials.clear(but=("b", "d"))
    assert [key in denials for key in "abc"] == [False, True, False]
    assert (list(denials), denials.get("b")) == (["b"], "no room")
    assert (denials.pop("b"), denials.pop("b"), denials.pop("a")) == ("no room", None, None)


def test_parked_members_that_are_asked_about_again_and_again_cost_few_plans(world: Make) -> None:
    w = world([node("n1", "2")])
    w.plugin.on_pod_group(None, pod_group("g", 3))
    members = [pod(f"p{i}", "g") for i in range(3)]
    w.create(*members)
    told = set()
    for _ in range(60):
        told |= {w.filter(member) for member in members}
        w.clock.now += 1
    assert w.plans <= 6
    assert len(told) == 1
    w.on_nodes.clear()
    w.nodes["n2"] = node("n2", "2")
    w.plugin.on_node(None, w.nodes["n2"])
    w.run_tasks()
    assert w.filter(members[0]) in w.nodes, "what can help is looked at at once"
