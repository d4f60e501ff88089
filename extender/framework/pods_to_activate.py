"""Where plugins put pods to be moved to the active queue after the scheduling cycle of another pod.

`stash_pod` in any extension point; the cycle empties it (scheduler/pods_to_activate).
kube-scheduler: pkg/scheduler/framework/interface.go (PodsToActivate)
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from extender.api import corev1
from extender.framework.cycle_state import CycleState

PODS_TO_ACTIVATE = "kubernetes.io/pods-to-activate"


class PodsToActivate:
    """By `namespace/name`. Shared by the clones of a cycle's state, as in kube-scheduler."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _pods: plugins may stash from threads of their own; the innermost lock
        self._pods: dict[str, corev1.Pod] = {}

    def stash(self, pod: corev1.Pod) -> None:
        with self._lock:
            self._pods[pod.key] = pod

    def take(self) -> Sequence[corev1.Pod]:
        """All that were stashed since the last call."""
        with self._lock:
            pods, self._pods = self._pods, {}
        return tuple(pods.values())


def stash_pod(state: CycleState, pod: corev1.Pod) -> None:
    """For plugins. Nothing happens in a cycle that has no queue behind it."""
    stash = state.get(PODS_TO_ACTIVATE, PodsToActivate)
    if stash is not None:
        stash.stash(pod)
