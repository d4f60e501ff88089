"""What a group asks for is read anew with what it depends on: its members' wishes, its tree, and whether it comes in phases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from extender.api import corev1, koordinatorv1alpha1, volcanov1beta1
from extender.api.codec import convert
from extender.plugins.coscheduling.spec.in_tree import CompositeSpec
from extender.plugins.coscheduling.spec.keys import GIVE_UP_AFTER
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.spec.named_groups import MAX_GROUPS
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.objects import make_pod
from tests.unit.plugins.coscheduling.conftest import FakeClock, pod, pod_group
from tests.unit.plugins.coscheduling.managing import KEY, LIGHT, POD, below, in_tree, naming

ROOT = "default/root"


def foreign(minimum: int = 2) -> volcanov1beta1.PodGroup:
    made = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": minimum}}
    return convert(made, volcanov1beta1.PodGroup)


def koordinators(minimum: int = 2) -> koordinatorv1alpha1.PodGroup:
    made = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": minimum}}
    return convert(made, koordinatorv1alpha1.PodGroup)


def member(name: str = "p", **annotations: str) -> corev1.Pod:
    """Of g by our own label, and by those of the others."""
    made = make_pod().namespace("default").name(name).uid(name).pod_group("g")
    for key, text in {**annotations, volcanov1beta1.GROUP_NAME_ANNOTATION: "g"}.items():
        made = made.annotation(key, text)
    return made.obj()


def task(name: str = "p", *, koordinator: bool = False, **annotations: str) -> corev1.Pod:
    """It names Volcano's object, or Koordinator's."""
    made = make_pod().namespace("default").name(name).uid(name)
    if koordinator:
        return made.label(koordinatorv1alpha1.POD_GROUP_LABEL, "g").obj()
    for key, text in {**annotations, volcanov1beta1.GROUP_NAME_ANNOTATION: "g"}.items():
        made = made.annotation(key, text)
    return made.obj()


def asked(manager: PodGroupManager, name: str = "g") -> GroupSpec:
    spec = manager.specs.of(manager.groups[f"default/{name}"])
    assert spec is not None
    return spec


Tell = Callable[[PodGroupManager], Any]


@pytest.mark.parametrize(
    ("tell", "made"),
    [
        pytest.param(lambda m: m.objects.pod_group_changed(pod_group("g", 2)), member, id="our own"),
        pytest.param(lambda m: m.objects.pod_group_changed(in_tree("g", 2)), member, id="kube-scheduler's"),
        pytest.param(lambda m: m.objects.foreign_changed(foreign()), task, id="Volcano's"),
    ],
)
def test_what_an_object_does_not_ask_for_its_members_may(
    tell: Tell, made: Callable[..., corev1.Pod], manager: PodGroupManager
) -> None:
    tell(manager)
    manager.pod_changed(made("p", **{str(GIVE_UP_AFTER): "60s"}))
    manager.pod_changed(made("q"))
    assert (asked(manager).min_member, asked(manager).patience.give_up_after) == (2, 60.0)


def test_of_two_other_systems_objects_the_one_counts_that_is_there(manager: PodGroupManager) -> None:
    """Its members name one each."""
    group = manager.pod_changed(task("p"))
    manager.pod_changed(task("q", koordinator=True))
    assert group is not None
    assert manager.specs.foreign_of(group) is None
    manager.objects.foreign_changed(foreign(3))
    assert asked(manager).min_member == 3
    manager.objects.foreign_changed(koordinators(4))
    assert asked(manager).min_member == 4, "of both the first"
    manager.objects.foreign_gone(koordinators(4))
    assert asked(manager).min_member == 3


# Trees


def test_a_group_names_its_composite_for_as_long_as_its_object_does(manager: PodGroupManager) -> None:
    manager.objects.pod_group_changed(below("g", "root"))
    assert manager.composites.parents == {KEY: ROOT}
    manager.objects.pod_group_changed(in_tree("g", 1))
    assert manager.composites.parents == {}
    manager.objects.pod_group_changed(below("g", "root"))
    manager.pod_changed(POD)
    manager.objects.pod_group_gone(below("g", "root"))
    assert manager.composites.parents == {}, "its members name none"


@pytest.mark.parametrize(
    ("count", "says"),
    [
        pytest.param(1, "CompositePodGroup default/root is nonsense", id="the group is valid"),
        pytest.param(
            -1, "PodGroup default/g is invalid: spec.schedulingPolicy.gang.minCount: ", id="its own comes first"
        ),
    ],
)
def test_a_group_of_a_tree_that_is_none_is_refused_with_its_reason(
    count: int, says: str, manager: PodGroupManager
) -> None:
    manager.composites.put(CompositeSpec(ROOT, invalid="CompositePodGroup default/root is nonsense"))
    manager.objects.pod_group_changed(below("g", "root", count))
    assert asked(manager).invalid.startswith(says)
    assert manager.specs.valid(manager.groups[KEY]) is None


def test_a_group_by_which_its_tree_becomes_too_large_makes_the_others_ask_anew(manager: PodGroupManager) -> None:
    manager.composites.put(CompositeSpec(ROOT))
    manager.objects.pod_group_changed(below("a", "root"))
    assert asked(manager, "a").invalid == ""
    for number in range(MAX_GROUPS - 1):
        manager.composites.adopt(f"default/many{number}", ROOT)
    assert manager.queue.active == set()
    manager.objects.pod_group_changed(below("g", "root"))
    assert "Too many" in asked(manager).invalid
    assert asked(manager, "a").invalid == asked(manager).invalid.replace("/g ", "/a ")
    assert manager.queue.active == {"default/a"}, "and is looked at"
    manager.objects.pod_group_gone(below("g", "root"))
    assert asked(manager, "a").invalid == ""


# Phases


@pytest.fixture
def ahead(clock: FakeClock) -> PodGroupManager:
    """It keeps room for members that are made later."""
    return PodGroupManager(GroupLabels(), denied_seconds=1, permitted_seconds=1, clock=clock, to_come_seconds=60)


def in_part(manager: PodGroupManager, name: str = "g") -> Group:
    """No member has come for so long that the others are taken to be made later."""
    group = manager.groups[f"default/{name}"]
    group.taken_for_in_part(True)
    return group


@pytest.mark.parametrize(
    ("tell", "made", "minimum"),
    [
        pytest.param(lambda m: m.objects.pod_group_changed(pod_group("g", 3)), member(), 1, id="our own"),
        pytest.param(lambda m: m.objects.foreign_changed(foreign(3)), task(), 1, id="Volcano's"),
        pytest.param(
            lambda m: m.objects.pod_group_changed(in_tree("g", 3)), member(), 3, id="kube-scheduler's counts one phase"
        ),
        pytest.param(lambda m: None, pod("p", labels=LIGHT), 2, id="labels count one phase"),
    ],
)
def test_whose_minimum_is_of_all_phases(tell: Tell, made: corev1.Pod, minimum: int, ahead: PodGroupManager) -> None:
    tell(ahead)
    ahead.pod_changed(made)
    group = in_part(ahead)
    assert asked(ahead).min_member == minimum
    known = ahead.specs.of(group)
    assert ahead.specs.of(group) is ahead.specs.valid(group) is known, "remembered: each call asks for it"


def test_where_no_room_is_kept_for_later_members_a_gang_waits_for_all(manager: PodGroupManager) -> None:
    manager.objects.pod_group_changed(pod_group("g", 3))
    manager.pod_changed(POD)
    in_part(manager)
    assert asked(manager).min_member == 3


@pytest.mark.parametrize(
    ("begins", "minimum"),
    [
        pytest.param(lambda m: None, 3, id="it has not begun"),
        pytest.param(lambda m: m.pod_changed(pod("p", "g", node_name="n1")), 1, id="a member is on its node"),
        pytest.param(lambda m: setattr(m.groups[KEY], "early", 1), 1, id="an initializer has started"),
    ],
)
def test_a_gang_in_phases_that_another_names_waits_for_all_its_members_until_it_has_begun(
    begins: Tell, minimum: int, ahead: PodGroupManager
) -> None:
    ahead.objects.pod_group_changed(pod_group("g", 3))
    ahead.pod_changed(POD)
    assert asked(ahead).min_member == 3
    in_part(ahead)
    assert ahead.specs.may_come_in_phases(ahead.groups[KEY])
    begins(ahead)
    ahead.objects.pod_group_changed(naming("h", "g"))
    assert ahead.specs.may_come_in_phases(ahead.groups[KEY]) is (minimum == 1)


def test_a_gang_in_phases_is_looked_at_once_another_names_it_or_does_no_more(ahead: PodGroupManager) -> None:
    for name in ("g", "i"):
        ahead.objects.pod_group_changed(pod_group(name, 3))
        ahead.pod_changed(pod(f"{name}-0", name))
    in_part(ahead)
    assert asked(ahead).min_member == 1
    before = asked(ahead, "i")
    ahead.objects.pod_group_changed(naming("h", "g", "i", "gone"))
    assert asked(ahead).min_member == 3
    assert ahead.queue.active == {KEY}, "and no group that does not come in phases"
    assert asked(ahead, "i") is before
    ahead.queue.begin_planning(KEY)
    ahead.objects.pod_group_changed(pod_group("h", 1))
    assert (asked(ahead).min_member, ahead.queue.active) == (1, {KEY})


def test_a_gang_that_another_names_comes_in_phases_from_its_first_node_on_and_as_long_as_it_has_one(
    ahead: PodGroupManager,
) -> None:
    """Whatever bound that member: a start of ours waits for all of them."""

    def waits_for() -> tuple[int, bool]:
        """How many, and whether they are a quorum, by which the gang has its priority and its age."""
        ahead.line.standing(group)
        return asked(ahead).min_member, group.standing is not None and group.standing.since is not None

    ahead.objects.pod_group_changed(pod_group("g", 3))
    ahead.objects.pod_group_changed(naming("h", "g"))
    ahead.pod_changed(POD)
    group = in_part(ahead)
    assert waits_for() == (3, False)
    ahead.pod_changed(pod("p", "g", node_name="n1"))
    assert waits_for() == (1, True)
    ahead.pod_gone(pod("p", "g", node_name="n1"))
    ahead.pod_changed(pod("p", "g", uid="made anew"))
    assert waits_for() == (3, False)
