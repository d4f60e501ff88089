"""What the Evaluator asks of the plugin that owns it, and of extenders.

kube-scheduler: pkg/scheduler/framework/preemption/preemption.go (Interface), k8s.io/kube-scheduler/framework (Extender)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from extender.api import corev1, policyv1
from extender.framework.cycle_state import CycleState
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.preemption.candidate import Victims
from extender.framework.status import Status

ScoreFunction = Callable[[str], int]
"""Node name -> how good; the greatest wins."""


class PreemptionInterface(ABC):
    """The rules that a preemption plugin may change."""

    @abstractmethod
    def get_offset_and_num_candidates(self, nodes: int) -> tuple[int, int]:
        """(the node to begin with, how many candidates are enough), of so many potential nodes, at least one."""

    @abstractmethod
    def pod_eligible_to_preempt_others(self, pod: corev1.Pod, nominated_node_status: Status) -> tuple[bool, str]:
        """Whether the pod may evict at all, and why not."""

    @abstractmethod
    def select_victims_on_node(
        self,
        state: CycleState,
        pod: corev1.Pod,
        node: NodeInfo,
        pdbs: Sequence[policyv1.PodDisruptionBudget],
    ) -> tuple[tuple[corev1.Pod, ...], int, Status]:
        """(victims, how many of them violate a budget, status). State and node are the caller's copies, changed here."""

    def ordered_score_functions(self, victims: Mapping[str, Victims]) -> Sequence[ScoreFunction]:
        """Criteria in place of kube-scheduler's; none by default."""
        return ()


class PreemptionExtender(Protocol):
    """An entry of `extenders:` as the Evaluator sees it."""

    @property
    def name(self) -> str: ...

    @property
    def ignorable(self) -> bool: ...

    @property
    def supports_preemption(self) -> bool: ...

    def is_interested(self, pod: corev1.Pod) -> bool: ...

    def process_preemption(
        self, pod: corev1.Pod, victims: Mapping[str, Victims], nodes: NodeInfoLister
    ) -> dict[str, Victims]:
        """The nodes that are left, with their victims. Raises ExtenderCallError."""
        ...


class ExtenderCallError(Exception):
    """An extender could not be asked, or what it answered makes no sense."""
