"""Gated members beyond minMember that find no room beside their running gang: they wait, and it is said why."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.plugins.coscheduling.report.gang_status import GangStatus
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, members

Make = Callable[..., World]
TEXT = "members beyond minMember of 2 find no room: Insufficient cpu"
STARTS = "default/g GangScheduled: minMember of 2 is complete: the gang starts"


def status(kube: KubeScheduler) -> GangStatus:
    found = kube.plugin.report.status("default/g")
    assert found is not None
    return found


def seconds_pass(kube: KubeScheduler, count: int = 2) -> None:
    for _ in range(count):
        kube.world.clock.now += 1
        kube.plugin.tick()
    kube.run()


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    """Two of three run."""
    made = KubeScheduler(world([node("n1", "2")]))
    made.apply(group(minimum=2))
    made.create(*members(3, gated=True))
    made.run()
    seconds_pass(made)
    assert len(made.running()) == 2
    return made


def test_they_are_told_of_once_the_gang_runs(kube: KubeScheduler) -> None:
    assert kube.world.verdicts == [STARTS, f"default/g GangWaiting: {TEXT}"]
    gang = status(kube).gang
    assert (gang.phase, gang.reason, gang.message) == ("Bound", "ExtraMembersWait", TEXT)


def test_one_that_is_created_later_is_told_of_likewise(world: Make) -> None:
    made = KubeScheduler(world([node("n1", "2")]))
    made.apply(group(minimum=2))
    made.create(*members(2, gated=True))
    made.run()
    made.create(*members(1, prefix="late", gated=True))
    made.run()
    seconds_pass(made)
    assert made.world.verdicts[-1] == f"default/g GangWaiting: {TEXT}"


def test_when_they_have_found_room_the_gang_is_complete_again(kube: KubeScheduler) -> None:
    kube.world.nodes["n2"] = node("n2", "1")
    kube.plugin.on_node(None, kube.world.nodes["n2"])
    kube.run()
    assert len(kube.running()) == 3
    assert kube.world.verdicts[-1] == STARTS
    assert status(kube).gang.reason == ""


def test_when_they_are_gone_the_gang_is_complete_again(kube: KubeScheduler) -> None:
    kube.delete(*(pod for pod in list(kube.pods.values()) if not pod.node_name))
    seconds_pass(kube)
    assert kube.world.verdicts[-1] == STARTS
    seconds_pass(kube)
    assert kube.world.verdicts.count(STARTS) == 2


def test_asking_after_them_is_no_plan(kube: KubeScheduler, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        kube.plugin.events.on_capacity_freed()
        kube.run()
    assert [record.message for record in caplog.records if "gang planned" in record.message] == []


def test_one_that_comes_after_its_place_was_given_up_passes_as_a_single_pod(world: Make) -> None:
    """It was refused for seconds, with the gang that ran by then, and nothing woke it after them."""
    made = KubeScheduler(world([node("n1", "3")]))
    made.apply(group(minimum=2))
    made.create(*members(3, gated=True))
    made.world.run_tasks()
    made.wake()
    for uid in ("default/g0", "default/g1"):
        made.attempt(uid)
    assert made.running() == {"g0", "g1"}
    made.world.clock.now += 61.0
    made.plugin.tick()
    assert len(made.plugin.manager.slots) == 0
    made.attempt("default/g2")
    assert made.running() == {"g0", "g1", "g2"}
