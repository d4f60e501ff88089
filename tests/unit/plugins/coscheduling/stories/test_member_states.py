"""The states that members pass through, story by story: each line of a story is one step, and the states that follow it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from extender.api import corev1
from extender.api.schedulingv1alpha1 import GANG_READY
from extender.framework.cycle_state import CycleState
from extender.plugins.coscheduling.state.member import MemberState
from tests.unit.plugins.coscheduling.conftest import LABEL, Waiting, World, node
from tests.unit.plugins.coscheduling.kube_scheduler import TIMEOUT, KubeScheduler, group, member, members, on_node

G, Q, U, D, A, W, K, S, B = MemberState
Make = Callable[..., World]


class Story(KubeScheduler):
    """A gang of two on one node with room for both."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.apply(group(minimum=2))

    def states(self) -> list[MemberState]:
        """In the order of the members' names."""
        members = self.plugin.manager.groups["default/g"].members.values()
        return [each.state for each in sorted(members, key=lambda each: each.pod.name)]

    def asks(self, name: str) -> None:
        """A filter call alone."""
        self._ask(self.pods[f"default/{name}"], self.world.snapshot().list())

    def binds(self, name: str) -> None:
        self._bind(self.pods[f"default/{name}"], "n1")


@pytest.fixture
def story(world: Make) -> Story:
    made = world([node("n1", "2")])
    made.connect(errors_back_off=True)
    return Story(made)


def test_a_gated_gang(story: Story) -> None:
    story.create(*members(2, gated=True))
    assert story.states() == [G, G]
    story.world.run_tasks()
    assert story.states() == [D, D], "planned, and their gates are on their way off"
    story.wake()
    assert story.states() == [D, D], "the watch shows them without"
    story.asks("g0")
    assert story.states() == [A, D]
    story.binds("g0")
    assert story.states() == [W, D]
    story.asks("g1")
    story.binds("g1")
    assert story.states() == [B, B]


def test_a_plain_gang(story: Story) -> None:
    first, second = members(2)
    story.create(first)
    assert story.states() == [Q]
    story.asks("g0")
    assert story.states() == [U], "alone it has no quorum"
    story.create(second)
    story.world.run_tasks()
    assert story.states() == [D, Q], "the one that was refused is woken, the other comes by itself"
    story.asks("g1")
    assert story.states() == [D, A]


def test_a_gate_that_its_owner_takes_off(story: Story) -> None:
    pod = member("g0", gated=True)
    story.create(pod)
    story._freed(pod)
    assert story.states() == [Q]


def test_a_hold_that_times_out(story: Story) -> None:
    story.create(*members(2))
    story.asks("g0")
    story.binds("g0")
    assert story.states() == [W, Q]
    story.time_out(story.pods["default/g0"])
    assert story.states() == [U, U], "the plan is given up with it"


def test_a_binding_that_fails_comes_back_to_its_place(story: Story) -> None:
    story.create(*members(2))
    first, second = story.pods.values()
    for pod in (first, second):
        story.asks(pod.name)
        story.plugin.permit(CycleState(), pod, "n1")
        story.world.waiting[pod.uid] = Waiting(pod, "n1")
    assert story.states() == [S, S], "with the second the quorum is held"
    story.world.waiting.clear()
    story.plugin.post_bind(CycleState(), first, "n1")
    story.plugin.unreserve(CycleState(), second, "n1")
    assert story.states() == [B, K]
    story.asks(second.name)
    assert story.states() == [B, A]


def test_an_answer_is_void_when_kube_scheduler_asks_again_and_finds_no_room(story: Story) -> None:
    story.create(*members(2))
    story.asks("g0")
    assert story.states()[0] is A
    story.plugin.manager.denied["default/g"] = "no room"
    story.asks("g0")
    assert story.states()[0] is U


def test_an_extra_member_needs_no_place(story: Story) -> None:
    story.create(*members(2))
    story.run()
    assert story.states() == [B, B]
    story.world.nodes["n2"] = node("n2", "2")
    story.create(member("g2"))
    story.asks("g2")
    assert story.states() == [B, B, Q]


def test_a_nomination_that_is_withdrawn(story: Story) -> None:
    story.create(*members(2, gated=True))
    story.world.run_tasks()
    gang = story.plugin.manager.groups["default/g"]
    story.plugin.manager.places.release(gang)
    story.plugin.dispatcher.clear_nominations(gang)
    assert story.states() == [Q, Q]
    assert gang.nominated() == []


