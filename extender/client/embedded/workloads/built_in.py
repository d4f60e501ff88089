"""Pods of Deployments, ReplicaSets, StatefulSets, Jobs and CronJobs.

Kubernetes: pkg/controller/{deployment,replicaset,statefulset,job,cronjob}
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from extender.client.embedded.defaults import suffix
from extender.client.embedded.workloads.job_scheduling import TEMPLATE_NAME, pod_group_of
from extender.client.embedded.workloads.section import Section
from extender.client.embedded.workloads.workload import After, Made, Workload, owner_reference

BATCH = "batch/v1"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"


def deployment(workload: Workload) -> Iterator[Made]:
    digest = hashlib.sha256(repr(workload.spec.section("template").value).encode()).hexdigest()[:9]
    return _replicas(workload, f"-{digest}")


def replica_set(workload: Workload) -> Iterator[Made]:
    return _replicas(workload, "")


def _replicas(workload: Workload, revision: str) -> Iterator[Made]:
    count = workload.spec.number("replicas")
    name = workload.name + revision
    owner = owner_reference("apps/v1", "ReplicaSet", workload.namespace, name)
    for index in range(count):
        yield workload.pod(workload.spec.section("template"), f"{name}-{suffix(f'{name}-{index}')}", owner=owner)


def stateful_set(workload: Workload) -> Iterator[Made]:
    """One after the other, unless it says that they may come all at once."""
    spec = workload.spec
    start, parallel = spec.section("ordinals").number("start", 0), spec.text("podManagementPolicy") == "Parallel"
    after: After | None = None
    for index in range(spec.number("replicas")):
        made = ordered_pod(workload, workload.name, spec.section("template"), start + index, after=after)
        after = None if parallel else After((made.key,))
        yield made


def ordered_pod(
    workload: Workload,
    set_name: str,
    template: Section,
    ordinal: int,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    after: After | None = None,
) -> Made:
    """Of a StatefulSet of that name. labels, annotations: what its controller writes on the template."""
    name = f"{set_name}-{ordinal}"
    own = {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(ordinal)}
    return workload.pod(
        template,
        name,
        labels={**(labels or {}), **own},
        annotations=annotations,
        owner=owner_reference("apps/v1", "StatefulSet", workload.namespace, set_name),
        after=after,
        hostname=name,
    )


def job(workload: Workload) -> Iterator[Made]:
    if workload.has(TEMPLATE_NAME):
        workload.warn(f"the annotation {TEMPLATE_NAME} is not simulated: its pods are in no group")
    yield from _by_itself(workload, workload.name, workload.spec)


def cron_job(workload: Workload) -> Iterator[Made]:
    """One run of it, of a number that its name would have from the time."""
    if workload.suspended():
        return
    template = workload.spec.section("jobTemplate")
    if "spec" not in template.value:
        raise template.error(".spec", "Required value")
    yield from _by_itself(workload, f"{workload.name}-0", template.section("spec"))


def _by_itself(workload: Workload, name: str, spec: Section) -> Iterator[Made]:
    """A Job that no other controller makes but a CronJob's: with a PodGroup where spec.scheduling asks for one."""
    if workload.suspended(spec):
        return
    more: dict[str, Any] = {}
    group = pod_group_of(workload, name, spec, owner_reference(BATCH, "Job", workload.namespace, name))
    if group is not None:
        more = {"schedulingGroup": {"podGroupName": group.object["metadata"]["name"]}}
        yield group
    yield from job_pods(workload, name, spec, **more)


def job_pods(
    workload: Workload,
    name: str,
    spec: Section,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    completion_mode: str = "NonIndexed",
    after: After | None = None,
    **pod_spec: Any,
) -> Iterator[Made]:
    """Those of a Job of that name and spec that are there first. labels, annotations, pod_spec: what its maker adds to the template.

    completion_mode: where the spec has none.
    """
    owner = owner_reference(BATCH, "Job", workload.namespace, name)
    of_job = {"batch.kubernetes.io/job-name": name, "job-name": name}
    of_job |= {"batch.kubernetes.io/controller-uid": owner["uid"], "controller-uid": owner["uid"]}
    indexed = spec.text("completionMode", completion_mode) == "Indexed"
    for index in range(pods_at_first(spec)):
        own = {COMPLETION_INDEX: str(index)} if indexed else {}
        of_index = f"{name}-{index}" if indexed else name
        more = {"hostname": of_index} if indexed and "hostname" not in spec.section("template", "spec").value else {}
        yield workload.pod(
            spec.section("template"),
            f"{of_index}-{suffix(f'{name}-{index}')}",
            labels={**(labels or {}), **of_job, **own},
            annotations={**(annotations or {}), **own},
            owner=owner,
            after=after,
            **{**more, **pod_spec},
        )


def pods_at_first(spec: Section) -> int:
    """Of a Job: no more run side by side than are still to complete."""
    return min(spec.number("parallelism"), spec.number("completions", spec.number("parallelism")))
