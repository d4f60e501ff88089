"""Members whose claims kube-scheduler is still to bind come late: holds and leases last that much longer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from extender.api import corev1
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group
from tests.unit.plugins.coscheduling.kube_scheduler import group

Make = Callable[..., World]
CLAIM: dict[str, Any] = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


@pytest.fixture
def unbound() -> set[str]:
    """Names of the pods whose claims are not bound."""
    return {"late"}


@pytest.fixture
def gang(world: Make, unbound: set[str]) -> tuple[World, dict[str, corev1.Pod]]:
    w = world([node("n1")])
    w.connect(has_unbound_claims=lambda each: each.name in unbound, hold_limit=lambda members: 1000.0)
    w.plugin.on_pod_group(None, pod_group("g", 3))
    members = {name: pod(name, "g", **(CLAIM if name == "late" else {})) for name in ("a", "b", "late")}
    w.create(*members.values())
    for each in members.values():
        w.filter(each)
    return w, members


def hold(w: World, member: corev1.Pod) -> float:
    status, seconds = w.plugin.gang_permit.permit(member, "n1", 60.0)
    assert status.wait
    return seconds


def test_siblings_of_a_member_in_pre_bind_are_held_as_long_as_that_may_take(
    gang: tuple[World, dict[str, corev1.Pod]],
) -> None:
    w, members = gang
    assert hold(w, members["a"]) == 660


def test_never_beyond_what_leaves_the_commit_its_time(world: Make) -> None:
    w = world([node("n1")])
    w.connect(has_unbound_claims=lambda each: True, hold_limit=lambda members: 115.0)
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(first := pod("a", "g"), pod("late", "g", **CLAIM))
    w.filter(first)
    assert hold(w, first) == 115


def test_a_member_that_comes_after_it_is_held_no_longer_than_any(gang: tuple[World, dict[str, corev1.Pod]]) -> None:
    w, members = gang
    assert hold(w, members["late"]) == 60
    assert hold(w, members["a"]) == 60


def test_claims_that_are_bound_take_no_time(gang: tuple[World, dict[str, corev1.Pod]], unbound: set[str]) -> None:
    w, members = gang
    unbound.clear()
    assert hold(w, members["a"]) == 60


def test_a_member_without_its_place_is_not_waited_for(gang: tuple[World, dict[str, corev1.Pod]]) -> None:
    w, members = gang
    w.plugin.rounds.drop_plan("default/g")
    assert hold(w, members["a"]) == 60


@pytest.mark.parametrize(
    ("members_go_too", "message"),
    [
        pytest.param(True, "PodGroup default/b, which it is to start together with, is not found", id="with its pods"),
        pytest.param(False, "PodGroup default/b, which it is to start together with, cannot start", id="without them"),
    ],
)
def test_a_member_that_comes_after_the_group_it_starts_with_is_gone_is_not_held(
    world: Make, members_go_too: bool, message: str
) -> None:
    w = world([node("n1")])
    peer_gang = group("b")
    w.plugin.on_pod_group(None, group("a", groups="b"))
    w.plugin.on_pod_group(None, peer_gang)
    w.create(late := pod("a0", "a", **CLAIM), pod("a1", "a"), other := pod("b0", "b"), pod("b1", "b"))
    assert w.filter(late) == "n1"
    if members_go_too:
        for each in (other, pod("b1", "b")):
            w.plugin.on_pod(each, None)
    w.plugin.on_pod_group(peer_gang, None)
    status, _ = w.plugin.gang_permit.permit(late, "n1", 60.0)
    assert not status.wait
    assert status.message.startswith(message)
    assert not w.plugin.manager.groups["default/a"].held


def test_the_place_of_a_member_in_pre_bind_is_kept_for_it(gang: tuple[World, dict[str, corev1.Pod]]) -> None:
    w, members = gang
    hold(w, members["a"])
    hold(w, members["b"])
    w.clock.now += 600
    w.plugin.tick()
    assert w.plugin.manager.slots.get("late") is not None
    w.clock.now += 61
    w.plugin.tick()
    assert w.plugin.manager.slots.get("late") is None
