"""Which checks are passed over for a gang that is on its way, and which member of one waits for no other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.scheduling.checks import failed_check
from extender.plugins.coscheduling.state.diagnosis import FailedCheck
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason as Why
from extender.plugins.coscheduling.state.group import Gathering, Group, Preempting
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node
from tests.unit.plugins.coscheduling.starting import cut_short

NAME = member("x").spec.scheduler_name
RECENTLY = FailedCheck(Why.BACKING_OFF, "podGroup default/g failed recently", "podGroup default/g failed recently")
WITHOUT_B = "PodGroup default/b, which it is to start together with, is not found or does not name it"
CANNOT_START = "PodGroup default/b, which it is to start together with, cannot start: "


@pytest.fixture
def kube(world: Callable[..., World]) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "8")]))


def held_back(pod: corev1.Pod) -> corev1.Pod:
    """By a scheduling gate that is not ours."""
    return structs.replace(pod, spec=structs.replace(pod.spec, scheduling_gates=(corev1.PodSchedulingGate("other"),)))


def companion(text: str) -> FailedCheck:
    return FailedCheck(Why.COMPANION_NOT_READY, text, text, told=text)


def check(kube: KubeScheduler, name: str = "g0", key: str = "default/g") -> FailedCheck | None:
    manager = kube.plugin.manager
    with manager.lock:
        return failed_check(manager, manager.groups[key], NAME, name, f"default/{name}")


@contextmanager
def for_now(group: Group, **fields: Any) -> Iterator[None]:
    """These fields are as said in here, and what they were after it."""
    before = {name: getattr(group, name) for name in fields}
    for name, value in fields.items():
        setattr(group, name, value)
    yield
    for name, value in before.items():
        setattr(group, name, value)


def _one_missing(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3))
    kube.create(*members(2))


def _gates(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2))
    kube.create(member("g0"), held_back(member("g1")))


def test_a_gang_for_which_pods_are_evicted_is_not_planned_meanwhile(kube: KubeScheduler) -> None:
    _one_missing(kube)
    with for_now(kube.plugin.manager.groups["default/g"], preempting=Preempting({"v"}, ("default/v",), math.inf)):
        assert check(kube) == FailedCheck(Why.PREEMPTING, messages.PREEMPTING, messages.PREEMPTING)


def test_a_gang_waits_for_one_that_is_short_of_the_room_of_its_victims(kube: KubeScheduler) -> None:
    """Its own member that schedules alone would not wait for it: one that starts with it does."""
    kube.apply(group(groups="b"), group("b", 2, match_policy="once-satisfied"))
    kube.create(*members(2), *(on_node(pod, "n1") for pod in members(2, "b")), member("b2", "b"))
    other = kube.plugin.manager.groups["default/b"]
    assert check(kube) is None
    with for_now(other, preempting=Preempting({"v"}, ("default/v",), math.inf)):
        assert check(kube) is None
    other.once_whole = False
    with for_now(other, preempting=Preempting({"v"}, ("default/v",), math.inf)):
        assert check(kube) == companion(f"{CANNOT_START}{messages.PREEMPTING}")
    other.once_whole = True


def test_a_gang_that_has_room_for_its_members_to_come_may_be_planned_before_they_are_there(kube: KubeScheduler) -> None:
    _one_missing(kube)
    gang, noted = kube.plugin.manager.groups["default/g"], kube.plugin.early_starts._keys
    with for_now(gang, gathering=Gathering(0.0, 0.0)):
        assert check(kube) is None
    assert "default/g" not in noted


def test_a_gang_with_its_places_is_asked_for_no_gate(kube: KubeScheduler) -> None:
    """It was planned before the gate of another was there."""
    _gates(kube)
    with for_now(kube.plugin.manager.groups["default/g"], planned=True):
        assert check(kube) is None


def test_a_start_that_was_cut_short_is_finished_whatever_error_came_last(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2))
    kube.create(on_node(member("g0"), "n1"), member("g1"))
    manager = kube.plugin.manager
    manager.groups["default/g"].errors.failed("default/g1", manager.clock())
    assert check(kube, "g1") == RECENTLY
    cut_short(manager, "default/g")
    assert check(kube, "g1") is None


def test_a_member_that_schedules_alone_waits_for_no_bind_call_and_no_other_group(kube: KubeScheduler) -> None:
    kube.apply(group(match_policy="once-satisfied", groups="b"))
    kube.create(*(on_node(pod, "n1") for pod in members(2, prefix="r")), member("g0"))
    kube.plugin.manager.max_held_binds = 0
    assert check(kube) == companion(WITHOUT_B)
    kube.apply(group(match_policy="once-satisfied"))
    assert check(kube) is None
