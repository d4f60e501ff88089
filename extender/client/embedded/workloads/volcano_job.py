"""Pods and PodGroup of a Job of Volcano (vcjob), as its controller makes them once Volcano's scheduler has taken the PodGroup in.

Volcano: pkg/controllers/job (job_controller_actions.go, job_controller_util.go), pkg/webhooks/admission/jobs
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extender.api.volcanov1beta1 import GROUP_NAME_ANNOTATION, TASK_SPEC
from extender.client.embedded.workloads.section import MOST_PODS, Section
from extender.client.embedded.workloads.workload import After, Made, Workload, requests_of
from extender.client.interface import PRIORITY_CLASSES, VOLCANO_POD_GROUPS

PREFIX = "volcano.sh/"
DEFAULT_QUEUE = "default"
DEFAULT_SCHEDULER = "volcano"
COPIED = ("networkTopology", "priorityClassName")


@dataclass(frozen=True, slots=True)
class Task:
    """minimum: of its replicas, in the PodGroup. priority: of its pods' class, for the order in which minResources counts tasks."""

    section: Section
    name: str
    replicas: int
    minimum: int
    priority: int

    @property
    def template(self) -> Section:
        return self.section.section("template")


def volcano_job(workload: Workload) -> Iterator[Made]:
    spec = workload.spec
    tasks = [_task(workload, section, index) for index, section in enumerate(spec.sections("tasks"))]
    if not tasks:
        raise spec.error(".tasks", "Required value")
    by_name = {task.name: task for task in tasks}
    if len(by_name) < len(tasks):
        raise spec.error(".tasks", "two tasks have one name")
    for index, volume in enumerate(spec.sections("volumes")):
        if "volumeClaim" in volume.value:
            workload.warn(f"spec.volumes[{index}].volumeClaim is not simulated: its pods ask for no such volume")
    group = f"{workload.name}-{workload.owner['uid']}"
    yield _pod_group(workload, group, tasks)
    needs: dict[tuple[str, ...], After | None] = {}
    for task in tasks:
        needed = _needed(task, by_name)
        if needed not in needs:
            needs[needed] = _after(workload, task, [by_name[name] for name in needed], needs)
        after = needs[needed]
        for index in range(task.replicas):
            yield _pod(workload, task, index, group, after)


def _task(workload: Workload, section: Section, index: int) -> Task:
    replicas, partitions = section.number("replicas", 0), section.section("partitionPolicy")
    parts = partitions.number("minPartitions", 0) * partitions.number("partitionSize", 0)
    minimum = section.number("minAvailable", parts or replicas)
    if minimum > replicas:
        raise section.error(".minAvailable", f"{minimum} is more than replicas, which is {replicas}")
    class_ = section.section("template", "spec").text("priorityClassName")
    known = workload.templates.get((PRIORITY_CLASSES.kind, "", class_))
    value = known.value.get("value") if known is not None else 0
    name = section.text("name", f"default{index}")
    return Task(section, name, replicas, minimum, value if isinstance(value, int) else 0)


def _pod_group(workload: Workload, name: str, tasks: Sequence[Task]) -> Made:
    spec = workload.spec
    total, replicas = sum(task.minimum for task in tasks), sum(task.replicas for task in tasks)
    minimum = spec.number("minAvailable", 0) or total
    if minimum > replicas:
        raise spec.error(".minAvailable", f"{minimum} is more than the replicas of all tasks, which are {replicas}")
    partitioned = [{"name": task.name} for task in tasks if "partitionPolicy" in task.section.value]
    body: dict[str, Any] = {
        "minMember": minimum,
        "minTaskMember": {task.name: task.minimum for task in tasks},
        "queue": spec.text("queue", DEFAULT_QUEUE),
        "minResources": requests_of(_counted(tasks, minimum, total)),
        **{field: spec.value[field] for field in COPIED if field in spec.value},
        **({"subGroupPolicy": partitioned} if partitioned else {}),
    }
    annotations = workload.object.section("metadata").texts("annotations")
    return workload.group(VOLCANO_POD_GROUPS, body, name=name, annotations=annotations)


def _counted(tasks: Sequence[Task], minimum: int, total: int) -> list[tuple[Section, int]]:
    """Of each template the pods in minResources, of higher priority first: the tasks' minima, then others, up to the job's minimum.

    Where that is below the tasks' minima: replicas alone."""
    in_order = sorted(tasks, key=lambda task: -task.priority)
    first = [(task, task.replicas if minimum < total else task.minimum) for task in in_order]
    then = [] if minimum < total else [(task, task.replicas - task.minimum) for task in in_order]
    counted = []
    for task, number in (*first, *then):
        counted.append((task.template, min(number, minimum)))
        minimum -= counted[-1][1]
    return counted


def _needed(task: Task, by_name: Mapping[str, Task]) -> tuple[str, ...]:
    """The tasks that have to run before it: all that it depends on, or with the iteration `any` the first one."""
    depends = task.section.section("dependsOn")
    names = depends.value.get("name") or []
    if not isinstance(names, list):
        raise depends.error(".name", f"a list is wanted, got {names!r}"[:200])
    for name in names:
        if not isinstance(name, str) or name not in by_name:
            raise depends.error(".name", f"no task of that name: {name!r}"[:200])
    return tuple(names[:1] if depends.text("iteration") == "any" else names)


def _after(
    workload: Workload, task: Task, needed: Sequence[Task], needs: Mapping[tuple[str, ...], After | None]
) -> After | None:
    """As many pods of each task as its minimum. needs: what other tasks wait for, which together is bounded too."""
    known = sum(len(after.pods) for after in needs.values() if after is not None)
    if known + sum(each.minimum for each in needed) > MOST_PODS:
        raise task.section.error(".dependsOn", f"the job's tasks wait for more than {MOST_PODS} pods")
    pods = tuple(
        f"{workload.namespace}/{_name(workload, each, index)}" for each in needed for index in range(each.minimum)
    )
    return After(pods) if pods else None


def _name(workload: Workload, task: Task, index: int) -> str:
    return f"{workload.name}-{task.name}-{index}"


def _pod(workload: Workload, task: Task, index: int, group: str, after: After | None) -> Made:
    spec, own = workload.spec, task.template.section("spec")
    both = {
        f"{PREFIX}task-index": str(index),
        f"{PREFIX}job-name": workload.name,
        TASK_SPEC: task.name,
        f"{PREFIX}queue-name": spec.text("queue", DEFAULT_QUEUE),
    }
    more: dict[str, Any] = {"schedulerName": own.text("schedulerName") or spec.text("schedulerName", DEFAULT_SCHEDULER)}
    if class_ := own.text("priorityClassName") or spec.text("priorityClassName"):
        more["priorityClassName"] = class_
    if volumes := list(_volumes(spec)):
        more["volumes"] = [*(own.value.get("volumes") or []), *volumes]
    labels = {**both, f"{PREFIX}job-namespace": workload.namespace}
    annotations = {**both, GROUP_NAME_ANNOTATION: group}
    name = _name(workload, task, index)
    return workload.pod(task.template, name, labels=labels, annotations=annotations, after=after, **more)


def _volumes(spec: Section) -> Iterator[dict[str, Any]]:
    for index, volume in enumerate(spec.sections("volumes")):
        if claim := volume.text("volumeClaimName"):
            yield {"name": f"volume-{index}", "persistentVolumeClaim": {"claimName": claim}}
