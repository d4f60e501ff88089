"""Gangs as controllers make them: in their order, with what they write on their pods, and the extender restarted in the middle.

The objects are those that `simulate` makes (extender/client/embedded/workloads); the control plane has none of the controllers. Volcano
and Koordinator are in test_foreign_groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
import yaml

from extender.client.embedded.workloads.kinds import CONTROLLERS
from extender.client.embedded.workloads.section import Section
from extender.client.embedded.workloads.workload import Made, Workload
from extender.client.interface import PODS
from tests.e2e import api as paths
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import SCHEDULER_NAME, ControlPlane
from tests.e2e.pair import Pair

OF_KUBERAY = "scheduler-plugins-scheduler"
ARGS = {"groupSources": [{"preset": "lws"}, {"preset": "kueue"}]}
SETTINGS = {
    "schedulerNames": [SCHEDULER_NAME, OF_KUBERAY],
    "profiles": [
        {"schedulerName": SCHEDULER_NAME, "pluginConfig": [{"name": "Coscheduling", "args": ARGS}]},
        {"schedulerName": OF_KUBERAY},
    ],
}
POD = """spec: {schedulerName: gang-scheduler, terminationGracePeriodSeconds: 0, restartPolicy: Always, nodeSelector: {pool: jobs},
    containers: [{name: main, image: pause, resources: {requests: {cpu: "1"}}}]}"""
RAY = f"""
apiVersion: ray.io/v1
kind: RayCluster
metadata: {{name: ray, labels: {{ray.io/gang-scheduling-enabled: "true"}}}}
spec:
  headGroupSpec: {{template: {{{POD}}}}}
  workerGroupSpecs: [{{groupName: cpu, replicas: 2, template: {{{POD}}}}}]
"""
PYTORCH = f"""
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: train, annotations: {{gang-extender.dev/roles: "master=1,worker=2",
    gang-extender.dev/role-label: training.kubeflow.org/replica-type}}}}
spec:
  pytorchReplicaSpecs: {{Master: {{template: {{{POD}}}}}, Worker: {{replicas: 2, template: {{{POD}}}}}}}
"""
INDEXED = f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: indexed}}
spec:
  {{completionMode: Indexed, parallelism: 3, completions: 3, template:
    {{metadata: {{labels: {{scheduling.x-k8s.io/pod-group: indexed}}}}, {POD.replace("Always", "OnFailure")}}}}}
"""
TRAINER = f"""
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: tune}}
spec:
  replicatedJobs:
  - name: node
    template: {{spec: {{parallelism: 3, completions: 3, template:
      {{metadata: {{labels: {{scheduling.x-k8s.io/pod-group: tune}}}}, {POD.replace("Always", "OnFailure")}}}}}}}
"""
LWS = f"""
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: serve}}
spec: {{replicas: 2, leaderWorkerTemplate: {{size: 3, workerTemplate: {{{POD.replace("jobs", "serve")}}}}}}}
"""


EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction"}


def objects_of(text: str) -> list[Made]:
    """What the controller makes of that object, in its order."""
    workload = yaml.safe_load(text)
    make = CONTROLLERS[workload["apiVersion"], workload["kind"]]
    return list(make(Workload(Section("here", "$", workload), SCHEDULER_NAME)))


def create(cluster: Cluster, objects: Sequence[Made]) -> list[str]:
    """The names of the pods among them."""
    for each in objects:
        path = paths.PODS if each.resource is PODS else paths.POD_GROUPS
        cluster.api.create(path.format(namespace="default"), each.object)
    return [each.object["metadata"]["name"] for each in objects if each.resource is PODS]


def made_again(each: Made) -> Made:
    """A pod in place of one that is gone, with a name of its own."""
    metadata = each.object["metadata"]
    return replace(each, object={**each.object, "metadata": {**metadata, "name": f"{metadata['name']}-again"}})


