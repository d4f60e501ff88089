"""The PodGroup of a Job with spec.scheduling, of Kubernetes 1.37's own kind; the Job's pods name it.

`built_in` asks it for Jobs, and for those of CronJobs. Kubernetes: pkg/controller/job/job_scheduling_manager.go, enhancement 5547
"""

from __future__ import annotations

from typing import Any

from extender.client.embedded.defaults import suffix
from extender.client.embedded.workloads.section import Raw, Section
from extender.client.embedded.workloads.workload import Made, Workload
from extender.client.interface import IN_TREE_POD_GROUPS

COPIED = ("schedulingConstraints", "disruptionMode", "resourceClaims")
TEMPLATE_NAME = (
    "scheduling.k8s.io/group-template-name"  # of a Workload object that a user, or another controller, has made
)


def pod_group_of(workload: Workload, name: str, spec: Section, owner: Raw) -> Made | None:
    """For the Job of that name and spec. None where it asks for none, or where its pods are in a group already, or stay without."""
    if "scheduling" not in spec.value:
        return None
    if "schedulingGroup" in spec.section("template", "spec").value:
        workload.warn("spec.scheduling does not count beside schedulingGroup in the pod template")
        return None
    asked = spec.section("scheduling")
    copied = {field: asked.value[field] for field in COPIED if field in asked.value}
    body = {"schedulingPolicy": _policy(asked.section("schedulingPolicy"), spec.number("parallelism")), **copied}
    group = f"{name}-{suffix(owner['uid'])}-{name}-{suffix(name)}"
    return workload.group(IN_TREE_POD_GROUPS, body, name=group, owner=owner)


def _policy(policy: Section, parallelism: int) -> dict[str, Any]:
    """Without one, each pod is on its own."""
    if not policy.value:
        return {"basic": {}}
    if policy.value.keys() not in ({"gang"}, {"basic"}):
        raise policy.error("", "exactly one of gang and basic is wanted")
    if "basic" in policy.value:
        return {"basic": policy.section("basic").value}
    gang = policy.section("gang")
    minimum = gang.number("minCount", max(1, parallelism), least=1)
    if "minCount" in gang.value and minimum > parallelism:
        raise gang.error(".minCount", f"{minimum} is more than parallelism, which is {parallelism}")
    return {"gang": {"minCount": minimum}}
