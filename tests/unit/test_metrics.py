"""kube-scheduler's metrics keep its names, labels and buckets, and docs/metrics.md has every metric that there is.

kube-scheduler: pkg/scheduler/metrics/metrics.go
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client import Counter, Gauge, Histogram

from extender import metrics
from tests.exported_metrics import exported, of_the_process

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `((?:gang_extender|scheduler|process|python)_\w+)` \| ([^|]*)\|", re.MULTILINE)

Metric = Counter | Gauge | Histogram


def exponential(start: float, factor: float, count: int) -> list[float]:
    return [start * factor**i for i in range(count)]


@pytest.mark.parametrize(
    ("metric", "name", "labels"),
    [
        (metrics.schedule_attempts, "scheduler_schedule_attempts", ("result", "profile")),
        (metrics.scheduling_attempt_duration, "scheduler_scheduling_attempt_duration_seconds", ("result", "profile")),
        (metrics.scheduling_algorithm_duration, "scheduler_scheduling_algorithm_duration_seconds", ()),
        (
            metrics.framework_extension_point_duration,
            "scheduler_framework_extension_point_duration_seconds",
            ("extension_point", "status", "profile"),
        ),
        (
            metrics.plugin_execution_duration,
            "scheduler_plugin_execution_duration_seconds",
            ("plugin", "extension_point", "status"),
        ),
        (metrics.scheduler_permit_wait_duration, "scheduler_permit_wait_duration_seconds", ("result",)),
        (metrics.pod_scheduling_attempts, "scheduler_pod_scheduling_attempts", ()),
        (metrics.pod_scheduling_sli_duration, "scheduler_pod_scheduling_sli_duration_seconds", ("attempts",)),
        (metrics.preemption_attempts, "scheduler_preemption_attempts", ()),
        (metrics.preemption_victims, "scheduler_preemption_victims", ()),
        (metrics.goroutines, "scheduler_goroutines", ("operation",)),
        (metrics.queue_incoming_pods, "scheduler_queue_incoming_pods", ("queue", "event")),
        (metrics.event_handling_duration, "scheduler_event_handling_duration_seconds", ("event",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_name_and_labels(metric: Metric, name: str, labels: tuple[str, ...]) -> None:
    assert (metric._name, metric._labelnames) == (name, labels)


@pytest.mark.parametrize(
    ("histogram", "buckets"),
    [
        pytest.param(metrics.scheduling_attempt_duration, exponential(0.001, 2, 15), id="attempts: from 1 ms"),
        pytest.param(metrics.scheduling_algorithm_duration, exponential(0.001, 2, 15), id="the algorithm: from 1 ms"),
        pytest.param(metrics.scheduler_permit_wait_duration, exponential(0.001, 2, 15), id="waits: from 1 ms"),
        pytest.param(metrics.framework_extension_point_duration, exponential(0.0001, 2, 12), id="points: from 0.1 ms"),
        pytest.param(metrics.event_handling_duration, exponential(0.0001, 2, 12), id="events: from 0.1 ms"),
        pytest.param(metrics.plugin_execution_duration, exponential(0.00001, 1.5, 20), id="plugins: from 10 us"),
        pytest.param(metrics.pod_scheduling_sli_duration, exponential(0.01, 2, 20), id="from the first attempt: 10 ms"),
        pytest.param(metrics.pod_scheduling_attempts, exponential(1, 2, 5), id="numbers of attempts"),
        pytest.param(metrics.preemption_victims, exponential(1, 2, 7), id="numbers of victims"),
    ],
)
def test_buckets(histogram: Histogram, buckets: list[float]) -> None:
    found = histogram._kwargs["buckets"] if histogram._labelnames else histogram._upper_bounds[:-1]
    assert list(found) == pytest.approx(buckets)


def test_the_process_and_the_garbage_collector_are_told_of() -> None:
    names = dict(of_the_process())
    assert {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"} <= names.keys()
    assert {"python_gc_collections_total", "python_gc_objects_uncollectable_total"} <= names.keys()


def test_the_page_has_every_metric_with_its_labels_and_no_other() -> None:
    said = {name: tuple(re.findall(r"`(\w+)`", labels)) for name, labels in ROW.findall(PAGE.read_text())}
    assert said == exported()
