"""One node as it would be: pods leave and come back, and the pod that wants to go there is asked about each time.

kube-scheduler: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode)
"""

from __future__ import annotations

from collections.abc import Sequence

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.handle import Handle
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.status import Status


class BrokenTrialError(Exception):
    """A plugin could not follow."""


class NodeTrial:
    """One node, changed pod by pod, with the plugins' state kept true to it. Both are the trial's own from now on."""

    def __init__(self, handle: Handle, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> None:
        self._handle = handle
        self._state = state
        self._pod = pod
        self._node = node

    def fits(self) -> Status:
        """With those nominated there of equal or higher priority."""
        return self._handle.run_filter_plugins_with_nominated_pods(self._state, self._pod, self._node)

    def remove(self, info: PodInfo) -> None:
        """Raises BrokenTrialError, as `add` does."""
        self._node.remove_pod(info.pod)
        self._check(self._handle.run_pre_filter_extension_remove_pod(self._state, self._pod, info, self._node))

    def add(self, info: PodInfo) -> None:
        self._node.add_pod(info)
        self._check(self._handle.run_pre_filter_extension_add_pod(self._state, self._pod, info, self._node))

    def reprieved(self, info: PodInfo) -> bool:
        """Whether the preemptor fits beside it; if not, the pod is gone again."""
        return self.all_reprieved((info,))

    def all_reprieved(self, infos: Sequence[PodInfo]) -> bool:
        """Whether it fits beside all of these; if not, all are gone again."""
        for info in infos:
            self.add(info)
        if self.fits().success:
            return True
        for info in infos:
            self.remove(info)
        return False

    def _check(self, status: Status) -> None:
        if not status.success:
            raise BrokenTrialError(status.message)
