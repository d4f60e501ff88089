"""Which gang comes before every priority: one whose start was cut short and can be finished, and only as far as that takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from extender.plugins.coscheduling.spec.keys import START
from extender.plugins.coscheduling.spec.start_record import MOST_NAMED, parse_start, start_record
from tests.objects import make_pod
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node
from tests.unit.plugins.coscheduling.managing import set_wall
from tests.unit.plugins.coscheduling.single import refusals
from tests.unit.plugins.coscheduling.starting import bound_by, cut_short

Make = Callable[..., World]
NOW = datetime(2026, 3, 2, 10, 0, 0, tzinfo=UTC)


def begun(w: World, name: str = "g") -> bool:
    manager = w.plugin.manager
    return manager.begun.was_cut_short(manager.groups[f"default/{name}"])


def line(w: World) -> list[str]:
    manager = w.plugin.manager
    return [each.key.removeprefix("default/") for each in manager.line.in_order(manager.groups.values())]


def firm(w: World) -> set[str]:
    return {place.pod.name for place in w.plugin.manager.slots if place.firm}


# A minMember that is raised


def _raised(w: World, *, annotated: bool) -> None:
    """A gang of one of priority 0 runs, bound by us or not; then it asks for nine, and eight more are there."""
    running = pod("evil-0", "evil", cpu="1", node_name="n0")
    running = bound_by(running, 1, [running.uid]) if annotated else running
    w.plugin.on_pod_group(None, pod_group("evil", 1))
    w.on_nodes[running.uid] = running
    w.create(running)
    w.plugin.on_pod_group(pod_group("evil", 1), pod_group("evil", 9))
    w.create(*(pod(f"evil-{number}", "evil") for number in range(1, 9)))


@pytest.mark.parametrize("annotated", [pytest.param(True, id="bound by us"), pytest.param(False, id="bound by others")])
@pytest.mark.parametrize("restart", [pytest.param(True, id="before we lead"), pytest.param(False, id="while we lead")])
def test_a_raised_min_member_gives_no_precedence_and_no_firm_places(
    annotated: bool, restart: bool, world: Make
) -> None:
    """It outranked every priority: the gang of priority 1,000,000 did not fit, and the single pod was refused everywhere."""
    w = world([node("n0", "5"), node("n1", "4")])
    if not restart:
        w.plugin.rounds.begun.finish()
    _raised(w, annotated=annotated)
    high = [pod(f"high-{number}", "high", priority=1_000_000) for number in range(8)]
    w.plugin.on_pod_group(None, pod_group("high", 8))
    w.create(*high)
    w.plugin.rounds.begun.finish()
    assert line(w) == ["high", "evil"]
    assert w.filter(pod("evil-1", "evil")).startswith("pod with pgName") or firm(w) == set()
    assert refusals(w, pod("single", priority=2_000_000_000)) == {}
    assert {w.filter(each) for each in high} == {"n0", "n1"}, "it takes all the room there is"


def test_its_places_do_not_hold_against_a_single_pod_of_higher_priority(world: Make) -> None:
    w = world([node("n0", "5"), node("n1", "4")])
    w.plugin.rounds.begun.finish()
    _raised(w, annotated=True)
    assert w.filter(pod("evil-1", "evil")) in ("n0", "n1")
    assert len(list(w.plugin.manager.slots)) == 8
    assert firm(w) == set()
    assert set(refusals(w, pod("equal"))) == {"n0", "n1"}
    assert refusals(w, pod("single", priority=2_000_000_000)) == {}


# What a restart finds


def _restarted(
    w: World,
    minimum: int,
    running: Sequence[str],
    waiting: Sequence[tuple[str, int]],
    start: Sequence[str],
    *,
    quorum: int,
    ago: float = 3,
    named: bool = True,
) -> None:
    """Members on nodes, with the record of a start; members that wait, by name and how long ago they were created."""
    set_wall(w.plugin.manager, lambda: NOW)
    w.plugin.on_pod_group(None, pod_group("g", minimum))
    began = NOW - timedelta(seconds=ago)
    uids = list(start) if named else [f"u{number}" for number in range(MOST_NAMED + 1)]
    for name in running:
        w.create(bound_by(pod(name, "g", node_name="n0"), quorum, uids, began))
    for name, seconds in waiting:
        created = (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
        w.create(make_pod().name(name).uid(name).pod_group("g").created(created).obj())
    w.plugin.rounds.begun.finish()


CASES: Sequence[tuple[str, dict[str, Any], bool]] = (
    ("killed in mid-commit", {}, True),
    ("the record names no members, which are older than it", {"named": False}, True),
    ("... and younger", {"named": False, "waiting": [("c", 0)], "ago": 60}, False),
    ("minMember was raised since, and the start is whole", {"minimum": 3, "quorum": 2}, False),
    ("minMember was raised since, and the start is not", {"minimum": 9}, True),
    ("minMember was lowered to what runs", {"minimum": 2}, False),
    ("it was whole, lost a member, and another takes its part", {"waiting": [("d", 60)]}, False),
    ("the one that it was to finish with is gone", {"waiting": []}, False),
    ("it began too long ago", {"ago": 400}, False),
    ("it begins in the future", {"ago": -400}, False),
)


@pytest.mark.parametrize(("what", "expected"), [pytest.param(w, e, id=i) for i, w, e in CASES])
def test_after_a_restart(what: dict[str, Any], expected: bool, world: Make) -> None:
    """Of a start of three, a and b are on nodes and c waits."""
    w = world([node("n0", "9")])
    facts: dict[str, Any] = {
        "minimum": 3,
        "running": ["a", "b"],
        "waiting": [("c", 60)],
        "start": ["a", "b", "c"],
        "quorum": 3,
        **what,
    }
    _restarted(w, **facts)
    assert begun(w) == expected


def test_without_a_record_nothing_is_known_to_have_begun(world: Make) -> None:
    """A pod that was created with its node in it, by any user, is no start of ours."""
    w = world([node("n0", "9")])
    w.plugin.on_pod_group(None, pod_group("g", 9))
    w.create(pod("a", "g", node_name="n0"), *(pod(f"b{number}", "g") for number in range(8)))
    w.plugin.rounds.begun.finish()
    assert not begun(w)


def test_only_members_of_the_start_have_firm_places(world: Make) -> None:
    w = world([node("n0", "9")])
    _restarted(w, 3, ["a", "b"], [("c", 60), ("extra", 60)], ["a", "b", "c"], quorum=3)
    w.filter(pod("extra", "g"))
    assert {place.pod.name for place in w.plugin.manager.slots} == {"c", "extra"}
    assert firm(w) == {"c"}


# In the process in which it happens


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    made = KubeScheduler(world([node("n1", "4"), node("n2", "4")]))
    made.apply(group(minimum=3))
    return made


def test_a_binding_that_fails_after_the_start_leaves_a_firm_place_for_as_long_as_a_plan_has(
    kube: KubeScheduler,
) -> None:
    """It was kept as it was planned: not firm, and gone when the plan's time was up, perhaps three seconds later."""
    kube.create(*members(3))
    for number in range(2):
        kube.attempt(f"default/g{number}")
    kube.world.clock.now += 57
    manager = kube.plugin.manager
    third = kube.pods["default/g2"]
    node_name = kube.world.filter(third)
    kube.world.on_nodes[third.uid] = on_node(third, node_name)
    assert kube.plugin.gang_permit.permit(third, node_name, 60.0)[0].success
    kube._settle()
    assert kube.running() == {"g0", "g1"}
    del kube.world.on_nodes[third.uid]
    kube.plugin.gang_permit.unreserve(third, "the binding failed")
    place = manager.slots.get(third.uid)
    assert place is not None
    assert (place.firm, place.node_name, place.expires) == (True, node_name, kube.world.clock.now + 60)
    assert node_name in refusals(kube.world, pod("single", cpu="4", priority=2_000_000_000))


