"""A gang that is deleted and made again under its name is told all anew: nothing of the old one counts as told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.api.schedulingv1alpha1 import PodGroup
from extender.client.embedded import EmbeddedAPI
from extender.client.interface import POD_GROUPS
from extender.framework.cycle_state import CycleState
from extender.plugins.coscheduling.dependencies import REJECTED, Verdict
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.scheduler.actions.verdicts import GroupVerdicts
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, on_node
from tests.unit.plugins.coscheduling.machines.test_lifetimes_machine import belonging

Make = Callable[..., World]
LABELS, OBJECT = "labels", "object"


class Town:
    """A cluster in which a gang of two finds no room, and what its users are told: (reason, UID of the object)."""

    def __init__(self, world: World, kind: str) -> None:
        self.told: list[tuple[str, str]] = []
        self.kind = kind
        self.api = EmbeddedAPI()
        self.verdicts = GroupVerdicts(self.api, self, lambda: True)
        world.connect(verdicts=self.verdicts)
        self.kube = KubeScheduler(world)
        self.number = 0
        self._names: dict[str, str] = {}  # of PodGroups, by the UID that the API server gave them

    def event(self, regarding: corev1.ObjectReference, event_type: str, reason: str, *_: object, **__: object) -> None:
        self.told.append((reason, self._names.get(regarding.uid, regarding.uid)))

    def make(self) -> tuple[list[corev1.Pod], PodGroup | None]:
        """The gang of the name g, once more. It is looked at, and time goes by."""
        self.number += 1
        made = self._object() if self.kind == OBJECT else None
        if made is not None:
            self.kube.apply(made)
        pods = [self._gated(name) for name in ("a", "b")]
        self.kube.create(*pods)
        self.passes()
        return pods, made

    def _object(self) -> PodGroup:
        made = self.api.create(POD_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 2}})
        self._names[made.metadata.uid] = f"g-{self.number}"
        return structs.replace(group(minimum=2), metadata=made.metadata)

    def _gated(self, name: str) -> corev1.Pod:
        pod = belonging(member(name, "", gated=True), self.kind, "g")
        return structs.replace(pod, metadata=structs.replace(pod.metadata, uid=f"{name}-{self.number}"))

    def unmake(self, pods: Sequence[corev1.Pod], made: PodGroup | None) -> None:
        self.kube.delete(*(self.kube.pods[pod.uid] for pod in pods))
        if made is not None:
            self.api.delete(POD_GROUPS, "g", "default")
            self.kube.remove(made)

    def passes(self) -> None:
        for _ in range(3):
            self.kube.world.run_tasks()
            self.kube.plugin.tick()
            self.kube.world.clock.now += 2.0
        self.verdicts.flush()

    def expected(self, reason: str) -> list[tuple[str, str]]:
        """The same of each gang, told to its first member, or to its PodGroup."""
        uid = "g" if self.kind == OBJECT else "a"
        return [(reason, f"{uid}-{number}") for number in range(1, self.number + 1)]

    def condition(self) -> str:
        self.verdicts.flush()
        (found,) = self.api.get(POD_GROUPS, "g", "default").status.conditions
        return f"{found.status} {found.reason}"


@pytest.fixture(params=[LABELS, OBJECT])
def town(request: Any, world: Make) -> Iterator[Town]:
    made = Town(world([node("n1", "1")]), request.param)
    yield made
    made.verdicts.stop()


def test_a_gang_that_is_made_again_hears_the_same_refusal_again(town: Town) -> None:
    town.unmake(*town.make())
    town.unmake(*town.make())
    town.make()
    assert town.told == town.expected("GangRejected")
    if town.kind == OBJECT:
        assert town.condition() == "False InsufficientResources"


def test_also_where_no_look_came_between_the_two(town: Town) -> None:
    """All of the events of the deletion and of what is made next may come in one moment."""
    pods, made = town.make()
    town.unmake(pods, made)
    town.make()
    assert town.told == town.expected("GangRejected")


def test_also_where_it_waits_for_members_only(town: Town) -> None:
    pods, made = town.make()
    town.kube.delete(town.kube.pods[pods[1].uid])
    town.passes()
    town.unmake(pods[:1], made)
    pods, _ = town.make()
    town.kube.delete(town.kube.pods[pods[1].uid])
    town.passes()
    assert [told for told in town.told if told[0] == "GangWaiting"] == town.expected("GangWaiting")


def test_what_it_hears_is_told_again_after_it_has_started(world: Make) -> None:
    """A start of a gang without an object is not told, but what was told before it is old then."""
    town = Town(world([node("n1", "1")]), LABELS)
    pods, _ = town.make()
    town.kube.world.nodes["n2"] = node("n2", "4")
    town.kube.plugin.on_node(None, node("n2", "4"))
    town.kube.run()
    assert town.kube.running() == {"a", "b"}
    del town.kube.world.nodes["n2"]
    for uid in [pod.uid for pod in pods]:  # evicted; its controller makes others in the next moment
        town.kube.delete(town.kube.pods[uid])
    town.kube.plugin.on_node(node("n2", "4"), None)
    town.make()
    assert town.told == town.expected("GangRejected")
    town.verdicts.stop()


def test_a_gang_of_which_one_that_has_gone_is_held_still_is_another_gang(world: Make) -> None:
    """Its bind call had not ended when the next gang of that name was there."""
    town = Town(world([node("n1", "2")]), LABELS)
    pods, _ = town.make()
    town.told.clear()
    kube = town.kube
    kube.wake()
    kube.attempt(pods[0].uid)
    assert kube.held() == {"a"}
    waiting = kube.world.waiting.pop(pods[0].uid)
    del kube.world.on_nodes[pods[0].uid]
    manager = kube.plugin.manager
    manager.groups["default/g"].stop(Diagnosis(UnschedulableReason.HOLD_ENDED, "a node went"))
    for pod in pods:
        kube.plugin.on_pod(kube.pods.pop(pod.uid), None)
    kube.active.clear()
    assert manager.groups["default/g"].held
    assert manager.groups["default/g"].last_diagnosis is None
    kube.plugin.unreserve(CycleState(), waiting.pod, "n1")
    kube.world.nodes["n1"] = node("n1", "1")
    town.make()
    assert town.told == [("GangRejected", "a-2")]
    town.verdicts.stop()


def test_a_verdict_that_comes_late_is_not_told_of_the_next_gang_of_its_name(world: Make) -> None:
    """The plan was of the old one; the new one would never have heard the same."""
    town = Town(world([node("n1", "1")]), LABELS)
    pods, made = town.make()
    town.unmake(pods, made)
    late = Verdict(False, REJECTED, "no room", "ResourcesMissing")
    decided = town.kube.plugin.dependencies.verdicts.decided
    decided(None, "default/g", late, pods[0])
    town.make()
    decided(None, "default/g", late, pods[0])
    assert town.told == town.expected("GangRejected")
    town.verdicts.stop()


@pytest.mark.parametrize("looks_between", [False, True], ids=["at once", "with a look between"])
@pytest.mark.parametrize("replaced", [False, True], ids=["deleted and added", "the watch shows only the new one"])
def test_a_podgroup_that_is_made_anew_around_its_running_pods_says_that_they_run(
    world: Make, looks_between: bool, replaced: bool
) -> None:
    """A new object has no condition, and nothing is decided of a gang that runs."""
    town = Town(world([node("n1", "4")]), OBJECT)
    pods, old = town.make()
    town.kube.run()
    town.passes()
    assert old is not None
    assert town.condition() == "True GangScheduled"
    town.api.delete(POD_GROUPS, "g", "default")
    town.number += 1
    if not replaced:
        town.kube.remove(old)
        if looks_between:
            town.passes()
    town.kube.apply(town._object())
    town.passes()
    assert town.condition() == "True GangScheduled"
    assert town.told[-1] == ("GangScheduled", "g-2")
    assert [each.node_name for each in town.kube.pods.values()] == [on_node(pod, "n1").node_name for pod in pods]
    town.verdicts.stop()


@pytest.mark.parametrize(
    ("there", "told", "condition"),
    [
        pytest.param(1, "GangWaiting", "False QuorumMissing", id="for members"),
        pytest.param(2, "GangRejected", "False InsufficientResources", id="for room"),
    ],
)
def test_a_podgroup_that_is_made_anew_around_pods_that_wait_is_told_why(
    world: Make, there: int, told: str, condition: str
) -> None:
    """The old one was told; the members are the same, and so is the cause. The watch shows only the new one."""
    town = Town(world([node("n1", "1")]), OBJECT)
    pods, old = town.make()
    assert old is not None
    for pod in pods[there:]:
        town.kube.delete(town.kube.pods[pod.uid])
    town.passes()
    town.told.clear()
    town.api.delete(POD_GROUPS, "g", "default")
    town.number += 1
    town.kube.apply(town._object())
    town.passes()
    assert town.told == [(told, "g-2")]
    assert town.condition() == condition
    town.verdicts.stop()
