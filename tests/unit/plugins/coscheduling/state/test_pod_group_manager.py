"""Which groups there are and which members they have, by the watch and by calls; what is forgotten with them; and their order."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from extender.api import corev1
from extender.api.codec import convert
from extender.api.schedulingv1alpha1 import GANG_READY
from extender.api.schedulingv1alpha2 import PodGroup as InTreePodGroup
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.keys import GROUPS
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.spec.start_record import start_record
from extender.plugins.coscheduling.state.gang_queue import Unschedulable
from extender.plugins.coscheduling.state.gang_set_index import GangSetIndex
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.group_members import UNSEEN_SECONDS
from extender.plugins.coscheduling.state.member import MemberEvent, MemberState, Start
from extender.plugins.coscheduling.state.pod_group_manager import AT_ONCE, PodGroupManager, in_parts
from extender.plugins.coscheduling.state.slots import Slot
from extender.plugins.coscheduling.waits_for import WaitsFor, kinds_of
from tests.unit.plugins.coscheduling.conftest import FakeClock, pod, pod_group, waves

KEY = "default/g"
POD = pod("p", "g")
LIGHT = {"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def manager(clock: FakeClock) -> PodGroupManager:
    return PodGroupManager(GroupLabels(), denied_seconds=10.0, permitted_seconds=10.0, clock=clock, gate="gate")


def members(group: Group | None) -> list[str]:
    assert group is not None
    return list(group.members)


def place(manager: PodGroupManager, *members: corev1.Pod, group: str = "", firm: bool = False, wave: int = 0) -> None:
    for member in members:
        key = group or manager.key_of(member)
        manager.slots.reserve(Slot(PodInfo(member), key, "n1", math.inf, firm, wave=wave))


def places(manager: PodGroupManager) -> set[str]:
    return {each.uid for each in manager.slots}


def hold(group: Group, uid: str) -> None:
    group.happened(uid, MemberEvent.HELD, "n1")


def test_a_manager_begins_with_nothing_and_goes_by_its_clock(manager: PodGroupManager, clock: FakeClock) -> None:
    assert (manager.clock, manager.max_held_binds) == (clock, math.inf)
    assert (manager.epoch, manager.cluster_epoch) == (0, 0)
    assert manager.wall().tzinfo is UTC
    manager.permitted[KEY] = True
    manager.queue.back_off(KEY, 10.0)
    assert (KEY in manager.permitted, manager.queue.flush()) == (True, False)
    clock.now += 10.0
    assert (KEY in manager.permitted, manager.queue.flush()) == (False, True)


# Which member is in which group


def test_a_pod_of_the_watch_is_a_member_until_it_goes(manager: PodGroupManager) -> None:
    group = manager.pod_changed(POD)
    assert group is manager.groups[KEY]
    assert members(group) == ["p"]
    assert manager.is_member("p")
    assert manager.pod_gone(POD) is group
    assert (manager.groups, manager.is_member("p")) == ({}, False)
    assert manager.pod_gone(POD) is None


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
    manager.terminating["p"] = (POD, 1.0)
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


# Objects


def in_tree(name: str, count: int) -> InTreePodGroup:
    policy = {"gang": {"minCount": count}}
    return convert(
        {"metadata": {"name": name, "namespace": "default"}, "spec": {"schedulingPolicy": policy}}, InTreePodGroup
    )


Told = Callable[[PodGroupManager, Any], Group | None]
OBJECTS = [
    pytest.param(pod_group, PodGroupManager.pod_group_changed, PodGroupManager.pod_group_gone, id="PodGroup"),
    pytest.param(in_tree, PodGroupManager.pod_group_changed, PodGroupManager.pod_group_gone, id="in-tree PodGroup"),
]


@pytest.mark.parametrize(("made", "changed", "gone"), OBJECTS)
def test_a_group_is_there_with_its_object_and_asks_for_what_that_says(
    manager: PodGroupManager, made: Any, changed: Told, gone: Told
) -> None:
    assert gone(manager, made("g", 2)) is None
    group = changed(manager, made("g", 2))
    assert group is manager.groups[KEY]
    spec = manager.spec(group)
    assert spec is not None
    assert spec.min_member == 2
    assert changed(manager, made("g", 3)) is group
    spec = manager.spec(group)
    assert spec is not None
    assert spec.min_member == 3
    assert gone(manager, made("g", 3)) is group
    assert manager.groups == {}


@pytest.mark.parametrize(("made", "changed", "gone"), OBJECTS)
def test_without_its_object_a_group_of_members_waits_for_it(
    manager: PodGroupManager, made: Any, changed: Told, gone: Told
) -> None:
    changed(manager, made("g", 2))
    group = manager.pod_changed(POD)
    assert group is not None
    gone(manager, made("g", 2))
    assert (manager.groups, manager.spec(group)) == ({KEY: group}, None)


def test_our_own_object_counts_before_kube_schedulers(manager: PodGroupManager) -> None:
    group = manager.pod_group_changed(in_tree("g", 5))
    manager.pod_group_changed(pod_group("g", 2))
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


def test_a_group_of_which_something_is_left_is_kept(manager: PodGroupManager) -> None:
    group = manager.pod_group_changed(pod_group("g", 2))
    manager.pod_group_changed(in_tree("g", 2))
    manager.pod_changed(POD)
    manager.pod_gone(POD)
    assert manager.groups == {KEY: group}
    manager.pod_group_gone(pod_group("g", 2))
    assert manager.groups == {KEY: group}
    manager.pod_group_gone(in_tree("g", 2))
    assert manager.groups == {}


def test_what_is_noted_of_a_group_is_forgotten_with_it(manager: PodGroupManager) -> None:
    group = manager.pod_changed(POD)
    assert group is not None
    told: list[str] = []
    manager.on_dropped.append(told.append)
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
    manager.drop_if_empty(group)
    assert manager.groups == {}


def test_a_group_that_is_not_kept_takes_nothing_with_it(manager: PodGroupManager) -> None:
    """What a late call was given, beside a gang of that name."""
    manager.pod_changed(POD)
    manager.denied[KEY] = "no room"
    manager.drop_if_empty(Group(KEY))
    assert (list(manager.groups), manager.denied.get(KEY)) == ([KEY], "no room")


# Groups that start together


def naming(name: str, *others: str, min_member: int = 1) -> Any:
    bare = pod_group(name, min_member)
    listed = ",".join(f"default/{each}" for each in (name, *others))
    return replace(bare, metadata=replace(bare.metadata, annotations={GROUPS: listed}))


def test_groups_that_name_each_other_are_one_set_until_one_names_it_no_more(manager: PodGroupManager) -> None:
    manager.pod_group_changed(naming("g", "h"))
    manager.pod_group_changed(naming("h", "g"))
    assert set(manager.gang_set_index.gang_set(KEY)) == {KEY, "default/h"}
    manager.pod_group_changed(pod_group("g", 1))
    manager.pod_group_changed(pod_group("h", 1))
    assert set(manager.gang_set_index.gang_set(KEY)) == {KEY}


def test_a_group_whose_object_is_gone_names_no_other(manager: PodGroupManager) -> None:
    manager.pod_group_changed(naming("g", "h"))
    manager.pod_changed(POD)
    assert set(manager.gang_set_index.gang_set("default/h")) == {KEY, "default/h"}
    manager.pod_group_gone(naming("g", "h"))
    assert manager.gang_set_index.gang_set("default/h") == ("default/h",)


def light(name: str, *others: str) -> corev1.Pod:
    """Of a group that its pods' labels alone make, and that names others."""
    bare = pod(name, labels=LIGHT)
    listed = ",".join(f"default/{each}" for each in others)
    return replace(bare, metadata=replace(bare.metadata, annotations={GROUPS: listed} if others else {}))


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