def _fraction(kube: KubeScheduler) -> None:
    """g0 and g1 of three run; the binding of g2 has failed, and its place is kept."""
    kube.create(*(each for each in members(2)))
    for name in ("g0", "g1"):
        started = kube.pods[f"default/{name}"]
        kube.pods[started.uid] = kube.world.on_nodes[started.uid] = on_node(started, "n1")
        kube.plugin.on_pod(started, kube.pods[started.uid])
        del kube.active[started.uid]
    kube.create(member("g2"))
    cut_short(kube.plugin.manager, "default/g")
    assert kube.world.filter(kube.pods["default/g2"]) in ("n1", "n2")
    assert firm(kube.world) == {"g2"}


def test_once_whole_it_is_over_and_a_member_that_is_lost_later_begins_nothing(kube: KubeScheduler) -> None:
    _fraction(kube)
    kube.run()
    assert kube.running() == {"g0", "g1", "g2"}
    kube.delete(kube.pods["default/g0"])
    kube.create(member("g3"))
    assert not begun(kube.world)


def test_a_member_that_is_lost_meanwhile_ends_it_and_its_places_are_firm_no_more(kube: KubeScheduler) -> None:
    _fraction(kube)
    kube.delete(kube.pods["default/g0"])
    kube.create(member("g3"))
    assert (begun(kube.world), firm(kube.world)) == (False, set())
    assert kube.plugin.manager.groups["default/g"].start is None, "it is over, whatever is asked for later"


