"""Which gangs gather, how much of the room is theirs, and for which pods they give it up; the stories tell the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from extender import metrics
from extender.api import corev1
from extender.api.codec import convert
from extender.api.schedulingv1alpha1 import PodGroup
from extender.plugins.coscheduling.spec.roles import ROLE_LABEL
from tests.objects import make_pod_group
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members

Make = Callable[..., World]


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    """Four nodes of 2 CPUs."""
    return KubeScheduler(world([node(f"n{number}", "2") for number in range(4)], early_start=True))


def come(kube: KubeScheduler, *pods: corev1.Pod) -> None:
    kube.create(*pods)
    kube.run()


def labelled(pod: corev1.Pod, **labels: str) -> corev1.Pod:
    prefixes = {"pod-index": "apps.kubernetes.io", "job-completion-index": "batch.kubernetes.io"}
    named = {key.replace("_", "-"): text for key, text in labels.items()}
    there = {f"{prefixes.get(key, 'jobset.sigs.k8s.io')}/{key}": text for key, text in named.items()}
    return structs.replace(pod, metadata=structs.replace(pod.metadata, labels={**pod.metadata.labels, **there}))


def with_spec(pod: corev1.Pod, **spec: Any) -> corev1.Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, **spec))


def with_role(pod: corev1.Pod, role: str) -> corev1.Pod:
    labels = {**pod.metadata.labels, ROLE_LABEL: role}
    return structs.replace(pod, metadata=structs.replace(pod.metadata, labels=labels))


PORT = corev1.Container(ports=(corev1.ContainerPort(host_port=80, container_port=80),))
CLAIM = convert({"name": "data", "persistentVolumeClaim": {"claimName": "data"}}, corev1.Volume)
QUOTA = corev1.PodSchedulingGate("example.com/quota")
APART = corev1.TopologySpreadConstraint(
    max_skew=1, topology_key="kubernetes.io/hostname", when_unsatisfiable="DoNotSchedule"
)


@pytest.mark.parametrize(
    ("pod_group", "make"),
    [
        pytest.param(group(minimum=3, roles="leader=1,worker=2"), None, id="of a role of which no member is there"),
        pytest.param(
            group(minimum=3, roles="leader=1"),
            lambda pod: labelled(with_role(pod, "leader"), pod_index="0"),
            id="with roles and ranks",
        ),
        pytest.param(
            make_pod_group().namespace("default").name("g").min_member(3).min_resources(cpu="4").obj(),
            None,
            id="whose missing members are larger by minResources",
        ),
        pytest.param(group(minimum=3, groups='["default/g","default/other"]'), None, id="that starts with another"),
        pytest.param(group(minimum=3, match_policy="only-waiting"), None, id="whose batches are gangs"),
        pytest.param(group(minimum=0), None, id="with nonsense for minMember"),
        pytest.param(
            group(minimum=3), lambda pod: labelled(pod, job_completion_index="7"), id="with a rank beyond minMember"
        ),
        pytest.param(
            group(minimum=3), lambda pod: labelled(pod, pod_index="0", job_global_index="1"), id="of several Jobs"
        ),
        pytest.param(group(minimum=3), lambda pod: with_spec(pod, containers=(PORT,)), id="with ports of the node"),
        pytest.param(group(minimum=3), lambda pod: with_spec(pod, volumes=(CLAIM,)), id="with claims"),
        pytest.param(
            group(minimum=3), lambda pod: with_spec(pod, topology_spread_constraints=(APART,)), id="that look at others"
        ),
        pytest.param(
            group(minimum=3), lambda pod: labelled(pod, replicatedjob_name="data-initializer"), id="that come in phases"
        ),
    ],
)
def test_gangs_whose_missing_members_are_not_plain_do_not_gather(
    kube: KubeScheduler, pod_group: PodGroup, make: Callable[[corev1.Pod], corev1.Pod] | None
) -> None:
    kube.apply(pod_group)
    kube.create(*(make(each) if make is not None else each for each in members(2)))
    assert kube.plugin.manager.groups["default/g"].gathering is None


def test_a_gang_too_large_for_the_calls_that_are_held_does_not_gather(kube: KubeScheduler) -> None:
    kube.plugin.manager.max_held_binds = 5
    kube.apply(group(minimum=3))
    kube.create(*members(2))
    assert kube.plugin.manager.groups["default/g"].gathering is None


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda pod: with_spec(pod, volumes=(CLAIM,)), id="it brings a claim"),
        pytest.param(lambda pod: with_spec(pod, topology_spread_constraints=(APART,)), id="it looks at others"),
        pytest.param(lambda pod: with_spec(pod, scheduling_gates=(QUOTA,)), id="a foreign gate holds it"),
    ],
)
@pytest.mark.parametrize("minimum", [3, 4])
def test_a_member_that_is_not_plain_ends_it_whichever_it_is(
    kube: KubeScheduler, change: Callable[[corev1.Pod], corev1.Pod], minimum: int
) -> None:
    kube.apply(group(minimum=minimum))
    come(kube, *members(2))
    assert len(kube.held()) == (2 if minimum < 5 else 0)
    kube.create(change(member("last")))
    assert kube.plugin.manager.groups["default/g"].gathering is None


def test_a_gang_that_is_complete_but_for_a_foreign_gate_holds_no_call(kube: KubeScheduler) -> None:
    """A quota may hold the member for an hour."""
    kube.apply(group(minimum=3))
    come(kube, *members(2))
    last = member("last")
    come(kube, with_spec(last, scheduling_gates=(QUOTA,)))
    assert kube.held() == set()
    assert list(kube.plugin.manager.slots) == []


@pytest.mark.parametrize(
    ("minimum", "capacity", "small"),
    [
        pytest.param(4, 8, True, id="half of the room"),
        pytest.param(5, 8, False, id="more than half"),
        pytest.param(1, 1, False, id="all there is"),
        pytest.param(4, 0, False, id="no room"),
    ],
)
def test_the_part_of_the_room_that_a_gang_may_have(
    kube: KubeScheduler, minimum: int, capacity: int, small: bool
) -> None:
    kube.apply(group(minimum=minimum))
    manager = kube.plugin.manager
    known = manager.groups["default/g"]
    spec = manager.specs.of(known)
    assert spec is not None
    assert kube.plugin.early_starts.is_small_enough(known, spec, capacity) is small


def test_a_member_of_a_gang_that_is_not_complete_takes_the_room_of_none(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4), group("other", minimum=2))
    come(kube, *members(3))
    alone = member("alone", "other")
    kube.create(alone)
    assert not kube.plugin.early_starts.makes_way_for(alone)
    assert len(kube.held()) == 3


def test_until_calls_that_were_held_have_ended_room_is_coming(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4))
    come(kube, *members(3))
    early = kube.plugin.early_starts
    assert not early.room_is_coming()
    assert early.make_way(0)
    assert early.room_is_coming()
    kube.run()
    assert not early.room_is_coming()
    assert not early.make_way(0), "there is none left to give way"


def test_what_becomes_of_early_starts_is_counted(kube: KubeScheduler) -> None:
    def counted(result: str) -> float:
        return float(metrics.early_starts.labels(result)._value.get())

    before = {result: counted(result) for result in ("begun", "complete", "given_up")}
    kube.apply(group("a", minimum=2), group("b", minimum=3))
    come(kube, *members(2, "a"), *members(2, "b"))
    kube.world.clock.now += 1.0
    kube.plugin.tick()
    kube.run()
    assert {result: counted(result) - number for result, number in before.items()} == {
        "begun": 2.0,
        "complete": 1.0,
        "given_up": 1.0,
    }
