"""What is left of a gang goes only after a preemption that was carried out. With the victims: test_terminating_victims.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from extender.api import corev1
from extender.framework.preemption.candidate import Candidate, Victims
from extender.framework.preemption.executor import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, member, on_node
from tests.unit.plugins.coscheduling.machines.test_preempting_machine import of_priority
from tests.unit.plugins.coscheduling.preempting import Preempting

Make = Callable[..., World]
VICTIM = corev1.PodCondition(type=DISRUPTION_TARGET, status="True", reason=PREEMPTION_BY_SCHEDULER)


def test_an_answer_that_was_not_carried_out_breaks_no_gang_when_another_preemptor_takes_a_lone_pod_of_it(
    world: Make,
) -> None:
    """The first preemptor is deleted before kube-scheduler evicts for it."""
    kube = Preempting(world([node("n1", "2"), node("n2", "1")]))
    kube.apply(group("gang", 2))
    here, elsewhere = on_node(member("here", "gang"), "n1"), on_node(member("elsewhere", "gang"), "n2")
    lone = on_node(member("lone", ""), "n1")
    kube.create(here, elsewhere, lone)
    first, second = of_priority(member("first", "", cpu=2), 10), of_priority(member("second", ""), 10)
    kube.create(first)
    (answer,) = kube.preemption.guard.review(first, [Candidate("n1", Victims((here, lone)))])
    assert {victim.name for victim in answer.victims.pods} == {"here", "lone"}
    kube.delete(first)
    kube.create(second)
    kube.passes(60)
    assert kube.running() == {"here", "elsewhere", "second"}


# Victims of a gang that goes whole, some of which stay


class Whole(Preempting):
    """A gang of three that is to go whole for another gang, which is deleted then: nothing but the rest is left to be looked at."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.apply(group("low", 3), group("vip", 3))
        self.lows = [on_node(member(f"low{number}", "low"), f"n{number + 1}") for number in range(3)]
        self.vips = [of_priority(member(f"vip{number}", "vip", gated=True), 10) for number in range(3)]
        self.create(*self.lows, *self.vips)

    def preemptor_goes(self) -> None:
        self.delete(*self.ending(), *self.vips)
        self.remove(self.groups["default/vip"])


@pytest.fixture
def whole(world: Make) -> Whole:
    return Whole(world([node(f"n{number + 1}", "1") for number in range(3)]))


def test_a_gang_of_which_one_victim_was_not_told_with_the_others_goes_whole_later(
    whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are marked; the API server refuses the last. It is a member again once it should have been seen to go."""
    evict, asked = whole._evict, []

    def but_the_last(victims: Sequence[corev1.Pod]) -> None:
        asked.append({victim.name for victim in victims})
        if len(asked) > 1:
            return evict(victims)
        *told, last = sorted(victims, key=lambda victim: victim.name)
        whole._patch(last.uid, conditions=(VICTIM,))
        whole._shown(last.uid)
        return evict(told)

    monkeypatch.setattr(whole, "_evict", but_the_last)
    whole.run()
    assert asked == [{"low0", "low1", "low2"}]
    whole.preemptor_goes()
    whole.passes(60)
    assert asked == [{"low0", "low1", "low2"}, {"low2"}]
    assert whole.running() == set()


def test_a_gang_goes_whole_where_another_pod_takes_a_victim_of_it_and_the_others_may_not_go_after_all(
    whole: Whole,
) -> None:
    """It is taken while the server is asked, when all of them count as gone: by a pod of no gang, by kube-scheduler's own choice."""
    whole.world.run_tasks()
    whole.world.run_tasks()
    ((eviction, done),) = whole.evictions.asked
    whole.evictions.asked.clear()
    assert {victim.name for victim in eviction.victims} == {"low0", "low1", "low2"}
    top = of_priority(member("top", ""), 100)
    whole.create(top)
    (answer,) = whole.preemption.guard.review(top, [Candidate("n1", Victims((whole.lows[0],)))])
    whole._evict(answer.victims.pods)
    done('pod "default/low2" may not be evicted: budget')
    whole.preemptor_goes()
    whole.passes(60)
    assert whole.running() == {"top"}
