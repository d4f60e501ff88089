"""Which groups there are and which members they have, by the watch and by calls."""

from __future__ import annotations

import math
import time
from datetime import UTC
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from extender.api import corev1
from extender.api.schedulingv1alpha1 import GANG_READY
from extender.plugins.coscheduling.state import group_members
from extender.plugins.coscheduling.state.group_members import UNSEEN_SECONDS
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import AT_ONCE, PodGroupManager, in_parts
from tests.unit.plugins.coscheduling.conftest import FakeClock, pod
from tests.unit.plugins.coscheduling.managing import KEY, POD, hold, members, place, places


def test_a_manager_begins_with_nothing_and_goes_by_its_clock(manager: PodGroupManager, clock: FakeClock) -> None:
    assert (manager.clock, manager.max_held_binds) == (clock, math.inf)
    assert (manager.notes.epoch, manager.notes.cluster_epoch) == (0, 0)
    assert manager.wall().tzinfo is UTC
    manager.permitted[KEY] = True
    manager.queue.back_off(KEY, 10.0)
    assert (KEY in manager.permitted, manager.queue.flush()) == (True, False)
    clock.now += 10.0
    assert (KEY in manager.permitted, manager.queue.flush()) == (False, True)


def test_a_pod_of_the_watch_is_a_member_until_it_goes(manager: PodGroupManager) -> None:
    group = manager.pod_changed(POD)
    assert group is manager.groups[KEY]
    assert members(group) == ["p"]
    assert manager.is_member("p")
    assert manager.pod_gone(POD) is group
    assert (manager.groups, manager.is_member("p")) == ({}, False)
    assert manager.pod_gone(POD) is None


