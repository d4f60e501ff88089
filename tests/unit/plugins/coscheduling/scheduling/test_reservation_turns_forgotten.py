"""Turns that were in vain say nothing any more once the cluster is larger, or the gang asks for less; each tick looks at one gang."""

from __future__ import annotations

from collections.abc import Sequence

from extender.plugins.coscheduling.scheduling.reservation_turns import PAUSE_SECONDS, End
from tests.unit.plugins.coscheduling.conftest import node
from tests.unit.plugins.coscheduling.kube_scheduler import group as annotated
from tests.unit.plugins.coscheduling.kube_scheduler import member, members, on_node
from tests.unit.plugins.coscheduling.scheduling.test_reservation_turns_in_line import Line, line
from tests.unit.plugins.coscheduling.short_of_room import RULES

__all__ = ["line"]


def test_the_cluster_s_room_is_looked_at_again_from_time_to_time_once_a_gang_has_had_a_turn(line: Line) -> None:
    line.gang("g")
    assert not line.turns.room_is_old()
    line.turn("default/g", End.IN_VAIN)
    assert line.turns.room_is_old()
    line.turns.know_room(line.w.snapshot())
    assert not line.turns.room_is_old()
    line.w.clock.now += PAUSE_SECONDS - 1
    assert not line.turns.room_is_old()
    line.w.clock.now += 1
    assert line.turns.room_is_old()


def _in_vain(line: Line) -> None:
    """Of two gangs, the first has had a turn, as large as the cluster then was."""
    line.gang("a", day=1)
    line.gang("b", day=2)
    line.turns.know_room(line.w.snapshot())
    line.turn("default/a", End.IN_VAIN)
    assert line.next(2 * RULES.after_seconds) == "b"


def _looks(line: Line, count: int = 3, current: Sequence[str] = ()) -> str:
    for _ in range(count):
        line.look(current)
    return line.next()


def test_a_turn_in_vain_says_nothing_any_more_once_the_cluster_is_larger(line: Line) -> None:
    _in_vain(line)
    with line.manager.lock:
        line.turns.begun("default/b")
    assert _looks(line) == "a", "each has had one, and its own was longest ago"
    line.w.nodes["n3"] = node("n3", "4")
    line.w.plugin.on_node(None, line.w.nodes["n3"])
    line.turns.know_room(line.w.snapshot())
    with line.manager.lock:
        line.turns.begun("default/a")
    assert line.next() == "b"
    assert _looks(line) == "a"


def test_it_says_nothing_any_more_once_the_gang_asks_for_less(line: Line) -> None:
    _in_vain(line)
    for each in members(2, "a"):
        line.w.plugin.on_pod(each, None)
    line.w.create(*members(2, "a", prefix="small", cpu=0))
    line.refused("default/a")
    assert _looks(line) == "a"


def test_in_a_cluster_of_the_same_size_it_is_not_forgotten(line: Line) -> None:
    _in_vain(line)
    line.turns.know_room(line.w.snapshot())
    assert _looks(line) == "b"


def test_the_turn_of_a_gang_that_has_it_now_is_not_forgotten(line: Line) -> None:
    _in_vain(line)
    line.w.nodes["n3"] = node("n3", "4")
    line.turns.know_room(line.w.snapshot())
    assert _looks(line, current=["default/a"]) == "b"
    assert _looks(line) == "a"


def test_one_gang_is_looked_at_each_tick(line: Line) -> None:
    """The first tick lists those that have had turns; a gang that is gone by its own tick is passed over."""
    groups = [line.gang(name, day) for day, name in enumerate(("a", "b", "c"), 1)]
    for group in groups:
        line.turn(group.key, End.IN_VAIN)
    line.w.nodes["n3"] = node("n3", "4")
    line.turns.know_room(line.w.snapshot())
    kept = [["a", "b", "c"], ["b", "c"], ["c"], []]
    for left in kept:
        line.look()
        assert [each.key[-1] for each in groups if line.turns.tried(each.key)] == left


def test_a_gang_that_has_started_without_a_turn_is_forgotten(line: Line) -> None:
    line.gang("a", day=1)
    line.turn("default/a", End.IN_VAIN)
    for each in members(2, "a"):
        line.w.plugin.on_pod(each, on_node(each, "n1"))
    line.look()
    line.look()
    assert line.turns.tried("default/a") == frozenset()


def test_what_groups_that_start_together_ask_for_is_taken_together(line: Line) -> None:
    line.w.plugin.on_pod_group(None, annotated("b", 3, groups="a", topology_required="rack"))
    line.w.plugin.on_pod_group(None, annotated("a", 2, topology_required="zone"))
    line.w.create(member("a0", "a", cpu=2), on_node(member("a1", "a", cpu=3), "n1"), member("b0", "b"))
    with line.manager.lock:
        wish = line.turns.wish_of(line.manager.groups["default/b"])
    assert (wish.needed, wish.required_levels) == (5, ("zone", "rack"))
    assert wish.largest["cpu"] == 2000
