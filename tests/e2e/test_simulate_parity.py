"""simulate on a dump of a cluster, and the real kube-scheduler on the cluster itself, with one configuration file.

Which pods are bound, where there is but one place for them the place, and what is said of every other one are the same.
Ties are broken at random on both sides, so pods differ in priority and the outcome is unique.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.documented import dump_commands
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane, Scheduler
from tests.e2e.extender import Extender
from tests.e2e.processes import eventually

HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
Outcome = dict[str, tuple[str, str]]
"""Name of a pod -> (node, message); pods that are gone are not there."""


MIRRORED_FROM = (
    1,
    35,
)  # the oldest whose default plugins say what those of 1.36 say; 1.30 has no DynamicResources by default


@pytest.fixture(autouse=True)
def _a_kube_scheduler_that_says_the_same(plane: ControlPlane) -> None:
    if plane.scheduler_version < MIRRORED_FROM:
        pytest.skip("simulate mirrors kube-scheduler 1.36; this one's plugins say less")


def _default_profile(config: dict[str, Any]) -> None:
    config["profiles"] = [{"schedulerName": "default-scheduler"}]


def _nodes(cluster: Cluster) -> None:
    cluster.node("plain", cpu="4", labels={"pool": "plain"})
    cluster.node("small", cpu="2", memory="2Gi", pods=3, labels={"pool": "small"})
    cluster.node("tainted", cpu="8", labels={"pool": "tainted"})
    cluster.node("cordoned", cpu="8", labels={"pool": "cordoned"})
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    cluster.api.patch("/api/v1/nodes/tainted", {"spec": {"taints": [taint]}})
    cluster.api.patch("/api/v1/nodes/cordoned", {"spec": {"unschedulable": True}})


class _Pods:
    """Each of less priority than the one before, so that all are tried in the order in which they stand here."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._priority = 1000

    def add(self, name: str, cpu: str = "100m", **more: Any) -> None:
        self._priority -= 10
        requests = {"cpu": cpu, **more.pop("requests", {})}
        options = {"scheduler_name": "default-scheduler", "priority": self._priority, **more}
        self._cluster.pod(name, requests=requests, **options)


def _away_from(app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOSTNAME}
    return {"podAntiAffinity": {REQUIRED: [term]}}


def _near(app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOSTNAME}
    return {"podAffinity": {REQUIRED: [term]}}


def _with_port(port: int) -> list[dict[str, Any]]:
    ports = [{"containerPort": port, "hostPort": port}]
    return [{"name": "main", "image": "registry.k8s.io/pause:3.10", "ports": ports}]


def _pods(cluster: Cluster) -> None:
    pods, plain, small = _Pods(cluster), {"pool": "plain"}, {"pool": "small"}
    tolerations = [{"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}]
    pods.add("tolerates", nodeSelector={"pool": "tainted"}, tolerations=tolerations)
    pods.add("selected", "1", nodeSelector=plain, labels={"app": "selected"})
    pods.add("follows", affinity=_near("selected"))
    pods.add("first-of-its-kind", nodeSelector=small, labels={"app": "lone"}, affinity=_away_from("lone"))
    pods.add("has-the-port", nodeSelector=small, containers=_with_port(8080))
    pods.add("fills", "2500m", nodeSelector=plain)
    pods.add("spread-out", nodeSelector=small, labels={"app": "spread"}, topologySpreadConstraints=[_spread("spread")])
    # from here on nothing is bound: what is said of each is the last word at once
    pods.add("second-of-its-kind", nodeSelector=small, labels={"app": "lone"}, affinity=_away_from("lone"))
    pods.add("wants-the-port", nodeSelector=small, containers=_with_port(8080))
    pods.add("follows-none", affinity=_near("none"))
    pods.add("too-large", "100", requests={"memory": "1Ti", "ephemeral-storage": "1Ti"})
    pods.add("nowhere", nodeSelector={"pool": "none"})
    pods.add("without-claim", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}])
    pods.add("no-room-left", "1", nodeSelector=plain)
    pods.add("too-many", nodeSelector=small)
    pods.add("gated", schedulingGates=[{"name": "example.com/later"}])


def _spread(app: str) -> dict[str, Any]:
    selector = {"matchLabels": {"app": app}}
    return {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}


def _dumped(plane: ControlPlane, folder: Path) -> list[Path]:
    """By the commands that README gives."""
    files = []
    for arguments, name in dump_commands():
        files.append(folder / name)
        files[-1].write_text(plane.kubectl(*arguments))
    return files


