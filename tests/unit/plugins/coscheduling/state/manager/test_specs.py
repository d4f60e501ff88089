"""What a group asks for, by its object or its pods, and which groups it starts with by that."""

from __future__ import annotations

from msgspec.structs import replace

from extender.api import corev1
from extender.plugins.coscheduling.spec.keys import GROUPS
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.unit.plugins.coscheduling.conftest import pod, pod_group, waves
from tests.unit.plugins.coscheduling.managing import KEY, LIGHT, POD, in_tree, naming, place


def light(name: str, *others: str) -> corev1.Pod:
    """Of a group that its pods' labels alone make, and that names others."""
    bare = pod(name, labels=LIGHT)
    listed = ",".join(f"default/{each}" for each in others)
    return replace(bare, metadata=replace(bare.metadata, annotations={GROUPS: listed} if others else {}))


def test_our_own_object_counts_before_kube_schedulers(manager: PodGroupManager) -> None:
    group = manager.objects.pod_group_changed(in_tree("g", 5))
    manager.objects.pod_group_changed(pod_group("g", 2))
    spec = manager.spec(group)
    assert spec is not None
    assert spec.min_member == 2


def test_with_labels_alone_the_pods_say_it(manager: PodGroupManager) -> None:
    group = manager.pod_changed(pod("p", labels=LIGHT))
    assert group is not None
    spec = manager.spec(group)
    assert spec is not None
    assert (spec.key, spec.min_member, spec.invalid) == (KEY, 2, "")
    assert manager.spec(group) is spec, "until something changes"


def test_groups_that_name_each_other_are_one_set_until_one_names_it_no_more(manager: PodGroupManager) -> None:
    manager.objects.pod_group_changed(naming("g", "h"))
    manager.objects.pod_group_changed(naming("h", "g"))
    assert set(manager.gang_set_index.gang_set(KEY)) == {KEY, "default/h"}
    manager.objects.pod_group_changed(pod_group("g", 1))
    manager.objects.pod_group_changed(pod_group("h", 1))
    assert set(manager.gang_set_index.gang_set(KEY)) == {KEY}


def test_a_group_whose_object_is_gone_names_no_other(manager: PodGroupManager) -> None:
    manager.objects.pod_group_changed(naming("g", "h"))
    manager.pod_changed(POD)
    assert set(manager.gang_set_index.gang_set("default/h")) == {KEY, "default/h"}
    manager.objects.pod_group_gone(naming("g", "h"))
    assert manager.gang_set_index.gang_set("default/h") == ("default/h",)


def test_what_pods_name_counts_at_once(manager: PodGroupManager) -> None:
    """The other groups are planned with this one from now on, whether it was asked about or not."""
    manager.pod_changed(light("p", "g", "h"))
    assert set(manager.gang_set_index.gang_set(KEY)) == {KEY, "default/h"}
    manager.pod_changed(light("p"))
    assert manager.gang_set_index.gang_set(KEY) == (KEY,)


def test_names_that_do_not_agree_count_once_they_do(manager: PodGroupManager) -> None:
    manager.pod_changed(light("p", "g", "h"))
    manager.pod_changed(light("q", "g", "i"))
    group = manager.groups[KEY]
    spec = manager.spec(group)
    assert spec is not None
    assert "do not match" in spec.invalid
    manager.pod_changed(light("q", "g", "h"))
    assert set(manager.gang_set_index.gang_set(KEY)) == {KEY, "default/h"}
    manager.pod_gone(light("p", "g", "h"))
    assert set(manager.gang_set_index.gang_set(KEY)) == {KEY, "default/h"}
    manager.pod_gone(light("q", "g", "h"))
    assert manager.gang_set_index.gang_set(KEY) == (KEY,)
    assert manager.groups == {}


def test_waves_are_of_members_of_the_set_alone(manager: PodGroupManager) -> None:
    group = manager.objects.pod_group_changed(naming("g", "h"))
    other = manager.objects.pod_group_changed(naming("h", "g"))
    for made in (POD, pod("q", "h"), pod("r", "g")):
        manager.pod_changed(made)
    place(manager, POD)
    place(manager, pod("q", "h"))
    place(manager, pod("r", "g"), wave=1)
    manager.pod_gone(pod("r", "g"))
    assert [waves(manager, each.key) for each in (group, other)] == [[frozenset("pq")], [frozenset("pq")]]
    manager.objects.pod_group_changed(pod_group("g", 1))
    manager.objects.pod_group_changed(pod_group("h", 1))
    assert [waves(manager, each.key) for each in (group, other)] == [[frozenset("p")], [frozenset("q")]]
