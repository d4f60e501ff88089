"""What is left of a gang goes only after a preemption that was carried out. With the victims: test_terminating_victims.py."""

from __future__ import annotations

from collections.abc import Callable

from extender.framework.preemption.candidate import Candidate, Victims
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, member, on_node
from tests.unit.plugins.coscheduling.machines.test_preempting_machine import of_priority
from tests.unit.plugins.coscheduling.preempting import Preempting

Make = Callable[..., World]


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