@pytest.fixture(scope="module")
def module_programs(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    def with_kuberay(config: dict[str, list[dict[str, str]]]) -> None:
        config["profiles"].append({"schedulerName": OF_KUBERAY})

    folder = tmp_path_factory.mktemp("pair")
    with Pair.of(plane, folder, settings=SETTINGS, change=with_kuberay).running() as pair:
        yield pair


def kueue(cluster: Cluster) -> None:
    """A plain pod group as the user makes it and Kueue's webhook changes it."""
    for name in ("leader", "worker"):
        cluster.pod(
            name,
            labels={"kueue.x-k8s.io/pod-group-name": "sample", "kueue.x-k8s.io/managed": "true"},
            annotations={"kueue.x-k8s.io/pod-group-total-count": "2"},
            requests={"cpu": "1"},
            nodeSelector={"pool": "jobs"},
            schedulingGates=[{"name": "kueue.x-k8s.io/admission"}],
        )


def admit(cluster: Cluster, name: str) -> None:
    cluster.api.patch(f"/api/v1/namespaces/default/pods/{name}", {"spec": {"schedulingGates": None}})


def test_gangs_start_whole_though_the_extender_is_restarted_before_all_of_them_is_there(
    cluster: Cluster, module_programs: Pair
) -> None:
    """A RayCluster with its head, a PyTorchJob without its last worker, a TrainJob's Job without its last node, a LeaderWorkerSet with both
    leaders, and a pod group of Kueue of which one pod is admitted. There is room for one replica of the LeaderWorkerSet."""
    cluster.node("node-1", cpu="11", labels={"pool": "jobs"})
    cluster.node("node-2", cpu="5", labels={"pool": "serve"})
    recorder, cut = cluster.recorder, {RAY: 2, PYTORCH: 3, TRAINER: 2}
    cluster.pod_group("tune", 3)
    made = {text: objects_of(text) for text in cut}
    jobs = [create(cluster, objects[: cut[text]]) for text, objects in made.items()]
    served = objects_of(LWS)
    leaders = [each for each in served if each.object["metadata"]["name"].count("-") == 1]
    replicas = create(cluster, leaders)
    kueue(cluster)
    admit(cluster, "leader")
    for name in (*(names[0] for names in jobs), *replicas):
        recorder.await_message(name, "cannot find enough sibling pods", within=15)
    recorder.await_message("leader", "gated pods in the same PodGroup", within=15)

    cluster.killed = True
    module_programs.extender.kill()
    cluster.await_back(module_programs.extender.start)
    assert recorder.bound() == set()

    for text, objects in made.items():
        jobs.append(create(cluster, objects[cut[text] :]))
    replicas += create(cluster, [each for each in served if each not in leaders])
    admit(cluster, "worker")
    recorder.await_bound(*(name for names in jobs for name in names), "leader", "worker", within=30)
    recorder.wait(lambda: len(recorder.bound() & set(replicas)) == 3, within=30, what="one replica is bound")
    started = recorder.bound() & set(replicas)
    assert len({name[:7] for name in started}) == 1, "all of one replica"
    waiting = sorted(set(replicas) - started)
    recorder.await_message(waiting[0], "Insufficient cpu", within=15)
    for name in started:
        cluster.delete_pod(name)
    recorder.await_bound(*waiting, within=30)


def test_members_are_replaced_after_others_have_succeeded_or_were_scaled_away(
    cluster: Cluster, module_programs: Pair
) -> None:
    """An Indexed Job whose index 2 is evicted after index 0 has succeeded, and a RayCluster that is scaled down and loses its head, which
    KubeRay tells by no new minMember; the extender is killed before either is made again."""
    cluster.node("node-1", cpu="8", labels={"pool": "jobs"})
    recorder = cluster.recorder
    cluster.pod_group("indexed", 3)
    job, ray = objects_of(INDEXED), objects_of(RAY)
    indexes, (head, *workers) = create(cluster, job), create(cluster, ray)
    recorder.await_bound(*indexes, head, *workers, within=30)

    pods = paths.PODS.format(namespace="default")
    cluster.api.patch(f"{pods}/{indexes[0]}/status", {"status": {"phase": "Succeeded"}})
    cluster.api.create(f"{pods}/{indexes[2]}/eviction", {**EVICTION, "metadata": {"name": indexes[2]}})
    cluster.delete_pod(workers[1])
    cluster.delete_pod(head)
    cluster.killed = True
    module_programs.extender.kill()
    cluster.await_back(module_programs.extender.start)

    of_ray = [each for each in ray if each.resource is PODS]
    replaced = create(cluster, [made_again(job[2]), made_again(of_ray[0])])
    recorder.await_bound(*replaced, within=30)
