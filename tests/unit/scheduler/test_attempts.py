"""Which call counts as which attempt."""

from __future__ import annotations

import pytest

from extender import metrics
from extender.api.extenderv1 import ExtenderFilterResult
from extender.framework.status import SUCCESS, Status, error, unschedulable
from extender.scheduler import attempts


def count(result: str) -> float:
    labels = {"result": result, "profile": "attempts"}
    return metrics.REGISTRY.get_sample_value("scheduler_schedule_attempts_total", labels) or 0.0


RESULTS = ("scheduled", "unschedulable", "error")


@pytest.mark.parametrize(
    ("answer", "counted"),
    [
        pytest.param(ExtenderFilterResult(node_names=["n"]), None, id="nodes are left: the attempt goes on"),
        pytest.param(ExtenderFilterResult(node_names=[]), "unschedulable", id="no node is left"),
        pytest.param(ExtenderFilterResult(failed_and_unresolvable_nodes={"n": "no"}), "unschedulable", id="refused"),
        pytest.param(ExtenderFilterResult(error="broken"), "error", id="something broke"),
    ],
)
def test_filter(answer: ExtenderFilterResult, counted: str | None) -> None:
    before = {result: count(result) for result in RESULTS}
    attempts.filtered("attempts", answer, 0.01)
    assert {result for result in RESULTS if count(result) > before[result]} == ({counted} if counted else set())


@pytest.mark.parametrize(
    ("status", "counted"),
    [
        pytest.param(SUCCESS, "scheduled", id="bound"),
        pytest.param(unschedulable("rejected"), "unschedulable", id="its gang did not come"),
        pytest.param(error("broken"), "error", id="the binding failed"),
    ],
)
def test_bind(status: Status, counted: str) -> None:
    before = count(counted)
    attempts.bound("attempts", status, 0.01)
    assert count(counted) == before + 1
