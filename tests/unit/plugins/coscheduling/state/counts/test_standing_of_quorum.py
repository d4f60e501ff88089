"""A gang's priority and age as they are read off its members alone: with an object's own priority, without a quorum, and of unknown age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from msgspec import structs

from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.membership import GroupRef
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.roles import ROLE_LABEL, Roles
from extender.plugins.coscheduling.state.counts.standing import Standing, counts_at, standing_of
from extender.plugins.coscheduling.state.member import Member
from tests.unit.plugins.coscheduling.conftest import pod

SPEC = GroupSpec("default/g", 2)
OBJECT = datetime(2025, 1, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


def member(priority: int = 0, created: int | None = None, role: str = "") -> Member:
    made = pod("p", priority=priority, labels={ROLE_LABEL: role} if role else {})
    stamp = day(created) if created is not None else None
    made = structs.replace(made, metadata=structs.replace(made.metadata, creation_timestamp=stamp))
    return Member(PodInfo(made), GroupRef("default/g"))


def standing(spec: GroupSpec | None, *members: Member) -> Standing:
    known = {f"p{number}": each for number, each in enumerate(members)}
    return standing_of(known, Counter(each.pod.priority for each in members), spec)


@pytest.mark.parametrize(
    ("spec", "members", "expected"),
    [
        pytest.param(SPEC, [], Standing(0, None), id="no members"),
        pytest.param(SPEC, [member(5, 1)], Standing(5, None), id="one too few"),
        pytest.param(SPEC, [member(5, 1), member(3, 2)], Standing(3, day(2)), id="as many as it asks for"),
        pytest.param(
            SPEC, [member(5, 1), member(3, 2), member(4, 9)], Standing(4, day(2)), id="priority and age are read apart"
        ),
        pytest.param(None, [member(5, 1), member(3, 2)], Standing(3, None), id="no object: there is no quorum"),
        pytest.param(
            replace(SPEC, invalid="nonsense"),
            [member(5, 1), member(3, 2)],
            Standing(3, None),
            id="it asks for nonsense",
        ),
        pytest.param(
            replace(SPEC, priority=7), [member(5, 1), member(3, 2)], Standing(7, day(2)), id="its object's own priority"
        ),
        pytest.param(replace(SPEC, priority=7), [member(5, 1)], Standing(7, None), id="likewise, without a quorum"),
        pytest.param(
            replace(SPEC, priority=0), [member(5, 1), member(3, 2)], Standing(0, day(2)), id="its object's own, of 0"
        ),
    ],
)
def test_what_a_gang_stands_at(spec: GroupSpec | None, members: Sequence[Member], expected: Standing) -> None:
    assert standing(spec, *members) == expected


@pytest.mark.parametrize(
    ("created", "since"),
    [
        pytest.param([3, 1, 2], day(2), id="of three the second"),
        pytest.param([3, None, 2], day(3), id="one of unknown age is none of the quorum, where others are enough"),
        pytest.param([3, None, None], OBJECT, id="too few of known age: its object's"),
    ],
)
def test_since_when_a_quorum_is_there(created: Sequence[int | None], since: datetime) -> None:
    assert standing(replace(SPEC, created=OBJECT), *(member(0, each) for each in created)).since == since


def test_a_quorum_of_unknown_age_of_a_group_without_an_age_has_none() -> None:
    assert standing(SPEC, member(), member()) == Standing(0, None)


ROLES = replace(SPEC, min_member=3, roles=Roles((("leader", 1), ("worker", 2), ("spare", 0))))


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param(
            [member(9, 1, "leader"), member(8, 2, "worker"), member(7, 3, "worker")],
            Standing(7, day(3)),
            id="each role has its minimum",
        ),
        pytest.param(
            [member(9, 1, "leader"), member(8, 2, "worker"), member(7, 3, "spare")],
            Standing(7, None),
            id="a role is short",
        ),
        pytest.param(
            [member(2, 9, "leader"), *(member(8, number, "worker") for number in (1, 2, 3))],
            Standing(2, day(9)),
            id="the role that came last, and is the least important",
        ),
        pytest.param(
            [member(9, 1, "leader"), *(member(8, number, "worker") for number in (2, 3)), member(1, 5, "spare")],
            Standing(8, day(3)),
            id="a role that may be missing",
        ),
    ],
)
def test_what_a_gang_with_roles_stands_at(members: Sequence[Member], expected: Standing) -> None:
    assert standing(ROLES, *members) == expected


def test_a_member_counts_at_its_own_priority_where_its_gang_s_is_higher() -> None:
    assert [counts_at(own, 5) for own in (3, 5, 9)] == [3, 5, 5]