def test_where_one_that_waits_goes_the_others_cannot_finish_it(world: Make) -> None:
    w = world([node("n0", "9")])
    waiting = [("c", 60), ("d", 60), ("extra", 60)]
    _restarted(w, 4, ["a", "b"], waiting, ["a", "b", "c", "d"], quorum=4)
    assert firm(w) == {"c", "d"}
    gone = w.plugin.manager.groups["default/g"].members["c"].pod
    w.plugin.on_pod(gone, None)
    assert (begun(w), firm(w)) == (False, set())


def test_a_binding_that_fails_while_the_others_are_under_way_leaves_a_firm_place_too(kube: KubeScheduler) -> None:
    kube.create(*members(3))
    for number in range(2):
        kube.attempt(f"default/g{number}")
    third = kube.pods["default/g2"]
    assert kube.plugin.gang_permit.permit(third, kube.world.filter(third), 60.0)[0].success
    kube.plugin.gang_permit.unreserve(third, "the binding failed")
    assert firm(kube.world) == {"g2"}
    kube._settle()
    assert (kube.running(), firm(kube.world)) == ({"g0", "g1"}, {"g2"})


def test_a_min_member_that_is_lowered_to_what_runs_ends_it(kube: KubeScheduler) -> None:
    _fraction(kube)
    kube.apply(group(minimum=2))
    assert (begun(kube.world), firm(kube.world)) == (False, set())


def test_the_record_comes_with_each_binding_and_says_the_quorum_of_then(world: Make) -> None:
    kube = KubeScheduler(world([node("n1", "4")]))
    set_wall(kube.plugin.manager, lambda: NOW)
    kube.apply(group(minimum=2))
    kube.create(*members(2))
    kube.run()
    assert kube.running() == {"g0", "g1"}
    expected = start_record(NOW, 2, ["default/g0", "default/g1"])
    assert [parse_start(START.text(each.metadata)) for each in kube.pods.values()] == [expected] * 2


def test_a_start_that_is_decided_before_we_have_looked_at_what_had_begun_goes_on(kube: KubeScheduler) -> None:
    """We have begun to lead, and a bind call comes before the first filter call. A place was firm for a start that was forgotten."""
    kube.create(*members(3))
    for number in range(2):
        kube.attempt(f"default/g{number}")
    third, manager = kube.pods["default/g2"], kube.plugin.manager
    assert kube.plugin.gang_permit.permit(third, kube.world.filter(third), 60.0)[0].success
    kube.plugin.gang_permit.unreserve(third, "the binding failed")
    group_of, start = manager.groups["default/g"], manager.groups["default/g"].start
    manager.begun.recall(group_of)
    assert (group_of.start, begun(kube.world), firm(kube.world)) == (start, True, {"g2"})


def test_a_start_of_another_term_that_no_pod_shows_is_forgotten_and_no_place_is_firm(kube: KubeScheduler) -> None:
    _fraction(kube)
    manager = kube.plugin.manager
    manager.begun.recall(manager.groups["default/g"])
    assert (manager.groups["default/g"].start, firm(kube.world)) == (None, set())
