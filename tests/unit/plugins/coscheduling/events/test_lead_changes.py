"""What follows when we begin to lead, and when we lead no more; a step that raises is done again with the next tick."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.plugins.coscheduling import messages
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, members

Make = Callable[..., World]


class Led:
    """A gang of gated members that fits, and a Lease."""

    def __init__(self, world: Make) -> None:
        self.world = world([node("n1", "4")])
        self.leads = False
        self.world.connect(may_plan=lambda: self.leads)
        self.world.plugin.on_pod_group(None, group())
        self.world.create(*members(2, gated=True))

    def tick(self) -> None:
        self.world.plugin.tick()
        self.world.run_tasks()

    @property
    def places(self) -> int:
        return len(self.world.plugin.manager.slots)


@pytest.fixture
def led(world: Make) -> Led:
    return Led(world)


def test_a_new_leader_plans_what_waits(led: Led) -> None:
    led.tick()
    assert led.places == 0
    led.leads = True
    led.tick()
    assert led.places == 2


def test_a_replica_that_leads_no_more_keeps_no_places_and_plans_again_when_it_leads_again(led: Led) -> None:
    led.leads = True
    led.tick()
    led.leads = False
    led.tick()
    assert led.places == 0
    led.leads = True
    led.tick()
    assert led.places == 2


def test_a_replica_that_leads_no_more_lets_the_members_go_that_it_holds(led: Led) -> None:
    """Those of every gang: the new leader is asked about a member only when its bind call has been answered."""
    led.leads = True
    led.world.plugin.on_pod_group(None, group("other"))
    others = members(2, "other")
    led.world.create(*others)
    led.tick()
    for member in (*members(1), others[0]):
        led.world.arrive(member)
    assert [each.decision for each in led.world.waiting.values()] == ["", ""]
    led.leads = False
    led.tick()
    assert {each.decision for each in led.world.waiting.values()} == {f"rejected: {messages.LEADS_NO_MORE}"}


def test_the_log_has_a_line_for_each_change_and_none_else(led: Led, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "extender.plugins.coscheduling.events.lead_changes")
    for leads in (False, True, True, False, False, True):
        led.leads = leads
        led.tick()
    said = [each.message.partition(":")[0] for each in caplog.records if each.name.endswith("lead_changes")]
    assert said == ["leading", "not leading any more", "leading"]


@pytest.mark.faults
def test_what_follows_is_done_again_until_it_is_done_to_its_end(led: Led, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = led.world.plugin.lead_changes
    told: list[str] = []

    def tell_anew() -> None:
        told.append("told")
        if len(told) == 1:
            raise RuntimeError("a fault of ours")

    monkeypatch.setattr(changes, "_tell_anew", tell_anew)
    led.leads = True
    with pytest.raises(RuntimeError):
        changes.tick()
    changes.tick()
    changes.tick()
    assert told == ["told", "told"]
