"""Pods of a RayCluster: its head and its worker groups; with the label for gangs KubeRay's PodGroup, too.

KubeRay: ray-operator/controllers/ray (raycluster_controller.go, common/pod.go, batchscheduler/scheduler-plugins)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from extender.client.embedded.defaults import suffix
from extender.client.embedded.workloads.section import MOST_PODS, Raw, Section
from extender.client.embedded.workloads.workload import (
    POD_GROUP_LABEL,
    Made,
    Workload,
    owner_reference,
    requests_of,
)

VERSION = "ray.io/v1"
GANG_LABEL = "ray.io/gang-scheduling-enabled"
SCHEDULER = "scheduler-plugins-scheduler"  # a constant of KubeRay
LONGEST_PREFIX = 50  # of a pod's name
_WAIT_FOR_HEAD: Raw = {
    "name": "wait-gcs-ready",
    "resources": {"limits": {"cpu": "200m", "memory": "256Mi"}, "requests": {"cpu": "200m", "memory": "256Mi"}},
}
_AUTOSCALER: Raw = {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "500m", "memory": "512Mi"}}


def ray_cluster(workload: Workload) -> Iterator[Made]:
    if not workload.suspended():
        yield from cluster(workload, workload.name, workload.spec, gang=workload.has(GANG_LABEL))


def cluster(
    workload: Workload, name: str, spec: Section, *, gang: bool, beside_head: Iterable[Raw] = ()
) -> Iterator[Made]:
    """Of a RayCluster of that name and spec. beside_head: containers in the head's pod that its maker adds."""
    head = spec.section("headGroupSpec")
    groups = [(group, _hosts(group)) for group in spec.sections("workerGroupSpecs")]
    made = _Cluster(workload, name, gang, owner_reference(VERSION, "RayCluster", workload.namespace, name))
    if gang:
        # KubeRay counts replicas as they stand in the object for minResources, and within their bounds for minMember.
        parts = [(head.section("template"), 1), *((group.section("template"), _asked(group)) for group, _ in groups)]
        members = 1 + sum(hosts for _, hosts in groups)
        yield workload.pod_group(members, name=name, owner=made.owner, minResources=requests_of(parts))
    yield made.pod(head, "head", "headgroup", 0, _containers_beside(head, [*_autoscaler(spec, head), *beside_head]))
    for group, hosts in groups:
        for index in range(hosts):
            yield made.pod(group, "worker", group.text("groupName"), index, _waits_for_head(group))


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


def _autoscaler(spec: Section, head: Section) -> Iterator[Raw]:
    """A container beside the head's."""
    if spec.is_set("enableInTreeAutoscaling"):
        resources = spec.section("autoscalerOptions").section("resources").value or _AUTOSCALER
        yield {"name": "autoscaler", "resources": resources, **image_of(head)}


def _containers_beside(head: Section, more: Sequence[Raw]) -> Raw:
    containers = head.section("template", "spec").value.get("containers") or []
    return {"containers": [*containers, *more]} if more else {}


def _waits_for_head(group: Section) -> Raw:
    """An init container of each worker; a pod asks for no less than it."""
    containers = group.section("template", "spec").value.get("initContainers") or []
    return {"initContainers": [*containers, {**_WAIT_FOR_HEAD, **image_of(group)}]}


def image_of(group: Section) -> Raw:
    """That of the group's Ray container, which is the first."""
    containers = group.section("template", "spec").sections("containers")
    return {"image": containers[0].text("image")} if containers and "image" in containers[0].value else {}


@dataclass(frozen=True, slots=True)
class _Cluster:
    workload: Workload
    name: str
    gang: bool
    owner: Raw

    def pod(self, group: Section, type_: str, group_name: str, index: int, spec: dict[str, Any]) -> Made:
        labels = {
            "ray.io/is-ray-node": "yes",
            "ray.io/cluster": self.name,
            "ray.io/node-type": type_,
            "ray.io/group": group_name,
            "ray.io/identifier": f"{self.name}-{type_}",
            "app.kubernetes.io/name": "kuberay",
            "app.kubernetes.io/created-by": "kuberay-operator",
        }
        if self.gang:
            labels[POD_GROUP_LABEL] = self.name
            spec = {**spec, "schedulerName": SCHEDULER}
        prefix = self.name if type_ == "head" else f"{self.name}-{group_name}"
        stem = f"{prefix[:LONGEST_PREFIX]}-{type_}".lower()
        name = f"{stem}-{suffix(f'{stem}-{index}')}"
        return self.workload.pod(group.section("template"), name, labels=labels, owner=self.owner, **spec)
