"""Gangs and pods that come and go leave nothing: whatever is kept of one by its UID or name is gone some minutes later."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling.pod_conditions import CALL_FAILED, NO_CANDIDATE
from extender.plugins.coscheduling.state.group_members import GONE_SECONDS
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, member, members
from tests.unit.plugins.coscheduling.machines.test_lifetimes_machine import belonging
from tests.unit.plugins.coscheduling.machines.test_preempting_machine import of_priority
from tests.unit.plugins.coscheduling.preempting import Preempting

Make = Callable[..., World]
ROOM = "extender.plugins.coscheduling."


def kept(*roots: object) -> dict[str, int]:
    """How many entries each container has, of all objects of the gangs' room that these lead to: by class and attribute."""
    return {name: len(found) for root in roots for name, found in _containers(root, set())}


def _containers(one: object, seen: set[int]) -> Iterator[tuple[str, Collection[Any]]]:
    if id(one) in seen:
        return
    seen.add(id(one))
    for name, value in vars(one).items() if hasattr(one, "__dict__") else ():
        if type(value).__module__.startswith(ROOM):
            yield from _containers(value, seen)
        elif isinstance(value, Collection) and not isinstance(value, str | bytes | tuple | frozenset):
            yield f"{type(one).__name__}.{name}", value


def a_round(kube: Preempting, number: int) -> None:
    """Gangs start, wait, preempt and are preempted; single pods come between; members are refused by kube-scheduler's own filters."""
    names = [f"{kind}{number}" for kind in ("runs", "waits", "short", "vip", "large", "labels")]
    runs, waits, short, vip, large, labels = names
    kube.apply(group(runs, 2), group(waits, 4), group(short, 9), group(vip, 2, groups=short), group(large, 2))
    kube.create(*members(2, runs), *members(4, waits, gated=True), *members(3, short))
    kube.create(*(belonging(member(f"{labels}-{each}", ""), "labels", labels) for each in range(2)))
    kube.run()
    kube.create(*(of_priority(each, 10) for each in members(2, vip, gated=True)))
    kube.create(*(of_priority(each, 10) for each in members(2, large, cpu=3, gated=True)))  # evicting all would not do
    single = of_priority(member(f"single{number}", "", cpu=2), 5)
    kube.create(single)
    kube.run()
    for text in (NO_CANDIDATE, CALL_FAILED[0]):
        refused = of_priority(member(f"{text[:2].strip()}{number}", short), 5)
        condition = corev1.PodCondition("PodScheduled", "False", "Unschedulable", f"{text} of {number}")
        kube.create(structs.replace(refused, status=structs.replace(refused.status, conditions=(condition,))))
    kube.run()
    kube.apply(group(vip, 2))
    for _ in range(3):
        kube.world.clock.now += 5.0
        kube.plugin.tick()
        kube.run()
        kube.end_all()
    kube.world.filter(single)
    kube.delete(*list(kube.pods.values()))
    kube.world.filter(member(f"late{number}", waits))  # a call that comes after the end
    for name in (runs, waits, short, vip, large):
        kube.remove(kube.groups[f"default/{name}"])


def test_after_some_minutes_there_is_no_more_than_before(world: Make) -> None:
    kube = Preempting(world([node("n1", "3"), node("n2", "2")]))
    sizes = []
    for turn in range(3):
        for number in range(4):
            a_round(kube, 10 * turn + number)
        for _ in range(3):
            kube.world.clock.now += GONE_SECONDS + 1.0
            kube.plugin.tick()
            kube.run()
        sizes.append(kept(kube.plugin, kube.preemption))
    assert sizes[0]["KnownPods._gone"] == 0
    assert sizes[0]["PodGroupManager.groups"] == 0
    grown = {name: [each[name] for each in sizes] for name in sizes[0] if sizes[2][name] > sizes[0][name]}
    assert grown == {}
    assert {name: size for name, size in sizes[2].items() if size > 20} == {}
