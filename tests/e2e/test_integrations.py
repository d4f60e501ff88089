"""Gangs as controllers make them: in their order, with what they write on their pods, and the extender restarted in the middle.

The objects are those that `simulate` makes (extender/client/embedded/workloads); the control plane has none of the controllers. Volcano
and Koordinator are in test_foreign_groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
POD = """spec: {schedulerName: gang-scheduler, terminationGracePeriodSeconds: 0, restartPolicy: Always,
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
spec: {{replicas: 2, leaderWorkerTemplate: {{size: 3, workerTemplate: {{{POD}}}}}}}
"""


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


def restart(cluster: Cluster, pair: Pair) -> None:
    cluster.killed = True
    pair.extender.kill()
    cluster.await_back(pair.extender.start)


@pytest.fixture(scope="module")
def module_programs(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    def with_kuberay(config: dict[str, list[dict[str, str]]]) -> None:
        config["profiles"].append({"schedulerName": OF_KUBERAY})

    folder = tmp_path_factory.mktemp("pair")
    with Pair.of(plane, folder, settings=SETTINGS, change=with_kuberay).running() as pair:
        yield pair


@pytest.mark.parametrize(
    ("text", "first"),
    [
        pytest.param(RAY, 2, id="RayCluster: the PodGroup and the head, then its workers"),
        pytest.param(PYTORCH, 3, id="PyTorchJob: the PodGroup, the master and a worker, then the other one"),
        pytest.param(TRAINER, 2, id="Trainer: two nodes of three beside the PodGroup of the TrainJob"),
    ],
)
def test_a_job_starts_whole_though_the_extender_is_restarted_before_all_of_it_is_there(
    cluster: Cluster, module_programs: Pair, text: str, first: int
) -> None:
    """first: how many of the objects are made before."""
    cluster.node("node-1", cpu="3")
    if text == TRAINER:
        cluster.pod_group("tune", 3)
    objects = objects_of(text)
    names = create(cluster, objects[:first])
    cluster.recorder.await_message(names[0], "cannot find enough sibling pods", within=10)
    restart(cluster, module_programs)
    names += create(cluster, objects[first:-1])
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set()
    names += create(cluster, objects[-1:])
    cluster.recorder.await_bound(*names, within=20)


def test_of_two_replicas_of_a_leader_worker_set_one_starts_and_the_other_after_it(
    cluster: Cluster, module_programs: Pair
) -> None:
    """Its controller makes both leaders first, and then the workers of each; there is room for one replica."""
    cluster.node("node-1", cpu="5")
    objects = objects_of(LWS)
    leaders = [each for each in objects if each.object["metadata"]["name"].count("-") == 1]
    names = create(cluster, leaders)
    cluster.recorder.await_message("serve-1", "current pods number: 1, minMember of group: 3", within=10)
    restart(cluster, module_programs)
    names += create(cluster, [each for each in objects if each not in leaders])
    cluster.recorder.wait(lambda: len(cluster.recorder.bound()) == 3, within=20, what="one of them is bound")
    started = cluster.recorder.bound()
    assert len({name[:7] for name in started}) == 1, "all of one replica"
    waiting = sorted(set(names) - started)
    cluster.recorder.await_message(waiting[0], "Insufficient cpu", within=10)
    for name in started:
        cluster.delete_pod(name)
    cluster.recorder.await_bound(*waiting, within=20)


def test_a_pod_group_of_kueue_starts_once_the_last_gate_is_off(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1")
    for name in ("leader", "worker"):
        cluster.pod(
            name,
            labels={"kueue.x-k8s.io/pod-group-name": "sample", "kueue.x-k8s.io/managed": "true"},
            annotations={"kueue.x-k8s.io/pod-group-total-count": "2"},
            schedulingGates=[{"name": "kueue.x-k8s.io/admission"}],
        )
    cluster.api.patch("/api/v1/namespaces/default/pods/leader", {"spec": {"schedulingGates": None}})
    cluster.recorder.await_message("leader", "gated pods in the same PodGroup", within=10)
    restart(cluster, module_programs)
    admitted = {"spec": {"schedulingGates": None, "nodeSelector": {"kubernetes.io/hostname": "node-1"}}}
    cluster.api.patch("/api/v1/namespaces/default/pods/worker", admitted)
    cluster.recorder.await_bound("leader", "worker", within=20)
