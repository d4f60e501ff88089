"""kube-scheduler's attempts, counted behind the verbs: a filter call that refuses, and a bind call, however it ends.

What spans attempts (their number, the time since the first) is kube-scheduler's own to tell.
kube-scheduler: pkg/scheduler/metrics/profile_metrics.go (PodScheduled, PodUnschedulable, PodScheduleError)
"""

from __future__ import annotations

from extender import metrics
from extender.api.extenderv1 import ExtenderFilterResult
from extender.framework.status import Status

SCHEDULED = "scheduled"
UNSCHEDULABLE = "unschedulable"
ERROR = "error"


def filtered(profile: str, result: ExtenderFilterResult, seconds: float) -> None:
    """A call that leaves nodes is an attempt that goes on."""
    metrics.scheduling_algorithm_duration.observe(seconds)
    if result.error:
        _count(ERROR, profile, seconds)
    elif not result.node_names:
        _count(UNSCHEDULABLE, profile, seconds)


def bound(profile: str, status: Status, seconds: float) -> None:
    _count(SCHEDULED if status.success else UNSCHEDULABLE if status.rejected else ERROR, profile, seconds)


def _count(result: str, profile: str, seconds: float) -> None:
    metrics.child(metrics.schedule_attempts, result, profile).inc()
    metrics.child(metrics.scheduling_attempt_duration, result, profile).observe(seconds)
