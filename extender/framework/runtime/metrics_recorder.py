"""Runs of extension points, and waits in Permit, as kube-scheduler's metrics: the recorder to hand to a Framework.

Not for frameworks that run off the event loop: an observation takes a lock.
kube-scheduler: pkg/scheduler/metrics/metric_recorder.go
"""

from __future__ import annotations

import random

from extender import metrics
from extender.framework.cycle_state import CycleState
from extender.framework.runtime.binding_points import WAIT_ON_PERMIT
from extender.framework.runtime.plugin_calls import EXTENSION_POINTS

SAMPLED_CYCLES = 0.1


def record(point: str, code: str, profile: str, seconds: float) -> None:
    if point == WAIT_ON_PERMIT:
        metrics.child(metrics.scheduler_permit_wait_duration, code).observe(seconds)
        metrics.child(metrics.permit_wait_duration, code).observe(seconds)
    else:
        metrics.child(metrics.framework_extension_point_duration, point, code, profile).observe(seconds)


def record_plugin(plugin: str, point: str, code: str, seconds: float) -> None:
    metrics.child(metrics.plugin_execution_duration, plugin, EXTENSION_POINTS.get(point, point), code).observe(seconds)


def sampled_state(rng: random.Random | None = None) -> CycleState:
    """For a cycle that begins: one in ten has each call of a plugin measured. Go: pluginMetricsSamplePercent."""
    state = CycleState()
    if (random.random() if rng is None else rng.random()) < SAMPLED_CYCLES:
        state.record_plugin = record_plugin
    return state
