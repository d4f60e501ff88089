"""Why a gang waits: which reason goes with a hold's end and with a verdict, and since when it holds."""

from __future__ import annotations

import pytest

from extender.plugins.coscheduling.planner import Cause, NoPlacement, Placement
from extender.plugins.coscheduling.state.diagnosis import (
    OF_CAUSE,
    Diagnosis,
    UnschedulableReason,
    diagnosis_of_hold,
    diagnosis_of_plan,
)

NO_ROOM = UnschedulableReason.INSUFFICIENT_RESOURCES


@pytest.mark.parametrize(
    ("before", "since"),
    [
        pytest.param(None, 50.0, id="the first"),
        pytest.param(Diagnosis(NO_ROOM, "no room", 10.0), 10.0, id="the same once more is as old as the first"),
        pytest.param(Diagnosis(NO_ROOM, "no GPU", 10.0), 50.0, id="another text"),
        pytest.param(Diagnosis(UnschedulableReason.GATED, "no room", 10.0), 50.0, id="another reason"),
    ],
)
def test_since_when(before: Diagnosis | None, since: float) -> None:
    assert Diagnosis(NO_ROOM, "no room", 50.0).after(before).since == since


def test_users_read_kube_scheduler_s_reasons_too_and_pods_do_not() -> None:
    quoted = Diagnosis(NO_ROOM, "no room", quote="2 Insufficient cpu")
    assert (quoted.message, quoted.text) == ("no room", "no room; kube-scheduler says: 2 Insufficient cpu")
    assert Diagnosis(NO_ROOM, "no room").text == "no room"


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        pytest.param(
            "rejected due to timeout after waiting 60s", UnschedulableReason.HOLD_TIMED_OUT, id="its time was up"
        ),
        pytest.param("the PodGroup was deleted while waiting", UnschedulableReason.HOLD_ENDED, id="anything else"),
    ],
)
def test_why_a_hold_ended(cause: str, reason: UnschedulableReason) -> None:
    assert diagnosis_of_hold(cause, 5.0) == Diagnosis(reason, cause, 5.0)


@pytest.mark.parametrize("cause", Cause)
def test_each_cause_of_the_planner_has_a_reason(cause: Cause) -> None:
    verdict = NoPlacement("no room", 1, 3, cause)
    found = diagnosis_of_plan(["default/g"], 3, verdict)
    assert (found.reason, found.message, found.verdict) == (
        OF_CAUSE[cause],
        "minMember of 3 does not fit: no room",
        verdict,
    )


def test_of_groups_that_start_together_all_are_named() -> None:
    found = diagnosis_of_plan(["default/g", "default/a"], 3, NoPlacement("no room", 1, 3))
    assert found.message == "PodGroups that start together (default/a, default/g) do not fit: no room"


def test_of_a_tree_its_composite_is_named() -> None:
    found = diagnosis_of_plan(["default/g", "default/a"], 3, NoPlacement("no room", 1, 3, composite="default/root"))
    assert found.message == "CompositePodGroup default/root does not fit: no room"


def test_what_is_no_verdict_stops_no_gang_for_a_reason() -> None:
    found = diagnosis_of_plan(["default/g"], 3, Placement({}))
    assert found == Diagnosis(UnschedulableReason.NOT_TRIED, "no plan")


def test_two_stops_are_the_same_where_reason_and_text_are() -> None:
    stop = Diagnosis(NO_ROOM, "no room", 50.0, quote="2 Insufficient cpu")
    assert stop.says_the_same_as(Diagnosis(NO_ROOM, "no room", 10.0))
    assert not stop.says_the_same_as(Diagnosis(NO_ROOM, "no GPU", 50.0))
    assert not stop.says_the_same_as(Diagnosis(UnschedulableReason.GATED, "no room", 50.0))
    assert not stop.says_the_same_as(None)
