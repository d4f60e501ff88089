"""What an event costs while hundreds of gangs wait: it asks the kinds of members that it may concern, and visits gangs that it helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.backend.queue.nominator import Nominator
from extender.plugins.coscheduling.hints.gang_hints import EventJudge
from extender.plugins.coscheduling.waits_for import Demand
from extender.scheduler.event_handlers import NodeHandlers, PodHandlers
from tests.fakes.planning import planning_judge
from tests.objects import HOSTNAME, ZONE, NodeBuilder, PodBuilder, make_node, make_pod, make_pod_group, selector
from tests.unit.plugins.coscheduling.conftest import Rooms, World
from tests.unit.plugins.coscheduling.hints.test_wake_ups import GATE

GANGS = 200  # enough to tell asking each of them from asking the ten, or the one, that it is about
JUDGE = planning_judge()
Change = Callable[[PodBuilder], PodBuilder]


class Waiting:
    """Gangs of one member that wait for room in a full cluster, each number as `like` says. Counts what events cost."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, like: Callable[[PodBuilder, int], PodBuilder]) -> None:
        self.world = World([])
        self.cache = Cache()
        self.world.connect(newest_snapshot=self.cache.snapshot, judges=Rooms(JUDGE))
        self.plugin = self.world.plugin
        observers: Any = (self.plugin,)
        self.on_nodes = NodeHandlers(self.cache, self.plugin.on_node)
        self.on_pods = PodHandlers(self.cache, Nominator(), observers, lambda pod: False)
        for zone in "ab":
            self.on_nodes.on_add(self.node(zone))
            self.on_pods.on_add(self.running(zone))
        for number in range(GANGS):
            name = f"g{number:04}"
            self.plugin.on_pod_group(None, make_pod_group().name(name).min_member(1).obj())
            base = make_pod().pod_group(name).name(f"{name}-0").scheduling_gates(GATE)
            self.plugin.on_pod(None, like(base, number).obj())
        self.settle()
        assert len(self.plugin.manager.denied) == GANGS
        self.asked: list[Demand] = []
        self.woken: list[str] = []
        self._count(monkeypatch)

    def _count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        manager, helps, wake = self.plugin.manager, EventJudge.helps, self.plugin.manager.notes.wake

        def counted_helps(judge: EventJudge, demand: Demand) -> bool:
            self.asked.append(demand)
            return helps(judge, demand)

        def counted_wake(keys: Sequence[str]) -> None:
            self.woken.extend(keys)
            wake(keys)

        monkeypatch.setattr(EventJudge, "helps", counted_helps)
        monkeypatch.setattr(manager.notes, "wake", counted_wake)

    def node(self, zone: str) -> corev1.Node:
        return self.built(zone).obj()

    def built(self, zone: str) -> NodeBuilder:
        made = make_node().name(f"n-{zone}").label(HOSTNAME, f"n-{zone}").label(ZONE, zone)
        return made.capacity(cpu=4, memory="8Gi", pods=10)

    def running(self, zone: str) -> corev1.Pod:
        return make_pod().name(f"on-{zone}").node(f"n-{zone}").req(cpu=4).obj()

    def settle(self) -> None:
        for _ in range(5 * GANGS):
            if not self.world.tasks:
                return
            self.world.run_tasks()
        raise AssertionError("it never comes to an end")

    def names(self) -> set[str]:
        return {key.partition("/")[2] for key in self.woken}


def by_zone(base: PodBuilder, number: int) -> PodBuilder:
    """Ten ask for zone a, the others for zone b."""
    return base.node_selector({ZONE: "a" if number % 20 == 0 else "b"}).req(cpu=2)


def by_size(base: PodBuilder, number: int) -> PodBuilder:
    """Each of a size of its own, all above what a pod that goes leaves free but ten."""
    return base.req(cpu=f"{1001 + number}m").req(memory="1Gi")


def with_own_labels(base: PodBuilder, number: int) -> PodBuilder:
    """Each avoids its own kind, so that no two are alike."""
    return base.label("app", f"g{number}").pod_anti_affinity(HOSTNAME, selector({"app": f"g{number}"})).req(cpu=2)


def test_a_pod_s_deletion_visits_the_gangs_that_its_node_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Waiting(monkeypatch, by_zone)
    story.on_pods.on_delete(story.running("a"))
    story.plugin.rounds._wake_ups.judge()
    assert story.names() == {f"g{number:04}" for number in range(0, GANGS, 20)}
    assert len(story.asked) == 1, "they are alike: they are asked about once"


def test_a_pod_s_deletion_asks_no_gang_that_counting_shows_to_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Waiting(monkeypatch, by_size)
    story.on_pods.on_update(story.running("a"), make_pod().name("on-a").node("n-a").req(cpu="2990m").obj())
    story.plugin.rounds._wake_ups.judge()
    assert story.names() == {f"g{number:04}" for number in range(10)}
    assert len(story.asked) == 10


HELPS_NO_GANG: Mapping[str, Callable[[Waiting], object]] = {
    "a finished pod goes": lambda s: s.plugin.on_pod(
        make_pod().name("done").node("n-a").req(cpu=4).phase("Succeeded").obj(), None
    ),
    "a cordon": lambda s: s.on_nodes.on_update(s.node("a"), s.built("a").unschedulable().obj()),
    "less allocatable": lambda s: s.on_nodes.on_update(
        s.node("a"), s.built("a").capacity(cpu=2, memory="8Gi", pods=10).obj()
    ),
    "a taint more": lambda s: s.on_nodes.on_update(s.node("a"), s.built("a").taint("t", "", "NoSchedule").obj()),
    "a pod comes": lambda s: s.on_pods.on_add(make_pod().name("new").node("n-b").req(cpu=1).obj()),
    "a node goes": lambda s: s.on_nodes.on_delete(s.node("b")),
}


@pytest.mark.parametrize("like", [by_zone, by_size])
def test_what_can_help_no_gang_visits_none(
    monkeypatch: pytest.MonkeyPatch, like: Callable[[PodBuilder, int], PodBuilder]
) -> None:
    story = Waiting(monkeypatch, like)
    for name, happens in HELPS_NO_GANG.items():
        happens(story)
        assert not story.world.tasks, f"{name}: no turn of plans follows"
        story.plugin.rounds._wake_ups.judge()
        assert (story.asked, story.woken) == ([], []), name


def test_a_label_of_a_full_node_asks_no_gang(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Waiting(monkeypatch, by_zone)
    story.on_nodes.on_update(story.node("a"), story.built("a").label("hat", "red").obj())
    story.plugin.rounds._wake_ups.judge()
    assert (story.asked, story.woken) == ([], [])


def test_gangs_of_which_no_two_are_alike_are_each_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Waiting(monkeypatch, with_own_labels)
    story.on_pods.on_delete(story.running("a"))
    story.plugin.rounds._wake_ups.judge()
    assert (len(story.asked), len(story.woken)) == (GANGS, GANGS)


def test_no_gang_is_visited_whose_members_are_still_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Waiting(monkeypatch, by_zone)
    for number in range(GANGS):
        group = make_pod_group().name(f"g{number:04}")
        story.plugin.on_pod_group(group.min_member(1).obj(), group.min_member(2).obj())
    story.settle()
    story.woken.clear()
    story.on_nodes.on_add(make_node().name("n-c").capacity(cpu=64, memory="8Gi", pods=110).obj())
    story.plugin.rounds._wake_ups.judge()
    assert story.woken == []