def _report(files: list[Path], *configs: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "extender.cli.main", "simulate", *map(str, files), "-o", "json"]
    command += [flag for config in configs for flag in ("--config", str(config))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _simulated(files: list[Path], config: Path) -> Outcome:
    pods = _report(files, config)["pods"]
    return {pod["name"]: (pod.get("node", ""), pod.get("message", "")) for pod in pods if pod["state"] != "Preempted"}


def _real(cluster: Cluster) -> Outcome:
    outcome = {}
    for pod in cluster.all_pods():
        said = {each["type"]: each.get("message", "") for each in pod["status"].get("conditions", [])}
        node = pod["spec"].get("nodeName", "")
        outcome[pod["metadata"]["name"]] = node, "" if node else said.get("PodScheduled", "")
    return outcome


def _compared(cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]) -> Outcome:
    """Simulated first, from what kubectl says of pods that no scheduler has tried yet; then the real one comes."""
    dump = _dumped(cluster.plane, tmp_path)
    scheduler = Scheduler(cluster.plane, tmp_path, extender=None, change=_default_profile)
    programs.append(scheduler)
    expected = _simulated(dump, tmp_path / "kube-scheduler.yaml")
    scheduler.start()
    try:
        eventually(
            lambda: _real(cluster) == expected, within=60, what="the real one says what simulate said", every=0.1
        )
    except AssertionError:
        assert _real(cluster) == expected
    return expected


def test_which_pods_are_bound_and_what_is_said_of_the_rest(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    _nodes(cluster)
    _pods(cluster)
    expected = _compared(cluster, tmp_path, programs)
    bound = {name for name, (node, _) in expected.items() if node}
    assert bound == {
        "tolerates", "selected", "follows", "first-of-its-kind", "has-the-port", "fills", "spread-out"
    }  # fmt: skip
    assert all(said for name, (_, said) in expected.items() if name not in bound)


def test_which_pods_make_room_for_which(cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]) -> None:
    cluster.node("node-1", cpu="2")
    cluster.node("node-2", cpu="2")
    for number, priority in ((1, 10), (2, 20)):
        where = {HOSTNAME: f"node-{number}"}
        cluster.pod(f"there-{number}", requests={"cpu": "2"}, priority=priority, nodeName=where[HOSTNAME])
    cluster.excused.add("default/there-1")
    cluster.pod("urgent", requests={"cpu": "1"}, priority=100, scheduler_name="default-scheduler")
    cluster.pod("beside", requests={"cpu": "1"}, priority=5, scheduler_name="default-scheduler")
    # too large for what is left beside `urgent`: of two that both fit there the real one may try either first
    cluster.pod("too-late", requests={"cpu": "2"}, priority=4, scheduler_name="default-scheduler")
    expected = _compared(cluster, tmp_path, programs)
    assert {name: node for name, (node, _) in expected.items()} == {
        "there-2": "node-2",
        "urgent": "node-1",
        "beside": "node-1",
        "too-late": "",
    }


def test_a_dump_with_gangs_is_answered_and_the_live_cluster_is_left_alone(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """With the files that both programs run by; the extender that they name is up, and would bind whatever it is asked to."""
    extender = Extender(tmp_path, cluster.plane.kubeconfig())
    programs.append(extender)
    programs.append(Scheduler(cluster.plane, tmp_path, extender=extender.url))  # for its file: it is not started
    extender.start()
    cluster.node("node-1", cpu="4")
    for group in ("fits", "does-not"):
        cluster.pod_group(group, min_member=3)
        for number in range(3):
            cluster.pod(f"{group}-{number}", group=group, requests={"cpu": "1"}, priority=10 if group == "fits" else 5)
    cluster.pod("elsewhere", requests={"cpu": "1"}, nodeSelector={"disk": "ssd"})
    files = _dumped(cluster.plane, tmp_path)
    # what would be if the node had the label: the pod's answer is of the files alone
    files[0].write_text(files[0].read_text().replace(f"{HOSTNAME}: node-1", f"{HOSTNAME}: node-1\n      disk: ssd"))
    report = _report(files, tmp_path / "kube-scheduler.yaml", tmp_path / "extender.yaml")
    assert {gang["group"]: gang["state"] for gang in report["gangs"]} == {"fits": "Bound", "does-not": "Denied"}
    assert next(pod for pod in report["pods"] if pod["name"] == "elsewhere")["node"] == "node-1"
    assert {pod["spec"].get("nodeName", "") for pod in cluster.all_pods()} == {""}
    asked = [
        line for line in extender.ops("/metrics")[1].splitlines() if line.startswith("gang_extender_requests_total{")
    ]
    assert [line for line in asked if 'verb="other"' not in line] == []
