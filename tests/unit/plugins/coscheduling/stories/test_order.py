"""The order of gangs: what has begun comes first, then priority, then age; and what is planned before any call is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group
from tests.unit.plugins.coscheduling.single import refusals
from tests.unit.plugins.coscheduling.starting import bound_by

Make = Callable[..., World]


def begun(w: World, name: str, node_name: str, missing: int = 1, **spec: Any) -> list[corev1.Pod]:
    """A gang of which one member was bound before its start was cut short; the others of that wait."""
    w.plugin.on_pod_group(None, pod_group(name, 1 + missing, "2026-01-03T00:00:00Z"))
    members = [pod(f"{name}-{number}", name, **spec) for number in range(missing)]
    there = pod(f"{name}-there", name, node_name=node_name, **spec)
    running = bound_by(there, 1 + missing, [there.uid, *(each.uid for each in members)])
    w.on_nodes[running.uid] = running
    w.create(running, *members)
    return members


def places(w: World) -> dict[str, str]:
    return {place.pod.name: place.node_name for place in w.plugin.manager.slots}


def test_the_line(world: Make) -> None:
    w = world([node("n1")])
    begun(w, "begun", "n1", priority=1)
    for name, created, priority in (
        ("young", "2026-01-02T00:00:00Z", 5),
        ("old", "2026-01-01T00:00:00Z", 5),
        ("high", "2026-01-03T00:00:00Z", 9),
        ("a-low", "2026-01-01T00:00:00Z", 1),
    ):
        w.plugin.on_pod_group(None, pod_group(name, 2, created))
        w.create(pod(f"{name}-0", name, priority=priority))
    w.plugin.rounds.begun.finish()
    manager = w.plugin.manager
    line = sorted(manager.groups.values(), key=manager.line.order)
    assert [group.key.removeprefix("default/") for group in line] == ["begun", "high", "old", "young", "a-low"]


def test_the_rest_of_a_begun_gang_has_its_places_before_a_single_pod_is_answered(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1")])
    (missing,) = begun(w, "g", "n1", priority=1)
    assert "n2" in refusals(w, pod("single", priority=1))
    assert places(w) == {missing.name: "n2"}


def test_the_rest_of_a_begun_gang_comes_before_a_gang_of_higher_priority_that_asks_first(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "2")])
    (missing,) = begun(w, "g", "n1", priority=1)
    w.plugin.on_pod_group(None, pod_group("high", 2))
    high = [pod(f"h{number}", "high", priority=9) for number in range(2)]
    w.create(*high)
    _, status = w.plugin.pre_filter(CycleState(), high[0], w.snapshot().list())
    assert "minMember of 2 does not fit" in status.message
    assert places(w) == {missing.name: "n2"}


def test_a_begun_gang_whose_members_are_not_there_again_keeps_no_other_waiting(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1")])
    begun(w, "g", "n1", missing=0)
    w.plugin.on_pod_group(pod_group("g", 1), pod_group("g", 2))
    assert not refusals(w, pod("single"))
    assert not w.plans


def test_it_is_done_once_until_others_have_led(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1")])
    w.connect(may_plan=lambda: w.leading)
    w.leading = False
    (missing,) = begun(w, "g", "n1")
    w.plugin.rounds.begun.finish()
    w.plugin.tick()
    assert not places(w), "a replica that does not lead plans nothing"
    w.leading = True
    w.plugin.tick()
    assert places(w) == {missing.name: "n2"}
    plans = w.plans
    w.plugin.rounds.begun.finish()
    assert w.plans == plans
    w.leading = False
    w.plugin.tick()
    assert not places(w)
    w.leading = True
    w.plugin.tick()
    assert places(w) == {missing.name: "n2"}


def test_members_that_kube_scheduler_has_not_tried_yet_are_kept_a_place_and_not_sent(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1")])
    begun(w, "g", "n1")
    w.plugin.rounds.begun.finish()
    assert not w.steered


def test_the_first_answer_does_not_wait_for_more_than_some_seconds_of_plans(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = world([node("n1", "3"), *(node(f"m{number}", "1") for number in range(3))])
    for number in range(3):
        begun(w, f"g{number}", "n1")
    plan = w.plugin.rounds._gang_sets.plan

    def slow(*args: object, **options: object) -> object:
        w.clock.now += 1.5
        return plan(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(w.plugin.rounds._gang_sets, "plan", slow)
    w.plugin.rounds.begun.finish()
    assert len(places(w)) == 2
    w.run_tasks()
    assert len(places(w)) == 3, "the others follow in the background"
