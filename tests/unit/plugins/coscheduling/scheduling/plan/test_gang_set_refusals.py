"""What is noted and told of a gang that finds no places, and what it waits for from then on."""

from __future__ import annotations

import math

import pytest

from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.scheduling.plan.gang_set_refusals import GangSetRefusals, waits_for
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.waits_for import ANYTHING
from tests.unit.plugins.coscheduling.conftest import Waiting, World, node, pod, pod_group

KEY = "default/g"
NO_ROOM = Diagnosis(UnschedulableReason.INSUFFICIENT_RESOURCES, "no room")


class Refused(World):
    """A gang of two that waits; none of it has been planned."""

    def __init__(self) -> None:
        super().__init__([node("n1")])
        self.plugin.on_pod_group(None, pod_group("g", 2))
        self.create(pod("a", "g"), pod("b", "g"))
        refusals = self.plugin.rounds._gang_sets._refusals
        assert isinstance(refusals, GangSetRefusals)
        self.refusals = refusals

    @property
    def group(self) -> Group:
        return self.plugin.manager.groups[KEY]

    def deny(self, stop: Diagnosis = NO_ROOM, epochs_ago: int = 0) -> str:
        epoch = self.plugin.manager.notes.epoch - epochs_ago
        return self.refusals.deny([self.group], stop, epoch, ANYTHING).message


@pytest.fixture
def refused() -> Refused:
    return Refused()


def test_a_refusal_is_noted_and_told(refused: Refused) -> None:
    assert "no room" in refused.deny()
    assert refused.plugin.manager.denied.get(KEY) == "no room"
    assert refused.group.last_diagnosis is not None
    assert refused.group.last_diagnosis.since == refused.clock.now
    assert refused.verdicts == [f"{KEY} GangRejected: no room"]


def test_what_came_free_meanwhile_voids_the_refusal(refused: Refused) -> None:
    refused.plugin.manager.notes.epoch += 1
    refused.deny(epochs_ago=1)
    assert refused.plugin.manager.denied.get(KEY) is None
    assert KEY in refused.plugin.manager.queue.active, "it is planned again"


@pytest.mark.parametrize(
    ("reason", "by_itself"),
    [
        pytest.param(UnschedulableReason.INSUFFICIENT_RESOURCES, False, id="no room: an event cures it"),
        pytest.param(UnschedulableReason.BUDGET_EXCEEDED, True, id="the planner's time ran out: it is tried again"),
        pytest.param(UnschedulableReason.REFUTED_BY_SCHEDULER, True, id="nodes that kube-scheduler refused: likewise"),
    ],
)
def test_what_passes_by_itself_is_tried_again(
    refused: Refused, reason: UnschedulableReason, *, by_itself: bool
) -> None:
    with refused.plugin.manager.lock:
        retry_at = refused.refusals._note_denied(refused.group, Diagnosis(reason, "no"))
    assert (retry_at < math.inf) is by_itself


def test_a_group_that_has_gone_meanwhile_is_told_of_nothing(refused: Refused) -> None:
    gone = Group(KEY)
    refused.refusals.deny([gone], NO_ROOM, refused.plugin.manager.notes.epoch, ANYTHING)
    assert (gone.last_diagnosis, refused.verdicts) == (None, [])


def test_members_that_are_held_let_go(refused: Refused) -> None:
    """They would keep others out, and cannot start."""
    held = pod("a", "g")
    assert isinstance(refused.bind(held, "n1"), Waiting)
    refused.deny()
    assert refused.waiting["a"].decision == "rejected: no room"


@pytest.mark.parametrize(
    ("reason", "anything"),
    [
        pytest.param(UnschedulableReason.INSUFFICIENT_RESOURCES, False, id="the cluster says it: what frees room"),
        pytest.param(UnschedulableReason.REFUTED_BY_SCHEDULER, True, id="kube-scheduler has a part in it: anything"),
        pytest.param(UnschedulableReason.BUDGET_EXCEEDED, True, id="time has"),
    ],
)
def test_which_events_may_help(refused: Refused, reason: UnschedulableReason, *, anything: bool) -> None:
    manager = refused.plugin.manager
    with manager.lock:
        request = refused.plugin.rounds.requests.question([refused.group], "", refused.snapshot()).request
    assert isinstance(request, planner.Request)
    assert waits_for(manager, [refused.group], request, Diagnosis(reason, "no")).anything is anything
