"""kube-scheduler: TestRecordingMetrics, TestPermitWaitDurationMetric"""

from __future__ import annotations

import random

import pytest

from extender import metrics
from extender.framework.cycle_state import CycleState
from extender.framework.runtime.metrics_recorder import record, record_plugin, sampled_state
from extender.framework.status import Code
from tests.unit.framework.runtime.fakes import POD, FakePlugin, make_dependencies, make_framework


def runs_of(point: str, code: str) -> float:
    labels = {"extension_point": point, "status": code, "profile": "test"}
    name = "scheduler_framework_extension_point_duration_seconds_count"
    return metrics.REGISTRY.get_sample_value(name, labels) or 0.0


def waits_with(result: str) -> float:
    name = "scheduler_permit_wait_duration_seconds_count"
    return metrics.REGISTRY.get_sample_value(name, {"result": result}) or 0.0


def test_a_run_is_counted_under_its_point_and_code() -> None:
    framework = make_framework("permit", FakePlugin(permit=Code.WAIT), dependencies=make_dependencies(record=record))
    before = runs_of("Permit", "Wait")
    framework.run_permit_plugins(CycleState(), POD, "n1")
    assert runs_of("Permit", "Wait") == before + 1


def test_a_wait_is_counted_under_how_it_ended() -> None:
    framework = make_framework("permit", dependencies=make_dependencies(record=record))
    before = waits_with("Unschedulable")
    framework.add_waiting_pod(POD, "n1", {"p": 0.0})
    framework.wait_on_permit(POD)
    assert waits_with("Unschedulable") == before + 1
    framework.wait_on_permit(POD)  # nothing to wait for
    assert waits_with("Unschedulable") == before + 1


class Rolls(random.Random):
    """Always the same number."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self._number = number

    def random(self) -> float:
        return self._number


@pytest.mark.parametrize(
    ("number", "sampled"),
    [
        pytest.param(0.05, True, id="one cycle in ten is looked at closely"),
        pytest.param(0.1, False, id="nine are not"),
    ],
)
def test_sampling(number: float, sampled: bool) -> None:
    assert (sampled_state(Rolls(number)).record_plugin is record_plugin) is sampled


@pytest.mark.parametrize(
    ("point", "label"),
    [("Permit", "Permit"), ("AddPod", "PreFilterExtensionAddPod"), ("NormalizeScore", "ScoreExtensionNormalize")],
)
def test_a_call_of_a_plugin_is_counted_under_its_point(point: str, label: str) -> None:
    before = calls_of("p", label, "Success")
    record_plugin("p", point, "Success", 0.001)
    assert calls_of("p", label, "Success") == before + 1


def test_a_sampled_cycle_tells_of_each_call_of_a_plugin_and_how_it_ended() -> None:
    told: list[tuple[str, str, str]] = []
    state = CycleState()
    state.record_plugin = lambda plugin, point, code, seconds: told.append((plugin, point, code))
    framework = make_framework("permit", FakePlugin(permit=Code.UNSCHEDULABLE))
    framework.run_permit_plugins(state.clone(), POD, "n1")
    assert [(point, code) for _, point, code in told] == [("Permit", "Unschedulable")]


def calls_of(plugin: str, point: str, status: str) -> float:
    labels = {"plugin": plugin, "extension_point": point, "status": status}
    return metrics.REGISTRY.get_sample_value("scheduler_plugin_execution_duration_seconds_count", labels) or 0.0
