"""What a group asks for, by its object or its pods, and which groups it starts with by that."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from extender.api import corev1
from extender.plugins.coscheduling.spec.keys import GROUPS
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import note_early
from tests.unit.plugins.coscheduling.conftest import LABEL, FakeClock, pod, pod_group, waves
from tests.unit.plugins.coscheduling.managing import KEY, LIGHT, POD, in_tree, naming, place

REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"


def light(name: str, *others: str) -> corev1.Pod:
    """Of a group that its pods' labels alone make, and that names others."""
    bare = pod(name, labels=LIGHT)
    listed = ",".join(f"default/{each}" for each in others)
    return replace(bare, metadata=replace(bare.metadata, annotations={GROUPS: listed} if others else {}))


def test_our_own_object_counts_before_kube_schedulers(manager: PodGroupManager) -> None:
    group = manager.objects.pod_group_changed(in_tree("g", 5))
    manager.objects.pod_group_changed(pod_group("g", 2))
    spec = manager.specs.of(group)
    assert spec is not None
    assert spec.min_member == 2


def test_with_labels_alone_the_pods_say_it(manager: PodGroupManager) -> None:
    group = manager.pod_changed(pod("p", labels=LIGHT))
    assert group is not None
    spec = manager.specs.of(group)
    assert spec is not None
    assert (spec.key, spec.min_member, spec.invalid) == (KEY, 2, "")
    assert manager.specs.of(group) is spec, "until something changes"


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
    spec = manager.specs.of(group)
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


def step(name: str, job: str) -> corev1.Pod:
    """Of a TrainJob's JobSet: one of its initializers, or of the trainer's nodes."""
    return pod(name, labels={LABEL: "g", REPLICATED_JOB: job})


def _is_an_initializer(manager: PodGroupManager) -> None:
    manager.pod_changed(step("p", "dataset-initializer"))


def _is_none_any_more(manager: PodGroupManager) -> None:
    _is_an_initializer(manager)
    manager.specs.of(manager.groups[KEY])
    manager.pod_changed(POD)


def _goes(manager: PodGroupManager) -> None:
    _is_an_initializer(manager)
    manager.pod_changed(step("q", "model-initializer"))
    manager.specs.of(manager.groups[KEY])
    manager.pod_gone(step("q", "model-initializer"))


def _has_started(manager: PodGroupManager) -> None:
    note_early(manager.groups[KEY], 1)


def _none_comes(manager: PodGroupManager) -> None:
    manager.groups[KEY].taken_for_in_part(True)


def _one_comes_after_all(manager: PodGroupManager) -> None:
    _none_comes(manager)
    manager.specs.of(manager.groups[KEY])
    manager.pod_changed(pod("q", "g"))


def _asks_for_more(manager: PodGroupManager) -> None:
    manager.objects.pod_group_changed(pod_group("g", 5))


@pytest.mark.parametrize(
    ("happens", "min_member"),
    [
        pytest.param(_is_an_initializer, 1, id="its member is an initializer: the nodes come later"),
        pytest.param(_is_none_any_more, 3, id="its member is none any more"),
        pytest.param(_goes, 1, id="one of two initializers goes"),
        pytest.param(_has_started, 2, id="an initializer has started, and is no more"),
        pytest.param(_none_comes, 1, id="no member has come for long: the others are made later"),
        pytest.param(_one_comes_after_all, 3, id="one has come after all"),
        pytest.param(_asks_for_more, 5, id="its object asks for more"),
    ],
)
def test_what_is_remembered_of_what_a_group_asks_for_is_void_once(
    happens: Callable[[PodGroupManager], None], min_member: int, clock: FakeClock
) -> None:
    manager = PodGroupManager(GroupLabels(), denied_seconds=1, permitted_seconds=1, clock=clock, to_come_seconds=60)
    group = manager.objects.pod_group_changed(pod_group("g", 3))
    manager.pod_changed(POD)
    known = manager.specs.of(group)
    assert known is not None
    assert known.min_member == 3
    assert manager.specs.of(group) is known, "remembered"
    happens(manager)
    found = manager.specs.of(group)
    assert found is not None
    assert found.min_member == min_member


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        pytest.param(pod("p", "g", node_name="n1"), True, id="it got to its node"),
        pytest.param(pod("p", "g", schedulingGates=[{"name": "theirs"}]), True, id="its gates are others"),
        pytest.param(pod("p", "g", priority=1), False, id="its priority is another"),
        pytest.param(pod("p", labels={LABEL: "g", "a": "b"}), False, id="its labels are others"),
    ],
)
def test_a_member_that_counts_as_before_voids_nothing_of_what_its_group_asks_for(
    changed: corev1.Pod, kept: bool, clock: FakeClock
) -> None:
    """In a gang that has begun: with the first that gets to a node it may come in phases."""
    manager = PodGroupManager(GroupLabels(), denied_seconds=1, permitted_seconds=1, clock=clock)
    group = manager.objects.pod_group_changed(pod_group("g", 3))
    manager.pod_changed(pod("first", "g", node_name="n1"))
    manager.pod_changed(POD)
    manager.specs.of(group)
    before = group.changes
    manager.pod_changed(changed)
    assert (group.current is not None) is kept
    assert group.changes > before, "pages show the member as it is now"


@pytest.mark.parametrize(
    ("minimum", "valid"), [pytest.param(3, True, id="it can be planned"), pytest.param(-1, False, id="it is wrong")]
)
def test_what_a_group_asks_for_is_valid_or_not_there(minimum: int, valid: bool, clock: FakeClock) -> None:
    manager = PodGroupManager(GroupLabels(), denied_seconds=1, permitted_seconds=1, clock=clock)
    group = manager.objects.pod_group_changed(pod_group("g", minimum))
    asked = manager.specs.of(group)
    assert asked is not None
    assert bool(asked.invalid) is not valid
    assert manager.specs.valid(group) is (asked if valid else None)
    assert manager.specs.valid(Group("default/unnamed")) is None
