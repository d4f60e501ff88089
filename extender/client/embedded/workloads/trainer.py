"""Pods and PodGroup of a TrainJob: those of the JobSet that Trainer makes by the runtime that the job names.

The runtime has to be in the files. Trainer v2: pkg/runtime/core/trainingruntime.go, pkg/runtime/framework/plugins/{jobset,coscheduling,mpi}
"""

from __future__ import annotations

from collections.abc import Iterator

from extender.client.embedded.workloads.built_in import pods_at_first
from extender.client.embedded.workloads.jobset import ReplicatedJob, jobs_of
from extender.client.embedded.workloads.section import Raw, Section
from extender.client.embedded.workloads.workload import POD_GROUP_LABEL, Made, Workload, requests_of

VERSION = "trainer.kubeflow.org/v1alpha1"
CLUSTER_RUNTIME = "ClusterTrainingRuntime"
RUNTIMES = ("TrainingRuntime", CLUSTER_RUNTIME)
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_NODE = "node"
_TIME_OUT = 60  # seconds that a runtime's scheduleTimeoutSeconds is if it has none


def train_job(workload: Workload) -> Iterator[Made]:
    if workload.suspended():
        return
    reference = workload.spec.section("runtimeRef")
    kind, name = reference.text("kind", CLUSTER_RUNTIME), reference.text("name")
    runtime = workload.templates.get((kind, workload.namespace if kind == "TrainingRuntime" else "", name))
    if runtime is None:
        workload.warn(f"its {kind} {name!r} is not in the files: its pods are not simulated")
        return
    spec = runtime.section("spec")
    policy = spec.section("podGroupPolicy")
    labels = {POD_GROUP_LABEL: workload.name} if "coscheduling" in policy.value else {}
    jobset = spec.section("template", "spec")
    jobs = [ReplicatedJob(_job(workload, spec, each), labels) for each in jobset.sections("replicatedJobs")]
    if labels:
        parts = [(each.job.section("spec", "template"), pods_at_first(each.job.section("spec"))) for each in jobs]
        timeout = policy.section("coscheduling").value.get("scheduleTimeoutSeconds", _TIME_OUT)
        members = sum(count for _, count in parts)
        yield workload.pod_group(members, minResources=requests_of(parts), scheduleTimeoutSeconds=timeout)
    yield from jobs_of(workload, jobs, in_order=jobset.section("startupPolicy").text("startupPolicyOrder") == "InOrder")


def _job(workload: Workload, runtime: Section, replicated: Section) -> Section:
    """A replicated job of the runtime, with as many nodes, of such resources, as the TrainJob and the runtime's policy say."""
    step = replicated.section("template", "metadata").texts("labels").get(STEP)
    policy, trainer = runtime.section("mlPolicy"), workload.spec.section("trainer")
    mpi = policy.section("mpi").is_set("runLauncherAsNode")
    beside_launcher = mpi and replicated.text("name") == _NODE
    if step != "trainer" and not beside_launcher:
        return replicated
    job = replicated.section("template", "spec").value
    if not mpi or beside_launcher:
        nodes = trainer.number("numNodes", policy.number("numNodes")) - (1 if beside_launcher else 0)
        job = {**job, "parallelism": nodes, "completions": nodes}
    pods = _with_resources(replicated.section("template", "spec", "template"), trainer)
    template = {**replicated.section("template").value, "spec": {**job, "template": pods}}
    return Section(replicated.place, replicated.path, {**replicated.value, "template": template, "replicas": 1})


def _with_resources(template: Section, trainer: Section) -> Raw:
    """The pod template with the resources that the TrainJob asks for on each node."""
    spec, asked = template.section("spec"), trainer.section("resourcesPerNode")
    containers = []
    for container in spec.sections("containers"):
        old = container.section("resources")
        new = {part: {**old.section(part).value, **asked.section(part).value} for part in ("limits", "requests")}
        of_node = container.text("name") == _NODE and bool(asked.value)
        containers.append({**container.value, "resources": {**old.value, **new}} if of_node else container.value)
    return {**template.value, "spec": {**spec.value, "containers": containers}}
