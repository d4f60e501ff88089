"""Pods and PodGroups of Kubeflow's jobs, by operators that run with their flag for gangs: the Training Operator and the MPI operator.

training-operator v1: pkg/controller.v1/common (job.go, pod.go), control/podgroup_control.go.
mpi-operator: pkg/controller/mpi_job_controller.go, podgroup.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from extender.client.embedded.workloads.built_in import job_pods
from extender.client.embedded.workloads.section import Raw, Section
from extender.client.embedded.workloads.workload import (
    POD_GROUP_LABEL,
    After,
    Made,
    Workload,
    requests_of,
)

V1 = "kubeflow.org/v1"
V2BETA1 = "kubeflow.org/v2beta1"
PREFIX = "training.kubeflow.org/"
REPLICAS_OF = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
}
"""Kinds of the Training Operator; all have one form."""


def _pod_group(workload: Workload, total: int, parts: list[tuple[Section, int]], **spec: Any) -> Made:
    """parts: the templates and how many pods each has, the most important first; minMember of them count for minResources."""
    policy = workload.spec.section("runPolicy", "schedulingPolicy")
    minimum = policy.number("minAvailable", total)
    left, counted = minimum, []
    for template, count in parts:
        counted.append((template, min(left, count)))
        left -= counted[-1][1]
    resources = policy.section("minResources").value or requests_of(counted)
    timeout = policy.value.get("scheduleTimeoutSeconds", spec.pop("timeout", None))
    return workload.pod_group(minimum, minResources=resources, scheduleTimeoutSeconds=timeout, **spec)


def training_job(workload: Workload) -> Iterator[Made]:
    """A pod for each replica of each type, named <job>-<type>-<index>."""
    if workload.suspended(workload.spec.section("runPolicy")):
        return
    field = REPLICAS_OF[workload.kind]
    if field not in workload.spec.value:
        raise workload.spec.error(f".{field}", "Required value")
    replicas = dict(workload.spec.section(field).items())
    counts = {name: spec.number("replicas") for name, spec in replicas.items()}
    parts = [(spec.section("template"), counts[name]) for name, spec in replicas.items()]
    yield _pod_group(workload, sum(counts.values()), parts, annotated=True)
    masters = next((name for name in replicas if name.lower() in ("master", "chief")), None)
    common = {f"{PREFIX}operator-name": f"{workload.kind.lower()}-controller", f"{PREFIX}job-name": workload.name}
    for type_, spec in replicas.items():
        for index in range(counts[type_]):
            own = {f"{PREFIX}replica-type": type_.lower(), f"{PREFIX}replica-index": str(index)}
            if type_ == masters or (masters is None and type_.lower() == "worker" and index == 0):
                own[f"{PREFIX}job-role"] = "master"
            yield workload.pod(
                spec.section("template"),
                f"{workload.name}-{type_.lower()}-{index}",
                labels={**common, **own, POD_GROUP_LABEL: workload.name},
                **_scheduler_unless_named(workload, spec),
            )


def _scheduler_unless_named(workload: Workload, replicas: Section) -> Raw:
    named = replicas.section("template", "spec").text("schedulerName")
    return {"schedulerName": named or workload.gang_scheduler}


def mpi_job(workload: Workload) -> Iterator[Made]:
    """Workers, and the launcher's Job beside them or once they are ready. The scheduler's name is overwritten."""
    if workload.suspended(workload.spec.section("runPolicy")):
        return
    replicas = workload.spec.section("mpiReplicaSpecs")
    if "Launcher" not in replicas.value:
        raise replicas.error(".Launcher", "Required value")
    launcher, worker = replicas.section("Launcher"), replicas.section("Worker")
    count = worker.number("replicas", 0)
    templates = launcher.section("template"), worker.section("template")
    yield _pod_group(workload, count + 1, [(templates[0], 1), (templates[1], count)], timeout=0)
    role = partial(_mpi_labels, workload)
    first = 1 if workload.spec.is_set("runLauncherAsWorker") else 0
    workers = []
    for index in range(count):
        made = workload.pod(
            templates[1],
            f"{workload.name}-worker-{index}",
            labels=role("worker", str(index + first)),
            schedulerName=workload.gang_scheduler,
            hostname=f"{workload.name}-worker-{index}",
            subdomain=workload.name,
        )
        workers.append(made.key)
        yield made
    waits = workload.spec.text("launcherCreationPolicy") == "WaitForWorkersReady"
    yield from job_pods(
        workload,
        f"{workload.name}-launcher",
        Section(launcher.place, launcher.path, {"template": templates[0].value}),
        labels=role("launcher", "0" if first else ""),
        after=After(tuple(workers)) if waits else None,
        schedulerName=workload.gang_scheduler,
        hostname=f"{workload.name}-launcher",
        subdomain=workload.name,
    )


def _mpi_labels(workload: Workload, role: str, index: str) -> Mapping[str, str]:
    labels = {"operator-name": "mpi-operator", "job-name": workload.name, "job-role": role}
    labels |= {"replica-index": index} if index else {}
    return {POD_GROUP_LABEL: workload.name, **{PREFIX + name: value for name, value in labels.items()}}


KINDS: Mapping[tuple[str, str], Callable[[Workload], Iterator[Made]]] = {
    **{(V1, kind): training_job for kind in REPLICAS_OF},
    (V2BETA1, "MPIJob"): mpi_job,
}
