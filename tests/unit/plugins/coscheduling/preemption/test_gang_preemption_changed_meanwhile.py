"""What changes between the search for a gang's victims and the decision: no pod is evicted for what is true no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, member, on_node
from tests.unit.plugins.coscheduling.preempting import Preempting

Make = Callable[..., World]


def of_priority(pod: corev1.Pod, priority: int) -> corev1.Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, priority=priority))


def test_a_gang_that_has_grown_since_its_members_were_chosen_is_not_broken_to_a_fraction(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of it were to go whole; a third had come to another node by the time that was decided, and would have been left over."""
    kube = Preempting(world([node("n1", "2"), node("n2", "1")]))
    kube.apply(group("low", 2))
    kube.create(*(on_node(member(f"low{number}", "low"), "n1") for number in range(2)))
    late = on_node(member("late", "low"), "n2")
    gangs = kube.preemption.gangs
    until = gangs._until

    def joins(pod: corev1.Pod) -> float:
        """The last that is asked before the decision."""
        monkeypatch.setattr(gangs, "_until", until)
        kube.create(late)
        return until(pod)

    monkeypatch.setattr(gangs, "_until", joins)
    kube.apply(group("vip", 2))
    kube.create(*(of_priority(member(f"vip{number}", "vip", gated=True), 10) for number in range(2)))
    asked: list[set[str]] = []
    evict = kube.evictions.evict

    def noted(eviction: Any, done: Any) -> None:
        asked.append({pod.name for pod in eviction.victims})
        evict(eviction, done)

    monkeypatch.setattr(kube.evictions, "evict", noted)
    kube.world.run_tasks()
    kube.world.run_tasks()
    assert late.uid in kube.pods, "it has joined"
    assert asked == []
    for _ in range(4):
        kube.run()
        kube.world.clock.now += 6.0
        kube.plugin.tick()
    assert asked == [{"low0", "low1", "late"}]
