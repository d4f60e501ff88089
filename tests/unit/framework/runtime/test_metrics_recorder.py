"""kube-scheduler: TestRecordingMetrics, TestPermitWaitDurationMetric"""

from __future__ import annotations

from extender import metrics
from extender.framework.cycle_state import CycleState
from extender.framework.runtime.metrics_recorder import record
from extender.framework.status import Code
from tests.unit.framework.runtime.fakes import POD, FakePlugin, make_framework, surroundings


def runs_of(point: str, code: str) -> float:
    labels = {"extension_point": point, "status": code, "profile": "test"}
    name = "scheduler_framework_extension_point_duration_seconds_count"
    return metrics.REGISTRY.get_sample_value(name, labels) or 0.0


def waits_with(result: str) -> float:
    name = "scheduler_permit_wait_duration_seconds_count"
    return metrics.REGISTRY.get_sample_value(name, {"result": result}) or 0.0


def test_a_run_is_counted_under_its_point_and_code() -> None:
    framework = make_framework("permit", FakePlugin(permit=Code.WAIT), around=surroundings(record=record))
    before = runs_of("Permit", "Wait")
    framework.run_permit_plugins(CycleState(), POD, "n1")
    assert runs_of("Permit", "Wait") == before + 1


def test_a_wait_is_counted_under_how_it_ended() -> None:
    framework = make_framework("permit", around=surroundings(record=record))
    before = waits_with("Unschedulable")
    framework.add_waiting_pod(POD, "n1", {"p": 0.0})
    framework.wait_on_permit(POD)
    assert waits_with("Unschedulable") == before + 1
    framework.wait_on_permit(POD)  # nothing to wait for
    assert waits_with("Unschedulable") == before + 1
