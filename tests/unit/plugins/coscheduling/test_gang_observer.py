"""A gang that waits at a gate says so once, and again when something else was decided of it in between."""

from __future__ import annotations

from collections.abc import Callable

from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group

Make = Callable[..., World]
TOO_FEW = "default/g GangWaiting: fewer pods exist than minMember of 2"


def looked(w: World) -> list[str]:
    """What is told once a second and more has passed."""
    w.verdicts.clear()
    for _ in range(2):
        w.plugin.tick()
        w.clock.now += 2.0
    w.plugin.tick()
    return w.verdicts


def start(w: World) -> None:
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(pod("a", "g"))
    w.filter(pod("a", "g"))


def test_a_gate_is_told_of_once(world: Make) -> None:
    w = world([node("n1", cpu="1")])
    start(w)
    assert looked(w) == [TOO_FEW]
    assert looked(w) == []


def test_after_another_decision_the_same_gate_is_news(world: Make) -> None:
    """It may all have happened between two looks."""
    w = world([node("n1", cpu="1")])
    start(w)
    assert looked(w) == [TOO_FEW]
    second = pod("b", "g")
    w.create(second)
    w.filter(second)
    w.plugin.on_pod(second, None)
    assert looked(w) == [TOO_FEW]


def test_a_group_of_the_same_name_that_is_made_anew_speaks_for_itself(world: Make) -> None:
    w = world([node("n1", cpu="1")])
    start(w)
    assert looked(w) == [TOO_FEW]
    w.plugin.on_pod(pod("a", "g"), None)
    w.plugin.on_pod_group(pod_group("g", 2), None)
    w.plugin.on_pod_group(None, pod_group("g", 2))
    other = pod("a", "g", uid="another")
    w.create(other)
    w.filter(other)
    assert looked(w) == [TOO_FEW]
