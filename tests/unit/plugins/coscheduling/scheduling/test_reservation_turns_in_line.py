"""Since when a gang waits for its turn, which has the next, and what is forgotten of the turns that were."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from extender.plugins.coscheduling.backfill.vain_turns import AskedRoom
from extender.plugins.coscheduling.dependencies import BackfillRules
from extender.plugins.coscheduling.scheduling.reservation_turns import (
    AGAIN_SECONDS,
    PAUSE_SECONDS,
    End,
    ReservationTurns,
)
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.group import Group
from tests.objects import make_pod_group
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group as annotated
from tests.unit.plugins.coscheduling.kube_scheduler import member, members
from tests.unit.plugins.coscheduling.short_of_room import RULES

Make = Callable[..., World]
NO_ROOM = UnschedulableReason.INSUFFICIENT_RESOURCES
QUICK = BackfillRules(after_seconds=10, max_seconds=600, max_nodes_percent=50)


class Line:
    """Gangs of two that were refused; nothing else asks after their turns."""

    def __init__(self, world: Make, rules: BackfillRules = RULES) -> None:
        self.w = world([node("n1", "4"), node("n2", "4")])
        self.manager = self.w.plugin.manager
        self.turns = ReservationTurns(self.manager, rules)

    def gang(self, name: str, day: int = 1, reason: UnschedulableReason = NO_ROOM, namespace: str = "default") -> Group:
        made = make_pod_group().namespace(namespace).name(name).min_member(2).created(f"2026-01-{day:02}T00:00:00Z")
        self.w.plugin.on_pod_group(None, made.obj())
        self.w.create(*members(2, name, namespace=namespace))
        return self.refused(f"{namespace}/{name}", reason)

    def refused(self, key: str, reason: UnschedulableReason = NO_ROOM) -> Group:
        with self.manager.lock:
            group = self.manager.groups[key]
            stop = Diagnosis(reason, "no")
            group.stop(stop)
            self.turns.denied(group, stop)
        return group

    def next(self, after: float = 0) -> str:
        """The gang that has its turn when so many seconds have passed."""
        self.w.clock.now += after
        with self.manager.lock:
            found = self.turns.next()
        return found.key.removeprefix("default/") if found is not None else ""

    def turn(self, key: str, how: End, *, lasted: float = 600, nodes: Sequence[str] = ("n1",)) -> None:
        since = self.w.clock.now
        with self.manager.lock:
            self.turns.begun(key)
        self.w.clock.now += lasted
        with self.manager.lock:
            group = self.manager.groups.get(key)
            wish = self.turns.wish_of(group) if group is not None else AskedRoom()
            self.turns.ended(key, since, wish, frozenset(nodes), how)

    def look(self, current: Sequence[str] = ()) -> None:
        """As one tick does."""
        with self.manager.lock:
            self.turns.look_at_one(current)


@pytest.fixture
def line(world: Make) -> Line:
    return Line(world)


@pytest.mark.parametrize(
    ("reason", "waits"),
    [
        pytest.param(UnschedulableReason.INSUFFICIENT_RESOURCES, True, id="room"),
        pytest.param(UnschedulableReason.MIN_RESOURCES, True, id="minResources"),
        pytest.param(UnschedulableReason.TOPOLOGY_UNSATISFIABLE, True, id="room in one rack"),
        pytest.param(UnschedulableReason.NO_SUITABLE_NODE, False, id="a node that its selector matches"),
        pytest.param(UnschedulableReason.AFFINITY_UNSATISFIABLE, False, id="a pod that it has affinity to"),
        pytest.param(UnschedulableReason.BUDGET_EXCEEDED, False, id="time for a plan"),
    ],
)
def test_a_gang_has_a_turn_where_it_lacks(reason: UnschedulableReason, waits: bool, line: Line) -> None:
    line.gang("g", reason=reason)
    assert line.next(RULES.after_seconds) == ("g" if waits else "")


def test_where_no_nodes_are_kept_free_no_gang_has_a_turn(world: Make) -> None:
    line = Line(world, BackfillRules(after_seconds=0, max_seconds=600, max_nodes_percent=0))
    line.gang("g")
    assert line.next(1000) == ""


def test_its_time_counts_from_the_first_refusal(line: Line) -> None:
    line.gang("g")
    line.w.clock.now += 200
    line.refused("default/g")
    assert line.next(99) == ""
    assert line.next(1) == "g"


def test_groups_that_start_together_have_their_turn_as_one(line: Line) -> None:
    """It is that of the first by name, whichever was refused."""
    line.w.plugin.on_pod_group(None, annotated("b", groups="a"))
    line.gang("a", reason=UnschedulableReason.NO_SUITABLE_NODE)
    line.w.create(*members(2, "b"))
    line.refused("default/b")
    assert line.next(RULES.after_seconds) == "a"


def test_a_gang_that_was_planned_waits_anew(world: Make) -> None:
    """Also where no nodes were found for it before."""
    line = Line(world, QUICK)
    group = line.gang("g")
    with line.manager.lock:
        line.turns.found_no_nodes("default/g")
        line.turns.planned([group])
    assert line.next(20) == ""
    line.refused("default/g")
    assert line.next(9) == ""
    assert line.next(1) == "g"


@pytest.mark.parametrize(
    ("rules", "seconds"),
    [
        pytest.param(QUICK, AGAIN_SECONDS, id="for half a minute at least"),
        pytest.param(RULES, RULES.after_seconds, id="for as long as it had to wait"),
    ],
)
def test_a_gang_for_which_no_nodes_were_found_is_passed_over(rules: BackfillRules, seconds: float, world: Make) -> None:
    line = Line(world, rules)
    line.gang("g")
    assert line.next(rules.after_seconds) == "g"
    with line.manager.lock:
        line.turns.found_no_nodes("default/g")
    assert line.next(seconds - 1) == ""
    assert line.next(1) == "g"


def test_a_gang_that_is_refused_no_more_has_no_turn(line: Line) -> None:
    """It lost a member, and gathers again."""
    line.gang("g")
    line.w.plugin.on_pod(member("g0"), None)
    assert line.next(RULES.after_seconds) == ""


def test_a_gang_that_is_set_aside_has_no_turn_and_the_next_in_line_has_it(line: Line) -> None:
    line.gang("a", day=1)
    line.gang("b", day=2)
    assert line.next(RULES.after_seconds) == "a"
    line.manager.quarantine.set_aside("default/a")
    assert line.next() == "b"


def test_a_gang_whose_turn_was_in_vain_comes_behind_one_that_had_none(line: Line) -> None:
    line.gang("a", day=1)
    line.gang("b", day=2)
    assert line.next(RULES.after_seconds) == "a"
    line.turn("default/a", End.CUT_SHORT)
    assert line.next(RULES.after_seconds) == "b"
    line.turn("default/b", End.CUT_SHORT)
    assert line.next(RULES.after_seconds) == "a", "each has had one"
    line.turn("default/a", End.CUT_SHORT)
    assert line.next(RULES.after_seconds) == "b", "that one has had two"


def test_a_gang_that_has_started_by_its_turn_has_had_none(line: Line) -> None:
    line.gang("a", day=1)
    line.gang("b", day=2)
    line.turn("default/a", End.STARTED)
    assert line.next(RULES.after_seconds) == "a"


def test_a_namespace_of_which_no_turn_was_in_vain_comes_first(line: Line) -> None:
    line.gang("a", day=1)
    line.gang("b", day=2)
    line.gang("c", day=3, namespace="other")
    line.turn("default/a", End.IN_VAIN)
    assert line.next(2 * RULES.after_seconds) == "other/c"


def test_after_its_turn_its_time_begins_anew(line: Line) -> None:
    line.gang("g")
    line.turn("default/g", End.CUT_SHORT)
    assert line.next(RULES.after_seconds - 1) == ""
    assert line.next(1) == "g"


def test_the_end_of_a_turn_is_no_refusal(line: Line) -> None:
    """The gang was planned meanwhile."""
    group = line.gang("g")
    with line.manager.lock:
        line.turns.planned([group])
    line.turn("default/g", End.CUT_SHORT)
    assert line.next(RULES.after_seconds) == ""


@pytest.mark.parametrize(
    ("how", "lasted", "tried"),
    [
        pytest.param(End.IN_VAIN, 600.0, {"n1"}, id="was in vain"),
        pytest.param(End.IN_VAIN, PAUSE_SECONDS - 1, set(), id="was in vain, and over at once"),
        pytest.param(End.CUT_SHORT, 600.0, set(), id="was cut short"),
        pytest.param(End.STARTED, 600.0, set(), id="has started it"),
    ],
)
def test_the_nodes_of_a_turn_are_tried_where_it(how: End, lasted: float, tried: set[str], line: Line) -> None:
    line.gang("g")
    line.turn("default/g", how, lasted=lasted)
    assert line.turns.tried("default/g") == tried


def test_after_each_turn_in_vain_the_pause_is_longer(line: Line) -> None:
    line.gang("g")
    line.turn("default/g", End.IN_VAIN)
    assert line.next(RULES.after_seconds) == "g"
    line.turn("default/g", End.IN_VAIN)
    assert line.next(4 * RULES.after_seconds - 1) == ""
    assert line.next(1) == "g"
    line.turn("default/g", End.STARTED)
    line.turn("default/g", End.IN_VAIN)
    assert line.next(RULES.after_seconds) == "g", "it has started in between"


def test_of_a_gang_that_is_gone_when_its_turn_ends_nothing_is_kept(line: Line) -> None:
    line.turn("default/gone", End.IN_VAIN)
    assert line.turns.tried("default/gone") == frozenset()
    assert not line.turns.room_is_old(), "no gang has had a turn"


def test_what_a_gang_has_had_goes_with_it(line: Line) -> None:
    """The next of its name comes in its own turn."""
    line.gang("a", day=1)
    line.gang("b", day=2)
    line.turn("default/a", End.IN_VAIN)
    with line.manager.lock:
        line.turns.found_no_nodes("default/a")
        line.turns.forget("default/a")
    assert line.turns.tried("default/a") == frozenset()
    line.refused("default/a")
    assert line.next(RULES.after_seconds) == "a"
