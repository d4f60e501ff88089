"""What changes between the search for a gang's victims and the decision: no pod is evicted for what is true no more."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling.dependencies import Done, Eviction
from extender.plugins.coscheduling.preemption.planning import VictimPlan
from extender.plugins.coscheduling.preemption.victim_search import VictimQuestion
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, member, members, on_node
from tests.unit.plugins.coscheduling.machines.test_preempting_machine import of_priority
from tests.unit.plugins.coscheduling.preempting import Preempting

Make = Callable[..., World]


def changes_after_the_search(kube: Preempting, monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
    """Once, and before anything is decided by what was found."""
    search = kube.preemption.gangs.search
    searched = search.search

    def then_changes(situation: VictimQuestion) -> VictimPlan | str:
        found = searched(situation)
        monkeypatch.setattr(search, "search", searched)
        change()
        return found

    monkeypatch.setattr(search, "search", then_changes)


def evictions_of(kube: Preempting, monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The names of the pods of each, as they are asked for."""
    asked: list[set[str]] = []
    evict = kube.evictions.evict

    def noted(eviction: Eviction, done: Done) -> None:
        asked.append({pod.name for pod in eviction.victims})
        evict(eviction, done)

    monkeypatch.setattr(kube.evictions, "evict", noted)
    return asked


def vips(cpu: int = 1) -> list[corev1.Pod]:
    return [of_priority(each, 10) for each in members(2, "vip", cpu=cpu, gated=True)]


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
    kube.create(*vips())
    asked = evictions_of(kube, monkeypatch)
    kube.world.run_tasks()
    kube.world.run_tasks()
    assert late.uid in kube.pods, "it has joined"
    assert asked == []
    for _ in range(4):
        kube.run()
        kube.world.clock.now += 6.0
        kube.plugin.tick()
    assert asked == [{"low0", "low1", "late"}]


def test_a_member_that_its_gang_can_spare_no_more_goes_with_all_of_it_or_stays(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gang of three had four. It lost one, by no preemption, while the fourth was chosen."""
    kube = Preempting(
        world([*(node(f"n{number}", "1") for number in range(3)), node("large", "2"), node("empty", "2")])
    )
    kube.apply(group("low", 3), group("vip", 2))
    lows = [on_node(of_priority(member(f"low{number}", "low"), 1), f"n{number}") for number in range(3)]
    kube.create(*lows, on_node(member("spare", "low", cpu=2), "large"))
    asked = evictions_of(kube, monkeypatch)
    changes_after_the_search(kube, monkeypatch, lambda: kube.delete(lows[0]))
    kube.create(*vips(cpu=2))
    kube.passes(10)
    assert asked == [{"low1", "low2", "spare"}]


def test_no_pod_goes_for_a_plan_that_waits_for_a_member_that_was_held_and_has_started(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another pod was evicted at once, and the gang waited for one that ran until its time was up. Now both go by one decision."""
    kube = Preempting(world([node("n1", "2"), node("n2", "2"), node("n3", "1")]))
    kube.create(on_node(member("low", "", cpu=2), "n2"))
    kube.apply(group("held", 2), group("vip", 2))
    first, last = member("held0", "held", cpu=2), member("held1", "held", cpu=1)
    kube.create(first, last)
    kube.attempt(first.uid)
    assert kube.held() == {"held0"}
    kube.active.pop(last.uid)

    def starts() -> None:
        kube.active[last.uid] = None
        kube.attempt(last.uid)

    asked = evictions_of(kube, monkeypatch)
    changes_after_the_search(kube, monkeypatch, starts)
    kube.create(*vips(cpu=2))
    kube.world.run_tasks()
    kube.world.run_tasks()
    assert kube.running("held") == {"held0", "held1"}
    assert asked == []
    kube.passes(10)
    assert asked == [{"low", "held0", "held1"}]
    assert kube.running() == {"vip0", "vip1"}


@pytest.mark.parametrize(
    "gone", [pytest.param(True, id="its members have gone"), pytest.param(False, id="it waits on")]
)
def test_victims_that_are_told_late_are_told_only_if_their_preemptor_still_waits(
    world: Make, gone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The evictions of others, one after the other, come before."""
    kube = Preempting(world([node("n1", "2")]))
    kube.create(*(on_node(member(f"low{number}", ""), "n1") for number in range(2)))
    kube.apply(group("vip", 2))
    gang = vips()
    kube.create(*gang)
    asked = evictions_of(kube, monkeypatch)
    kube.world.run_tasks()
    kube.world.run_tasks()
    assert asked == [{"low0", "low1"}]
    if gone:
        kube.delete(*gang)
    kube.passes(10)
    assert kube.running("low") | kube.running() == ({"low0", "low1"} if gone else {"vip0", "vip1"})


def without_its_most_important(kube: Preempting, vips: list[corev1.Pod]) -> None:
    """What is left counts at 0."""
    kube.delete(vips[0])


def with_one_that_never_preempts(kube: Preempting, vips: list[corev1.Pod]) -> None:
    late = of_priority(member("late", "vip", gated=True), 10)
    kube.create(structs.replace(late, spec=structs.replace(late.spec, preemption_policy="Never")))


def with_victims_of_more_priority(kube: Preempting, vips: list[corev1.Pod]) -> None:
    """The quorum of their gang counts at 50 by now."""
    kube.create(*(of_priority(member(f"more{number}", "low", gated=True), 50) for number in range(2)))


@pytest.mark.parametrize(
    ("change", "priorities"),
    [
        pytest.param(without_its_most_important, (10, 10, 0), id="the gang's priority falls"),
        pytest.param(with_one_that_never_preempts, (10, 10), id="a member comes that never preempts"),
        pytest.param(with_victims_of_more_priority, (10, 10), id="the victims' gang rises above it"),
    ],
)
def test_no_pod_is_evicted_by_a_gang_that_may_do_so_no_more(
    change: Callable[[Preempting, list[corev1.Pod]], None],
    priorities: tuple[int, ...],
    world: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kube = Preempting(world([node("n1", "1"), node("n2", "1")]))
    kube.apply(group("low", 2), group("vip", 2))
    kube.create(*(on_node(of_priority(member(f"low{number}", "low"), 5), f"n{number + 1}") for number in range(2)))
    made = members(len(priorities), "vip", gated=True)
    vips = [of_priority(each, priority) for each, priority in zip(made, priorities, strict=True)]
    asked = evictions_of(kube, monkeypatch)
    changes_after_the_search(kube, monkeypatch, lambda: change(kube, vips))
    kube.create(*vips)
    kube.passes(10)
    assert asked == []
