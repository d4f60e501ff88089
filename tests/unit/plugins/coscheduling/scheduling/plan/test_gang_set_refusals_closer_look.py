"""One source says why a gang finds no room: the condition and the page read the same, also when it changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from extender.client.interface import OwnPodGroup
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.dependencies import Verdict
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, members

Make = Callable[..., World]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """(group, reason of the condition), as they are told."""
    made: list[tuple[str, str]] = []

    def decided(self: World, pod_group: OwnPodGroup | None, key: str, verdict: Verdict, *more: object) -> None:
        made.append((key, verdict.why))

    monkeypatch.setattr(World, "decided", decided)
    return made


def test_a_gang_whose_room_is_promised_says_so_until_the_others_run(world: Make, told: list[tuple[str, str]]) -> None:
    kube = KubeScheduler(world([node("n1", "3")]))
    kube.apply(group("o", 3), group("g", 2))
    kube.create(*members(3, "o", gated=True))
    kube.world.run_tasks()
    kube.create(*members(2, "g", gated=True))
    kube.world.run_tasks()
    assert told == [("default/g", "ReservedForOthers")]
    assert kube.reason("default/g") == "ReservedForOthers"
    kube.plugin.tick()
    assert len(told) == 1, "they are on their way still"
    kube.run()
    kube.plugin.tick()
    assert told[-1] == ("default/g", "InsufficientResources")
    assert kube.reason("default/g") == "InsufficientResources"


def test_places_that_are_good_are_kept_when_there_was_no_time_for_a_plan(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their node is gone, and the machine is busy: a member with a place keeps it, and the others are planned a little later."""
    w = world([node(f"n{number}", "2") for number in range(3)])
    kube = KubeScheduler(w)
    kube.apply(group("g", 4))
    kube.create(*members(4, gated=True))
    w.run_tasks()
    before = {place.uid: place.node_name for place in w.plugin.manager.slots}
    lost = next(iter(before.values()))
    plan = planner.plan

    def busy(*args: Any) -> object:
        return planner.NoPlacement("planning took longer than its time budget", 0, 2, planner.Cause.BUDGET)

    monkeypatch.setattr(planner, "plan", busy)
    w.plugin.on_node(w.nodes.pop(lost), None)
    w.run_tasks()
    monkeypatch.setattr(planner, "plan", plan)
    assert w.plugin.manager.groups["default/g"].last_diagnosis is not None
    w.clock.now += 3
    w.plugin.tick()
    w.run_tasks()
    after = {place.uid: place.node_name for place in w.plugin.manager.slots}
    kept: Sequence[str] = [uid for uid, name in before.items() if name != lost]
    assert {uid: after[uid] for uid in kept} == {uid: before[uid] for uid in kept}
    assert after.keys() == before.keys()
