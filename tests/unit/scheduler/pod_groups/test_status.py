"""What a PodGroup's status says of the counts of its pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from extender.api import codec
from extender.api.schedulingv1alpha1 import PodGroup
from extender.scheduler.pod_groups import status as status_module
from extender.scheduler.pod_groups.records import Counts, Ended
from extender.scheduler.pod_groups.status import (
    ITS,
    MOST_NAMED,
    NOT_IN_LINE,
    OURS,
    InLine,
    conditions_of,
    fields,
    phase_of,
    ranges,
    status_of,
    strangers_said,
)

NONE: Mapping[str, Any] = {}
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def group(minimum: int = 3, true: Mapping[str, str] = NONE, status: Mapping[str, Any] = NONE) -> PodGroup:
    """true: types of conditions -> their reasons."""
    conditions = [
        {"type": type_, "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2026-03-02T11:00:00Z"}
        for type_, reason in true.items()
    ]
    body = {
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"minMember": minimum},
        "status": {**status, "conditions": conditions},
    }
    return codec.convert(body, PodGroup)


def counts(alive: int = 0, scheduled: int = 0, running: int = 0, succeeded: int = 0, failed: int = 0) -> Counts:
    nodes = frozenset(f"n{number}" for number in range(scheduled))
    return Counts(alive, scheduled, running, Ended(succeeded, failed), nodes, ours=True)


@pytest.mark.parametrize(
    ("found", "phase"),
    [
        pytest.param(counts(), "Pending", id="there are no pods"),
        pytest.param(counts(2), "Pending", id="there are too few"),
        pytest.param(counts(3), "Scheduling", id="there are enough, and none has a node"),
        pytest.param(counts(3, 2), "Scheduling", id="some have a node"),
        pytest.param(counts(3, 3, 2), "Scheduled", id="all have a node, and one does not run yet"),
        pytest.param(counts(3, 3, 3), "Running", id="all run"),
        pytest.param(counts(2, 2, 2, succeeded=1), "Running", id="one has succeeded, the others run"),
        pytest.param(counts(1, 1, 1, succeeded=3), "Running", id="a pod beyond minMember still runs"),
        pytest.param(counts(succeeded=3), "Finished", id="all have succeeded"),
        pytest.param(counts(succeeded=2, failed=1), "Failed", id="one has failed, and is not made again"),
        pytest.param(counts(1, 1, 1, failed=2), "Failed", id="some have failed, and one runs"),
        pytest.param(counts(3, 3, 3, failed=2), "Running", id="those that have failed were made again"),
        pytest.param(counts(failed=1), "Pending", id="one has failed before there were enough"),
    ],
)
def test_the_phase_is_read_off_the_counts(found: Counts, phase: str) -> None:
    assert phase_of(3, found) == phase


def test_a_gang_that_waits_shows_its_place_what_is_missing_and_what_would_fit() -> None:
    in_line = InLine(4, {"nvidia.com/gpu": "8"}, "minMember 2 instead of 3")
    status = status_of(group(), counts(3), in_line, NOON)
    assert (status.bound, status.position, status.missing) == ("0/3", 4, {"nvidia.com/gpu": "8"})
    assert status.would_fit == "minMember 2 instead of 3"
    assert status.schedule_start_time == NOON


def test_one_that_has_its_nodes_shows_these_alone() -> None:
    status = status_of(group(), counts(3, 3), InLine(4, {"cpu": "1"}, "more"), NOON)
    assert (status.bound, status.position, status.missing, status.would_fit) == ("3/3", 0, {}, "")
    assert status.nodes == "n[0-2]"


def test_the_time_of_the_first_try_stays() -> None:
    known = group(status={"scheduleStartTime": "2026-03-02T10:00:00Z"})
    assert status_of(known, counts(3), NOT_IN_LINE, NOON).schedule_start_time == datetime(2026, 3, 2, 10, tzinfo=UTC)
    assert status_of(group(), counts(2), NOT_IN_LINE, NOON).schedule_start_time is None


def test_what_is_empty_is_taken_out_and_a_count_of_none_is_a_count() -> None:
    found = fields(status_of(group(), counts(2), NOT_IN_LINE, NOON), (*ITS, *OURS))
    assert found == {
        "phase": "Pending",
        "occupiedBy": None,
        "running": 0,
        "succeeded": 0,
        "failed": 0,
        "scheduleStartTime": None,
        "scheduled": 0,
        "bound": "0/3",
        "position": None,
        "missing": None,
        "wouldFit": None,
        "nodes": None,
    }


WHOLE = {"Scheduled": "GangScheduled"}
SPREAD = Counts(3, 2, strangers={"default-scheduler": 2}, ours=True)


@pytest.mark.parametrize(
    ("found", "true", "said"),
    [
        pytest.param(counts(3, 3, 3), WHOLE, [], id="of a gang that runs whole"),
        pytest.param(counts(3), {}, [], id="of one that has not started"),
        pytest.param(counts(3, 2), WHOLE, [("Degraded", "True", "BelowMinMember")], id="of one that lost a member"),
        pytest.param(
            counts(3, 2), {**WHOLE, "DisruptionTarget": "PreemptionByScheduler"}, [], id="of one that is preempted"
        ),
        pytest.param(
            counts(3, 3),
            {**WHOLE, "Degraded": "BelowMinMember"},
            [("Degraded", "False", "MinMember")],
            id="of one that is whole again",
        ),
        pytest.param(counts(succeeded=3), WHOLE, [("Finished", "True", "Succeeded")], id="of one that succeeded"),
        pytest.param(counts(succeeded=2, failed=1), WHOLE, [("Finished", "True", "Failed")], id="of one that failed"),
        pytest.param(counts(1, 1, failed=2), WHOLE, [("Degraded", "True", "BelowMinMember")], id="that fails"),
        pytest.param(
            counts(3),
            {**WHOLE, "Finished": "Succeeded"},
            [("Finished", "False", "Restarted")],
            id="of one that is made once more",
        ),
        pytest.param(counts(), WHOLE, [("Scheduled", "False", "QuorumMissing")], id="of one that is deleted"),
        pytest.param(
            counts(),
            {**WHOLE, "DisruptionTarget": "PreemptionByScheduler"},
            [("Scheduled", "False", "GangPreempted")],
            id="of one that was preempted",
        ),
        pytest.param(SPREAD, {}, [("Degraded", "True", "ForeignScheduler")], id="of one that others have bound"),
    ],
)
def test_conditions_follow_from_what_was_and_what_is(
    found: Counts, true: dict[str, str], said: list[tuple[str, str, str]]
) -> None:
    assert [(each.type, each.status, each.reason) for each in conditions_of(group(3, true), found)] == said


def test_what_is_said_already_is_not_said_again() -> None:
    known = group(3, WHOLE)
    (said,) = conditions_of(known, counts(3, 2))
    again = replace(known, status=replace(known.status, conditions=(*known.status.conditions, said)))
    assert conditions_of(again, counts(3, 2)) == []
    (changed,) = conditions_of(again, counts(3, 1))
    assert (changed.message, changed.last_transition_time) == (
        "1 of minMember 3 have a node",
        said.last_transition_time,
    )


@pytest.mark.parametrize(
    ("strangers", "ours", "bound", "text"),
    [
        pytest.param({}, True, 3, "", id="none"),
        pytest.param({"x": 0}, False, 0, "", id="a group of another scheduler waits"),
        pytest.param({"x": 3}, False, 3, "", id="a group of another scheduler runs whole"),
        pytest.param(
            {"x": 2},
            False,
            2,
            "2 of the group's pods were bound by x, and not together with the others",
            id="a part of it runs",
        ),
        pytest.param({"x": 0}, True, 0, "pods of the group name another scheduler: x", id="one of ours is among them"),
        pytest.param(
            {"a" * 70: 1, "b": 0, "c": 0, "d": 0},
            True,
            1,
            f"1 of the group's pods were bound by {'a' * 63}, b, c, and not together with the others",
            id="long names and many are cut",
        ),
    ],
)
def test_another_scheduler_is_named_where_the_group_is_ours_or_runs_in_part(
    strangers: dict[str, int], ours: bool, bound: int, text: str
) -> None:
    assert strangers_said(Counts(3, bound, strangers=strangers, ours=ours), 3) == text


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["n1", "n2", "n3"], "n[1-3]"),
        (["n1", "n3"], "n[1,3]"),
        (["n10", "n9", "n2"], "n[2,9-10]"),
        (["gpu-7"], "gpu-7"),
        (["a", "b"], "a, b"),
        (["n01", "n02"], "n0[1-2]"),
        (["10-0-0-1.internal"], "10-0-0-1.internal"),
        ([], ""),
    ],
)
def test_runs_of_numbers_are_ranges(names: list[str], text: str) -> None:
    assert ", ".join(ranges(names)) == text


def test_a_list_of_nodes_is_cut() -> None:
    nodes = frozenset(f"node-{number * 7}-a" for number in range(500))
    shown = status_of(group(), Counts(500, 500, nodes=nodes, ours=True), NOT_IN_LINE, NOON).nodes
    assert len(shown) == MOST_NAMED
    assert shown.endswith("...")


def test_what_is_said_of_nodes_that_stay_is_found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Iterable[str]] = []

    def counted(names: Iterable[str]) -> list[str]:
        asked.append(names)
        return ranges(names)

    monkeypatch.setattr(status_module, "ranges", counted)
    before = counts(7, 7, running=1)
    now = Counts(7, 7, running=2, nodes=before.nodes, ours=True)
    for each in (before, now, now):
        assert status_of(group(), each, NOT_IN_LINE, NOON).nodes == "n[0-6]"
    assert len(asked) == 1
