"""A pod on its way through the queue: what QueueSort sees, and what decides when it is tried again.

A frozen value; the sub-queues hold the newest one of each pod, a cycle holds the one that it popped.
kube-scheduler: k8s.io/kube-scheduler/framework/types.go (QueuedPodInfo)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from extender.api import corev1
from extender.framework.interface import QueuedPodInfo
from extender.framework.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class QueuedPod(QueuedPodInfo):
    """`timestamp` is renewed whenever the pod comes back; `initial_attempt_timestamp` never.

    unschedulable_count: attempts that plugins refused. consecutive_errors_count: attempts that failed otherwise, since
    the last refusal. unschedulable_plugins, pending_plugins: the plugins that refused it at the last attempt; pending ones said
    PENDING. gating_plugin: the PreEnqueue plugin that keeps it from being tried at all.
    """

    unschedulable_count: int = 0
    consecutive_errors_count: int = 0
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    gating_plugin: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`: a pod made anew under its name takes the old one's place."""
        return self.pod_info.pod.key

    @property
    def uid(self) -> str:
        return self.pod_info.pod.uid

    @property
    def gated(self) -> bool:
        return bool(self.gating_plugin)

    @property
    def rejector_plugins(self) -> frozenset[str]:
        return self.unschedulable_plugins | self.pending_plugins

    def with_pod(self, pod: corev1.Pod) -> QueuedPod:
        return replace(self, pod_info=PodInfo(pod))

    def rejected_by(self, unschedulable: Iterable[str], pending: Iterable[str] = ()) -> QueuedPod:
        """For the failure handler: the plugins of the FitError; none for an error that is no refusal."""
        return replace(self, unschedulable_plugins=frozenset(unschedulable), pending_plugins=frozenset(pending))
