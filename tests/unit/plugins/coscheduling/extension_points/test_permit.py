"""Members wait in Permit until the quorum is there; then all start, or none."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import Mock

import pytest

from extender.framework.cycle_state import CycleState
from extender.plugins.coscheduling.extension_points.permit import CATCH_UP
from tests.unit.plugins.coscheduling.conftest import Waiting, World, node, pod, pod_group
from tests.unit.plugins.coscheduling.kube_scheduler import group

Make = Callable[..., World]


def gang(w: World, size: int, minimum: int, **spec: object) -> list[Waiting]:
    """All but the last member are held."""
    w.plugin.on_pod_group(None, pod_group("g", minimum, **spec))  # type: ignore[arg-type]
    members = [pod(f"p{i}", "g") for i in range(size)]
    w.create(*members)
    held = [w.bind(m, "n1") for m in members[:-1]]
    assert all(isinstance(h, Waiting) for h in held)
    return held  # type: ignore[return-value]


def test_without_the_lease_a_single_pod_is_not_bound_either(world: Make) -> None:
    """It was lost after the call came in: another extender may be giving the room away by now."""
    w = world([node("n1")])
    w.leading = False
    status = w.plugin.gang_permit.check_commit(CycleState(), pod("single"), "n1")
    assert status.message == "not the leader: nothing is committed"
    w.leading = True
    assert w.plugin.gang_permit.check_commit(CycleState(), pod("single"), "n1").success


def test_the_end_of_one_hold_ends_the_others_with_its_cause(world: Make) -> None:
    w = world([node("n1")])
    held = gang(w, 3, 3)
    assert w.plugin.gang_permit.unreserve(
        pod("p0", "g"), "rejected due to timeout after waiting 10s at plugin Coscheduling"
    )
    assert held[1].decision == "rejected: rejected due to timeout after waiting 10s at plugin Coscheduling"


@pytest.mark.parametrize(
    ("cause", "reason", "why"),
    [
        pytest.param(
            "rejected due to timeout after waiting 10s at plugin Coscheduling",
            "GangTimeout",
            "HoldTimedOut",
            id="its time is up",
        ),
        pytest.param("the caller has hung up", "GangRejected", "HoldEnded", id="another cause"),
    ],
)
def test_what_is_told_of_the_end_of_a_hold(cause: str, reason: str, why: str, world: Make) -> None:
    w = world([node("n1")])
    held = gang(w, 3, 3)
    w.told.clear()
    assert w.plugin.gang_permit.unreserve(held[0].pod, cause)
    [(key, verdict)] = w.told
    assert (key, verdict.scheduled, verdict.reason, verdict.why, verdict.message) == (
        "default/g",
        False,
        reason,
        why,
        cause,
    )


def test_the_end_of_the_holds_of_a_gang_is_decided_and_told_once(world: Make) -> None:
    """Each of n holds that ended rejected all others once more: 2,000 held members took seconds."""
    w = world([node("n1", "8")])
    held = gang(w, 6, 6)
    rejections: list[str] = []

    def counted(of: Waiting) -> Callable[[str, str], bool]:
        return lambda plugin, message: rejections.append(of.pod.name) or of._decide(message)  # type: ignore[func-returns-value, redundant-expr]

    for each in held:
        each.reject = counted(each)  # type: ignore[assignment, method-assign]
    w.verdicts.clear()
    cause = "rejected due to timeout after waiting 10s at plugin Coscheduling"
    for each in held:
        assert w.plugin.gang_permit.unreserve(each.pod, cause)
    assert sorted(rejections) == ["p1", "p2", "p3", "p4"]
    assert len(w.verdicts) == 1


def test_a_member_that_comes_while_the_holds_of_its_gang_end_is_let_go_too(world: Make) -> None:
    w = world([node("n1", "8")])
    held = gang(w, 4, 5)
    assert w.plugin.gang_permit.unreserve(held[0].pod, "rejected due to timeout")
    late = w.bind(pod("p3", "g"), "n1")
    assert isinstance(late, Waiting)
    assert w.plugin.gang_permit.unreserve(held[1].pod, "rejected due to timeout")
    assert late.decision == "rejected: rejected due to timeout"


def test_the_others_hear_that_a_member_was_deleted(world: Make) -> None:
    """kube-scheduler's own word for it is `removed`, which says nothing to them."""
    w = world([node("n1")])
    held = gang(w, 3, 3)
    w.plugin.on_pod(pod("p0", "g"), None)
    assert w.plugin.gang_permit.unreserve(pod("p0", "g"), "removed")
    assert held[1].decision == "rejected: a member of the PodGroup was deleted while waiting"
    last_diagnosis = w.plugin.manager.groups["default/g"].last_diagnosis
    assert last_diagnosis is not None
    assert (last_diagnosis.reason, last_diagnosis.message) == (
        "HoldEnded",
        "a member of the PodGroup was deleted while waiting",
    )


