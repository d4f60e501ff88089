"""Runs of extension points, and waits in Permit, as kube-scheduler's metrics: the recorder to hand to a Framework.

Not for frameworks that run off the event loop: an observation takes a lock.
kube-scheduler: pkg/scheduler/metrics/metric_recorder.go
"""

from __future__ import annotations

from extender import metrics
from extender.framework.runtime.binding_points import WAIT_ON_PERMIT


def record(point: str, code: str, profile: str, seconds: float) -> None:
    if point == WAIT_ON_PERMIT:
        metrics.scheduler_permit_wait_duration.labels(code).observe(seconds)
    else:
        metrics.framework_extension_point_duration.labels(point, code, profile).observe(seconds)
