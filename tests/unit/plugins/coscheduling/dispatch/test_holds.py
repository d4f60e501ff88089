"""Which members wait in Permit, and whose wait ends when one of them, or the gang, is to let go."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from extender.plugins.coscheduling.dispatch.holds import Holds, not_ending, waiting
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.unit.plugins.coscheduling.conftest import FakeClock, pod, pod_group

CAUSE = "no longer"


class Call:
    """A bind call that waits. over: it has ended already."""

    def __init__(self, *, over: bool = False) -> None:
        self.over = over
        self.told = ""

    def allow(self, plugin: str) -> bool:
        return not self.over

    def reject(self, plugin: str, cause: str) -> bool:
        if not self.over:
            self.told = cause
        return not self.over


class Gang:
    """Three members: a and b are held, c is on its way."""

    def __init__(self, manager: PodGroupManager) -> None:
        self.calls = {"a": Call(), "b": Call()}
        self.group = manager.objects.pod_group_changed(pod_group("g", 3))
        for name in "abc":
            manager.pod_changed(pod(name, "g"))
        for name in self.calls:
            self.group.happened(name, MemberEvent.HELD, "n1")
        self.holds = Holds("Coscheduling", manager, self.calls.get)  # type: ignore[arg-type]

    def told(self) -> list[str]:
        return [name for name, call in self.calls.items() if call.told == CAUSE]


@pytest.fixture
def gang() -> Gang:
    return Gang(PodGroupManager(GroupLabels(), denied_seconds=10.0, permitted_seconds=10.0, clock=FakeClock()))


def uids(members: Sequence[tuple[Group, str]]) -> set[str]:
    return {uid for _, uid in members}


def test_the_hold_of_one_member_ends_and_the_others_wait(gang: Gang) -> None:
    gang.holds.reject(gang.group, "a", CAUSE)
    assert (gang.told(), gang.group.ending) == (["a"], {"a"})
    assert (uids(not_ending([gang.group])), uids(waiting([gang.group]))) == ({"b"}, {"a", "b"})


def test_a_member_that_is_not_held_has_no_hold_to_end(gang: Gang) -> None:
    gang.calls["c"] = Call()
    gang.holds.reject(gang.group, "c", CAUSE)
    assert gang.told() == []


def test_all_holds_of_a_gang_end_once(gang: Gang) -> None:
    gang.holds.reject(gang.group, "a", "the first cause")
    gang.holds.reject_all(gang.group, CAUSE)
    assert (gang.told(), gang.group.ending) == (["b"], {"a", "b"})
    assert not_ending([gang.group]) == []


def test_a_member_whose_start_has_begun_does_not_let_go(gang: Gang) -> None:
    gang.group.happened("a", MemberEvent.START_BEGUN)
    gang.holds.end_holds([gang.group], CAUSE)
    assert gang.told() == ["b"]
    assert uids(waiting([gang.group])) == {"b"}


@pytest.mark.parametrize(
    ("over", "lifted"),
    [
        pytest.param((), True, id="all are still there"),
        pytest.param(("b",), False, id="one has been decided otherwise"),
    ],
)
def test_holds_that_are_lifted(gang: Gang, over: Sequence[str], lifted: bool) -> None:
    for name in over:
        gang.calls[name].over = True
    assert gang.holds.lift(["a", "b"]) is lifted


def test_a_hold_that_is_gone_is_not_lifted(gang: Gang) -> None:
    assert not gang.holds.lift(["a", "c"])