def test_a_plan_of_pods_that_ask_for_something_else_falls_at_once(manager: PodGroupManager) -> None:
    group = manager.pod_changed(light("p"))
    assert group is not None
    manager.pod_changed(light("q"))
    place(manager, light("p"), light("q"))
    group.planned = True
    manager.pod_changed(light("r", "g", "h"))
    assert not group.planned, "their annotations do not match any more"


def test_a_set_that_grows_too_large_is_refused_with_its_number_and_tried_again(manager: PodGroupManager) -> None:
    manager.gang_set_index = GangSetIndex(most=2)
    manager.pod_group_changed(naming("g", "h"))
    group = manager.pod_group_changed(naming("x", "h"))
    spec = manager.spec(group)
    assert spec is not None
    assert spec.invalid.startswith(f"PodGroup default/x is invalid: annotation {GROUPS}: ")
    assert "3" in spec.invalid
    assert manager.try_names_again("default/x") is None
    assert manager.try_names_again("default/unknown") is None
    for name in "xh":
        manager.pod_changed(pod(name, name))
    for name in "xh":
        place(manager, pod(name, name), wave=1)
    assert waves(manager, "default/x") == [frozenset("x")], "they do not start together yet"
    manager.pod_group_changed(pod_group("g", 1))
    assert manager.try_names_again("default/x") is group
    assert set(manager.gang_set_index.gang_set("default/x")) == {"default/x", "default/h"}
    assert waves(manager, "default/x") == [frozenset("xh")]
    spec = manager.spec(group)
    assert spec is not None
    assert spec.invalid == ""


