"""Each way of a pod into a group and out of it, by the watch and by calls that come early or late."""

from __future__ import annotations

import pytest

from extender.api import corev1
from extender.plugins.coscheduling.state.group_members import GONE_SECONDS, UNSEEN_SECONDS, KnownPods
from tests.unit.plugins.coscheduling.conftest import FakeClock, pod

POD = pod("p", "g")


def known() -> tuple[KnownPods, FakeClock]:
    clock = FakeClock()
    return KnownPods(clock), clock


def test_a_member_is_in_its_group_until_it_leaves() -> None:
    pods, _ = known()
    assert (POD.uid in pods, pods.group_of(POD.uid)) == (False, "")
    pods.joins(POD.uid, "default/g", by_call=False)
    assert (POD.uid in pods, pods.group_of(POD.uid)) == (True, "default/g")
    pods.leaves(POD.uid, held=False)
    assert (POD.uid in pods, pods.group_of(POD.uid), pods.holder_of(POD.uid)) == (False, "", "")


def test_what_only_a_call_has_shown_counts_for_a_while() -> None:
    pods, clock = known()
    pods.joins(POD.uid, "default/g", by_call=True)
    clock.now += UNSEEN_SECONDS - 0.1
    assert pods.unseen() == []
    clock.now += 0.1
    assert pods.unseen() == [POD.uid]


@pytest.mark.parametrize("leaves", [False, True], ids=["seen by the watch", "left again"])
def test_what_the_watch_shows_or_has_left_is_waited_for_no_more(leaves: bool) -> None:
    pods, clock = known()
    pods.joins(POD.uid, "default/g", by_call=True)
    if leaves:
        pods.leaves(POD.uid, held=False)
    else:
        pods.joins(POD.uid, "default/g", by_call=False)
    clock.now += UNSEEN_SECONDS
    assert pods.unseen() == []


@pytest.mark.parametrize(
    ("joined", "by_call", "asked", "may"),
    [
        pytest.param("", False, POD, True, id="a pod that was not known"),
        pytest.param("default/g", False, POD, False, id="a member, of the same group"),
        pytest.param("default/h", False, POD, False, id="the watch has shown it in another"),
        pytest.param("default/h", True, POD, True, id="only a call has: the latest counts"),
        pytest.param("default/g", True, POD, False, id="a call has shown it there already"),
        pytest.param("", False, pod("p", "g", deleting=True), False, id="a pod that is being deleted"),
    ],
)
def test_which_calls_show_a_member(joined: str, by_call: bool, asked: corev1.Pod, may: bool) -> None:
    pods, _ = known()
    if joined:
        pods.joins(POD.uid, joined, by_call=by_call)
    assert pods.may_join_by_call(asked, "default/g") is may


def test_no_late_call_brings_back_a_pod_that_is_gone() -> None:
    pods, clock = known()
    pods.goes(POD.uid)
    assert (pods.is_gone(POD.uid), pods.may_join_by_call(POD, "default/g")) == (True, False)
    clock.now += GONE_SECONDS
    assert (pods.is_gone(POD.uid), pods.may_join_by_call(POD, "default/g")) == (False, True)


def test_a_pod_that_was_taken_for_gone_may_come_back() -> None:
    pods, _ = known()
    pods.comes_back(POD.uid)
    pods.goes(POD.uid)
    pods.comes_back(POD.uid)
    assert (pods.is_gone(POD.uid), pods.may_join_by_call(POD, "default/g")) == (False, True)


def test_a_pod_that_the_watch_shows_again_is_not_gone() -> None:
    """An etcd that was restored has it back, under its old UID. A call may be late."""
    pods, _ = known()
    pods.goes(POD.uid)
    pods.joins(POD.uid, "default/g", by_call=True)
    assert pods.is_gone(POD.uid)
    pods.joins(POD.uid, "default/g", by_call=False)
    assert not pods.is_gone(POD.uid)


def left_while_held() -> KnownPods:
    pods, _ = known()
    pods.joins(POD.uid, "default/g", by_call=False)
    pods.leaves(POD.uid, held=True)
    return pods


def test_the_group_that_holds_a_pod_keeps_it_until_its_call_ends() -> None:
    pods = left_while_held()
    assert (POD.uid in pods, pods.holder_of(POD.uid)) == (False, "default/g")
    pods.hold_is_over(POD.uid, "default/other")
    assert pods.holder_of(POD.uid) == "default/g"
    pods.hold_is_over(POD.uid, "default/g")
    assert pods.holder_of(POD.uid) == ""
    pods.hold_is_over(POD.uid, "default/g")


@pytest.mark.parametrize(("key", "holder"), [("default/g", ""), ("default/h", "default/g")])
def test_a_held_pod_that_comes_back_to_its_group_has_not_left(key: str, holder: str) -> None:
    pods = left_while_held()
    pods.joins(POD.uid, key, by_call=False)
    assert (pods.group_of(POD.uid), pods.holder_of(POD.uid)) == (key, holder)