def test_a_node_that_goes_takes_the_places_with_it(story: Story) -> None:
    """Whether the gate still holds a member is said by the watch."""
    story.create(*members(2, gated=True))
    story.world.run_tasks()
    story._freed(story.pods["default/g0"])
    story.plugin.on_node(story.world.nodes.pop("n1"), None)
    assert story.states() == [U, G]


def test_after_a_restart_members_are_where_their_pods_say(story: Story) -> None:
    story.create(*members(2), member("g2", gated=True))
    story.asks("g0")
    story._refused(story.pods["default/g1"], "0/1 nodes are available: 1 Insufficient cpu.")
    story.extender_restarts(World(list(story.world.nodes.values())))
    assert story.states() == [Q, U, G]


def test_what_an_older_etcd_shows_without_a_node_may_be_asked_about(story: Story) -> None:
    pod = member("g0")
    story.create(on_node(pod, "n1"))
    assert story.states() == [B]
    story.plugin.on_pod(on_node(pod, "n1"), pod)
    assert story.states() == [Q]


@pytest.mark.parametrize(
    ("condition", "state"),
    [
        pytest.param(("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu."), U, id="refused in-tree"),
        pytest.param(("SchedulerError", TIMEOUT), U, id="its bind call failed, and it has no place"),
        pytest.param(
            ("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates"), Q, id="another's gate"
        ),
    ],
)
def test_what_a_condition_says_of_a_member(condition: tuple[str, str], state: MemberState, story: Story) -> None:
    pod = member("g0")
    story.create(pod)
    reason, message = condition
    story._refused(pod, message, reason)
    assert story.states() == [state]


def test_a_member_that_another_scheduler_has_bound_is_bound(story: Story) -> None:
    pod: corev1.Pod = member("g0")
    story.create(pod)
    story.asks("g0")
    story.plugin.on_pod(pod, on_node(pod, "n1"))
    assert story.states() == [B]


def test_an_answer_counts_until_kube_scheduler_asks_again(story: Story) -> None:
    story.create(*members(2))
    story.asks("g0")
    pod = story.pods["default/g0"]
    story.plugin.admission.whatever_offered(story.plugin.manager.group_of(pod), pod)
    assert story.states() == [Q, Q]


def test_a_bind_call_that_fails_before_it_is_held(story: Story) -> None:
    story.create(*members(2))
    story.asks("g0")
    story.plugin.unreserve(CycleState(), story.pods["default/g0"], "n1")
    assert story.states() == [K, Q]


def test_a_nomination_that_another_clears_is_made_once_more_and_no_more(story: Story) -> None:
    story.create(*members(2, gated=True))
    story.world.run_tasks()
    for state in (D, Q):
        story.wake()
        story._patch("default/g0", nominated_node_name="n1")
        story._patch("default/g0", nominated_node_name="")
        assert story.states() == [state, D]


def test_after_a_restart_a_member_with_our_nomination_is_on_its_way(story: Story) -> None:
    story.create(sent(member("g0")))
    assert story.states() == [D]


def test_a_refused_member_that_comes_from_another_group_may_be_asked_about(story: Story) -> None:
    """kube-scheduler tries again what was updated."""
    story.apply(group("other"))
    before = member("g0", "other")
    story.create(before)
    story._refused(before, "0/1 nodes are available: 1 Insufficient cpu.")
    story.plugin.on_pod(story.pods[before.uid], with_label(story.pods[before.uid], "g"))
    assert story.states() == [Q]


@pytest.mark.parametrize("label", [pytest.param("other", id="to another group"), pytest.param("", id="to none")])
def test_a_held_member_that_leaves_its_group_and_comes_back_is_still_held(label: str, story: Story) -> None:
    """Until its bind call has heard of it, whatever the pod shows."""
    story.create(*members(2))
    story.asks("g0")
    story.binds("g0")
    held = sent(story.pods["default/g0"])
    elsewhere = with_label(held, label)
    story.plugin.on_pod(held, elsewhere)
    story.plugin.on_pod(elsewhere, held)
    assert story.states() == [W, U], "their plan was given up meanwhile"
    story._settle()


def sent(pod: corev1.Pod) -> corev1.Pod:
    """With our nomination."""
    ready = corev1.PodCondition(type=GANG_READY, status="True", reason="", message="")
    return structs.replace(pod, status=structs.replace(pod.status, nominated_node_name="n1", conditions=(ready,)))


def with_label(pod: corev1.Pod, group: str) -> corev1.Pod:
    labels = {**pod.labels, LABEL: group}
    return structs.replace(pod, metadata=structs.replace(pod.metadata, labels=labels))
