"""A gang's one priority and its age: what its quorum has, whatever other members there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from extender.api.metav1 import Condition
from extender.api.schedulingv1alpha1 import PodGroupStatus
from extender.plugins.coscheduling.messages import PRIORITIES_DIFFER
from tests.objects import make_pod, make_pod_group
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group
from tests.unit.plugins.coscheduling.single import refusals

Make = Callable[..., World]
ROLES = "gang-extender.dev/roles"
ROLE = "gang-extender.dev/role"


def at(hour: int) -> str:
    return f"2026-01-01T{hour:02}:00:00Z"


def standing(w: World, name: str = "g") -> tuple[int, datetime | None]:
    manager = w.plugin.manager
    found = manager.line.standing(manager.groups[f"default/{name}"])
    return found.priority, found.since


@pytest.mark.parametrize(
    ("minimum", "priorities", "counts"),
    [
        pytest.param(3, [7, 7, 7], 7, id="members of one priority"),
        pytest.param(3, [0, 0, 900], 0, id="one important member lifts no gang"),
        pytest.param(2, [0, 0, 900], 0, id="nor where it makes up a quorum with another"),
        pytest.param(2, [900, 900, 0], 900, id="a member beyond the quorum lowers none"),
        pytest.param(2, [900, 5, 0], 5, id="of the most important quorum the least important"),
        pytest.param(4, [900, 900, 0], 0, id="without a quorum the least important of all"),
        pytest.param(1, [3, 900], 900, id="a quorum of one"),
    ],
)
def test_the_priority(minimum: int, priorities: Sequence[int], counts: int, world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", minimum))
    w.create(*(pod(f"p{number}", "g", priority=priority) for number, priority in enumerate(priorities)))
    assert standing(w)[0] == counts


def test_a_role_without_which_there_is_no_quorum_counts(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, make_pod_group().name("g").min_member(3).annotation(ROLES, "master=1,worker=2").obj())
    members = [
        make_pod().name(f"w{i}").uid(f"w{i}").pod_group("g").priority(900).label(ROLE, "worker") for i in (1, 2, 3)
    ]
    w.create(*(each.obj() for each in members))
    w.create(make_pod().name("m").uid("m").pod_group("g").priority(5).label(ROLE, "master").obj())
    assert standing(w)[0] == 5, "three workers make no quorum"


def test_the_quorum_is_there_once_the_last_role_is(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, make_pod_group().name("g").min_member(2).annotation(ROLES, "master=1,worker=1").obj())
    for name, role, hour in (("w", "worker", 1), ("v", "worker", 2), ("m", "master", 7)):
        w.create(make_pod().name(name).uid(name).pod_group("g").label(ROLE, role).created(at(hour)).obj())
    assert standing(w)[1] == datetime(2026, 1, 1, 7, tzinfo=UTC)


def test_places_hold_at_the_priority_at_which_they_were_planned(world: Make) -> None:
    """Else a gang that is planned low keeps its places like one that is planned high."""
    w = world([node("n1", cpu="1"), node("n2", cpu="1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    low, high = pod("low", "g"), pod("high", "g", priority=900)
    w.create(low, high)
    assert {w.filter(low), w.filter(high)} == {"n1", "n2"}
    assert set(refusals(w, pod("equal"))) == {"n1", "n2"}
    assert refusals(w, pod("single", priority=500)) == {}


def test_it_follows_its_members_and_min_member(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    high, low = pod("a", "g", priority=9), pod("b", "g", priority=1)
    w.create(high, low)
    assert standing(w)[0] == 1
    w.create(pod("c", "g", priority=9))
    assert standing(w)[0] == 9
    w.plugin.on_pod_group(pod_group("g", 2), pod_group("g", 3))
    assert standing(w)[0] == 1
    w.plugin.on_pod(low, None)
    assert standing(w)[0] == 9


def test_of_groups_that_start_together_the_lowest_priority_and_the_last_quorum_count(world: Make) -> None:
    w = world([node("n1")])
    for name, priority, hour in (("a", 9, 1), ("b", 3, 2)):
        made = make_pod_group().name(name).min_member(1).annotation("gang-extender.dev/groups", "a,b")
        w.plugin.on_pod_group(None, made.obj())
        w.create(make_pod().name(name).uid(name).pod_group(name).priority(priority).created(at(hour)).obj())
    assert standing(w, "a") == standing(w, "b") == (3, datetime(2026, 1, 1, 2, tzinfo=UTC))


def _ages(w: World) -> list[str]:
    manager = w.plugin.manager
    return [group.key.removeprefix("default/") for group in sorted(manager.groups.values(), key=manager.line.order)]


def _members(w: World, name: str, *hours: int) -> None:
    for number, hour in enumerate(hours):
        w.create(make_pod().name(f"{name}{number}").uid(f"{name}{number}").pod_group(name).created(at(hour)).obj())


def test_an_old_object_without_members_is_not_first_in_line_when_they_come(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("parked", 2, "2020-01-01T00:00:00Z"))
    w.plugin.on_pod_group(None, pod_group("honest", 2, at(5)))
    _members(w, "honest", 6, 6)
    assert _ages(w) == ["honest", "parked"]
    _members(w, "parked", 7, 7)
    assert _ages(w) == ["honest", "parked"]


@pytest.mark.parametrize(
    ("minimum", "hours", "since"),
    [
        pytest.param(2, [3, 5], 5, id="the member that completes it"),
        pytest.param(2, [5, 3, 9], 5, id="not one that comes later"),
        pytest.param(3, [5, 3], None, id="no quorum, no age"),
        pytest.param(1, [5, 3], 3, id="a quorum of one: the oldest"),
    ],
)
def test_the_age_is_that_of_the_quorum(minimum: int, hours: Sequence[int], since: int | None, world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", minimum, at(1)))
    _members(w, "g", *hours)
    assert standing(w)[1] == (None if since is None else datetime(2026, 1, 1, since, tzinfo=UTC))


def test_it_is_the_same_for_a_process_that_sees_all_at_once(world: Make) -> None:
    first, second = world([node("n1")]), World([node("n1")])
    for w in (first, second):
        w.plugin.on_pod_group(None, pod_group("g", 2, at(1)))
    _members(first, "g", 2, 4, 6)
    first.plugin.on_pod(make_pod().name("g0").uid("g0").pod_group("g").created(at(2)).obj(), None)
    second.create(make_pod().name("g2").uid("g2").pod_group("g").created(at(6)).obj())
    second.create(make_pod().name("g1").uid("g1").pod_group("g").created(at(4)).obj())
    assert standing(first) == standing(second)


def test_a_gang_whose_members_differ_says_so_in_its_condition(world: Make) -> None:
    w = world([node("n1", cpu="1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    low, high = pod("a", "g"), pod("b", "g", priority=9)
    w.create(low, high)
    text = w.filter(low)
    assert text.startswith("pod with pgName")
    assert PRIORITIES_DIFFER not in text, "a pod's own message is about room"
    assert w.verdicts[-1].endswith(PRIORITIES_DIFFER)


@pytest.mark.parametrize(
    ("minimum", "said", "priorities", "told"),
    [
        pytest.param(2, "", (0, 9), PRIORITIES_DIFFER, id="they have come to differ"),
        pytest.param(2, PRIORITIES_DIFFER, (0, 9), None, id="it says so already"),
        pytest.param(2, PRIORITIES_DIFFER, (9, 9), "", id="they differ no more"),
        pytest.param(2, "", (9, 9), None, id="they never did"),
        pytest.param(1, "", (0, 9), None, id="each is on its own"),
    ],
)
def test_a_gang_that_runs_says_it_too(
    minimum: int, said: str, priorities: Sequence[int], told: str | None, world: Make
) -> None:
    w = world([node("n1")])
    condition = Condition(type="Scheduled", status="True", reason="GangScheduled", message=f"it starts; {said}")
    w.plugin.on_pod_group(None, replace(pod_group("g", minimum), status=PodGroupStatus(conditions=(condition,))))
    w.create(*(pod(f"p{i}", "g", node_name="n1", priority=priority) for i, priority in enumerate(priorities)))
    for _ in range(2):
        w.plugin.tick()
        w.clock.now += 2.0
    expected = f"default/g GangScheduled: minMember of {minimum} is complete: the gang starts"
    assert set(w.verdicts) == (set() if told is None else {f"{expected}; {told}" if told else expected})
