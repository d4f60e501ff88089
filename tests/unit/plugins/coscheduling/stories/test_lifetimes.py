"""A group is there while it has members, held ones or an object; in whatever order they end, nothing is left of it then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from msgspec import structs

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.group_members import UNSEEN_SECONDS
from tests.unit.plugins.coscheduling.bookkeeping import GROUP_RULES, MANAGER_RULES, fields_of
from tests.unit.plugins.coscheduling.conftest import Waiting, World, node, pod_group, waves
from tests.unit.plugins.coscheduling.kube_scheduler import group, member, members, on_node
from tests.unit.plugins.coscheduling.machines.test_lifetimes_machine import belonging

Make = Callable[..., World]
PENDING = belonging(member("p", ""), "labels", "g")
RUNNING = on_node(PENDING, "n1")
DELETING = structs.replace(
    RUNNING, metadata=structs.replace(RUNNING.metadata, deletion_timestamp=group().metadata.creation_timestamp)
)
ENDED = structs.replace(RUNNING, status=structs.replace(RUNNING.status, phase="Succeeded"))
Events = list[tuple[corev1.Pod | None, corev1.Pod | None]]


def test_every_field_has_its_rule(world: Make) -> None:
    manager = world([node("n1")]).plugin.manager
    assert (set(GROUP_RULES), set(MANAGER_RULES)) == ({each.name for each in fields(Group)}, fields_of(manager))


def of_group(pod: corev1.Pod, name: str) -> corev1.Pod:
    return belonging(pod, "object", name)


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(
            [(None, RUNNING), (RUNNING, DELETING), (DELETING, DELETING), (DELETING, None)], id="as kubelets do"
        ),
        pytest.param([(None, DELETING), (DELETING, None)], id="seen first while it goes"),
        pytest.param([(None, ENDED)], id="seen first when it has ended, and never deleted"),
        pytest.param(
            [(None, RUNNING), (RUNNING, ENDED), (ENDED, DELETING), (DELETING, None)], id="ended, and cleaned up"
        ),
        pytest.param([(None, PENDING), (PENDING, None), (PENDING, None)], id="deleted, and that told twice"),
    ],
)
def test_of_a_group_without_an_object_nothing_is_left_when_its_pod_has_gone(world: Make, events: Events) -> None:
    w = world([node("n1")])
    for old, new in events:
        w.plugin.on_pod(old, new)
        w.plugin.tick()
    assert w.plugin.manager.groups == {}
    assert w.plugin.observer._seen == {}


@pytest.mark.parametrize("gone", [DELETING, ENDED], ids=["deleting", "ended"])
def test_a_filter_call_for_a_pod_that_is_gone_makes_no_group(world: Make, gone: corev1.Pod) -> None:
    w = world([node("n1")])
    w.create(PENDING)
    w.plugin.on_pod(PENDING, gone)
    assert w.filter(PENDING) == "PodGroup not found"
    assert w.plugin.manager.groups == {}


def test_nor_does_it_leave_a_note_in_a_group_that_goes_on(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 1))
    pods = [of_group(member(name, ""), "g") for name in ("p0", "p1")]
    w.create(*pods)
    w.plugin.on_pod(pods[0], None)
    assert w.filter(pods[0]) == messages.MEMBER_GONE
    assert w.filter(pods[1]) == "n1"


def test_pods_that_go_after_their_pod_group_take_the_group_with_them(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 1))
    running, deleting = of_group(RUNNING, "g"), of_group(DELETING, "g")
    w.create(running)
    w.plugin.on_pod_group(pod_group("g", 1), None)
    w.plugin.on_pod(running, deleting)
    w.plugin.on_pod(deleting, deleting)
    w.plugin.on_pod(deleting, None)
    assert w.plugin.manager.groups == {}


def test_a_pod_is_in_the_group_that_the_watch_shows_whatever_a_late_call_says(world: Make) -> None:
    """It was in both, and one of them was for ever."""
    w = world([node("n1")])
    before, after = of_group(member("p", ""), "a"), of_group(member("p", ""), "b")
    w.create(before)
    w.plugin.on_pod(before, after)
    w.filter(before)
    assert after.uid in w.plugin.manager.groups["default/b"].members
    w.plugin.on_pod(after, None)
    assert w.plugin.manager.groups == {}


def held(w: World, pod: corev1.Pod) -> Waiting:
    status, _ = w.plugin.permit(CycleState(), pod, "n1")
    assert status.wait
    w.waiting[pod.uid] = Waiting(pod, "n1")
    return w.waiting[pod.uid]


def test_a_member_that_is_held_and_gets_another_label_is_let_go_by_the_group_that_holds_it(world: Make) -> None:
    """It waited for its time-out, and counted for a start until then."""
    w = world([node("n1")])
    for name in ("a", "b"):
        w.plugin.on_pod_group(None, pod_group(name, 2))
    before, sibling = (of_group(member(name, ""), "a") for name in ("p", "sibling"))
    after = of_group(before, "b")
    w.create(before, sibling)
    waiting = held(w, before)
    w.plugin.on_pod(before, after)
    assert waiting.decision == f"rejected: {messages.MEMBER_GONE}"
    status, _ = w.plugin.permit(CycleState(), sibling, "n1")
    assert status.wait, "the other counts no longer, though its call has not ended"
    w.plugin.unreserve(CycleState(), after, "n1")
    assert [w.plugin.manager.groups[key].held for key in ("default/a", "default/b")] == [{sibling.uid: "n1"}, {}]
    w.plugin.unreserve(CycleState(), sibling, "n1")


def test_a_member_that_is_held_though_its_own_call_names_no_group_is_let_go_after_it_has_gone(world: Make) -> None:
    """A kube-scheduler that does not know spec.schedulingGroup sends pods without it: the hold was for ever."""
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    watched, asked = of_group(member("p", ""), "g"), member("p", "")
    w.create(watched)
    held(w, asked)
    w.plugin.on_pod(watched, None)
    w.plugin.unreserve(CycleState(), asked, "n1")
    assert w.plugin.manager.groups["default/g"].held == {}
    w.plugin.on_pod_group(pod_group("g", 2), None)
    assert w.plugin.manager.groups == {}


def test_a_member_that_only_calls_have_shown_is_looked_at_again_when_it_is_let_go(world: Make) -> None:
    """It counted for ever: the note was thrown away while it was held."""
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    late = UNSEEN_SECONDS + 1
    ghost = of_group(member("ghost", ""), "g")
    held(w, ghost)
    w.clock.now += late
    w.plugin.tick()
    assert ghost.uid in w.plugin.manager.groups["default/g"].members, "its call waits: it is there"
    w.plugin.unreserve(CycleState(), ghost, "n1")
    w.plugin.tick()
    assert w.plugin.manager.groups["default/g"].members == {}


def test_a_member_that_only_calls_have_shown_takes_its_gang_s_plan_with_it(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    ghost, real = (of_group(member(name, ""), "g") for name in ("ghost", "real"))
    w.create(real)
    assert w.filter(ghost) == "n1"
    assert len(w.plugin.manager.slots) == 2
    w.clock.now += UNSEEN_SECONDS + 1
    w.plugin.tick()
    assert len(w.plugin.manager.slots) == 0


def test_a_member_that_filter_saw_before_the_watch_stays_once_the_watch_has_shown_it(world: Make) -> None:
    """Each was forgotten after 30 s."""
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    early = of_group(member("p", ""), "g")
    w.filter(early)
    w.create(early)
    w.clock.now += UNSEEN_SECONDS + 1
    w.plugin.tick()
    assert early.uid in w.plugin.manager.groups["default/g"].members


def test_a_member_that_the_watch_shows_very_late_is_one_again(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    early = of_group(member("p", ""), "g")
    w.filter(early)
    w.clock.now += UNSEEN_SECONDS + 1
    w.plugin.tick()
    assert w.plugin.manager.groups["default/g"].members == {}
    w.filter(early)
    w.create(early)
    assert early.uid in w.plugin.manager.groups["default/g"].members


def one_by_one(function: Callable[..., object], *args: object) -> object:
    """Plans in which each member comes after the one before."""
    found = function(*args)
    if isinstance(found, planner.Placement):
        return replace(found, waves=tuple(frozenset((uid,)) for uid in sorted(found.nodes)))
    return found


def test_the_order_of_arrival_is_of_those_alone_that_are_there(world: Make) -> None:
    w = world([node("n1")])
    w.connect(offload=one_by_one)
    w.plugin.on_pod_group(None, pod_group("g", 2))
    pods = members(3, gated=True)
    w.create(*pods)
    w.run_tasks()
    before = waves(w.plugin.manager)
    assert len(before) == 3
    gone = next(pod for pod in pods if pod.uid in before[-1])
    w.plugin.on_pod(gone, None)
    assert waves(w.plugin.manager) == before[:-1]


def test_groups_that_start_together_no_more_have_no_turns_of_each_other(world: Make) -> None:
    w = world([node("n1")])
    w.connect(offload=one_by_one)
    together = group(minimum=2, groups="h")
    w.plugin.on_pod_group(None, together)
    w.plugin.on_pod_group(None, group("h", 1))
    w.create(*members(2, gated=True), *members(1, "h", gated=True))
    w.run_tasks()
    assert len(waves(w.plugin.manager, "default/h")) == 3
    w.plugin.on_pod_group(together, group(minimum=2))
    assert [len(waves(w.plugin.manager, f"default/{name}")) for name in "gh"] == [2, 1]
