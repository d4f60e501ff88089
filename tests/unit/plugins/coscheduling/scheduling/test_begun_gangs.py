"""What began to start before a restart is planned first, and a fault in that stops no other gang."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.plugins.coscheduling.scheduling import begun_gangs
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.failing_plans import Faulty, passes
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, on_node

Make = Callable[..., World]

pytestmark = pytest.mark.faults


@pytest.fixture
def kube(world: Make) -> Faulty:
    made = Faulty(world([node("n1", "4"), node("n2", "4")]))
    made.apply(group("bad", 2), group("good", 2))
    return made


def test_a_gang_that_has_begun_and_cannot_be_planned_stops_no_other_after_a_restart(kube: KubeScheduler) -> None:
    """Every filter call of every pod failed."""
    kube.create(member("bad8", "bad"), member("bad9", "bad"))
    bound = kube.pods["default/bad9"]
    kube.plugin.on_pod(bound, on_node(bound, "n1"))
    kube.plugin.rounds.begun.look_again()
    single = member("single", "")
    kube.create(single)
    kube.attempt(single.uid)
    assert "single" in kube.running()


def test_where_what_has_begun_cannot_be_looked_for_calls_are_answered_and_it_is_looked_for_again(
    kube: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of no single gang: it came to every filter call, for ever."""
    kube.create(member("bad8", "bad"), member("bad9", "bad"))
    kube.faulty = False
    bound = kube.pods["default/bad9"]
    kube.plugin.on_pod(bound, on_node(bound, "n1"))
    kube.plugin.rounds.begun.look_again()
    with monkeypatch.context() as patched:

        def fails(manager: object) -> None:
            raise KeyError("a fault of ours")

        patched.setattr(begun_gangs, "mark_rejections_current", fails)
        single = member("single", "")
        kube.create(single)
        kube.attempt(single.uid)
        assert "single" in kube.running()
    passes(kube, 1.0)
    kube.plugin.rounds.begun.finish()
    assert kube.plugin.rounds.begun.is_planned()
    assert kube.plugin.manager.slots.get("default/bad8") is not None or "bad8" in kube.running()
