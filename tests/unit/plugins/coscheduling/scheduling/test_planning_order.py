"""Which of the gangs that are active is planned next, and how planning time is shared between namespaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling.scheduling.planning_order import (
    HALF_LIFE_SECONDS,
    PASSED_OVER_SECONDS,
    SLICE_SECONDS,
    PlanningLine,
    PlanningOrder,
)
from extender.plugins.coscheduling.scheduling.planning_rounds import TURN_SECONDS
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import AT_ONCE
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member

Make = Callable[..., World]


class Line:
    """Groups by `namespace/name`, whose age is that of their name."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.manager = world.plugin.manager
        self.order = PlanningOrder(self.manager)

    def active(self, *keys: str, **priorities: int) -> None:
        for key in keys:
            namespace, _, name = key.partition("/")
            if key not in self.manager.groups:
                self.world.plugin.on_pod_group(None, group(name, 1, namespace))
                made = member(f"{name}-0", name, namespace=namespace)
                self.world.create(_with_priority(made, priorities.get(name, 0)))
        for key in self.manager.queue.active - set(keys):
            self.manager.queue.begin_planning(key)
        self.manager.queue.move_to_active(keys)

    def now(self) -> list[str]:
        active = set(self.manager.queue.active)
        keys = rest(self.order.line())
        self.manager.queue.move_to_active(active)
        return keys

    def used(self, key: str, seconds: float) -> None:
        self.order.planned(self.manager.groups[key], seconds)


def rest(line: PlanningLine) -> list[str]:
    keys: list[str] = []
    while len(keys) < 10 and (each := following(line)) is not None:
        keys.append(each.key)
    return keys


def following(line: PlanningLine) -> Group | None:
    while not line.rank_some():
        pass
    return line.next()


def _with_priority(pod: corev1.Pod, priority: int) -> corev1.Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, priority=priority))


@pytest.fixture
def line(world: Make) -> Line:
    return Line(world([node("n1")]))


def test_what_a_namespace_has_used_puts_its_gangs_behind_those_of_others(line: Line) -> None:
    line.active("a/1", "a/2", "b/3", "c/4")
    assert line.now() == ["a/1", "a/2", "b/3", "c/4"]
    line.used("a/1", SLICE_SECONDS * 2)
    line.used("b/3", SLICE_SECONDS)
    assert line.now() == ["c/4", "b/3", "a/1", "a/2"]


def test_less_than_a_slice_changes_nothing(line: Line) -> None:
    line.active("a/1", "b/2")
    line.used("a/1", SLICE_SECONDS * 0.9)
    assert line.now() == ["a/1", "b/2"]


def test_a_higher_priority_comes_first_whatever_its_namespace_has_used(line: Line) -> None:
    line.active("a/1", "b/2", **{"1": 5})
    line.used("a/1", 100 * SLICE_SECONDS)
    assert line.now() == ["a/1", "b/2"]


def test_what_was_used_is_forgotten_by_and_by(line: Line) -> None:
    line.active("a/1", "b/2")
    line.used("a/1", 3 * SLICE_SECONDS)
    line.world.clock.now += HALF_LIFE_SECONDS
    assert line.now() == ["b/2", "a/1"]
    line.world.clock.now += HALF_LIFE_SECONDS
    assert line.now() == ["a/1", "b/2"]


def test_a_gang_that_was_passed_over_comes_before_older_ones_that_were_looked_at_since(line: Line) -> None:
    line.active("a/1", "a/2")
    assert line.now() == ["a/1", "a/2"]
    line.world.clock.now += PASSED_OVER_SECONDS + 0.1
    line.used("a/1", 0.0)
    assert line.now() == ["a/2", "a/1"]
    line.used("a/2", 0.0)
    assert line.now() == ["a/1", "a/2"]


def test_a_gang_that_becomes_active_meanwhile_takes_its_place_in_line(line: Line) -> None:
    line.active("a/1", "a/2", "a/3")
    line.manager.queue.begin_planning("a/2")
    worked_off = line.order.line()
    first = following(worked_off)
    assert first is not None
    assert first.key == "a/1"
    line.manager.queue.move_to_active(["a/2"])
    assert rest(worked_off) == ["a/2", "a/3"]


def test_a_gang_that_is_active_no_longer_is_left_out(line: Line) -> None:
    line.active("a/1", "a/2", "a/3")
    worked_off = line.order.line()
    following(worked_off)
    line.manager.queue.begin_planning("a/2")
    assert rest(worked_off) == ["a/3"]


def test_gangs_are_ranked_some_at_a_time_and_the_first_of_all_is_first(line: Line) -> None:
    keys = [f"a/{number:03}" for number in range(AT_ONCE * 3)]
    line.active(*keys, **{keys[-1].partition("/")[2]: 5})
    worked_off = line.order.line()
    turns = 1
    while not worked_off.rank_some():
        turns += 1
    assert turns >= 3
    first = worked_off.next()
    assert first is not None
    assert first.key == keys[-1]


def test_a_gang_that_becomes_active_while_others_are_ranked_is_in_the_same_line(line: Line) -> None:
    keys = [f"a/{number:03}" for number in range(AT_ONCE * 2)]
    line.active(*keys, "b/new")
    line.manager.queue.begin_planning("b/new")
    worked_off = line.order.line()
    assert not worked_off.rank_some()
    line.manager.queue.move_to_active(["b/new"])
    following(worked_off)
    assert "b/new" in {each.key for each in iter(lambda: following(worked_off), None)}


def test_five_hundred_gangs_of_one_tenant_that_never_fit_delay_another_s_by_a_turn(world: Make) -> None:
    kube = KubeScheduler(world([node("n1", "1")]))

    def offload(function: Callable[..., object], *args: Any) -> object:
        kube.world.clock.now += 0.02
        return function(*args)

    kube.world.connect(offload=offload)
    for number in range(500):
        kube.apply(group(f"g{number:03}", 1, "evil"))
        kube.create(member(f"m{number:03}", f"g{number:03}", cpu=9, gated=True, namespace="evil"))
    kube.world.run_tasks()
    began = kube.world.clock.now
    kube.apply(group("younger", 1, "honest"))
    kube.create(member("m", "younger", gated=True, namespace="honest"))
    for _ in range(50):
        kube.world.run_tasks()
        if len(kube.plugin.manager.slots):
            break
    assert kube.world.clock.now - began <= 2 * TURN_SECONDS
