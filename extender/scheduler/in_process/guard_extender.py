"""The guard of gangs as an extender of the in-process scheduler: what the preempt verb is behind a kube-scheduler.

kube-scheduler: pkg/scheduler/extender.go (ProcessPreemption)
"""

from __future__ import annotations

from collections.abc import Mapping

from extender.api import corev1
from extender.framework.listers import NodeInfoLister
from extender.framework.preemption.candidate import Victims
from extender.plugins.coscheduling.plugin import Coscheduling


class GuardExtender:
    """Fulfils framework's PreemptionExtender. Where no profile knows gangs it has nothing to say."""

    name = "gangs"
    ignorable = False

    def __init__(self) -> None:
        self.coscheduling: Coscheduling | None = None

    @property
    def supports_preemption(self) -> bool:
        return self.coscheduling is not None

    def is_interested(self, pod: corev1.Pod) -> bool:
        return True

    def process_preemption(
        self, pod: corev1.Pod, victims: Mapping[str, Victims], nodes: NodeInfoLister
    ) -> dict[str, Victims]:
        return dict(victims) if self.coscheduling is None else self.coscheduling.process_preemption(pod, victims)
