"""Gangs by Volcano's and Koordinator's PodGroups, and by keys of pods alone, on the real API server, with the rights of the overlays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.e2e.api import Json
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import MANIFESTS, SCHEDULER_NAME, SIDECAR, ControlPlane
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

VOLCANO, KOORDINATOR = "scheduling.volcano.sh/v1beta1", "scheduling.sigs.k8s.io/v1alpha1"
OVERLAYS = {VOLCANO: "volcano-groups", KOORDINATOR: "koordinator-groups"}
SOURCES = [{"preset": "lws"}, {"preset": "kueue"}]
SETTINGS = {
    "profiles": [
        {
            "schedulerName": SCHEDULER_NAME,
            "pluginConfig": [{"name": "Coscheduling", "args": {"groupSources": SOURCES}}],
        }
    ]
}
SIZE = {"leaderworkerset.sigs.k8s.io/size": "3"}
LATER = 30.0  # a kind that was not served, or not to us, is asked for again every ten seconds


def definition(api_version: str) -> Json:
    """As small as a definition can be: what the fields hold is the readers' matter."""
    group, _, version = api_version.partition("/")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"podgroups.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "PodGroup", "plural": "podgroups"},
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def define(plane: ControlPlane, api_version: str) -> None:
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump(definition(api_version)))
    name = f"crd/podgroups.{api_version.partition('/')[0]}"
    plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", name)


def allow(plane: ControlPlane, api_version: str) -> None:
    plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / OVERLAYS[api_version]))


def create(cluster: Cluster, api_version: str, name: str, **spec: Any) -> None:
    body = {"apiVersion": api_version, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}
    path = f"/apis/{api_version}/namespaces/default/podgroups"
    eventually(lambda: _served(cluster, path), within=20, what=f"{api_version} is served", every=0.2)
    cluster.api.create(path, body)


def _served(cluster: Cluster, path: str) -> bool:
    try:
        cluster.api.get(path)
    except Exception:
        return False
    return True


def of_volcano(cluster: Cluster, name: str, group: str, task: str = "", **more: Any) -> None:
    annotations = {"scheduling.k8s.io/group-name": group, **({"volcano.sh/task-spec": task} if task else {})}
    cluster.pod(name, annotations=annotations, requests={"cpu": "1"}, **more)


def of_koordinator(cluster: Cluster, name: str, group: str) -> None:
    cluster.pod(name, labels={"pod-group.scheduling.sigs.k8s.io": group}, requests={"cpu": "1"})


