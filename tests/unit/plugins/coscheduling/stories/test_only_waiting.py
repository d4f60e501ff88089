"""With only-waiting every batch is a gang of its own: those that were to start with an earlier one neither count for it nor
keep it waiting, whatever has become of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.knowing import Knowing
from tests.unit.plugins.coscheduling.kube_scheduler import broken, group, member, members

Make = Callable[..., World]
ENFORCED = "0/2 nodes are available: 2 node(s) didn't match scheduler-enforced node affinity."


@pytest.fixture
def kube(world: Make) -> Knowing:
    """g0 and g1 run; g2 was planned with them, and kube-scheduler's own filters refuse it. There is room for two more."""
    made = Knowing(world([node("n1", "3"), node("n2", "2")]))
    made.apply(group(minimum=2, match_policy="only-waiting"))
    made.refuses["g2"] = ENFORCED
    made.create(*members(3, gated=True))
    made.run()
    assert made.running() == {"g0", "g1"}
    return made


def passes(kube: Knowing, seconds: float) -> None:
    kube.world.clock.now += seconds
    kube.plugin.tick()
    kube.run()


def test_one_that_is_left_of_a_start_waits_for_no_other(kube: Knowing) -> None:
    assert (kube.phase(), kube.reason()) == ("Bound", "")


def test_the_verdict_on_a_batch_that_is_refused_says_so_at_once(kube: Knowing) -> None:
    """It was `NotTried`, until something happened."""
    kube.refuses["h"] = ENFORCED
    kube.create(*members(2, prefix="h", gated=True))
    kube.run()
    assert (kube.phase(), kube.reason(), len(kube.plugin.manager.slots)) == ("Denied", "RefutedByScheduler", 0)
    assert any("kube-scheduler's own filters accept" in verdict for verdict in kube.world.verdicts)
    for _ in range(20):
        passes(kube, 5.0)
        assert kube.reason() == "RefutedByScheduler"


def test_it_runs_alone_when_kube_scheduler_accepts_it_and_nothing_is_said_any_more(kube: Knowing) -> None:
    kube.refuses.clear()
    kube.something_happens()
    kube.run()
    assert (kube.running(), kube.phase(), kube.reason()) == ({"g0", "g1", "g2"}, "Bound", "")


def test_a_batch_that_was_parked_is_planned_when_it_fits_though_an_older_one_waits(kube: Knowing) -> None:
    """Its name comes first, it waits for no other, and so none was planned: what they waited for wakes none of them."""
    kube.create(there := member("there", "", cpu=2))
    kube.run()
    kube.create(*members(2, prefix="h"))
    kube.run()
    assert kube.running("h") == set()
    kube.delete(kube.pods[there.uid])
    kube.run()
    assert kube.running("h") == {"h0", "h1"}


def test_one_that_was_to_start_earlier_does_not_count_for_a_batch(kube: Knowing) -> None:
    """With its place there was none for the second of them, for which the first was held."""
    kube.create(member("there", "", cpu=1))
    kube.run()
    kube.refuses.clear()
    kube.plugin.manager.groups["default/g"].refuted.clear()  # it may be awake by now
    kube.create(*members(2, prefix="h"))
    kube.world.run_tasks()
    for name in ("h0", "h1"):
        kube.attempt(f"default/{name}")
    kube.run()
    assert (kube.held(), kube.running("h")) == (set(), {"h0", "h1"})


def test_a_gang_that_has_enough_places_left_goes_on_without_one_that_is_refused(world: Make) -> None:
    """It was `NotTried` though its places were kept, and no preemption for it was to be feared."""
    kube = Knowing(world([node("n1", "3")]))
    kube.apply(group(minimum=2))
    kube.create(*members(3, gated=True))
    kube.world.run_tasks()
    kube.wake()
    kube.refuses["g2"] = ENFORCED
    kube.attempt("default/g2")
    assert (kube.phase(), kube.plugin.manager.groups["default/g"].planned) == ("Planned", True)
    kube.run()
    assert kube.running() == {"g0", "g1"}


def test_places_of_a_gang_that_lost_one_are_free_for_others_when_it_loses_its_quorum_too(world: Make) -> None:
    """They were kept until the plan ran out."""
    kube = Knowing(world([node("n1", "3")]))
    kube.apply(group(minimum=3))
    kube.create(*members(3, gated=True))
    kube.world.run_tasks()
    kube.wake()
    kube.refuses["g2"] = ENFORCED
    kube.attempt("default/g2")
    kube.delete(kube.pods["default/g1"])
    kube.run()
    assert len(kube.plugin.manager.slots) == 0
    assert list(broken(kube)) == []
