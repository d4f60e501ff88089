"""What a group notes of a member that comes, changes, gets to a node and goes: and that nothing is left of one that went."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from extender.api import corev1
from extender.api.schedulingv1alpha1 import GANG_READY
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.keys import START
from extender.plugins.coscheduling.spec.membership import GroupRef
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.start_record import start_record
from extender.plugins.coscheduling.state import group_members
from extender.plugins.coscheduling.state.counts.standing import Standing
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import Effect, MemberEvent, MemberState, Start
from tests.unit.plugins.coscheduling.conftest import pod

OURS = "gate"
REF = GroupRef("default/g")
BY_LABELS = GroupRef("default/g", lightweight=True, min_available="2")
SPEC = GroupSpec("default/g", 2)
GATED = [{"name": OURS}]
REFUSED = corev1.PodCondition(type="PodScheduled", status="False", reason="Unschedulable")
SENT = corev1.PodCondition(type=GANG_READY, status="True")


def put(group: Group, made: corev1.Pod, ref: GroupRef = REF) -> tuple[Effect, ...]:
    return group_members.upsert(group, made, ref, OURS)


def group_with(*pods: corev1.Pod, ref: GroupRef = REF) -> Group:
    """Its spec and standing are computed, as at a look at it."""
    group = Group("default/g")
    for each in pods:
        put(group, each, ref)
    group.spec, group.standing = SPEC, Standing(0, None)
    return group


def state_of(group: Group, uid: str = "p") -> MemberState:
    return group.members[uid].state


def test_a_member_counts_with_its_priority_and_its_scheduler() -> None:
    group = group_with(pod("p", priority=5, schedulerName="s"))
    put(group, pod("q", priority=5, schedulerName="s"))
    assert (dict(group.priorities), group.of_scheduler) == ({5: 2}, {"s": {"p", "q"}})
    assert group.standing is None, "its standing is computed anew"
    assert state_of(group) is MemberState.QUEUED


def test_a_changed_member_counts_once_as_it_is_now() -> None:
    group = group_with(pod("p", priority=5, schedulerName="s"), pod("q", priority=5, schedulerName="s"))
    changed = pod("p", priority=7, schedulerName="t")
    put(group, changed, BY_LABELS)
    assert (dict(group.priorities), group.of_scheduler) == ({5: 1, 7: 1}, {"s": {"q"}, "t": {"p"}})
    assert (group.members["p"].pod, group.members["p"].ref, group.standing) == (changed, BY_LABELS, None)
    put(group, pod("q", priority=7, schedulerName="t"))
    assert (dict(group.priorities), group.of_scheduler) == ({7: 2}, {"t": {"p", "q"}})


CLAIM: dict[str, Any] = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


STEPS = ["_recount", "_follow_step", "_follow_saying", "claim_uses", "_follow_gate", "_came_to_node"]


def faulty(*args: object) -> None:
    raise ArithmeticError("a fault of ours")


@pytest.mark.parametrize("step", STEPS)
def test_a_fault_while_a_new_member_is_taken_in_leaves_nothing_of_it(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stayed for good where the pod went before its event came again, or was counted as none where it came."""
    group = group_with(pod("other", priority=5, schedulerName="s"))
    new = pod(
        "p", priority=5, schedulerName="s", schedulingGates=GATED, node_name="n1" if step == "_came_to_node" else ""
    )
    with monkeypatch.context() as patched:
        patched.setattr(group_members, step, faulty)
        with pytest.raises(ArithmeticError):
            put(group, new)
        assert (list(group.members), dict(group.priorities), group.of_scheduler, group.gated, group.assigned) == (
            ["other"],
            {5: 1},
            {"s": {"other"}},
            set(),
            set(),
        )
    put(group, new)
    assert (dict(group.priorities), group.of_scheduler) == ({5: 2}, {"s": {"other", "p"}})


