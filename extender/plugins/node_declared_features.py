"""NodeDeclaredFeatures: a pod whose spec needs a feature of the kubelet goes where the node declares it.

kube-scheduler: pkg/scheduler/framework/plugins/nodedeclaredfeatures, and which features there are:
k8s.io/component-helpers/nodedeclaredfeatures/features
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Self

from extender.api import corev1
from extender.framework.cycle_state import CycleState, CycleStateNotFoundError
from extender.framework.events import NODE, POD, ActionType
from extender.framework.handle import Handle
from extender.framework.interface import (
    ClusterEvent,
    ClusterEventWithHint,
    EnqueueExtensions,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    QueueingHint,
)
from extender.framework.node_info import NodeInfo
from extender.framework.status import SKIP, SUCCESS, Status, error, unresolvable
from extender.plugins import names
from extender.plugins.hints import QUEUE, QUEUE_SKIP, modified

STATE = "PreFilterNodeDeclaredFeatures"
REFUSED = unresolvable("node(s) didn't match Pod's required features")


def _restarts_all_containers(pod: corev1.Pod) -> bool:
    return any(
        rule.action == "RestartAllContainers"
        for container in pod.all_containers()
        for rule in container.restart_policy_rules
    )


def _user_namespace_on_host_network(pod: corev1.Pod) -> bool:
    return pod.spec.host_network and pod.spec.host_users is False


FEATURES: Mapping[str, Callable[[corev1.Pod], bool]] = {
    "RestartAllContainersOnContainerExits": _restarts_all_containers,
    "UserNamespacesHostNetworkSupport": _user_namespace_on_host_network,
}
"""Those that a pod can need in order to be scheduled; three others of 1.36 matter to updates and connections only."""


def required_features(pod: corev1.Pod) -> frozenset[str]:
    """Go: InferForPodScheduling."""
    return frozenset(name for name, needed_by in FEATURES.items() if needed_by(pod))


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    name = names.NODE_DECLARED_FEATURES

    @classmethod
    def create(cls, args: None, handle: Handle) -> Self:
        return cls()

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        required = required_features(pod)
        if not required:
            return None, SKIP
        state.write(STATE, required)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        try:
            required: frozenset[str] = state.read(STATE, frozenset)
        except CycleStateNotFoundError:
            return error(f'error reading "{STATE}" from cycle-state: not found')
        declared = node.node.status.declared_features if node.node is not None else ()
        return SUCCESS if required <= set(declared) else REFUSED

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        node_change = ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE
        return [
            ClusterEventWithHint(ClusterEvent(NODE, node_change), self.after_node_change),
            ClusterEventWithHint(ClusterEvent(POD, ActionType.UPDATE), self.after_pod_update),
        ]

    def after_node_change(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """A new node, or one that declares other features than before."""
        before, after = modified(corev1.Node, old, new)
        same = before is not None and before.status.declared_features == after.status.declared_features
        return QUEUE_SKIP if same else QUEUE

    def after_pod_update(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """The pod itself needs other features than before."""
        before, after = modified(corev1.Pod, old, new)
        if after.uid != pod.uid or (before is not None and required_features(before) == required_features(after)):
            return QUEUE_SKIP
        return QUEUE
