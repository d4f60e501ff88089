"""The guard of gangs as an extender of the in-process scheduler: what the preempt verb is behind a kube-scheduler.

kube-scheduler: pkg/scheduler/extender.go (ProcessPreemption)
"""

from __future__ import annotations

from collections.abc import Mapping

from extender.api import corev1
from extender.framework.listers import NodeInfoLister
from extender.framework.preemption.candidate import Victims
from extender.plugins.coscheduling.preemption.guard import OfferedCandidate, PreemptionGuard


class GuardExtender:
    """Fulfils framework's PreemptionExtender. Without a guard, where no profile knows gangs, it has nothing to say."""

    name = "gangs"
    ignorable = False

    def __init__(self) -> None:
        self.guard: PreemptionGuard | None = None

    @property
    def supports_preemption(self) -> bool:
        return self.guard is not None

    def is_interested(self, pod: corev1.Pod) -> bool:
        return True

    def process_preemption(
        self, pod: corev1.Pod, victims: Mapping[str, Victims], nodes: NodeInfoLister
    ) -> dict[str, Victims]:
        if self.guard is None:
            return dict(victims)
        offered = [OfferedCandidate(name, found.pods, found.num_pdb_violations) for name, found in victims.items()]
        return {each.node_name: Victims(each.victims, each.pdb_violations) for each in self.guard.review(pod, offered)}
