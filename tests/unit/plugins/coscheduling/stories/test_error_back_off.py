"""Holds of a gang end together, and it is planned again when enough of its members are back from kube-scheduler's back-off."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.plugins.coscheduling.state.refutations import ErrorBackOffs
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import TIMEOUT, KubeScheduler, group, member, members

Make = Callable[..., World]
RECENTLY = "podGroup default/g failed recently"


def test_the_back_off_doubles_up_to_ten_seconds_until_a_filter_refuses_the_pod() -> None:
    errors, now = ErrorBackOffs(), 100.0
    assert [errors.failed("p0", now) - now for _ in range(6)] == [2.5, 3.5, 5.5, 9.5, 11.5, 11.5]
    errors.came("p0")
    assert errors.away(now) == set()
    assert errors.failed("p0", now) - now == 11.5, "an attempt alone is no end of the row"
    errors.refused("p0")
    assert errors.failed("p0", now) - now == 2.5
    assert (errors.away(now + 2.4), errors.away(now + 2.5)) == ({"p0"}, set())


def comes(kube: KubeScheduler, name: str) -> str:
    """kube-scheduler tries it; what it heard."""
    kube.active[f"default/{name}"] = None
    kube.attempt(f"default/{name}")
    return kube.told.get(name, "")


@pytest.fixture
def timed_out(world: Make) -> KubeScheduler:
    """Three of four were held until the first one's time was over; the fourth never came."""
    w = world([node("n1", "4")])
    w.connect(errors_back_off=True)
    made = KubeScheduler(w)
    made.apply(group(minimum=4))
    made.create(*members(4))
    for number in range(3):
        comes(made, f"g{number}")
    made.world.steered.clear()
    assert made.held() == {"g0", "g1", "g2"}
    made.time_out(made.pods["default/g0"])
    w.run_tasks()
    return made


def test_the_holds_of_a_gang_share_one_deadline_and_end_together(timed_out: KubeScheduler) -> None:
    assert timed_out.held() == set()
    assert {timed_out.told[name] for name in ("g0", "g1", "g2")} == {TIMEOUT}
    assert len(timed_out.plugin.manager.slots) == 0


def test_nothing_is_kept_for_members_that_are_in_back_off(timed_out: KubeScheduler) -> None:
    timed_out.plugin.events.on_capacity_freed()
    timed_out.world.run_tasks()
    assert len(timed_out.plugin.manager.slots) == 0
    assert {comes(timed_out, name) for name in ("g3", "g0", "g1")} == {RECENTLY}
    timed_out.create(member("other", ""))
    timed_out.run()
    assert "other" in timed_out.running(), "others may have the room meanwhile"


def test_the_last_that_is_back_starts_the_gang(timed_out: KubeScheduler) -> None:
    for name in ("g3", "g0", "g1"):
        comes(timed_out, name)
    comes(timed_out, "g2")
    assert {name for name, _ in timed_out.world.steered} == {"g0", "g1", "g3"}, "those that came too early are woken"
    timed_out.run()
    assert len(timed_out.running()) == 4


def test_one_that_is_not_back_when_it_is_due_is_waited_for_no_longer(timed_out: KubeScheduler) -> None:
    for name in ("g3", "g0", "g1"):
        comes(timed_out, name)
    timed_out.world.clock.now += 2.4
    timed_out.plugin.tick()
    timed_out.world.run_tasks()
    assert len(timed_out.plugin.manager.slots) == 0
    timed_out.world.clock.now += 0.1
    timed_out.plugin.tick()
    timed_out.world.run_tasks()
    assert len(timed_out.plugin.manager.slots) == 4


def test_a_gang_does_not_wait_for_one_that_it_can_start_without(timed_out: KubeScheduler) -> None:
    timed_out.apply(group(minimum=3))
    timed_out.world.run_tasks()
    assert comes(timed_out, "g0") == RECENTLY
    comes(timed_out, "g1")
    comes(timed_out, "g3")
    assert len(timed_out.plugin.manager.slots) >= 3


def test_in_process_there_is_no_back_off_after_an_error(world: Make) -> None:
    made = KubeScheduler(world([node("n1", "2")]))
    made.apply(group(minimum=2))
    made.create(*members(2))
    comes(made, "g0")
    made.time_out(made.pods["default/g0"])
    made.run()
    assert len(made.running()) == 2
