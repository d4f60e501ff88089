"""Pods of a RayCluster: its head and its worker groups; with the label for gangs KubeRay's PodGroup, too.

KubeRay: ray-operator/controllers/ray (raycluster_controller.go, common/pod.go, batchscheduler/scheduler-plugins)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extender.client.embedded.defaults import suffix
from extender.client.embedded.workloads.section import MOST_PODS, Raw, Section
from extender.client.embedded.workloads.workload import POD_GROUP_LABEL, Made, Workload, requests_of

GANG_LABEL = "ray.io/gang-scheduling-enabled"
SCHEDULER = "scheduler-plugins-scheduler"  # a constant of KubeRay
LONGEST_PREFIX = 50  # of a pod's name
_WAIT_FOR_HEAD: Raw = {
    "name": "wait-gcs-ready",
    "resources": {"limits": {"cpu": "200m", "memory": "256Mi"}, "requests": {"cpu": "200m", "memory": "256Mi"}},
}
_AUTOSCALER: Raw = {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "500m", "memory": "512Mi"}}


def ray_cluster(workload: Workload) -> Iterator[Made]:
    spec = workload.spec
    if spec.is_set("suspend"):
        workload.warn("it is suspended: its pods are not simulated")
        return
    head = spec.section("headGroupSpec")
    groups = [(group, _hosts(group)) for group in spec.sections("workerGroupSpecs")]
    if workload.has(GANG_LABEL):
        # KubeRay counts replicas as they stand in the object for minResources, and within their bounds for minMember.
        parts = [(head.section("template"), 1), *((group.section("template"), _asked(group)) for group, _ in groups)]
        yield workload.pod_group(1 + sum(hosts for _, hosts in groups), minResources=requests_of(parts))
    yield _pod(workload, head, "head", "headgroup", f"{workload.name}-head", 0, _autoscaler(spec, head))
    for group, hosts in groups:
        name = group.text("groupName")
        for index in range(hosts):
            yield _pod(workload, group, "worker", name, f"{workload.name}-{name}-worker", index, _waits_for_head(group))


def _asked(group: Section) -> int:
    return 0 if group.is_set("suspend") else group.number("replicas", 0) * group.number("numOfHosts")


def _hosts(group: Section) -> int:
    """Pods of a worker group: its replicas, no fewer than minReplicas and no more than maxReplicas, of numOfHosts each."""
    if group.is_set("suspend"):
        return 0
    # maxReplicas may say that there is no bound
    most = MOST_PODS if group.value.get("maxReplicas") == 2**31 - 1 else group.number("maxReplicas", MOST_PODS)
    replicas = max(group.number("replicas", 0), group.number("minReplicas", 0))
    return min(replicas, most) * group.number("numOfHosts")


def _autoscaler(spec: Section, head: Section) -> Raw:
    """A container beside the head's."""
    if not spec.is_set("enableInTreeAutoscaling"):
        return {}
    resources = spec.section("autoscalerOptions").section("resources").value or _AUTOSCALER
    containers = head.section("template", "spec").value.get("containers") or []
    return {"containers": [*containers, {"name": "autoscaler", "resources": resources, **_image(head)}]}


def _waits_for_head(group: Section) -> Raw:
    """An init container of each worker; a pod asks for no less than it."""
    containers = group.section("template", "spec").value.get("initContainers") or []
    return {"initContainers": [*containers, {**_WAIT_FOR_HEAD, **_image(group)}]}


def _image(group: Section) -> Raw:
    """That of the group's Ray container, which is the first."""
    containers = group.section("template", "spec").sections("containers")
    return {"image": containers[0].text("image")} if containers and "image" in containers[0].value else {}


def _pod(
    workload: Workload, group: Section, type_: str, name: str, prefix: str, index: int, spec: dict[str, Any]
) -> Made:
    labels = {
        "ray.io/is-ray-node": "yes",
        "ray.io/cluster": workload.name,
        "ray.io/node-type": type_,
        "ray.io/group": name,
        "ray.io/identifier": f"{workload.name}-{type_}",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    if workload.has(GANG_LABEL):
        labels[POD_GROUP_LABEL] = workload.name
        spec = {**spec, "schedulerName": SCHEDULER}
    stem = prefix.removesuffix(f"-{type_}")[:LONGEST_PREFIX] + f"-{type_}"
    return workload.pod(group.section("template"), f"{stem.lower()}-{suffix(f'{stem}-{index}')}", labels=labels, **spec)