def test_a_group_that_is_dropped_names_no_other(manager: PodGroupManager) -> None:
    manager.pod_changed(light("p", "g", "h"))
    manager.pod_gone(light("p", "g", "h"))
    assert manager.gang_set_index.gang_set("default/h") == ("default/h",)


def test_waves_are_of_members_of_the_set_alone(manager: PodGroupManager) -> None:
    group = manager.pod_group_changed(naming("g", "h"))
    other = manager.pod_group_changed(naming("h", "g"))
    for made in (POD, pod("q", "h"), pod("r", "g")):
        manager.pod_changed(made)
    place(manager, POD)
    place(manager, pod("q", "h"))
    place(manager, pod("r", "g"), wave=1)
    manager.pod_gone(pod("r", "g"))
    assert [waves(manager, each.key) for each in (group, other)] == [[frozenset("pq")], [frozenset("pq")]]
    manager.pod_group_changed(pod_group("g", 1))
    manager.pod_group_changed(pod_group("h", 1))
    assert [waves(manager, each.key) for each in (group, other)] == [[frozenset("p")], [frozenset("q")]]


def test_of_groups_that_start_together_the_lowest_priority_and_the_last_quorum_count(manager: PodGroupManager) -> None:
    for name, priority, day in (("g", 5, 1), ("h", 3, 2)):
        manager.pod_group_changed(naming(name, "h" if name == "g" else "g"))
        made = pod(f"{name}0", name, priority=priority)
        manager.pod_changed(
            replace(made, metadata=replace(made.metadata, creation_timestamp=datetime(2026, 1, day, tzinfo=UTC)))
        )
    standing = manager.standing(manager.groups[KEY])
    assert (standing.priority, standing.since) == (3, datetime(2026, 1, 2, tzinfo=UTC))
    assert manager.priority_of(manager.groups[KEY]) == 3
    manager.gang_set_index.mark_whole(manager.gang_set_index.gang_set(KEY))
    assert manager.priority_of(manager.groups[KEY]) == 5, "once they were whole each is on its own"