def test_a_pod_that_goes_after_a_fault_in_taking_it_in_leaves_no_group(
    manager: PodGroupManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(group_members, "_recount", Mock(side_effect=ArithmeticError))
        with pytest.raises(ArithmeticError):
            manager.pod_changed(POD)
    manager.pod_gone(POD)
    assert (manager.groups, manager.is_member("p")) == ({}, False)


@pytest.mark.parametrize(
    ("way", "in_group"),
    [
        pytest.param(pod("p"), None, id="without its label: in none"),
        pytest.param(pod("p", "h"), "default/h", id="of another group: in that"),
        pytest.param(pod("p", "g", deleting=True), None, id="deleting"),
    ],
)
def test_a_member_that_changes_its_group_leaves_nothing_behind(
    manager: PodGroupManager, way: corev1.Pod, in_group: str | None
) -> None:
    manager.pod_changed(POD)
    place(manager, POD)
    left = manager.pod_changed(way)
    assert {key: list(each.members) for key, each in manager.groups.items()} == (
        {in_group: ["p"]} if in_group is not None else {}
    )
    assert places(manager) == set()
    assert left is (manager.groups[in_group] if in_group is not None else left)
    assert (left is None) is (way.uid == "p" and not way.labels)


def test_a_pod_that_ends_belongs_to_its_group_for_the_last_time(manager: PodGroupManager) -> None:
    """Its event may help the others."""
    manager.pod_changed(pod("q", "g"))
    ended = pod("p", "g", deleting=True)
    assert manager.pod_changed(ended) is manager.groups[KEY]
    assert members(manager.groups[KEY]) == ["q"]
    assert manager.pod_changed(pod("lone", deleting=True)) is None


def test_a_victim_that_is_to_go_is_no_member(manager: PodGroupManager) -> None:
    manager.terminating["p"] = (POD, KEY, 1.0)
    assert manager.pod_changed(POD) is None
    assert manager.groups == {}


def test_a_call_may_show_a_member_before_the_watch_does(manager: PodGroupManager) -> None:
    group = manager.group_of(POD)
    assert group is manager.groups[KEY]
    assert members(group) == ["p"]


def test_a_second_call_changes_nothing(manager: PodGroupManager) -> None:
    manager.group_of(POD)
    place(manager, POD)
    assert members(manager.group_of(POD)) == ["p"]
    assert places(manager) == {"p"}


def test_a_call_that_is_late_brings_no_pod_back(manager: PodGroupManager) -> None:
    manager.pod_changed(POD)
    manager.pod_gone(POD)
    group = manager.group_of(POD)
    assert group is not None
    assert (group.key, members(group), manager.groups) == (KEY, [], {})
    manager.comes_back("p")
    assert members(manager.group_of(POD)) == ["p"]


def test_a_later_call_may_move_what_only_a_call_has_shown(manager: PodGroupManager) -> None:
    manager.group_of(POD)
    assert members(manager.group_of(pod("p", "h"))) == ["p"]
    assert list(manager.groups) == ["default/h"]


def test_what_the_watch_has_shown_no_call_moves(manager: PodGroupManager) -> None:
    manager.pod_changed(POD)
    assert members(manager.group_of(pod("p", "h"))) == []
    assert list(manager.groups) == [KEY]


def test_asking_for_a_pods_group_changes_nothing(manager: PodGroupManager) -> None:
    assert manager.find(POD) is None
    assert (manager.key_of(POD), manager.groups) == (KEY, {})
    group = manager.pod_changed(POD)
    assert manager.find(pod("other", "g")) is group
    assert members(group) == ["p"]


def test_a_pod_whose_call_lacks_its_label_is_found_as_the_watch_has_it(manager: PodGroupManager) -> None:
    """An older kube-scheduler sends pods without the fields that it does not know."""
    bare = pod("p")
    assert (manager.find(bare), manager.group_of(bare), manager.key_of(bare)) == (None, None, "")
    group = manager.pod_changed(POD)
    assert (manager.find(bare), manager.group_of(bare), manager.key_of(bare)) == (group, group, KEY)


def test_a_member_that_only_a_call_has_shown_is_asked_after(manager: PodGroupManager, clock: FakeClock) -> None:
    group = manager.group_of(POD)
    assert group is not None
    clock.now += UNSEEN_SECONDS
    assert manager.unseen() == [POD]
    hold(group, "p")
    assert manager.unseen() == [], "its call vouches for it"
    manager.pod_changed(POD)
    hold(group, "p")
    group.happened("p", MemberEvent.BIND_FAILED)
    assert manager.unseen() == [], "the watch has shown it"


def test_whether_a_member_was_sent_to_its_place(manager: PodGroupManager) -> None:
    assert not manager.is_nominated("p")
    group = manager.pod_changed(POD)
    assert group is not None
    assert not manager.is_nominated("p")
    group.members["p"].nomination = ""
    assert manager.is_nominated("p")


def test_the_group_that_holds_a_pod_keeps_it_while_it_is_held(manager: PodGroupManager) -> None:
    group = manager.pod_changed(POD)
    assert group is not None
    hold(group, "p")
    moved = manager.pod_changed(pod("p", "h"))
    assert manager.holder_of(POD) is manager.holder_of(pod("p", "h")) is group
    assert (manager.groups[KEY], group.held) == (group, {"p": "n1"}), "kept, though no other member is in it"
    manager.hold_is_over(group, "p")
    assert group.held == {}
    assert manager.holder_of(pod("p", "h")) is moved
    manager.hold_is_over(group, "p")


def test_a_member_that_is_not_held_is_in_its_own_group(manager: PodGroupManager) -> None:
    assert manager.holder_of(POD) is None
    assert manager.pod_changed(POD) is manager.holder_of(POD)


def test_a_member_that_is_shown_on_a_node_needs_its_place_no_more(manager: PodGroupManager) -> None:
    manager.pod_changed(POD)
    place(manager, POD, pod("q", "g"))
    manager.slots.given_up()
    manager.pod_changed(pod("p", "g", node_name="n1"))
    assert places(manager) == {"q"}
    assert not manager.slots.given_up(), "the room is taken by the pod itself"


def test_one_that_goes_gives_its_room_up(manager: PodGroupManager) -> None:
    manager.pod_changed(POD)
    place(manager, POD)
    manager.pod_gone(POD)
    assert manager.slots.given_up()


def test_what_a_new_member_shows_of_the_time_before_counts_once(manager: PodGroupManager) -> None:
    sent = corev1.PodCondition(type=GANG_READY, status="True")
    shown = replace(POD, status=replace(POD.status, conditions=(sent,), nominated_node_name="n1"))
    group = manager.pod_changed(shown)
    assert group is not None
    assert group.nominated() == ["p"]
    group.members["p"].nomination = None
    manager.pod_changed(shown)
    assert group.nominated() == [], "taken back: the watch is behind"


@pytest.mark.parametrize(
    ("made", "plannable"),
    [
        pytest.param(pod("p", "g", schedulerName="ours"), True, id="pending, and ours"),
        pytest.param(pod("p", "g", schedulerName="theirs"), False, id="of another scheduler"),
        pytest.param(pod("p", "g", schedulerName="ours", node_name="n1"), False, id="on a node"),
        pytest.param(pod("p", "g", schedulerName="ours", schedulingGates=[{"name": "gate"}]), True, id="our gate"),
        pytest.param(pod("p", "g", schedulerName="ours", schedulingGates=[{"name": "x"}]), False, id="another's gate"),
    ],
)
def test_which_members_can_be_given_a_place(manager: PodGroupManager, made: corev1.Pod, plannable: bool) -> None:
    group = manager.pod_changed(made)
    assert group is not None
    assert [info.pod for info in manager.plannable(group, "ours")] == ([made] if plannable else [])


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(0.0, [AT_ONCE, AT_ONCE, 1], id="where it costs nothing"),
        pytest.param(0.0004, [3] * 33 + [2], id="where each costs 0.4 ms"),
        pytest.param(0.1, [1] * 101, id="where one is all that there is time for"),
    ],
)
def test_all_groups_are_looked_at_a_few_at_a_time(
    seconds: float, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, now, parts = [str(number) for number in range(2 * AT_ONCE + 1)], [0.0], list[list[str]]()
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    for some in in_parts(keys):
        parts.append([])
        for key in some:
            parts[-1].append(key)
            now[0] += seconds
    assert [len(part) for part in parts] == expected
    assert [key for part in parts for key in part] == keys
