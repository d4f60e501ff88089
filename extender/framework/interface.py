"""The extension points. A plugin shows by its bases which of them it has.

kube-scheduler: k8s.io/kube-scheduler/framework/interface.go
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.status import SUCCESS, Status

MAX_NODE_SCORE = 100
MIN_FEASIBLE_NODES_TO_FIND = 100  # kube-scheduler stops at no fewer, whatever percentageOfNodesToScore says
MIN_NODE_SCORE = 0
MAX_TOTAL_SCORE = 2**63 - 1


class Plugin:
    """Base of all plugins. `name` is the plugin's name in profiles, events and metrics."""

    name: ClassVar[str]


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The only nodes that can pass, or None for all of them. Go: PreFilterResult."""

    node_names: frozenset[str] | None = None

    @property
    def all_nodes(self) -> bool:
        return self.node_names is None

    def merge(self, other: PreFilterResult) -> PreFilterResult:
        if self.node_names is None:
            return other
        if other.node_names is None:
            return self
        return PreFilterResult(self.node_names & other.node_names)


@dataclass(slots=True)
class NodeScore:
    """The score of one node; NormalizeScore changes it in place."""

    name: str
    score: int


class NominatingMode(Enum):
    NOOP = "Noop"
    OVERRIDE = "Override"


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """Where the pod is nominated to; NOOP leaves status.nominatedNodeName as it is, OVERRIDE with "" clears it."""

    nominated_node_name: str = ""
    mode: NominatingMode = NominatingMode.NOOP


@dataclass(frozen=True, slots=True)
class QueuedPodInfo:
    """A pod as the queue and QueueSort see it. Times in seconds of the queue's clock."""

    pod_info: PodInfo
    timestamp: float
    initial_attempt_timestamp: float | None = None
    attempts: int = 0

    @property
    def pod(self) -> corev1.Pod:
        return self.pod_info.pod


class PreEnqueuePlugin(Plugin, ABC):
    @abstractmethod
    def pre_enqueue(self, pod: corev1.Pod) -> Status:
        """Whether the pod may enter the active queue."""


class QueueSortPlugin(Plugin, ABC):
    @abstractmethod
    def less(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
        """Whether the first is to be scheduled before the second."""


class EnqueueExtensions(Plugin, ABC):
    @abstractmethod
    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """The cluster events that may make a pod schedulable that this plugin refused."""


class PreFilterExtensions(ABC):
    """Keeps a plugin's PreFilter state true while a dry run adds and removes pods."""

    @abstractmethod
    def add_pod(self, state: CycleState, pod: corev1.Pod, added: PodInfo, node: NodeInfo) -> Status: ...

    @abstractmethod
    def remove_pod(self, state: CycleState, pod: corev1.Pod, removed: PodInfo, node: NodeInfo) -> Status: ...


class PreFilterPlugin(Plugin, ABC):
    @abstractmethod
    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Once per cycle. SKIP leaves the plugin's Filter and its extensions out of this cycle."""

    def pre_filter_extensions(self) -> PreFilterExtensions | None:
        return None


class FilterPlugin(Plugin, ABC):
    @abstractmethod
    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        """Whether the pod can run on the node."""


class PostFilterPlugin(Plugin, ABC):
    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: corev1.Pod, node_statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """After no node passed. SUCCESS means: room is being made."""


class PreScorePlugin(Plugin, ABC):
    @abstractmethod
    def pre_score(self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Once per cycle. SKIP leaves the plugin's Score out of this cycle."""


class ScorePlugin(Plugin, ABC):
    @abstractmethod
    def score(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> tuple[int, Status]:
        """How good the node is; in [0,100] after normalize_score."""

    def normalize_score(self, state: CycleState, pod: corev1.Pod, scores: list[NodeScore]) -> Status:
        """Go: ScoreExtensions.NormalizeScore; none by default."""
        return SUCCESS


class ReservePlugin(Plugin, ABC):
    @abstractmethod
    def reserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status: ...

    @abstractmethod
    def unreserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> None:
        """Takes Reserve back. Must be harmless where Reserve was never called."""


class PermitPlugin(Plugin, ABC):
    @abstractmethod
    def permit(self, state: CycleState, pod: corev1.Pod, node_name: str) -> tuple[Status, float]:
        """SUCCESS, a refusal, or WAIT with the longest wait in seconds."""


class PreBindPlugin(Plugin, ABC):
    def pre_bind_pre_flight(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        """SKIP if there is nothing for pre_bind to do."""
        return SUCCESS

    @abstractmethod
    def pre_bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status: ...


class BindPlugin(Plugin, ABC):
    @abstractmethod
    def bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        """SKIP hands the pod on to the next Bind plugin."""


class PostBindPlugin(Plugin, ABC):
    @abstractmethod
    def post_bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> None: ...


class QueueingHint(Enum):
    SKIP = "QueueSkip"
    QUEUE = "Queue"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """A resource and what may happen to it, `action` a bit mask of framework.events.ActionType."""

    resource: str
    action: int
    label: str = ""


QueueingHintFn = Callable[[corev1.Pod, object, object], QueueingHint]
"""(pod, old object or None, new object or None) -> whether the event may help the pod."""


@dataclass(frozen=True, slots=True)
class ClusterEventWithHint:
    event: ClusterEvent
    hint: QueueingHintFn | None = None


@dataclass(slots=True)
class NodeToStatus:
    """Why each node was refused; nodes not in `statuses` have `absent`. Go: NodeToStatus."""

    statuses: dict[str, Status]
    absent: Status

    def get(self, name: str) -> Status:
        return self.statuses.get(name, self.absent)


class WaitingPod(ABC):
    """A pod that Permit told to wait. Go: framework.WaitingPod."""

    @property
    @abstractmethod
    def pod(self) -> corev1.Pod: ...

    @property
    @abstractmethod
    def node_name(self) -> str: ...

    @abstractmethod
    def pending_plugins(self) -> Iterable[str]: ...

    @abstractmethod
    def allow(self, plugin: str) -> bool:
        """Lifts one plugin's hold; the last one lifted lets the pod go on. False if it was decided already."""

    @abstractmethod
    def reject(self, plugin: str, message: str) -> bool:
        """Declares the pod unschedulable. False if it was decided already."""

    @abstractmethod
    def preempt(self, plugin: str, message: str) -> bool:
        """The same with Code.ERROR: the pod is tried again after its back-off, as one that lost its place."""


@dataclass(frozen=True, slots=True)
class NodePluginScores:
    """One node's scores, weighted, by plugin and in total. Go: NodePluginScores."""

    name: str
    total_score: int
    scores: Mapping[str, int]
