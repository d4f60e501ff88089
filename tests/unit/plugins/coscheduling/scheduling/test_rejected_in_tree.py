"""Plain members that kube-scheduler's own filters refuse before the extender is asked: no room is kept for members that will not come."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.scheduling.rejected_in_tree import LEASE_SECONDS
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.knowing import Knowing
from tests.unit.plugins.coscheduling.kube_scheduler import group, member, members

Make = Callable[..., World]
ENFORCED = "0/2 nodes are available: 2 node(s) didn't match scheduler-enforced node affinity."
FULL = "0/2 nodes are available: 2 Insufficient cpu."
SAYS = "kube-scheduler says: node(s) didn't match scheduler-enforced node affinity"


def kept(kube: Knowing) -> int:
    return len(kube.plugin.manager.slots)


def passes(kube: Knowing, seconds: float) -> None:
    kube.world.clock.now += seconds
    kube.plugin.tick()
    kube.run()


@pytest.fixture
def kube(world: Make) -> Knowing:
    """A gang of two, and room for two."""
    w = world([node("n1", "1"), node("n2", "1")])
    w.connect(errors_back_off=True)
    made = Knowing(w)
    made.apply(group(minimum=2))
    return made


def test_no_room_is_kept_for_a_gang_that_kube_scheduler_refuses_for_what_we_do_not_know(kube: Knowing) -> None:
    """For nearly all of the time there was a place for each of them, and for no other pod."""
    kube.refuses["g"] = ENFORCED
    kube.create(*members(2))
    kube.run()
    assert kept(kube) == 0
    assert kube.reason() == "RefutedByScheduler"
    assert any(SAYS in verdict for verdict in kube.world.verdicts)
    kube.create(member("other", ""))
    kube.run()
    assert kube.running() == {"other"}


def test_it_stays_so_while_nothing_happens(kube: Knowing) -> None:
    kube.refuses["g"] = ENFORCED
    kube.create(*members(2))
    for _ in range(40):
        passes(kube, 5.0)
        assert kept(kube) == 0


def test_it_starts_when_kube_scheduler_accepts_it_whatever_the_reason(kube: Knowing) -> None:
    kube.refuses["g"] = ENFORCED
    kube.create(*members(2))
    kube.run()
    kube.refuses.clear()
    kube.something_happens()
    kube.run()
    assert kube.running() == {"g0", "g1"}


def test_one_that_is_accepted_before_the_others_waits_for_them_and_nothing_is_held(kube: Knowing) -> None:
    kube.refuses["g"] = ENFORCED
    kube.create(*members(2))
    kube.run()
    kube.refuses = {"g1": ENFORCED}
    kube.something_happens()
    kube.run()
    assert (kube.held(), kept(kube)) == (set(), 0)
    kube.refuses.clear()
    kube.something_happens()
    kube.run()
    assert kube.running() == {"g0", "g1"}


def test_a_gang_starts_without_those_that_it_does_not_need(kube: Knowing) -> None:
    kube.refuses["g0"] = ENFORCED
    kube.create(*members(3))
    kube.run()
    assert kube.running() == {"g1", "g2"}


def test_a_gang_that_found_the_cluster_full_keeps_its_places_once_there_is_room(kube: Knowing) -> None:
    """It was refused for what we know too, and what has changed wakes it."""
    kube.create(*(there := [member("there0", ""), member("there1", "")]))
    kube.run()
    kube.refuses["g"] = FULL
    kube.create(*members(2))
    kube.run()
    assert (kept(kube), kube.reason()) == (0, "InsufficientResources")
    kube.delete(*(kube.pods[each.uid] for each in there))
    kube.world.run_tasks()
    assert kept(kube) == 2
    kube.refuses.clear()
    kube.something_happens()
    kube.run()
    assert kube.running() == {"g0", "g1"}


def test_places_of_those_that_were_not_woken_are_kept_for_a_while_and_once(kube: Knowing) -> None:
    kube.refuses["g"] = ENFORCED
    kube.create(*members(2))
    kube.run()
    kube.plugin.events.on_capacity_freed()  # somewhere
    kube.run()
    assert kept(kube) == 2, "it may have been woken"
    passes(kube, LEASE_SECONDS)
    assert kept(kube) == 0
    for _ in range(20):
        kube.plugin.events.on_capacity_freed()
        passes(kube, 5.0)
        assert kept(kube) == 0
    kube.refuses.clear()
    kube.something_happens()
    kube.run()
    assert kube.running() == {"g0", "g1"}, "asked about, they are counted on again"


def test_siblings_are_not_held_time_after_time_for_one_that_is_refused_after_the_plan(kube: Knowing) -> None:
    """For as long as a hold may last, again and again: it was nominated, and that wakes no pod."""
    kube.refuses["g1"] = ENFORCED
    kube.create(*members(2))
    kube.run()
    assert kube.held() == {"g0"}, "it may yet be woken by what we have not seen"
    for seconds in (LEASE_SECONDS, 3.0):
        passes(kube, seconds)
    kube.settle()
    assert (kube.held(), kept(kube), kube.reason()) == (set(), 0, "RefutedByScheduler")
    for _ in range(20):
        passes(kube, 5.0)
        assert (kube.held(), kept(kube)) == (set(), 0)
    kube.refuses.clear()
    kube.something_happens()
    kube.run()
    passes(kube, 12.0)
    assert kube.running() == {"g0", "g1"}


def restarted(kube: Knowing, world: Make) -> Knowing:
    made = world(list(kube.world.nodes.values()))
    made.connect(errors_back_off=True)
    kube.extender_restarts(made)
    return kube


def test_after_a_restart_the_pods_themselves_say_which_were_refused(kube: Knowing, world: Make) -> None:
    """Each time such a gang had its places for a whole lease, and no member came."""
    kube.refuses["g"] = ENFORCED
    kube.create(*members(2))
    kube.run()
    kube = restarted(kube, world)
    kube.run()
    assert (kept(kube), kube.reason()) == (0, "RefutedByScheduler")
    assert any(SAYS in verdict for verdict in kube.world.verdicts)
    for _ in range(20):
        passes(kube, 5.0)
        assert kept(kube) == 0


@pytest.mark.parametrize("text", [ENFORCED, FULL])
def test_a_member_that_was_woken_while_we_were_away_starts_when_kube_scheduler_asks(
    kube: Knowing, world: Make, text: str
) -> None:
    kube.refuses["g"] = text
    kube.create(*members(2))
    kube.run()
    kube.refuses.clear()
    kube.something_happens()
    kube = restarted(kube, world)
    kube.run()
    assert kube.running() == {"g0", "g1"}


def test_a_member_that_we_refused_before_a_restart_is_planned_and_woken_at_once(kube: Knowing, world: Make) -> None:
    """It was asked about: nothing of kube-scheduler's holds it back."""
    kube.create(there := member("there", ""))
    kube.run()
    kube.create(*members(2))
    kube.run()
    gone = kube.pods.pop(there.uid)
    assert gone.node_name
    kube = restarted(kube, world)
    kube.run()
    assert kube.running() == {"g0", "g1"}


