"""Patches of status and gates: small, with the UID as precondition, never a whole object.

kube-scheduler: pkg/scheduler/util/utils.go (PatchPodStatus)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from extender.api import codec, corev1
from extender.api.metav1 import Condition
from extender.client.interface import API, POD_GROUPS, PODS, OwnPodGroup, PatchType, resource_of

NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


def now() -> datetime:
    """In whole seconds, as the API keeps it."""
    return datetime.now(UTC).replace(microsecond=0)


def now_text() -> str:
    """The time as the API writes it: RFC 3339, whole seconds, UTC."""
    return now().strftime("%Y-%m-%dT%H:%M:%SZ")


def patch_pod_status(
    api: API,
    pod: corev1.Pod,
    *,
    condition: corev1.PodCondition | None = None,
    nominated_node_name: str | None = None,
) -> corev1.Pod:
    """Sets a condition by its type, and status.nominatedNodeName ("" clears it, None leaves it)."""
    status: dict[str, Any] = {}
    if condition is not None:
        entry = codec.to_builtins(condition)
        entry["lastTransitionTime"] = now_text()
        status["conditions"] = [entry]
    if nominated_node_name is not None:
        status["nominatedNodeName"] = nominated_node_name or None
    body = {"metadata": {"uid": pod.uid}, "status": status}
    return api.patch(
        PODS, pod.name, body, namespace=pod.namespace, subresource="status", patch_type=PatchType.STRATEGIC
    )


def remove_scheduling_gate(api: API, pod: corev1.Pod, gate: str) -> corev1.Pod:
    """Takes one gate off; gates of others stay."""
    body = {
        "metadata": {"uid": pod.uid},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": gate}]},
    }
    return api.patch(PODS, pod.name, body, namespace=pod.namespace, patch_type=PatchType.STRATEGIC)


def annotate_pod(api: API, pod: corev1.Pod, key: str, value: str) -> corev1.Pod:
    body = {"metadata": {"uid": pod.uid, "annotations": {key: value}}}
    return api.patch(PODS, pod.name, body, namespace=pod.namespace)


def patch_pod_group_status(
    api: API, group: OwnPodGroup, conditions: Sequence[Condition], fields: Mapping[str, Any] = NO_FIELDS
) -> OwnPodGroup:
    """Sets these conditions by their types, and fields of the status by their names; None takes one out. A custom resource has no
    merge of conditions by type: where there are any all of them are written, the others as we know them."""
    resource, meta = resource_of(group), group.metadata
    patch_type = PatchType.STRATEGIC
    if resource is POD_GROUPS:
        patch_type = PatchType.MERGE
        if conditions:
            conditions = merged(group, conditions)
    status = {"conditions": [codec.to_builtins(condition) for condition in conditions]} if conditions else {}
    body = {"metadata": {"uid": meta.uid}, "status": {**fields, **status}}
    found: OwnPodGroup = api.patch(
        resource, meta.name, body, namespace=meta.namespace, subresource="status", patch_type=patch_type
    )
    return found


def merged(group: OwnPodGroup, conditions: Sequence[Condition]) -> list[Condition]:
    """All that the group has once these are set by their types."""
    types = {condition.type for condition in conditions}
    return [*(known for known in group.status.conditions if known.type not in types), *conditions]
