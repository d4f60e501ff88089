"""Roles are counted as members come and go; whatever is asked, the answer is that of counting anew, and costs no look at all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.membership import GroupRef
from extender.plugins.coscheduling.spec.roles import Roles
from extender.plugins.coscheduling.state.counts.role_counts import RoleCounts
from extender.plugins.coscheduling.state.member import Member
from tests.objects import make_pod

LABELS = ("gang-extender.dev/role", "example.com/part")
NAMES = ("leader", "worker", "other", "")


def pod(uid: str, role: str, part: str) -> corev1.Pod:
    return make_pod().name(uid).uid(uid).label(LABELS[0], role).label(LABELS[1], part).obj()


class Looked(Roles):
    """Counts how often a member is looked at."""

    looks = 0

    def role_of(self, pod: corev1.Pod) -> str:
        Looked.looks += 1
        return super().role_of(pod)


@pytest.fixture
def gang() -> tuple[RoleCounts, dict[str, Member]]:
    """A leader and 99 workers."""
    counts, members = RoleCounts(), {}
    for number in range(100):
        made = pod(f"p{number}", "worker" if number else "leader", "")
        members[made.uid] = Member(PodInfo(made), GroupRef("default/g"))
        counts.add(made)
    return counts, members


MINIMA = (("leader", 1), ("worker", 99))


@pytest.mark.parametrize(
    ("number", "looks"),
    [
        pytest.param(100, 0, id="all: none is looked at"),
        pytest.param(98, 2, id="nearly all: those that are missing"),
        pytest.param(3, 3, id="a few: those"),
        pytest.param(0, 0, id="none"),
    ],
)
def test_the_fewer_are_looked_at(number: int, looks: int, gang: tuple[RoleCounts, dict[str, Member]]) -> None:
    counts, members = gang
    Looked.looks = 0
    found = counts.among(frozenset(list(members)[:number]), members, Looked(MINIMA))
    assert {role: found[role] for role, _ in MINIMA if found[role]} == {
        role: each for role, each in (("leader", min(1, number)), ("worker", max(0, number - 1))) if each
    }
    assert Looked.looks == looks


def test_a_pod_that_is_no_member_has_no_role(gang: tuple[RoleCounts, dict[str, Member]]) -> None:
    counts, members = gang
    assert counts.among({"p0", "gone"}, members, Roles(MINIMA))["leader"] == 1
    assert counts.among({*members, "gone"}, members, Roles(MINIMA))["worker"] == 99


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(NAMES), st.sampled_from(NAMES), st.booleans()), max_size=12
    ),
    asked=st.sets(st.integers(0, 4)),
    labels=st.lists(st.sampled_from(LABELS), min_size=1, max_size=3),
)
def test_the_answer_is_that_of_counting_anew(
    steps: list[tuple[int, str, str, bool]], asked: set[int], labels: list[str]
) -> None:
    """Also after the owner has named another label, and back."""
    counts, members = RoleCounts(), dict[str, Member]()
    for number, role, part, goes in steps:
        made = pod(f"p{number}", role, part)
        if made.uid in members:
            counts.remove(members.pop(made.uid).pod)
        if not goes:
            members[made.uid] = Member(PodInfo(made), GroupRef("default/g"))
            counts.add(made)
    uids = {f"p{number}" for number in asked}
    for label in labels:
        roles = Roles(tuple((name, 1) for name in NAMES), label)
        found = counts.among(uids, members, roles)
        for name in NAMES:
            there = [uid for uid in uids & members.keys() if roles.role_of(members[uid].pod) == name]
            assert found[name] == len(there)
