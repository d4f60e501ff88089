"""What other systems' PodGroups and composites say of a group, and which objects say nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from extender.api import corev1, koordinatorv1alpha1, volcanov1beta1
from extender.api.metav1 import Condition
from extender.api.schedulingv1alpha1 import PodGroup, PodGroupStatus
from extender.client.unreadable import convert
from extender.plugins.coscheduling.spec.in_tree import CompositeSpec
from extender.plugins.coscheduling.spec.named_groups import MAX_GROUPS
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.objects import make_pod
from tests.unit.plugins.coscheduling.conftest import pod_group
from tests.unit.plugins.coscheduling.managing import KEY, POD, below

VOLCANO, KOORDINATOR = volcanov1beta1.GROUP, koordinatorv1alpha1.GROUP
ROOT, INNER = "default/root", "default/inner"


def volcano(minimum: int = 2, name: str = "g", **status: Any) -> volcanov1beta1.PodGroup:
    made = {"metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": minimum}, "status": status}
    return convert(made, volcanov1beta1.PodGroup)


def koordinator(minimum: int = 2) -> koordinatorv1alpha1.PodGroup:
    made = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": minimum}}
    return convert(made, koordinatorv1alpha1.PodGroup)


def task(name: str = "p", *kinds: str) -> corev1.Pod:
    """It names the PodGroups of these systems."""
    made = make_pod().namespace("default").name(name).uid(name)
    if VOLCANO in kinds:
        made = made.annotation(volcanov1beta1.GROUP_NAME_ANNOTATION, "g")
    if KOORDINATOR in kinds:
        made = made.label(koordinatorv1alpha1.POD_GROUP_LABEL, "g")
    return made.obj()


def asked(manager: PodGroupManager) -> int | None:
    spec = manager.specs.of(manager.groups[KEY])
    return spec.min_member if spec is not None else None


@pytest.mark.parametrize(
    ("kind", "made"),
    [pytest.param(VOLCANO, volcano, id="Volcano's"), pytest.param(KOORDINATOR, koordinator, id="Koordinator's")],
)
def test_a_group_is_what_the_object_says_that_its_members_name(kind: str, made: Any, manager: PodGroupManager) -> None:
    assert manager.objects.foreign_changed(made(2)) is None, "no member of ours names it"
    group = manager.pod_changed(task("p", kind))
    assert asked(manager) == 2
    assert manager.objects.foreign_changed(made(3)) is group
    assert asked(manager) == 3
    assert manager.objects.foreign_gone(made(3)) is group
    assert asked(manager) is None
    assert manager.objects.foreign_gone(made(3)) is None


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param((KOORDINATOR,), id="it names another system's alone"),
        pytest.param((KOORDINATOR, VOLCANO), id="it names another first"),
    ],
)
def test_an_object_that_no_member_goes_by_says_nothing(kinds: Sequence[str], manager: PodGroupManager) -> None:
    manager.objects.foreign_changed(koordinator(3))
    manager.pod_changed(task("p", *kinds))
    assert asked(manager) == 3
    assert manager.objects.foreign_changed(volcano(5)) is None
    assert asked(manager) == 3
    assert manager.objects.foreign_gone(volcano(5)) is None
    assert asked(manager) == 3


def test_our_own_object_comes_before_any_other_system_s(manager: PodGroupManager) -> None:
    manager.pod_changed(task("p", VOLCANO))
    manager.objects.foreign_changed(volcano(5))
    group = manager.objects.pod_group_changed(pod_group("g", 2))
    assert manager.objects.foreign_changed(volcano(6)) is None
    assert (asked(manager), manager.specs.foreign_of(group)) == (2, None)
    assert manager.objects.foreign_gone(volcano(6)) is None
    manager.objects.foreign_changed(volcano(7))
    manager.objects.pod_group_gone(pod_group("g", 2))
    assert asked(manager) == 7


def test_a_plan_for_what_another_system_s_object_said_falls_with_it(manager: PodGroupManager) -> None:
    group = manager.pod_changed(task("p", VOLCANO))
    assert group is not None
    manager.objects.foreign_changed(volcano(1))
    group.planned = True
    manager.objects.foreign_changed(volcano(2))
    assert not group.planned
    manager.objects.foreign_changed(volcano(1))
    group.planned = True
    manager.objects.foreign_gone(volcano(1))
    assert not group.planned


def test_an_object_that_asks_for_the_same_is_renewed_and_its_group_asks_nothing_anew(
    manager: PodGroupManager,
) -> None:
    group = manager.pod_changed(task("p", VOLCANO))
    assert group is not None
    manager.objects.foreign_changed(volcano(2))
    before = manager.specs.of(group)
    newer = volcano(2, phase="Running")
    manager.objects.renew_foreign(newer)
    assert manager.specs.foreign_of(group) is newer
    assert manager.specs.of(group) is before
    assert manager.objects.foreign_gone(newer) is group


# What our own object says of a phase


def told(message: str) -> PodGroup:
    condition = Condition(type="Scheduled", status="False", reason="MembersToCome", message=message)
    return replace(pod_group("g", 3), status=PodGroupStatus(conditions=(condition,)))


def test_how_many_initializers_have_started_is_read_of_an_object_that_is_new_to_us_alone(
    manager: PodGroupManager,
) -> None:
    """It is what we have written before a restart; later it may be older than what we know."""
    group = manager.objects.pod_group_changed(told("2 initializers of minMember 3 have started"))
    assert group.early == 2
    manager.objects.pod_group_changed(told("1 initializers of minMember 3 have started"))
    assert group.early == 2


# Trees


def in_trees(manager: PodGroupManager, **parents: str) -> dict[str, Group]:
    groups = {}
    for name, parent in parents.items():
        groups[name] = manager.objects.pod_group_changed(pod_group(name, 1))
        manager.composites.adopt(f"default/{name}", parent)
    return groups


def test_a_composite_that_moves_concerns_the_groups_below_it_that_are_there(manager: PodGroupManager) -> None:
    in_trees(manager, b=INNER, a=INNER, c=ROOT, d="default/other")
    manager.composites.adopt("default/gone", INNER)
    manager.objects.composite_changed(ROOT, CompositeSpec(ROOT))
    moved = CompositeSpec(INNER, parent=ROOT)
    assert manager.objects.composite_changed(INNER, moved) == ["default/a", "default/b"]
    assert manager.composites.root_of("default/a") == ROOT
    assert manager.objects.composite_changed(ROOT, None) == ["default/a", "default/b", "default/c"]
    assert manager.composites.spec(ROOT) is None


def test_a_composite_by_which_a_tree_becomes_too_large_concerns_all_its_groups(manager: PodGroupManager) -> None:
    in_trees(manager, a=INNER, b=ROOT)
    for number in range(MAX_GROUPS - 1):
        manager.composites.adopt(f"default/many{number}", INNER)
    manager.objects.composite_changed(ROOT, CompositeSpec(ROOT))
    assert manager.objects.composite_changed(INNER, CompositeSpec(INNER, parent=ROOT)) == ["default/a", "default/b"]
    assert manager.objects.composite_changed(INNER, None) == ["default/a", "default/b"], "it is small enough again"


def test_a_group_below_a_composite_that_has_changed_asks_anew(manager: PodGroupManager) -> None:
    group = manager.objects.pod_group_changed(below("g", "root"))
    assert manager.specs.valid(group) is not None
    group.planned = True
    manager.objects.composite_changed(ROOT, CompositeSpec(ROOT, invalid="CompositePodGroup default/root is nonsense"))
    assert manager.objects.tree_changed(KEY) is group
    spec = manager.specs.of(group)
    assert spec is not None
    assert (spec.invalid, group.planned) == ("CompositePodGroup default/root is nonsense", False)
    assert manager.objects.tree_changed("default/unknown") is None


def test_an_object_that_is_gone_is_told_by_the_group_that_it_made(manager: PodGroupManager) -> None:
    group = manager.objects.pod_group_changed(pod_group("g", 1))
    manager.pod_changed(POD)
    group.planned = True
    assert manager.objects.pod_group_gone(pod_group("g", 1)) is group
    assert not group.planned
    assert manager.objects.pod_group_gone(pod_group("h", 1)) is None