@pytest.mark.parametrize(
    ("others", "since"),
    [
        pytest.param(0, datetime(2026, 1, 1, tzinfo=UTC), id="a group that is not there has no age"),
        pytest.param(1, datetime.max.replace(tzinfo=UTC), id="one without its quorum is younger than any"),
    ],
)
def test_the_age_of_a_set_that_is_not_complete(manager: PodGroupManager, others: int, since: datetime) -> None:
    group = manager.pod_group_changed(naming("g", "h"))
    manager.pod_changed(pod("p", "g", priority=5))
    for _ in range(others):
        manager.pod_group_changed(naming("h", "g", min_member=2))
        manager.pod_changed(pod("q", "h", priority=9))
    standing = manager.standing(group)
    assert (standing.priority, standing.since) == (5, since)


def test_a_standing_is_kept_until_a_member_changes(manager: PodGroupManager) -> None:
    group = manager.pod_group_changed(pod_group("g", 1))
    manager.pod_changed(POD)
    standing = manager.standing(group)
    assert manager.standing(group) is standing
    manager.pod_changed(pod("p", "g", priority=7))
    assert manager.standing(group).priority == 7
    manager.pod_changed(pod("q", "g", priority=9))
    assert manager.standing(group).priority == 9, "of a quorum of one the most important"
    manager.pod_group_changed(pod_group("g", 2))
    assert manager.standing(group).priority == 7, "and of two the other"


# The order of turns


def gang(manager: PodGroupManager, name: str, priority: int = 0, day: int = 1) -> Group:
    group = manager.pod_group_changed(pod_group(name, 1))
    made = pod(f"{name}-0", name, priority=priority)
    stamp = datetime(2026, 1, day, tzinfo=UTC)
    manager.pod_changed(replace(made, metadata=replace(made.metadata, creation_timestamp=stamp)))
    return group


def test_what_has_begun_comes_first_then_priority_then_age_then_the_name(manager: PodGroupManager) -> None:
    groups = [
        gang(manager, "a-young", day=5),
        gang(manager, "b"),
        gang(manager, "a"),
        gang(manager, "high", priority=9, day=7),
        cut_short(manager, "begun"),
    ]
    first = [each.key.partition("/")[2] for each in manager.in_order(groups)]
    assert first == ["begun", "high", "a", "b", "a-young"]