def test_a_deleted_member_whose_part_another_can_take_leaves_the_others_waiting(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 3))
    members = [pod(f"p{i}", "g") for i in range(4)]
    w.create(*members)
    first, second = (w.bind(m, "n1") for m in members[:2])
    assert isinstance(first, Waiting)
    assert isinstance(second, Waiting)
    w.plugin.on_pod(members[0], None)
    assert not w.plugin.gang_permit.unreserve(members[0], "removed")
    assert second.decision == ""


def test_a_lower_min_member_starts_the_held_members_and_a_higher_one_keeps_waiting(world: Make) -> None:
    w = world([node("n1")])
    held = gang(w, 3, 3)
    w.plugin.on_pod_group(pod_group("g", 3), pod_group("g", 4))
    assert [h.decision for h in held] == ["", ""]
    w.plugin.on_pod_group(pod_group("g", 4), pod_group("g", 2))
    assert [h.decision for h in held] == ["allowed", "allowed"]


def test_a_pod_group_that_is_deleted_ends_its_holds(world: Make) -> None:
    w = world([node("n1")])
    held = gang(w, 3, 3)
    w.plugin.on_pod_group(pod_group("g", 3), None)
    assert {h.decision for h in held} == {"rejected: the PodGroup was deleted while waiting"}


def test_a_binding_that_fails_in_mid_commit_keeps_its_place_and_stops_no_other(world: Make) -> None:
    w = world([node("n1", "2")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    members = [pod(f"p{i}", "g") for i in range(2)]
    w.create(*members)
    assert [w.filter(m) for m in members] == ["n1", "n1"]
    w.bind(members[0], "n1")
    assert w.bind(members[1], "n1") == "starts"
    w.plugin.gang_permit.bound(members[0], "n1")
    assert not w.plugin.gang_permit.unreserve(members[1], "the binding failed")
    assert w.verdicts[-1] == (
        "default/g GangPartlyBound: the gang has started, but p1 could not be bound to n1: its place is kept,"
        " and it is tried again"
    )
    assert w.filter(members[1]) == "n1"
    assert w.bind(members[1], "n1") == "starts", "the quorum counts bound members"
    assert w.verdicts[-1].startswith("default/g GangScheduled"), "that it is whole now is told too"


@pytest.mark.parametrize(
    ("goes_at", "sleeps", "passes"),
    [
        pytest.param(0, 0, True, id="it has gone: nothing is waited for"),
        pytest.param(2, 2, True, id="it goes meanwhile"),
        pytest.param(99, CATCH_UP.steps, False, id="it stays"),
    ],
)
def test_a_preemptor_waits_moments_for_its_victim_to_be_seen_gone(
    goes_at: int, sleeps: int, passes: bool, world: Make
) -> None:
    w = world([node("n1", "4"), node("n2", "4")])
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == goes_at:
            del w.on_nodes["victim"]

    if goes_at:
        w.on_nodes["victim"] = pod("victim", cpu="4", node_name="n1")
    preemptor = pod("preemptor", cpu="4")
    w.on_nodes["preemptor"] = pod("preemptor", cpu="4", node_name="n1")  # it is assumed there
    status = w.plugin.gang_permit.pre_bind(CycleState(), preemptor, "n1", Mock(sleep=sleep))
    assert (status.success, slept) == (passes, [CATCH_UP.seconds(each) for each in range(1, sleeps + 1)])
    assert passes or "insufficient cpu" in status.message


def test_a_group_that_is_named_no_longer_starts_at_once_where_all_its_members_are_held(world: Make) -> None:
    w = world([node("n1")])
    for each in (group("g", 2, groups="h"), group("h", 2, groups="g")):
        w.plugin.on_pod_group(None, each)
    pods = {name: pod(name, name[0]) for name in ("g0", "g1", "h0", "h1")}
    w.create(*pods.values())
    held = [w.bind(pods[name], "n1") for name in ("g0", "g1")]
    w.plugin.on_pod_group(group("h", 2, groups="g"), group("h", 2))
    assert [each.decision for each in held if isinstance(each, Waiting)] == ["", ""], "it names the other still"
    w.plugin.on_pod_group(group("g", 2, groups="h"), group("g", 2))
    assert [each.decision for each in held if isinstance(each, Waiting)] == ["allowed", "allowed"]
    for name in ("g0", "g1"):
        assert w.plugin.gang_permit.check_commit(CycleState(), pods[name], "n1").success


def test_a_lower_min_member_starts_no_gang_that_names_a_group_which_is_not_there(world: Make) -> None:
    w = world([node("n1")])
    held = gang(w, 3, 3)
    w.plugin.on_pod_group(pod_group("g", 3), group("g", 2, groups="h"))
    w.plugin.gang_permit.recheck(w.plugin.manager.groups["default/g"])
    assert "allowed" not in {each.decision for each in held}
