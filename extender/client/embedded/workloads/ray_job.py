"""Pods of a RayJob and of a RayService: those of the RayCluster that KubeRay makes of it, and a RayJob's submitter.

KubeRay: ray-operator/controllers/ray (rayjob_controller.go, rayservice_controller.go, common/job.go)
"""

from __future__ import annotations

from collections.abc import Iterator

from extender.client.embedded.defaults import suffix
from extender.client.embedded.workloads.built_in import job_pods
from extender.client.embedded.workloads.ray_cluster import GANG_LABEL, cluster, image_of
from extender.client.embedded.workloads.section import Raw, Section
from extender.client.embedded.workloads.workload import After, Made, Workload
from extender.client.interface import PODS

K8S_JOB, SIDECAR = "K8sJobMode", "SidecarMode"
MODES = (K8S_JOB, SIDECAR, "HTTPMode", "InteractiveMode")
_SUBMITTER: Raw = {
    "name": "ray-job-submitter",
    "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "200Mi"}},
}


def ray_service(workload: Workload) -> Iterator[Made]:
    """Its first cluster, which has its labels, that for gangs among them."""
    if not workload.suspended():
        spec = _cluster_spec(workload, "rayClusterConfig")
        yield from cluster(workload, _cluster_name(workload), spec, gang=workload.has(GANG_LABEL))


def ray_job(workload: Workload) -> Iterator[Made]:
    """Its cluster, and a Job that submits to it once all of it runs. KubeRay refuses to make a gang of it with scheduler-plugins."""
    if workload.suspended():
        return
    spec = workload.spec
    mode = spec.text("submissionMode", K8S_JOB)
    if mode not in MODES:
        raise spec.error(".submissionMode", f"one of {', '.join(MODES)} is wanted, got {mode!r}"[:200])
    if workload.has(GANG_LABEL):
        workload.warn(
            f"{GANG_LABEL} is not simulated: KubeRay with --batch-scheduler=scheduler-plugins makes nothing of a RayJob; name a group in "
            "its pod templates"
        )
    keys = []
    if spec.section("clusterSelector").value:
        workload.warn("it names a RayCluster by clusterSelector: its submitter is simulated as if that one ran")
        head = Section(spec.place, f"{spec.path}.clusterSelector", {})
    else:
        of_cluster = _cluster_spec(workload, "rayClusterSpec")
        head = of_cluster.section("headGroupSpec")
        beside_head = [{**_SUBMITTER, **image_of(head)}] if mode == SIDECAR else []
        name = _cluster_name(workload)
        for made in cluster(workload, name, of_cluster, gang=False, beside_head=beside_head):
            keys += [made.key] if made.resource is PODS else []
            yield made
    if mode == K8S_JOB:
        yield from _submitter(workload, head, After(tuple(keys)) if keys else None)


def _submitter(workload: Workload, head: Section, after: After | None) -> Iterator[Made]:
    spec = workload.spec
    own = "submitterPodTemplate" in spec.value
    default: Raw = {"spec": {"containers": [{**_SUBMITTER, **image_of(head)}], "restartPolicy": "Never"}}
    template = spec.section("submitterPodTemplate").value if own else default
    labels = {
        "ray.io/originated-from-cr-name": workload.name,
        "ray.io/originated-from-crd": "RayJob",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    of_job = Section(spec.place, f"{spec.path}.submitterPodTemplate" if own else spec.path, {"template": template})
    yield from job_pods(workload, workload.name, of_job, labels=labels, after=after)


def _cluster_spec(workload: Workload, field: str) -> Section:
    if field not in workload.spec.value:
        raise workload.spec.error(f".{field}", "Required value")
    return workload.spec.section(field)


def _cluster_name(workload: Workload) -> str:
    return f"{workload.name}-{suffix(workload.name)}"