@pytest.fixture(scope="module")
def module_programs(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """With the rights that the manifests give; at first neither kind is served, and the rights of the overlays are not given."""
    for overlay in OVERLAYS.values():
        plane.kubectl("delete", "--ignore-not-found", "-k", str(MANIFESTS / overlay))
    for overlay in ("crd", "rbac", *(() if plane.wakes_by_status else ("wake-by-annotation",))):
        plane.kubectl("apply", "--server-side", "-k", str(MANIFESTS / overlay))
    try:
        with Pair.of(plane, tmp_path_factory.mktemp("pair"), token=SIDECAR, settings=SETTINGS).running() as pair:
            yield pair
    finally:
        for api_version, overlay in OVERLAYS.items():
            plane.kubectl("delete", "--ignore-not-found", "-k", str(MANIFESTS / overlay))
            plane.kubectl("delete", "--ignore-not-found", f"crd/podgroups.{api_version.partition('/')[0]}")


def test_a_gang_by_the_keys_of_its_controller_starts_whole(cluster: Cluster, module_programs: Pair) -> None:
    """Two replicas of a LeaderWorkerSet; there is room for one, and the last worker of the other is late."""
    cluster.node("node-1", cpu="4")
    keyed: dict[str, Any] = {"annotations": SIZE, "requests": {"cpu": "1"}}
    for number in range(2):
        cluster.pod(f"b-{number}", labels={"leaderworkerset.sigs.k8s.io/group-key": "b"}, **keyed)
    for number in range(3):
        cluster.pod(f"a-{number}", labels={"leaderworkerset.sigs.k8s.io/group-key": "a"}, **keyed)
    cluster.recorder.await_bound("a-0", "a-1", "a-2", within=10)
    cluster.pod("b-2", labels={"leaderworkerset.sigs.k8s.io/group-key": "b"}, **keyed)
    cluster.recorder.await_message("b-2", "Insufficient cpu", within=10)
    assert cluster.recorder.bound() == {"a-0", "a-1", "a-2"}
    for number in range(3):
        cluster.delete_pod(f"a-{number}")
    cluster.recorder.await_bound("b-0", "b-1", "b-2", within=10)


def test_a_group_of_kueue_starts_once_all_are_admitted(cluster: Cluster, module_programs: Pair) -> None:
    """Kueue takes its gate off each pod by a patch of its own."""
    cluster.node("node-1")
    gate: dict[str, Any] = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    for name in ("leader", "worker"):
        labels = {"kueue.x-k8s.io/pod-group-name": "sample"}
        cluster.pod(name, labels=labels, annotations={"kueue.x-k8s.io/pod-group-total-count": "2"}, **gate)
    cluster.api.patch("/api/v1/namespaces/default/pods/leader", {"spec": {"schedulingGates": None}})
    cluster.recorder.await_message("leader", "gated pods in the same PodGroup", within=10)
    assert cluster.recorder.bound() == set()
    cluster.api.patch("/api/v1/namespaces/default/pods/worker", {"spec": {"schedulingGates": None}})
    cluster.recorder.await_bound("leader", "worker", within=10)


def test_volcano_s_definition_and_the_right_to_read_it_come_later(
    cluster: Cluster, plane: ControlPlane, module_programs: Pair
) -> None:
    """A right that is missing is told once, and others start meanwhile."""
    cluster.node("node-1")
    for task in ("ps-0", "worker-0", "worker-1"):
        of_volcano(cluster, task, "train", task.partition("-")[0])
    cluster.recorder.await_message("ps-0", "PodGroup not found", within=10)
    define(plane, VOLCANO)
    create(cluster, VOLCANO, "train", minMember=3, minTaskMember={"ps": 1, "worker": 2}, queue="research")
    log = module_programs.extender.log
    refused = "kind is refused resource=podgroups.scheduling.volcano.sh"
    forbidden = f"{refused} error=podgroups.scheduling.volcano.sh is forbidden"
    eventually(lambda: forbidden in log(), within=LATER, what="the right is missing", every=0.2)
    cluster.pod("plain")
    cluster.recorder.await_bound("plain", within=10)
    assert cluster.recorder.bound() == {"plain"}
    assert (log().count(forbidden), log().count(refused)) == (1, 2), "before it that the kind is not served"
    allow(plane, VOLCANO)
    cluster.recorder.await_bound("ps-0", "worker-0", "worker-1", within=LATER)
    said = "not honoured: spec.queue"
    eventually(lambda: any(said in each for each in cluster.events("ps-0")), within=10, what="an event says so")


def test_an_object_that_makes_no_sense_harms_its_own_gang(
    cluster: Cluster, plane: ControlPlane, module_programs: Pair
) -> None:
    cluster.node("node-1")
    define(plane, VOLCANO)
    allow(plane, VOLCANO)
    create(cluster, VOLCANO, "odd", minMember="three", subGroupPolicy=5)
    create(cluster, VOLCANO, "parts", minMember=1, subGroupPolicy=[{"name": "a", "subGroupSize": 2}])
    create(cluster, VOLCANO, "good", minMember=2)
    for name in ("odd", "parts"):
        of_volcano(cluster, f"{name}-0", name)
    of_volcano(cluster, "elsewhere", "good", scheduler_name="volcano")
    cluster.recorder.await_message("odd-0", "spec.minMember: Invalid value", within=LATER)
    cluster.recorder.await_message("parts-0", "spec.subGroupPolicy: Forbidden", within=LATER)
    of_volcano(cluster, "good-0", "good")
    cluster.recorder.await_message("good-0", "current pods number: 1, minMember of group: 2", within=LATER)
    of_volcano(cluster, "good-1", "good")
    cluster.recorder.await_bound("good-0", "good-1", within=10)
    assert cluster.recorder.bound() == {"good-0", "good-1"}
    for name in ("odd", "parts", "good"):
        found = cluster.api.get(f"/apis/{VOLCANO}/namespaces/default/podgroups/{name}")
        assert "status" not in found, "nothing is written there"


def test_koordinator_s_definition_comes_later(cluster: Cluster, plane: ControlPlane, module_programs: Pair) -> None:
    cluster.node("node-1")
    for number in range(2):
        of_koordinator(cluster, f"k-{number}", "k")
    cluster.recorder.await_message("k-0", "PodGroup not found", within=10)
    allow(plane, KOORDINATOR)
    define(plane, KOORDINATOR)
    create(cluster, KOORDINATOR, "k", minMember=3)
    cluster.recorder.await_message("k-1", "current pods number: 2, minMember of group: 3", within=LATER)
    of_koordinator(cluster, "k-2", "k")
    cluster.recorder.await_bound("k-0", "k-1", "k-2", within=10)
