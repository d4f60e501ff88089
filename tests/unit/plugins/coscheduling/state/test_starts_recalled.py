"""What of a gang's start its members and its object show, and when that start is over."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs

from extender.api import volcanov1beta1
from extender.api.metav1 import Condition
from extender.api.schedulingv1alpha1 import PodGroupStatus
from extender.client.unreadable import convert
from extender.framework.pod_info import PodInfo
from extender.framework.resource import Resource
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.sources.ended_phase import EndedPhase
from extender.plugins.coscheduling.spec.start_record import MOST_NAMED, StartRecord, start_record
from extender.plugins.coscheduling.state import group_members
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent, Start
from extender.plugins.coscheduling.state.starts import (
    follow_start,
    recall_once_whole,
    recall_start,
    record_start,
    says_started,
    seconds_since_start,
)
from tests.objects import make_pod
from tests.unit.plugins.coscheduling.conftest import pod, pod_group
from tests.unit.plugins.coscheduling.managing import in_tree
from tests.unit.plugins.coscheduling.starting import bound_by
from tests.unit.plugins.coscheduling.state.test_group_members import put

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
SPEC = GroupSpec("default/g", 3)
WRONG = replace(SPEC, invalid="nonsense")
ABC = ("a", "b", "c")


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def gang(
    bound: Iterable[str] = "a",
    waiting: Iterable[str] = "bc",
    *,
    quorum: int = 3,
    began: datetime | None = None,
    start: Sequence[str] = ABC,
) -> Group:
    """Members on nodes, with the record of a start of these members, and members that wait."""
    group = Group("default/g")
    for name in bound:
        put(group, bound_by(pod(name, "g", node_name="n1"), quorum, start, began or ago(3)))
    for name in waiting:
        put(group, pod(name, "g"))
    return group


def start_of(uids: Iterable[str], quorum: int = 3) -> Start:
    members = frozenset(uids)
    return Start(start_record(ago(9), quorum, members), members)


def hold(group: Group, *uids: str, begins: bool = False) -> None:
    for uid in uids:
        group.happened(uid, MemberEvent.HELD, "n1")
        if begins:
            group.happened(uid, MemberEvent.START_BEGUN)


# While we lead


def test_a_start_is_recorded_with_its_quorum_and_its_members() -> None:
    group = gang(bound=())
    record_start(group, SPEC, {"b", "c"}, NOW)
    assert group.start == Start(start_record(NOW, 3, ["b", "c"]), frozenset("bc"))


def test_the_rest_of_a_start_that_was_cut_short_belongs_to_it() -> None:
    group = gang()
    before = group.start = start_of("ab")
    record_start(group, SPEC, {"b", "d"}, NOW)
    assert group.start == Start(before.record, frozenset("abd"))
    record_start(group, SPEC, {"e"}, NOW)
    assert group.start == Start(start_record(NOW, 3, ["e"]), frozenset("e")), "that is another"


@pytest.mark.parametrize(
    ("bound", "waiting", "starting", "start", "quorum", "over"),
    [
        pytest.param("abc", "", "", "abc", 3, True, id="its quorum is on nodes"),
        pytest.param("ab", "c", "", "abc", 2, True, id="what was its quorum then is on nodes"),
        pytest.param("ab", "c", "c", "abc", 3, False, id="one is on its way"),
        pytest.param("ab", "c", "", "abc", 3, False, id="one is left behind, which finishes it"),
        pytest.param("ab", "d", "", "abc", 3, True, id="one is gone, and another takes no part of it"),
        pytest.param("a", "bcd", "d", "abc", 3, False, id="another start is under way, and one is left behind"),
    ],
)
def test_when_a_start_is_over(bound: str, waiting: str, starting: str, start: str, quorum: int, over: bool) -> None:
    group = gang(bound, waiting)
    hold(group, *starting, begins=True)
    group.start = start_of(start, quorum)
    follow_start(group, SPEC)
    assert (group.start is None) is over


@pytest.mark.parametrize("spec", [pytest.param(None, id="no object"), pytest.param(WRONG, id="nonsense")])
def test_a_start_of_a_group_that_asks_for_nothing_that_is_known_is_not_over(spec: GroupSpec | None) -> None:
    group = gang("abc", "")
    group.start = start_of("abc")
    follow_start(group, spec)
    assert group.start is not None


# When we begin to lead


@pytest.mark.parametrize(
    ("seconds", "recalled"),
    [
        pytest.param(300, True, id="five minutes ago"),
        pytest.param(301, False, id="longer ago"),
        pytest.param(-300, True, id="in five minutes, by a clock that is ahead"),
        pytest.param(-301, False, id="later"),
    ],
)
def test_a_start_is_recalled_for_five_minutes(seconds: float, recalled: bool) -> None:
    group = gang(began=ago(seconds))
    recall_start(group, SPEC, NOW)
    expected = Start(start_record(ago(seconds), 3, ABC), frozenset(ABC)) if recalled else None
    assert group.start == expected


def test_of_several_starts_the_newest_is_recalled_with_its_own_members() -> None:
    group = gang("ab", "cd", began=ago(60), start=["a", "b", "d"])
    put(group, bound_by(pod("e", "g", node_name="n1"), 4, ["c", "e"], ago(2)))
    put(group, bound_by(pod("f", "g", node_name="n1"), 4, ["c", "e"], ago(2)))
    put(group, pod("x", "g", node_name="n1"))
    recall_start(group, SPEC, NOW)
    assert group.start == Start(start_record(ago(2), 4, ["c", "e"]), frozenset("cef"))


@pytest.mark.parametrize(
    ("created", "is_of_it"),
    [
        pytest.param(ago(60), True, id="made before it began"),
        pytest.param(ago(15), True, id="as late as two clocks may differ"),
        pytest.param(ago(14), False, id="made since"),
        pytest.param(None, True, id="of unknown age"),
    ],
)
def test_of_a_start_too_large_to_name_its_members_those_are_part_that_were_there(
    created: datetime | None, is_of_it: bool
) -> None:
    group = gang("a", "", began=ago(20), start=[f"u{number}" for number in range(MOST_NAMED + 1)])
    made = pod("w", "g")
    put(group, structs.replace(made, metadata=structs.replace(made.metadata, creation_timestamp=created)))
    recall_start(group, SPEC, NOW)
    assert group.start is not None
    assert group.start.members == ({"a", "w"} if is_of_it else {"a"})


@pytest.mark.parametrize("spec", [pytest.param(None, id="no object"), pytest.param(WRONG, id="nonsense")])
def test_of_a_group_that_asks_for_nothing_that_is_known_no_start_is_recalled(spec: GroupSpec | None) -> None:
    group = gang()
    group.start = start_of("ab")
    recall_start(group, spec, NOW)
    assert group.start is None


def test_a_start_whose_members_are_on_their_way_was_decided_here() -> None:
    group = gang()
    own = group.start = start_of("bc")
    hold(group, "b", begins=True)
    recall_start(group, SPEC, NOW)
    assert group.start is own
    group.happened("b", MemberEvent.START_CALLED_OFF)
    recall_start(group, SPEC, NOW)
    assert group.start == Start(start_record(ago(3), 3, ABC), frozenset(ABC)), "what pods show counts again"


# Whether it has been whole


def condition(message: str, status: str = "True") -> Condition:
    return Condition(type="Scheduled", status=status, reason="GangScheduled", message=message)


def says(phase: str = "", *conditions: Condition) -> Any:
    return structs.replace(pod_group("g", 3), status=PodGroupStatus(phase=phase, conditions=conditions))


TOLD = condition("minMember of 4 is complete: the gang starts")


@pytest.mark.parametrize(
    ("group", "pod_group", "whole_of"),
    [
        pytest.param(gang("a", "", quorum=2), None, 2, id="its members' record"),
        pytest.param(gang("", "abc"), says("Running"), 0, id="members on no node prove nothing"),
        pytest.param(gang("a", "", quorum=2), says("Running"), 2, id="the record comes before what is asked for now"),
        pytest.param(gang("a", "", quorum=2), says("", TOLD), 4, id="what our condition says, where that is more"),
        pytest.param(gang("a", "", quorum=6), says("", TOLD), 6, id="and the record, where that is"),
        pytest.param(gang("a", "", quorum=2), says("", condition("no", "False")), 2, id="a condition that says no"),
    ],
)
def test_of_how_many_members_a_gang_has_been_whole(group: Group, pod_group: Any, whole_of: int) -> None:
    group.pod_group = pod_group
    recall_once_whole(group, SPEC)
    assert (group.whole_of, group.ended) == (whole_of, {})


@pytest.mark.parametrize(
    ("pod_group", "whole_of"),
    [
        pytest.param(says("Scheduled"), 3, id="its phase"),
        pytest.param(says("Running"), 3, id="a later phase"),
        pytest.param(says("Pending"), 0, id="a phase before"),
        pytest.param(says("", TOLD), 4, id="our condition, with the number of then"),
        pytest.param(says("", condition("started")), 3, id="another's, without a number"),
        pytest.param(says("", condition("minMember of 4", "False")), 0, id="our condition says that it waits"),
        pytest.param(None, 0, id="nothing"),
    ],
)
def test_where_no_record_is_left_the_object_says_that_a_gang_has_been_whole(pod_group: Any, whole_of: int) -> None:
    group = Group("default/g", pod_group)
    put(group, pod("a", "g", node_name="n1"))
    recall_once_whole(group, SPEC)
    assert group.whole_of == whole_of


@pytest.mark.parametrize("spec", [pytest.param(None, id="no object"), pytest.param(WRONG, id="nonsense")])
def test_of_a_group_that_asks_for_nothing_that_is_known_none_says_that_it_was_whole(spec: GroupSpec | None) -> None:
    group = gang("a", "")
    recall_once_whole(group, spec)
    assert group.whole_of == 0


def test_a_gang_that_was_cut_short_has_not_been_whole_and_one_that_was_larger_stays_so() -> None:
    group = gang()
    group.start = start_of("abc")
    recall_once_whole(group, SPEC)
    assert group.whole_of == 0
    whole = gang("a", "", quorum=2)
    whole.whole_of = 5
    recall_once_whole(whole, SPEC)
    assert whole.whole_of == 5


def volcano(phase: str) -> volcanov1beta1.PodGroup:
    return convert(
        {"metadata": {"name": "g", "namespace": "default"}, "status": {"phase": phase}}, volcanov1beta1.PodGroup
    )


@pytest.mark.parametrize(
    ("group", "foreign", "started"),
    [
        pytest.param(Group("default/g"), volcano("Running"), True, id="another system's"),
        pytest.param(Group("default/g"), volcano("Completed"), True, id="another system's that has ended"),
        pytest.param(Group("default/g"), volcano("Inqueue"), False, id="another system's that waits"),
        pytest.param(Group("default/g"), None, False, id="none"),
        pytest.param(Group("default/g", says("Finished")), volcano("Inqueue"), True, id="our own comes before it"),
        pytest.param(Group("default/g", says("Pending")), volcano("Running"), False, id="also where that waits"),
        pytest.param(Group("default/g", in_tree=in_tree("g", 1)), volcano("Running"), False, id="and kube-scheduler's"),
    ],
)
def test_which_object_says_that_a_gang_has_started(
    group: Group, foreign: volcanov1beta1.PodGroup | None, started: bool
) -> None:
    assert says_started(group, foreign) is started


# How long ago


def ended(began: datetime | None) -> EndedPhase:
    return EndedPhase(1, PodInfo(pod("early")), Resource(), began)


@pytest.mark.parametrize(
    ("phase", "seconds"),
    [
        pytest.param(None, 20, id="the newest of its members"),
        pytest.param(ended(ago(5)), 5, id="a newer one of a phase that has ended"),
        pytest.param(ended(ago(500)), 20, id="an older one"),
        pytest.param(ended(None), 20, id="a phase without a record"),
    ],
)
def test_how_long_ago_the_last_start_began(phase: EndedPhase | None, seconds: float) -> None:
    group = gang("a", "c", began=ago(60))
    put(group, bound_by(pod("b", "g", node_name="n1"), 3, ABC, ago(20)))
    put(group, pod("other", "g", node_name="n1"))
    group.ended_phase = phase
    assert seconds_since_start(group, NOW) == seconds


@pytest.mark.parametrize("phase", [pytest.param(None, id="no phase"), pytest.param(ended(None), id="one of others")])
def test_without_a_record_the_last_start_was_for_ever_ago(phase: EndedPhase | None) -> None:
    group = Group("default/g")
    put(group, pod("a", "g", node_name="n1"))
    group.ended_phase = phase
    assert seconds_since_start(group, NOW) == math.inf


def test_a_member_that_leaves_takes_its_record_with_it() -> None:
    group = gang("a", "", began=ago(9))
    put(group, make_pod().name("b").uid("b").pod_group("g").node("n1").obj())
    group_members.forget(group, "a")
    recall_start(group, SPEC, NOW)
    assert (group.start, seconds_since_start(group, NOW)) == (None, math.inf)
    assert StartRecord(ago(9), 3).text() == "2026-03-02T09:59:51Z 3", "so it was written"
