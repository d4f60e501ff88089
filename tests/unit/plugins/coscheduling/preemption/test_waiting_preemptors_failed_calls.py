"""Preemptors whose call met no extender: they are roused once we lead, and again, ever later, where that was in vain."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from extender.api import corev1
from extender.plugins.coscheduling.preemption.waiting_preemptors import WaitingPreemptors
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group

REFUSED = "0/1 nodes are available: 1 Insufficient cpu. preemption: "
NONE_LISTENS = 'Post "http://127.0.0.1:8888/preempt": dial tcp 127.0.0.1:8888: connect: connection refused'
NOT_READY = "failed preempt with extender at URL http://127.0.0.1:8888/preempt, code 503"
NO_CANDIDATE = "no candidate node for preemption"


def told(text: str, waiting: corev1.Pod | None = None) -> corev1.Pod:
    condition = corev1.PodCondition("PodScheduled", "False", "Unschedulable", REFUSED + text)
    return msgspec.structs.replace(waiting or pod("vip", priority=9), status=corev1.PodStatus(conditions=(condition,)))


class Story:
    def __init__(self) -> None:
        self.world = World([node("n1", cpu="1")])
        self.leading = True
        dependencies = replace(self.world.plugin.dependencies, may_plan=lambda: self.leading)
        steering = self.world.plugin.dispatcher.steering
        self.unheard = WaitingPreemptors(self.world.plugin.manager, dependencies, steering, lambda: "n1", lambda: True)

    def roused_after(self, seconds: float) -> list[str]:
        self.world.clock.now += seconds
        self.unheard.tick()
        roused, self.world.roused = self.world.roused, []
        return roused


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.mark.parametrize(
    ("text", "roused"),
    [
        pytest.param(NONE_LISTENS, ["vip"], id="no server listened"),
        pytest.param(NOT_READY, ["vip"], id="it was not ready"),
        pytest.param(NO_CANDIDATE, [], id="it has answered"),
    ],
)
def test_which_are_tried_again(text: str, roused: list[str], story: Story) -> None:
    story.unheard.on_pod(None, told(text))
    assert story.roused_after(0) == roused


def test_where_that_was_in_vain_it_is_tried_ever_later(story: Story) -> None:
    story.unheard.on_pod(None, told(NONE_LISTENS))
    assert [bool(story.roused_after(seconds)) for seconds in (0, 9, 1, 19, 1)] == [True, False, True, False, True]


def test_none_is_tried_again_before_we_lead(story: Story) -> None:
    story.leading = False
    story.unheard.on_pod(None, told(NONE_LISTENS))
    assert story.roused_after(0) == []
    story.leading = True
    assert story.roused_after(1) == ["vip"]


def test_nor_a_member_of_a_gang_that_has_not_started(story: Story) -> None:
    """No victims would go for it alone."""
    story.world.plugin.on_pod_group(None, pod_group("g", 2))
    story.world.create(pod("p0", "g"), member := pod("p1", "g"))
    story.unheard.on_pod(None, told(NONE_LISTENS, member))
    assert story.roused_after(0) == []


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(None, id="gone"),
        pytest.param(told(NONE_LISTENS, pod("vip", node_name="n1")), id="on a node"),
        pytest.param(told(NO_CANDIDATE), id="heard"),
    ],
)
def test_a_preemptor_that_waits_for_that_no_more_is_forgotten(new: corev1.Pod | None, story: Story) -> None:
    story.unheard.on_pod(None, told(NONE_LISTENS))
    story.unheard.on_pod(told(NONE_LISTENS), new)
    assert story.roused_after(0) == []
