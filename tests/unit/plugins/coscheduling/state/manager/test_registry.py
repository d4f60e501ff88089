"""How long a group exists, and what is forgotten with it."""

from __future__ import annotations

import math
from unittest.mock import Mock

from msgspec.structs import replace

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.keys import GROUPS
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.conftest import pod, pod_group
from tests.unit.plugins.coscheduling.managing import KEY, LIGHT, POD, hold, in_tree, naming, place, places


def light(name: str, *others: str) -> corev1.Pod:
    """Of a group that its pods' labels alone make, and that names others."""
    bare = pod(name, labels=LIGHT)
    listed = ",".join(f"default/{each}" for each in others)
    return replace(bare, metadata=replace(bare.metadata, annotations={GROUPS: listed} if others else {}))


def test_a_group_of_which_something_is_left_is_kept(manager: PodGroupManager) -> None:
    group = manager.objects.pod_group_changed(pod_group("g", 2))
    manager.objects.pod_group_changed(in_tree("g", 2))
    manager.pod_changed(POD)
    manager.pod_gone(POD)
    assert manager.groups == {KEY: group}
    manager.objects.pod_group_gone(pod_group("g", 2))
    assert manager.groups == {KEY: group}
    manager.objects.pod_group_gone(in_tree("g", 2))
    assert manager.groups == {}


def test_what_is_noted_of_a_group_is_forgotten_with_it(manager: PodGroupManager) -> None:
    group = manager.pod_changed(POD)
    assert group is not None
    told: list[str] = []
    manager.registry.on_dropped.append(told.append)
    manager.denied[KEY], manager.permitted[KEY] = "no room", True
    manager.queue.move_to_active([KEY])
    manager.quarantine.set_aside(KEY)
    manager.pod_gone(POD)
    assert (list(manager.denied), list(manager.permitted), manager.queue.active) == ([], [], set())
    assert KEY not in manager.quarantine
    assert told == [KEY]


def test_the_next_gang_of_a_name_does_not_inherit_the_last_ones_end(manager: PodGroupManager) -> None:
    """While one that has gone is held, its group is kept for the hold alone."""
    group = manager.pod_changed(POD)
    assert group is not None
    hold(group, "p")
    group.last_diagnosis = Mock()
    manager.pod_gone(POD)
    last_diagnosis: object = group.last_diagnosis
    assert (manager.groups, last_diagnosis) == ({KEY: group}, None)
    manager.hold_is_over(group, "p")
    manager.registry.drop_if_empty(group)
    assert manager.groups == {}


def test_a_group_that_is_not_kept_takes_nothing_with_it(manager: PodGroupManager) -> None:
    """What a late call was given, beside a gang of that name."""
    manager.pod_changed(POD)
    manager.denied[KEY] = "no room"
    manager.registry.drop_if_empty(Group(KEY))
    assert (list(manager.groups), manager.denied.get(KEY)) == ([KEY], "no room")


def test_a_group_that_is_dropped_names_no_other(manager: PodGroupManager) -> None:
    manager.pod_changed(light("p", "g", "h"))
    manager.pod_gone(light("p", "g", "h"))
    assert manager.gang_set_index.gang_set("default/h") == ("default/h",)


def test_a_plan_of_pods_that_ask_for_something_else_falls_at_once(manager: PodGroupManager) -> None:
    group = manager.pod_changed(light("p"))
    assert group is not None
    manager.pod_changed(light("q"))
    place(manager, light("p"), light("q"))
    group.planned = True
    manager.pod_changed(light("r", "g", "h"))
    assert not group.planned, "their annotations do not match any more"


def test_a_group_whose_member_is_refused_waits_and_is_told_apart(manager: PodGroupManager) -> None:
    for name in "gh":
        manager.pod_changed(pod(f"{name}-0", name))
    assert manager.registry.get_or_new(KEY) is manager.groups[KEY]
    manager.groups[KEY].happened("g-0", MemberEvent.REFUSED)
    assert manager.queue.waiting == {KEY}
    manager.groups[KEY].happened("g-0", MemberEvent.ASKED)
    manager.groups[KEY].happened("g-0", MemberEvent.ADMITTED)
    assert manager.queue.waiting == set()


def test_changes_of_a_group_are_told_and_whether_a_member_has_joined(manager: PodGroupManager) -> None:
    told: list[tuple[str, bool]] = []

    def note(group: Group, *, joined: bool) -> None:
        told.append((group.key, joined))

    manager.registry.on_changed = note
    manager.objects.pod_group_changed(pod_group("g", 2))
    assert told == [(KEY, False)]
    manager.pod_changed(POD)
    assert told == [(KEY, False), (KEY, True)]
    manager.pod_changed(pod("p", "g", priority=1))
    assert told == [(KEY, False), (KEY, True)], "it is no new member"


def test_what_a_dropped_group_had_goes_with_it_and_nothing_else(manager: PodGroupManager) -> None:
    for name in "gh":
        manager.pod_changed(pod(f"{name}-0", name))
        for number in (0, 1):
            like = PodInfo(pod(f"like-{name}{number}"))
            manager.slots.reserve(Slot(like, f"default/{name}", "n1", math.inf, to_come=True))
        manager.begun.broken[f"default/{name}"] = 1.0
        manager.quarantine.set_aside(f"default/{name}")
        manager.denied[f"default/{name}"] = "no room"
        manager.queue.backing_off[f"default/{name}"] = math.inf
    manager.pod_gone(pod("g-0", "g"))
    assert list(manager.groups) == list(manager.begun.broken) == list(manager.quarantine) == ["default/h"]
    assert list(manager.denied) == list(manager.queue.backing_off) == ["default/h"]
    assert places(manager) == {"like-h0", "like-h1"}


def test_a_group_that_has_lost_its_object_and_its_members_is_dropped_though_others_name_it(
    manager: PodGroupManager,
) -> None:
    manager.objects.pod_group_changed(naming("g", "h"))
    manager.objects.pod_group_changed(naming("h", "g"))
    manager.objects.pod_group_gone(naming("g", "h"))
    assert list(manager.groups) == ["default/h"]
    assert set(manager.gang_set_index.gang_set(KEY)) == {KEY, "default/h"}, "the other names it still"