@pytest.mark.faults
def test_a_gang_at_which_the_order_raises_is_set_aside_and_the_others_go_on(
    manager: PodGroupManager, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = gang(manager, "good"), gang(manager, "bad")
    bad.standing, bad.members = None, Mock(values=Mock(side_effect=KeyError("a fault of ours")))
    assert manager.in_order([bad, good]) == [good]
    assert list(manager.quarantine) == ["default/bad"]
    assert "unexpected error where=order group=default/bad" in caplog.text


def cut_short(manager: PodGroupManager, name: str) -> Group:
    """Of two members one is on a node, and the other has been left behind."""
    group = manager.pod_group_changed(pod_group(name, 2))
    bound, waits = f"{name}-0", f"{name}-1"
    manager.pod_changed(pod(bound, name, node_name="n1"))
    manager.pod_changed(pod(waits, name))
    uids = frozenset((bound, waits))
    group.start = Start(start_record(datetime(2026, 1, 1, tzinfo=UTC), 2, uids), uids)
    return group


def test_places_of_those_that_a_start_left_behind_are_firm_and_no_others(manager: PodGroupManager) -> None:
    group = cut_short(manager, "g")
    place(manager, pod("g-1", "g"))
    place(manager, pod("g-2", "g"), firm=True)
    assert manager.begun(group)
    assert manager.left_behind(group) == {"g-1"}
    manager.follow_start(group)
    assert {each.uid: each.firm for each in manager.slots} == {"g-1": True, "g-2": False}
    manager.pod_changed(pod("g-1", "g", node_name="n1"))
    manager.follow_start(group)
    assert (group.start, manager.begun(group)) == (None, False)


def test_a_group_without_object_has_begun_nothing(manager: PodGroupManager) -> None:
    group = manager.pod_changed(POD)
    assert group is not None
    group.start = Start(start_record(datetime(2026, 1, 1, tzinfo=UTC), 2, frozenset("p")), frozenset("p"))
    assert manager.left_behind(group) == frozenset()


# Room, notes and places


def refuse(manager: PodGroupManager, *names: str) -> None:
    for name in names:
        group = manager.pod_changed(pod(f"{name}-0", name))
        assert group is not None
        group.happened(f"{name}-0", MemberEvent.REFUSED)
        manager.denied[group.key] = "no room"


def test_room_that_comes_free_is_for_all_that_wait_but_those_that_gave_it_up(manager: PodGroupManager) -> None:
    refuse(manager, "g", "h")
    manager.pod_changed(pod("i-0", "i"))
    lack = WaitsFor((), room_anywhere=True)
    for key in (KEY, "default/h"):
        manager.queue.add_unschedulable(key, lack)
    manager.on_capacity_freed(but=["default/h", "default/other"])
    assert manager.queue.unschedulable == {"default/h": Unschedulable(lack)}
    assert (list(manager.denied), manager.queue.active, manager.epoch) == (["default/h"], {KEY}, 1)
    manager.on_capacity_freed()
    assert (list(manager.denied), manager.queue.active, manager.epoch) == ([], {KEY, "default/h"}, 2)


def changed(manager: PodGroupManager, *claims: str) -> bool:
    return manager.volumes_changed(manager.queue.index.bringing_volumes(), claims or None)


def test_volumes_help_those_that_bring_volumes_and_wait(manager: PodGroupManager) -> None:
    refuse(manager, "without")
    assert not changed(manager)
    assert manager.epoch == 0
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    manager.pod_changed(pod("with-0", "with", volumes=volumes))
    assert not changed(manager), "it does not wait: it was not refused"
    manager.groups["default/with"].happened("with-0", MemberEvent.REFUSED)
    manager.pod_changed(pod("gated-0", "gated", volumes=volumes, schedulingGates=[{"name": "gate"}]))
    manager.denied["default/with"] = "no volume"
    for key in ("default/with", "default/without"):
        members = [each.info for each in manager.groups[key].members.values()]
        manager.queue.add_unschedulable(key, WaitsFor(kinds_of(members)))
    assert changed(manager)
    assert (list(manager.denied), manager.epoch) == (["default/without"], 1)
    assert list(manager.queue.unschedulable) == ["default/without"]
    assert manager.queue.active == {"default/with", "default/gated"}
    manager.queue.begin_planning("default/with")
    assert changed(manager)
    assert manager.epoch == 2


def test_notes_of_one_group_are_forgotten_alone(manager: PodGroupManager) -> None:
    lack = WaitsFor((), room_anywhere=True)
    for key in (KEY, "default/h"):
        manager.denied[key], manager.permitted[key] = "no room", True
        manager.queue.add_unschedulable(key, lack)
    manager.forget_notes(KEY)
    assert list(manager.queue.unschedulable) == ["default/h"]
    assert (list(manager.denied), list(manager.permitted)) == (["default/h"], ["default/h"])


def planned(manager: PodGroupManager, min_member: int = 2) -> Group:
    """Of two members, with a place each."""
    group = manager.pod_group_changed(pod_group("g", min_member))
    for name in "pq":
        manager.pod_changed(pod(name, "g"))
        group.happened(name, MemberEvent.REFUSED)
        place(manager, pod(name, "g"))
    group.planned, group.preempting = True, Mock()
    return group


def test_which_have_a_place(manager: PodGroupManager) -> None:
    group = planned(manager)
    manager.slots.release("q")
    for name in "abc":
        manager.pod_changed(pod(name, "g", node_name="n1" if name == "a" else ""))
    hold(group, "b")
    assert manager.placed(group) == {"p", "a", "b"}, "planned, on a node, held"


@pytest.mark.parametrize(
    ("min_member", "uids", "left", "still"),
    [
        pytest.param(2, ["q"], {"p"}, False, id="one of two that it needs: it is planned anew"),
        pytest.param(1, ["q"], {"p"}, True, id="one beyond its minimum: it may start"),
        pytest.param(1, None, set(), False, id="all of them"),
    ],
)
def test_places_that_are_taken_back(
    manager: PodGroupManager, min_member: int, uids: list[str] | None, left: set[str], still: bool
) -> None:
    group = planned(manager, min_member)
    manager.release_places(group, uids)
    assert (places(manager), group.planned) == (left, still)
    assert (KEY in manager.queue.active) is not still


def test_places_that_are_lost_are_planned_beside_those_that_are_good(manager: PodGroupManager) -> None:
    group = planned(manager, 1)
    manager.denied[KEY] = "no room"
    for key in list(manager.queue.active):
        manager.queue.begin_planning(key)
    manager.lose_places(group, ["q"])
    assert (places(manager), group.planned) == ({"p"}, True)
    assert (list(manager.denied), manager.queue.active) == ([], {KEY})


def test_a_plan_that_is_given_up_leaves_the_places_of_those_held_and_those_kept(manager: PodGroupManager) -> None:
    group = planned(manager)
    for name in "rs":
        manager.pod_changed(pod(name, "g"))
        place(manager, pod(name, "g"))
    group.happened("r", MemberEvent.ADMITTED)
    hold(group, "p")
    assert manager.give_up_places(group, keep=["q"])
    assert places(manager) == {"p", "q"}
    assert (group.planned, group.preempting) == (False, None)
    assert {member.turn for member in group.members.values()} == {None}
    assert group.members["r"].state is MemberState.UNSCHEDULABLE, "its place is gone, and the node with it"
    assert not manager.give_up_places(group, keep=["q"])


def test_a_plan_stands_while_enough_have_a_place(manager: PodGroupManager) -> None:
    group = planned(manager)
    for key in list(manager.queue.active):
        manager.queue.begin_planning(key)
    manager.follow_places(group)
    assert (group.planned, manager.queue.active) == (True, set())
    manager.pod_group_changed(pod_group("g", 3))
    assert (group.planned, manager.queue.active) == (False, {KEY}), "it asks for more now"


@pytest.mark.parametrize(
    "asks",
    [
        pytest.param(lambda m: m.pod_group_gone(pod_group("g", 2)), id="its object is gone"),
        pytest.param(lambda m: m.pod_group_changed(pod_group("g", -1)), id="it asks for nonsense"),
    ],
)
def test_a_plan_falls_with_what_it_was_made_for(manager: PodGroupManager, asks: Callable[[Any], Any]) -> None:
    group = planned(manager)
    asks(manager)
    assert not group.planned


def test_a_plan_of_which_no_member_waits_in_vain_is_not_made_anew_by_itself(manager: PodGroupManager) -> None:
    group = planned(manager)
    for name in "pq":
        group.happened(name, MemberEvent.ADMITTED)
    for key in list(manager.queue.active):
        manager.queue.begin_planning(key)
    manager.release_places(group)
    assert (group.planned, manager.queue.active) == (False, set())


def test_which_members_count_towards_the_quorum_of_a_scheduler(manager: PodGroupManager) -> None:
    group = manager.pod_group_changed(pod_group("g", 2))
    manager.pod_changed(pod("a", "g", node_name="n1", schedulerName="theirs"))
    manager.pod_changed(pod("b", "g", schedulerName="theirs"))
    manager.pod_changed(pod("c", "g", schedulerName="ours"))
    assert manager.siblings(group, "ours") == {"a", "c"}
    assert manager.siblings(group, "nobodys") == {"a"}


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


def test_all_groups_are_looked_at_a_few_at_a_time() -> None:
    keys = [str(number) for number in range(2 * AT_ONCE + 1)]
    parts = list(in_parts(keys))
    assert [len(part) for part in parts] == [AT_ONCE, AT_ONCE, 1]
    assert [key for part in parts for key in part] == keys