@pytest.mark.parametrize("step", ["_recount", "_follow_step", "_follow_saying"])
def test_a_fault_while_a_change_of_a_member_is_taken_in_leaves_it_as_it_was(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = group_with(pod("p", priority=5, schedulerName="s"))
    with monkeypatch.context() as patched:
        patched.setattr(group_members, step, Mock(side_effect=[ArithmeticError, None, None]))
        with pytest.raises(ArithmeticError):
            put(group, pod("p", priority=7, schedulerName="t"))
    assert (group.members["p"].pod.priority, dict(group.priorities), group.of_scheduler) == (5, {5: 1}, {"s": {"p"}})
    put(group, pod("p", priority=7, schedulerName="t"))
    assert (dict(group.priorities), group.of_scheduler) == ({7: 1}, {"t": {"p"}})


def test_members_with_claims_are_noted() -> None:
    group = group_with(pod("p", **CLAIM), pod("q"))
    assert group.claiming == {"p"}
    group.claiming.clear()
    put(group, pod("p", **CLAIM))
    assert group.claiming == set(), "they are noted when they come"


def annotated(name: str, **annotations: str) -> corev1.Pod:
    bare = pod(name)
    return replace(bare, metadata=replace(bare.metadata, annotations=annotations))


@pytest.mark.parametrize(
    ("before", "after", "anew"),
    [
        pytest.param((None, None), (pod("p"), BY_LABELS), True, id="a pod that comes, with labels alone"),
        pytest.param((None, None), (pod("p"), REF), False, id="a pod that comes, with an object"),
        pytest.param((pod("p"), BY_LABELS), (pod("p", priority=1), BY_LABELS), False, id="a pod that says the same"),
        pytest.param(
            (pod("p"), BY_LABELS),
            (pod("p"), GroupRef("default/g", lightweight=True, min_available="3")),
            True,
            id="another minimum",
        ),
        pytest.param((pod("p"), BY_LABELS), (pod("p"), REF), True, id="its labels name an object now"),
        pytest.param((pod("p"), REF), (pod("p"), BY_LABELS), True, id="its labels say all now"),
        pytest.param(
            (pod("p"), REF), (annotated("p", **{"gang-extender.dev/roles": "a=1"}), REF), True, id="beside an object"
        ),
        pytest.param(
            (pod("p"), BY_LABELS),
            (annotated("p", **{"gang-extender.dev/roles": "a=1"}), BY_LABELS),
            True,
            id="another wish",
        ),
    ],
)
def test_a_gang_asks_anew_when_its_pods_say_something_else(before: Any, after: Any, anew: bool) -> None:
    group = group_with()
    if before[0] is not None:
        put(group, *before)
    group.spec = SPEC
    put(group, *after)
    assert (group.spec is None) is anew


@pytest.mark.parametrize(
    ("now", "alike"),
    [
        pytest.param(annotated("p", a="1"), True, id="as before"),
        pytest.param(annotated("p", a="1", **{START: "3 members"}), True, id="our record of its start beside it"),
        pytest.param(annotated("p", a="2"), False, id="another annotation"),
        pytest.param(annotated("p", **{START: "3 members"}), False, id="our record, and an annotation is gone"),
        pytest.param(pod("p", priority=1), False, id="another priority"),
        pytest.param(pod("p", schedulerName="s"), False, id="another scheduler"),
        pytest.param(pod("p", group="g"), False, id="another label"),
    ],
)
def test_which_changes_leave_a_member_to_count_as_before(now: corev1.Pod, alike: bool) -> None:
    assert group_members.counts_alike(annotated("p", a="1"), now) is alike


@pytest.mark.parametrize(
    ("gates", "node", "gated"),
    [
        pytest.param([OURS], "", True, id="our gate alone"),
        pytest.param([OURS, "theirs"], "", False, id="another's beside it"),
        pytest.param(["theirs"], "", False, id="another's alone"),
        pytest.param([], "", False, id="none"),
        pytest.param([OURS], "n1", False, id="on a node, whatever the gates say"),
    ],
)
def test_which_members_our_gate_holds(gates: list[str], node: str, gated: bool) -> None:
    made = pod("p", node_name=node, schedulingGates=[{"name": name} for name in gates])
    group = group_with(made)
    assert group.gated == ({"p"} if gated else set())
    assert (state_of(group) is MemberState.GATED) is gated


def test_a_gate_that_goes_lets_the_member_into_the_line() -> None:
    group = group_with(pod("p", schedulingGates=GATED))
    put(group, pod("p"))
    assert (group.gated, state_of(group)) == (set(), MemberState.QUEUED)


def test_a_gate_is_taken_in_once() -> None:
    """What has happened since is not undone by the next event of the watch."""
    group = group_with(pod("p", schedulingGates=GATED))
    group.happened("p", MemberEvent.DISPATCHED)
    put(group, pod("p", schedulingGates=GATED, priority=1))
    assert (group.gated, state_of(group)) == ({"p"}, MemberState.DISPATCHED)


def conditioned(*conditions: corev1.PodCondition, nominated: str = "", node_name: str = "") -> corev1.Pod:
    bare = pod("p", node_name=node_name)
    return replace(bare, status=replace(bare.status, conditions=conditions, nominated_node_name=nominated))


@pytest.mark.parametrize(
    ("shown", "state", "nomination"),
    [
        pytest.param(conditioned(), MemberState.QUEUED, None, id="nothing"),
        pytest.param(conditioned(REFUSED), MemberState.QUEUED, None, id="a refusal is taken in elsewhere"),
        pytest.param(conditioned(SENT, nominated="n1"), MemberState.DISPATCHED, "", id="we have sent it to a place"),
        pytest.param(conditioned(SENT), MemberState.QUEUED, None, id="and taken the nomination back"),
        pytest.param(conditioned(nominated="n1"), MemberState.QUEUED, None, id="a nomination that is not ours"),
        pytest.param(
            conditioned(REFUSED, SENT, nominated="n1"), MemberState.DISPATCHED, "", id="sent, and refused there"
        ),
        pytest.param(conditioned(REFUSED, node_name="n1"), MemberState.BOUND, None, id="on a node, it waits no more"),
    ],
)
def test_what_a_new_member_shows_of_the_time_before(
    shown: corev1.Pod, state: MemberState, nomination: str | None
) -> None:
    group = group_with(shown)
    group_members.restore(group, shown)
    assert (state_of(group), group.members["p"].nomination) == (state, nomination)


def test_what_is_held_is_past_what_its_conditions_say() -> None:
    group = group_with(pod("p"))
    group.happened("p", MemberEvent.HELD, "n1")
    group_members.restore(group, conditioned(REFUSED, SENT, nominated="n1"))
    assert (state_of(group), group.members["p"].nomination) == (MemberState.WAITING, None)


def on_its_way() -> tuple[Group, Mock]:
    """A member of which everything is noted that can be noted of its way."""
    group, call = group_with(pod("p")), Mock()
    member = group.members["p"]
    member.nomination, member.last_rejection, member.rejected_in_tree = "n1", "no", 7
    group.started.add("p")
    group.calls["p"] = call
    return group, call


def test_once_on_a_node_what_was_noted_of_its_way_has_served() -> None:
    group, call = on_its_way()
    group.happened("p", MemberEvent.BINDING_CONFIRMED, "n1")
    assert put(group, pod("p", node_name="n1")) == (Effect.RELEASE_PLACE,)
    member = group.members["p"]
    assert (member.state, member.node) == (MemberState.BOUND, "")
    assert (member.nomination, member.last_rejection, member.rejected_in_tree) == (None, "", None)
    assert (group.started, group.calls) == (set(), {})
    call.close.assert_called_once_with()


def test_until_then_it_is_kept() -> None:
    group, call = on_its_way()
    assert put(group, pod("p", priority=1)) == ()
    assert (group.members["p"].nomination, group.started, group.calls) == ("n1", {"p"}, {"p": call})


@pytest.mark.parametrize(
    ("bound_by", "state"),
    [
        pytest.param("", MemberState.QUEUED, id="the watch had shown it there: etcd was restored"),
        pytest.param("n1", MemberState.BOUND, id="we have bound it: the watch is behind"),
    ],
)
def test_a_bound_member_that_is_shown_on_no_node(bound_by: str, state: MemberState) -> None:
    group = group_with(pod("p", node_name="" if bound_by else "n1"))
    if bound_by:
        group.happened("p", MemberEvent.BINDING_CONFIRMED, bound_by)
    put(group, pod("p"))
    assert state_of(group) is state


def test_of_a_member_that_goes_nothing_is_left() -> None:
    group = group_with(pod("p", priority=5, schedulerName="s", schedulingGates=GATED, **CLAIM), pod("q"))
    call = Mock()
    group.started, group.calls = {"p", "q"}, {"p": call}
    group.start = Start(start_record(datetime(2026, 1, 1, tzinfo=UTC), 2, frozenset("pq")), frozenset("pq"))
    group.errors, group.refuted = Mock(), Mock()
    assert group_members.forget(group, "p") == (Effect.RELEASE_PLACE,)
    assert list(group.members) == ["q"]
    assert (dict(group.priorities), group.of_scheduler) == ({0: 1}, {"default-scheduler": {"q"}})
    assert (group.started, group.calls) == ({"q"}, {})
    assert (group.gated, group.claiming) == (set(), set())
    assert group.start.members == {"q"}
    call.close.assert_called_once_with()
    group.errors.forget.assert_called_once_with("p")
    group.refuted.forget.assert_called_once_with("p")
    assert group.standing is None
    assert group.spec is SPEC, "what it asks for stands in its object"


def test_a_gang_asks_anew_when_a_pod_goes() -> None:
    group = group_with(pod("p"), pod("q"), ref=BY_LABELS)
    group_members.forget(group, "p")
    assert group.spec is None


def test_a_pod_that_was_no_member_goes_without_a_trace() -> None:
    group = group_with(pod("q"))
    assert group_members.forget(group, "p") == ()
    assert list(group.members) == ["q"]
    assert isinstance(group.members["q"].info, PodInfo)
