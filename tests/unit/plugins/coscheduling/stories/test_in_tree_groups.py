"""PodGroups of kube-scheduler's own API, named by spec.schedulingGroup; counted where that is configured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.api.codec import convert
from extender.api.corev1.pod import PodSchedulingGroup
from extender.api.schedulingv1alpha2 import PodGroup
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, broken, group, member

Make = Callable[..., World]


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "4")], in_tree_pod_groups=True))


def in_tree(name: str = "g", minimum: int | None = 2, **annotations: str) -> PodGroup:
    policy: dict[str, Any] = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
    metadata = {
        "name": name,
        "namespace": "default",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {f"gang-extender.dev/{key.replace('_', '-')}": value for key, value in annotations.items()},
    }
    return convert({"metadata": metadata, "spec": {"schedulingPolicy": policy}}, PodGroup)


def named(name: str, group_name: str = "g", **more: Any) -> corev1.Pod:
    plain = member(name, "", **more)
    return structs.replace(
        plain, spec=structs.replace(plain.spec, scheduling_group=PodSchedulingGroup(pod_group_name=group_name))
    )


def apply(kube: KubeScheduler, old: PodGroup | None, new: PodGroup | None) -> None:
    kube.plugin.on_pod_group(old, new)
    kube.run()


def test_min_count_pods_start_together(kube: KubeScheduler) -> None:
    kube.create(named("p0"), named("p1"))
    kube.run()
    assert kube.told["p0"] == "PodGroup not found"
    apply(kube, None, in_tree(minimum=3))
    assert kube.told["p0"].endswith("current pods number: 2, minMember of group: 3")
    kube.create(named("p2"))
    kube.run()
    assert kube.starts == [{"p0", "p1", "p2"}]


def test_a_kube_scheduler_that_does_not_know_the_field_sends_members_without_it(world: Make) -> None:
    w = world([node("n1", "4")], in_tree_pod_groups=True)
    w.plugin.on_pod_group(None, in_tree())
    w.create(named("p0"))
    assert "cannot find enough sibling pods" in w.filter(member("p0", ""))
    assert w.filter(member("stranger", "")) == "any"


def test_min_count_that_is_lowered_starts_the_gang(kube: KubeScheduler) -> None:
    apply(kube, None, in_tree(minimum=3))
    kube.create(named("p0"), named("p1"))
    kube.run()
    apply(kube, in_tree(minimum=3), in_tree(minimum=2))
    assert kube.starts == [{"p0", "p1"}]


def test_pods_of_a_group_with_the_basic_policy_are_on_their_own(kube: KubeScheduler) -> None:
    apply(kube, None, in_tree(minimum=None))
    kube.create(named("p0"))
    kube.run()
    assert kube.starts == [{"p0"}]


def test_its_annotations_count_too(kube: KubeScheduler) -> None:
    apply(kube, None, in_tree("g", 1, groups="other"))
    kube.create(named("p0"))
    kube.run()
    assert "PodGroup default/other" in kube.told["p0"]


def test_the_crd_s_object_of_the_same_name_comes_first(kube: KubeScheduler) -> None:
    apply(kube, None, in_tree("g", 9))
    kube.apply(group("g", 1))
    kube.create(named("p0"))
    kube.run()
    assert kube.starts == [{"p0"}]


def test_nothing_is_left_when_it_is_gone(kube: KubeScheduler) -> None:
    kube.create(named("p0", gated=True), named("p1", gated=True))
    kube.plugin.on_pod_group(None, in_tree())
    kube.world.run_tasks()
    assert len(kube.plugin.manager.slots) == 2
    kube.plugin.on_pod_group(in_tree(), None)
    assert not len(kube.plugin.manager.slots)
    kube.delete(named("p0"), named("p1"))
    assert list(broken(kube)) == []
    assert not kube.plugin.manager.groups


def test_without_the_configuration_such_pods_are_single_pods(world: Make) -> None:
    kube = KubeScheduler(world([node("n1")]))
    kube.create(named("p0"))
    kube.run()
    assert kube.starts == [{"p0"}]
