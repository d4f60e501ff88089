"""Pods that plugins want to be tried next: siblings of the pod in the scheduling cycle.

A plugin stashes them in the cycle's state; they are activated when the scheduling cycle has ended well, and once more,
with what was stashed since, when the pod is bound. A failed cycle activates none.
kube-scheduler: pkg/scheduler/framework/interface.go (PodsToActivate), pkg/scheduler/schedule_one.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.pods_to_activate import PODS_TO_ACTIVATE, PodsToActivate


def begin(state: CycleState) -> None:
    """At the start of each cycle: the place where plugins put them."""
    state.write(PODS_TO_ACTIVATE, PodsToActivate())


def activate_stashed(state: CycleState, activate: Callable[[Iterable[corev1.Pod]], None]) -> None:
    """After Permit, and after the binding. activate: the queue's. What was activated is not activated again."""
    stash = state.get(PODS_TO_ACTIVATE, PodsToActivate)
    if stash is not None and (pods := stash.take()):
        activate(pods)
