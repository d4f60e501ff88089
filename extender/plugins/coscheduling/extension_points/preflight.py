"""Is the node still one that takes the pod? Asked once more just before the binding.

The API server binds to a node that is gone, cordoned or full without a word, so this has to be ours.
"""

from __future__ import annotations

from extender.api import corev1
from extender.api.corev1.toleration import NO_EXECUTE, NO_SCHEDULE
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.resource import Resource
from extender.framework.status import SUCCESS, Status, unschedulable
from extender.plugins.node_unschedulable import tolerates_cordon

NO_ROOM = "has no room left"
_NOT_READY = corev1.Taint(key="node.kubernetes.io/not-ready", effect=NO_SCHEDULE)


def preflight(pod: corev1.Pod, node_name: str, snapshot: NodeInfoLister) -> Status:
    """SUCCESS, or why the node is out: gone, not ready, cordoned, tainted, over-committed. The pod is assumed on it."""
    try:
        info = snapshot.get(node_name)
    except KeyError:
        return unschedulable(f'node "{node_name}" not found')
    node = info.node
    if node is None or node.metadata.deletion_timestamp is not None:
        return unschedulable(f'node "{node_name}" not found')
    tolerations = pod.spec.tolerations
    if node.not_ready and not any(toleration.tolerates(_NOT_READY) for toleration in tolerations):
        return unschedulable(f'node "{node_name}" is not ready')
    if node.spec.unschedulable and not tolerates_cordon(pod):
        return unschedulable(f'node "{node_name}" is unschedulable')
    for taint in node.spec.taints:
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(t.tolerates(taint) for t in tolerations):
            return unschedulable(f'node "{node_name}" has an untolerated taint {taint.key}')
    return _room(PodInfo(pod).requests, info)


def _room(asked: Resource, info: NodeInfo) -> Status:
    """Whether what the pod asks for is still covered, the pod being counted already. What it does not ask for is not its matter."""
    short = [
        name
        for name in ("cpu", "memory", "ephemeral-storage", *asked.scalar)
        if asked.amount(name) > 0 and info.requested.amount(name) > info.allocatable.amount(name)
    ]
    if len(info.pods) > info.allocatable.allowed_pod_number:
        short.append("pods")
    if short:
        return unschedulable(f'node "{info.name}" {NO_ROOM}: insufficient {", ".join(sorted(short))}')
    return SUCCESS


def lacks_room(status: Status) -> bool:
    """Whether the node is only over-committed: by a pod perhaps that kube-scheduler's watch has shown to be gone, and ours not yet."""
    return not status.success and NO_ROOM in status.message
