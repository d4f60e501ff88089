"""What a group lacks before it may start, by match policy and by role; and whether it has started, runs, or does so in part."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest

from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.spec.membership import GroupRef
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.roles import ROLE_LABEL, Roles
from extender.plugins.coscheduling.spec.start_record import start_record
from extender.plugins.coscheduling.state import group_members
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent, Start
from extender.plugins.coscheduling.state.quorum import (
    Needs,
    are_enough,
    is_running,
    minima_missed,
    needs,
    note_start,
    schedules_alone,
    settled_members,
    update_once_whole,
)
from tests.unit.plugins.coscheduling.conftest import pod

RUNNING, ONLY, ONCE = MatchPolicy.WAITING_AND_RUNNING, MatchPolicy.ONLY_WAITING, MatchPolicy.ONCE_SATISFIED


def group(members: str, on_node: str = "", committed: str = "", started: str = "", earlier: str = "") -> Group:
    """Each letter is a member; capitals have the role `worker`, the others `master`."""
    made = Group("default/g")
    for name in members:
        role = "worker" if name.isupper() else "master"
        member = pod(name, labels={ROLE_LABEL: role}, node_name="n1" if name in on_node else "")
        group_members.upsert(made, member, GroupRef("default/g"), "gate")
        if name in on_node:
            made.happened(name, MemberEvent.SEEN_BOUND)
        if name in committed:
            made.happened(name, MemberEvent.BINDING_CONFIRMED, "n1")
    made.started = set(started)
    if earlier:  # the others were in the last start
        record = start_record(datetime(2026, 1, 1, tzinfo=UTC), 2, ())
        made.start = Start(record, frozenset(members) - frozenset(earlier))
    return made


def spec(min_member: int, policy: MatchPolicy = RUNNING, minima: Mapping[str, int] = MappingProxyType({})) -> GroupSpec:
    return GroupSpec("default/g", min_member, match_policy=policy, roles=Roles(tuple(minima.items())))


@pytest.mark.parametrize(
    ("asked", "having", "enough"),
    [
        pytest.param(spec(2), 2, True, id="as many as it asks for"),
        pytest.param(spec(2), 3, True, id="more"),
        pytest.param(spec(2), 1, False, id="fewer"),
        pytest.param(spec(2, minima={"worker": 2}), 3, False, id="which of them are workers, the number does not say"),
        pytest.param(spec(2, ONLY), 3, False, id="which of them are of an earlier batch, the number does not say"),
        pytest.param(spec(2, ONCE), 2, True, id="once satisfied asks for no more than that"),
    ],
)
def test_whether_the_number_of_members_alone_says_that_none_is_missing(
    asked: GroupSpec, having: int, enough: bool
) -> None:
    assert are_enough(asked, having) is enough


@pytest.mark.parametrize(
    ("min_member", "minima", "having", "missing"),
    [
        pytest.param(2, {}, "ab", Needs(), id="nothing is missing"),
        pytest.param(2, {}, "abc", Needs(), id="more than enough"),
        pytest.param(3, {}, "a", Needs(2), id="two members"),
        pytest.param(2, {"master": 1, "worker": 1}, "aB", Needs(), id="each role has its minimum"),
        pytest.param(2, {"master": 1, "worker": 2}, "aB", Needs(1, (("worker", 1),)), id="a worker"),
        pytest.param(
            2, {"master": 1, "worker": 2}, "ab", Needs(2, (("worker", 2),)), id="roles count beyond minMember"
        ),
        pytest.param(5, {"master": 1, "worker": 1}, "B", Needs(4, (("master", 1),)), id="minMember beyond the roles"),
        pytest.param(
            2, {"master": 2, "worker": 2}, "", Needs(4, (("master", 2), ("worker", 2))), id="everything, by role"
        ),
        pytest.param(1, {"master": 1}, "ax", Needs(), id="a member that is gone has no role"),
    ],
)
def test_what_is_missing(min_member: int, minima: Mapping[str, int], having: str, missing: Needs) -> None:
    of, asked = group("abcBC"), spec(min_member, minima=minima)
    assert minima_missed(of, asked, set(having)) == missing
    assert needs(of, asked, set(having)) == missing
    assert bool(missing) is (missing.total > 0)


@pytest.mark.parametrize(
    ("policy", "once_whole", "missing"),
    [
        pytest.param(ONCE, True, Needs(), id="a gang that was whole once needs nothing"),
        pytest.param(ONCE, False, Needs(1), id="before its first start it does"),
        pytest.param(RUNNING, True, Needs(1), id="with another policy that counts for nothing"),
    ],
)
def test_once_satisfied(policy: MatchPolicy, once_whole: bool, missing: Needs) -> None:
    of = group("abc")
    of.once_whole = once_whole
    assert needs(of, spec(2, policy), {"a"}) == missing
    assert schedules_alone(of, spec(2, policy), "a") is (not missing)


ROWS: list[Any] = [
    # state, policy, past
    pytest.param({}, ONLY, "", id="none runs"),
    pytest.param({"on_node": "a"}, ONLY, "", id="a fraction is completed first, whatever the policy"),
    pytest.param({"on_node": "a"}, RUNNING, "", id="likewise"),
    pytest.param({"on_node": "ab"}, ONLY, "ab", id="a batch that runs counts for no other"),
    pytest.param({"on_node": "ab"}, RUNNING, "", id="but does with other policies"),
    pytest.param({"on_node": "a", "committed": "b"}, ONLY, "ab", id="one that we have bound runs"),
    pytest.param({"on_node": "a", "started": "b"}, ONLY, "ab", id="one whose start has begun counts no more"),
    pytest.param({"on_node": "abc", "earlier": "ab"}, ONLY, "ab", id="a batch that was cut short is completed"),
    pytest.param({"on_node": "abc", "earlier": "ab"}, RUNNING, "", id="batches are of one policy"),
    pytest.param({"on_node": "abcd", "earlier": "ab"}, ONLY, "abcd", id="one that is whole is over"),
    pytest.param({"on_node": "ab", "earlier": "ab"}, ONLY, "ab", id="none of it runs: there is none to complete"),
    pytest.param({"on_node": "ab", "started": "c", "earlier": "ab"}, ONLY, "abc", id="a start of ours has begun"),
    pytest.param(
        {"on_node": "abc", "started": "def", "earlier": "ab"},
        ONLY,
        "abcdef",
        id="members of a start of ours that are on their way: no batch is cut short",
    ),
]


@pytest.mark.parametrize(("state", "policy", "settled"), ROWS)
def test_which_members_count_no_more(state: dict[str, str], policy: MatchPolicy, settled: str) -> None:
    assert settled_members(group("abcdef", **state), spec(2, policy)) == set(settled)


def test_with_only_waiting_those_of_earlier_starts_count_for_no_other() -> None:
    of = group("abcd", on_node="ab")
    assert needs(of, spec(2, ONLY), set("abc")) == Needs(1)
    assert needs(of, spec(2, RUNNING), set("abc")) == Needs()


def test_with_only_waiting_a_started_member_schedules_alone() -> None:
    of = group("ab", started="a")
    assert [schedules_alone(of, spec(2, ONLY), uid) for uid in "ab"] == [True, False]
    assert not schedules_alone(of, spec(2, RUNNING), "a")


@pytest.mark.parametrize(
    ("state", "policy", "running"),
    [
        pytest.param({}, RUNNING, False, id="none runs"),
        pytest.param({"on_node": "a"}, RUNNING, False, id="less than minMember"),
        pytest.param({"on_node": "ab"}, RUNNING, True, id="minMember, though more could come"),
        pytest.param({"on_node": "ab"}, ONLY, False, id="with only-waiting the rest is a gang that waits"),
        pytest.param({"on_node": "abc"}, ONLY, True, id="all of them"),
        pytest.param({"on_node": "ab", "started": "c"}, ONLY, True, id="or on their way"),
        pytest.param({"on_node": "a"}, ONLY, False, id="a fraction"),
    ],
)
def test_whether_no_member_waits_any_more(state: dict[str, str], policy: MatchPolicy, running: bool) -> None:
    assert is_running(group("abc", **state), spec(2, policy)) is running


def test_all_members_of_a_fraction_run_and_wait_for_more() -> None:
    assert not is_running(group("a", on_node="a"), spec(2, ONLY))


def test_a_batch_is_whole_with_its_roles() -> None:
    of = group("abcD", on_node="abc", earlier="a")
    assert settled_members(of, spec(2, ONLY, {"master": 1, "worker": 1})) == {"a"}, "its worker has been left behind"


def test_a_gang_of_which_no_member_is_needed_runs_only_with_one_on_a_node() -> None:
    assert not is_running(group("a"), spec(0))


def test_of_those_that_start_the_ones_on_nodes_have_arrived() -> None:
    of = group("abc", on_node="a", started="c")
    note_start(of, frozenset("ab"))
    assert of.started == {"b", "c"}


def test_a_group_without_needs_has_started_once_and_starts_anew_when_none_is_left() -> None:
    of, asked = group("abc", on_node="ab", started="c"), spec(2, ONCE)
    update_once_whole(of, asked)
    assert (of.once_whole, of.started) == (True, {"c"})
    for event in (MemberEvent.HELD, MemberEvent.START_BEGUN):
        of.happened("c", event, "n1")
    for uid in "ab":
        of.happened(uid, MemberEvent.GONE)
    update_once_whole(of, asked)
    assert of.once_whole, "a start is under way"
    of.happened("c", MemberEvent.GONE)
    update_once_whole(of, asked)
    assert (of.once_whole, of.started) == (False, set())


@pytest.mark.parametrize(
    ("state", "asked", "whole"),
    [
        pytest.param({"on_node": "a"}, spec(2, ONCE), False, id="a fraction is not whole"),
        pytest.param({"on_node": "ab"}, spec(2, RUNNING), False, id="the default policy does not ask"),
        pytest.param({"on_node": "ab"}, None, False, id="no object: nothing is known"),
        pytest.param(
            {"on_node": "ab"}, GroupSpec("default/g", 2, invalid="no", match_policy=ONCE), False, id="invalid"
        ),
        pytest.param({"on_node": "a", "committed": "b"}, spec(2, ONCE), True, id="one that we have bound counts"),
    ],
)
def test_whether_a_gang_has_been_whole(state: dict[str, str], asked: GroupSpec | None, whole: bool) -> None:
    of = group("abc", **state)
    update_once_whole(of, asked)
    assert of.once_whole is whole