def test_many_that_are_woken_cost_no_plan_each(world: Make) -> None:
    """Each that was asked about voided the denial of its gang, though too few were awake for any plan."""
    kube = Knowing(world([node("n1", "8")]))
    kube.apply(group(minimum=8))
    kube.refuses["g"] = ENFORCED
    kube.create(*members(8))
    kube.run()
    plans = kube.world.plans
    kube.refuses.clear()
    kube.something_happens()
    kube.run()
    assert len(kube.running()) == 8
    assert kube.world.plans - plans <= 5


def test_one_that_we_have_been_asked_about_has_its_whole_lease(kube: Knowing) -> None:
    kube.plugin.tick()
    kube.refuses["g0"] = FULL
    kube.create(*members(2))
    kube.plugin.events.on_capacity_freed()
    kube.attempt("default/g0")
    kube.plugin.events.on_capacity_freed()
    kube.attempt("default/g1")
    assert kube.held() == {"g1"}
    kube.world.clock.now += LEASE_SECONDS
    kube.plugin.tick()
    assert kube.held() == {"g1"}
    assert kept(kube) == 2


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        pytest.param(messages.not_enough_siblings("g0", 1, 2), True, id="too few siblings"),
        pytest.param(messages.not_enough_of_role("g0", "master", 0, 1), True, id="too few of a role"),
        pytest.param(messages.gated_siblings("g0"), True, id="gated siblings"),
        pytest.param(messages.failed_recently("default/g"), True, id="backing off"),
        pytest.param(messages.denied("default/g", 3, "Insufficient cpu"), True, id="denied"),
        pytest.param(messages.waiting_for_group("default/a"), True, id="a group that is missing"),
        pytest.param(messages.companion_waits("default/a", "whatever"), True, id="a group that waits"),
        pytest.param(messages.resource_gap(("cpu",)), True, id="minResources"),
        pytest.param(messages.POD_GROUP_NOT_FOUND, True, id="no PodGroup"),
        pytest.param(messages.ROOM_RESERVED, True, id="reserved room"),
        pytest.param(messages.NODES_RESERVED, True, id="kept room"),
        pytest.param(messages.PREEMPTING, True, id="victims are going"),
        pytest.param(messages.PLACE_NOT_OFFERED, True, id="another node"),
        pytest.param(messages.TURN_NOT_COME, True, id="too early"),
        pytest.param("Insufficient cpu, node(s) had untolerated taint {a: b}", False, id="kube-scheduler's own"),
    ],
)
def test_what_another_replica_said_is_not_taken_for_kube_scheduler_s_word(kube: Knowing, text: str, ours: bool) -> None:
    """It was asked then, and its members are woken by our patch: a new leader plans them at once."""
    kube.refuses["g"] = f"0/2 nodes are available: 2 {text}."
    kube.create(*members(2))
    kube.run()
    assert kept(kube) == (2 if ours else 0)
