"""Which conditions a verdict makes, on the CRD's PodGroup and on kube-scheduler's own, and that they are written by their types."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from extender.api.codec import convert
from extender.client.embedded import EmbeddedAPI
from extender.client.events import Recorder
from extender.client.interface import (
    IN_TREE_POD_GROUPS,
    IN_TREE_POD_GROUPS_1_36,
    POD_GROUPS,
    OwnPodGroup,
    ResourceType,
)
from extender.plugins.coscheduling.dependencies import PREEMPTED, QUARANTINED, REJECTED, SCHEDULED, WAITING, Verdict
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason
from extender.scheduler.actions.group_conditions import ERRORS, changes, says
from extender.scheduler.actions.verdicts import GroupVerdicts

NO_ROOM = Verdict(False, REJECTED, "Insufficient cpu", UnschedulableReason.INSUFFICIENT_RESOURCES)
TOO_FEW = Verdict(False, WAITING, "fewer pods exist than minMember of 3", UnschedulableReason.QUORUM_MISSING)
INVALID = Verdict(False, WAITING, "minCount is 0", UnschedulableReason.INVALID_POD_GROUP)
BROKEN = Verdict(False, QUARANTINED, "internal error", UnschedulableReason.INTERNAL_ERROR)
STARTS = Verdict(True, SCHEDULED, "the gang starts")
EVICTED = Verdict(False, PREEMPTED, "preempted", disrupted=True)
INITIALLY = "PodGroupInitiallyScheduled"
LONG_AGO = "2026-01-01T00:00:00Z"

BEFORE = {"type": INITIALLY, "status": "False", "reason": "Unschedulable", "message": "Insufficient cpu"}
AFTER = {"type": INITIALLY, "status": "True", "reason": "Scheduled", "message": "it has"}
TARGET = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "preempted"}


def of(resource: ResourceType[Any], *conditions: dict[str, str]) -> OwnPodGroup:
    meta = {"name": "g", "namespace": "default", "uid": "u", "generation": 7}
    told = [{"lastTransitionTime": LONG_AGO, **condition} for condition in conditions]
    found: OwnPodGroup = convert({"metadata": meta, "status": {"conditions": told}}, resource.type)
    return found


def short(pod_group: OwnPodGroup, verdict: Verdict) -> list[tuple[str, str, str]]:
    return [(each.type, each.status, each.reason) for each in changes(pod_group, verdict)]


@pytest.mark.parametrize(
    ("known", "verdict", "written"),
    [
        pytest.param((), NO_ROOM, [(INITIALLY, "False", "Unschedulable")], id="no room"),
        pytest.param((), BROKEN, [(INITIALLY, "False", "SchedulerError")], id="set aside"),
        pytest.param((), STARTS, [(INITIALLY, "True", "Scheduled")], id="it starts"),
        pytest.param((), TOO_FEW, [], id="too few members: kube-scheduler has not looked at it either"),
        pytest.param(
            (BEFORE,), TOO_FEW, [(INITIALLY, "False", "Unschedulable")], id="too few now: the old reason goes"
        ),
        pytest.param((BEFORE,), INVALID, [(INITIALLY, "False", "SchedulerError")], id="it is invalid"),
        pytest.param((BEFORE,), STARTS, [(INITIALLY, "True", "Scheduled")], id="no room, and then it starts"),
        pytest.param((AFTER,), NO_ROOM, [], id="has been scheduled: stays so"),
        pytest.param((AFTER,), STARTS, [], id="has been scheduled: said once"),
        pytest.param((AFTER,), EVICTED, [("DisruptionTarget", "True", "PreemptionByScheduler")], id="it is preempted"),
        pytest.param((AFTER, TARGET), STARTS, [("DisruptionTarget", "False", "Scheduled")], id="it starts again"),
        pytest.param((AFTER, TARGET), NO_ROOM, [], id="preempted, and finds no room"),
    ],
)
def test_kube_scheduler_s_own_kind(
    known: tuple[dict[str, str], ...], verdict: Verdict, written: list[tuple[str, str, str]]
) -> None:
    assert short(of(IN_TREE_POD_GROUPS, *known), verdict) == written


def test_the_kind_of_1_36_has_another_name_for_it() -> None:
    assert short(of(IN_TREE_POD_GROUPS_1_36), STARTS) == [("PodGroupScheduled", "True", "Scheduled")]


def test_the_crd_says_the_reason_itself_and_a_preemption_beside_it() -> None:
    group = of(POD_GROUPS)
    assert short(group, NO_ROOM) == [("Scheduled", "False", "InsufficientResources")]
    assert short(group, TOO_FEW) == [("Scheduled", "False", "QuorumMissing")]
    assert short(group, EVICTED) == [("DisruptionTarget", "True", "PreemptionByScheduler")]


def test_the_time_of_a_condition_is_that_of_its_status() -> None:
    """As SetStatusCondition has it; and the generation is that of the spec that was judged."""
    group = of(IN_TREE_POD_GROUPS, BEFORE)
    (again,), (over,) = changes(group, BROKEN), changes(group, STARTS)
    long_ago = datetime(2026, 1, 1, tzinfo=UTC)
    assert again.last_transition_time == long_ago
    assert over.last_transition_time is not None
    assert over.last_transition_time > long_ago
    assert (again.observed_generation, over.observed_generation) == (7, 7)


def test_what_a_condition_says_already() -> None:
    group = of(IN_TREE_POD_GROUPS, BEFORE)
    assert says(group, NO_ROOM)
    assert not says(group, BROKEN)
    assert not says(of(POD_GROUPS), EVICTED)


def test_the_reasons_that_are_errors_are_reasons() -> None:
    assert set(UnschedulableReason) >= ERRORS


# Written


class Told:
    def __init__(self) -> None:
        self.api = EmbeddedAPI()
        self.recorder = Recorder(self.api)
        self.recorder.start()
        self.verdicts = GroupVerdicts(self.api, self.recorder, lambda: True)
        spec = {"schedulingPolicy": {"gang": {"minCount": 3}}}
        self.group: OwnPodGroup = self.api.create(IN_TREE_POD_GROUPS, {"metadata": {"name": "g"}, "spec": spec})

    def say(self, *verdicts: Verdict) -> None:
        """Of the object as it was made: the watch has shown no later one."""
        for verdict in verdicts:
            self.verdicts.decided(self.group, "default/g", verdict)
            self.verdicts.flush()
        assert self.recorder.flush(5)

    def the_watch_shows_it(self) -> None:
        self.group = self.api.get(IN_TREE_POD_GROUPS, "g", "default")

    def conditions(self) -> dict[str, tuple[str, str]]:
        found = self.api.get(IN_TREE_POD_GROUPS, "g", "default").status.conditions
        return {each.type: (each.status, each.reason) for each in found}

    def events(self) -> list[str]:
        return [event["reason"] for event in self.api.events()]

    def others_say(self, *conditions: dict[str, str]) -> None:
        body = {"status": {"conditions": [{"lastTransitionTime": LONG_AGO, **each} for each in conditions]}}
        self.api.patch(IN_TREE_POD_GROUPS, "g", body, namespace="default", subresource="status")


@pytest.fixture
def told() -> Iterator[Told]:
    made = Told()
    yield made
    made.verdicts.stop()
    made.recorder.stop()


def test_each_is_written_beside_what_others_say(told: Told) -> None:
    told.others_say({"type": "Theirs", "status": "True", "reason": "Yes", "message": ""})
    told.say(NO_ROOM, STARTS, EVICTED)
    assert told.conditions() == {
        "Theirs": ("True", "Yes"),
        INITIALLY: ("True", "Scheduled"),
        "DisruptionTarget": ("True", "PreemptionByScheduler"),
    }
    (event, *_) = told.api.events()
    regarding = event["regarding"]
    assert (regarding["apiVersion"], regarding["kind"]) == ("scheduling.k8s.io/v1beta1", "PodGroup")


def test_it_has_been_scheduled_though_the_watch_has_not_shown_it_yet(told: Told) -> None:
    told.say(STARTS, NO_ROOM)
    assert told.conditions() == {INITIALLY: ("True", "Scheduled")}
    assert told.events() == ["GangScheduled", "GangRejected"]


def test_a_preemption_is_told_once_for_each_start(told: Told) -> None:
    told.say(STARTS, EVICTED, EVICTED)
    assert told.events() == ["GangScheduled", "GangPreempted"]
    told.the_watch_shows_it()
    told.say(NO_ROOM, STARTS)
    assert told.conditions()["DisruptionTarget"] == ("False", "Scheduled")
    told.the_watch_shows_it()
    told.say(EVICTED)
    assert told.conditions()["DisruptionTarget"] == ("True", "PreemptionByScheduler")
