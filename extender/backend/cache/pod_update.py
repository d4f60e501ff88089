"""Which updates of an assumed pod bring no news, and need not go through the queue.

The event handlers ask (through Cache.skip_pod_update).
kube-scheduler: pkg/scheduler/eventhandlers.go (skipPodUpdate, until 1.23)
"""

from __future__ import annotations

from msgspec.structs import replace

from extender.api import corev1


def is_binding_echo(assumed: corev1.Pod, updated: corev1.Pod) -> bool:
    """True if they differ at most in what binding and its companions write.

    That is: resourceVersion, the node, annotations, finalizers and status conditions.
    """
    return _essence(assumed) == _essence(updated)


def _essence(pod: corev1.Pod) -> corev1.Pod:
    return replace(
        pod,
        metadata=replace(pod.metadata, resource_version="", annotations={}, finalizers=()),
        spec=replace(pod.spec, node_name=""),
        status=replace(pod.status, conditions=()),
    )
