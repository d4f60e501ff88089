"""The search for a gang's victims keeps the event loop for no longer than a few gangs take, however many gangs and pods there are; and
which pods it takes for gone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from extender.plugins.coscheduling.preemption import victim_search
from extender.plugins.coscheduling.preemption.evictable import Evictable, RunningGang, evictable_pods, running_gangs
from extender.plugins.coscheduling.state import pod_group_manager
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import AT_ONCE, PodGroupManager
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, member, on_node
from tests.unit.plugins.coscheduling.machines.test_preempting_machine import of_priority
from tests.unit.plugins.coscheduling.preempting import Preempting

GANGS = 2 * AT_ONCE + 1


def test_gangs_are_read_some_at_a_time_and_pods_on_a_native_thread(
    world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    kube = Preempting(world([node("n1", str(2 * GANGS))]))
    for number in range(GANGS):
        kube.apply(group(f"low{number}", 2))
        kube.create(*(on_node(member(f"low{number}-{each}", f"low{number}"), "n1") for each in range(2)))
    native: list[str] = []
    at_once: list[int] = []
    walked: list[bool] = []
    offload = kube.world._offload

    def offloaded(function: Callable[..., object], *args: object) -> object:
        native.append(function.__name__)
        try:
            return offload(function, *args)
        finally:
            native.pop()

    def read(manager: PodGroupManager, groups: Iterable[Group]) -> list[RunningGang]:
        some = list(groups)
        at_once.append(len(some))
        return running_gangs(manager, some)

    def seen(*args: Any) -> list[Evictable]:
        walked.append(bool(native))
        return evictable_pods(*args)

    search = kube.preemption.gangs.search
    monkeypatch.setattr(search, "_with", replace(search._with, offload=offloaded))
    monkeypatch.setattr(victim_search, "running_gangs", read)
    monkeypatch.setattr(victim_search, "evictable_pods", seen)
    monkeypatch.setattr(pod_group_manager, "PART_SECONDS", math.inf)
    kube.apply(group("vip", 2))
    kube.create(*(of_priority(member(f"vip{number}", "vip", gated=True), 10) for number in range(2)))
    kube.world.run_tasks()
    kube.world.run_tasks()
    assert walked == [True]
    assert at_once[:3] == [AT_ONCE, AT_ONCE, 2], "and those of victims once more when it is decided"
    assert max(at_once) <= AT_ONCE
    assert len(kube.evictions.asked) == 1


@pytest.mark.parametrize(
    ("seconds", "evicted"),
    [
        pytest.param(600.0, 1, id="it goes soon: its room counts as free"),
        pytest.param(-30.0, 1, id="it is late"),
        pytest.param(-90.0, 2, id="it is too late to be counted on"),
        pytest.param(10 * 365 * 86_400.0, 2, id="it was given ten years: it is not waited for"),
    ],
)
def test_the_room_of_a_pod_that_goes_counts_as_free_where_it_goes_soon(
    world: Callable[..., World], seconds: float, evicted: int
) -> None:
    kube = Preempting(world([node(f"n{number}", "1") for number in range(3)]))
    going, *lows = (on_node(member(name, ""), f"n{number}") for number, name in enumerate(("going", "low0", "low1")))
    kube.create(going, *lows)
    kube.ends_in(going, seconds)
    kube.apply(group("vip", 2))
    kube.create(*(of_priority(member(f"vip{number}", "vip", gated=True), 10) for number in range(2)))
    kube.run()
    assert len([pod for pod in kube.ending() if pod.uid != going.uid]) == evicted
