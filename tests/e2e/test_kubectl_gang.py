"""`kubectl gang` by a real kubectl: the leader is found by the Lease that a real kube-scheduler holds, and reached by a real API server's
port-forward. Kubelets are played: all that they do here is to pass bytes on to a port on loopback.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from tests.e2e.api import NODES, PODS
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ADMIN, TENANT, TENANT_USER, Scheduler
from tests.e2e.extender import Extender
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually
from tests.e2e.test_two_replicas import LEASE, holder, own_host_name
from tests.fakes.port_forwarding import PortForwarding

SYSTEM = PODS.format(namespace="kube-system")
OPS_PORT = 8889
RIGHTS = [
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
    {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["get", "create"]},
]


@pytest.fixture
def kubelets() -> Iterator[list[PortForwarding]]:
    started: list[PortForwarding] = []
    yield started
    for each in started:
        each.stop()


@pytest.fixture
def replicas(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler], kubelets: list[PortForwarding]
) -> Iterator[dict[str, Pair]]:
    """As the shipped Deployment's two, each in a pod of its own with a host name, on a node with a kubelet. Not started yet."""
    found = {}
    for name in ("gang-scheduler-a", "gang-scheduler-b"):
        (tmp_path / name).mkdir()
        pair = Pair.of(cluster.plane, tmp_path / name, as_shipped=True, change=_leads_soon)
        for each in pair:
            each.program.command[:0] = own_host_name(name)
        programs.extend(pair)
        kubelets.append(_kubelet(cluster, name, pair.extender))
        found[name] = pair
    if holder(cluster):
        cluster.api.delete(LEASE)
    yield found
    for name in found:
        cluster.api.delete(f"{SYSTEM}/{name}", gracePeriodSeconds=0)


def _leads_soon(config: dict[str, Any]) -> None:
    config["leaderElection"] |= {"leaseDuration": "6s", "renewDeadline": "5s", "retryPeriod": "1s"}


def _kubelet(cluster: Cluster, pod: str, extender: Extender) -> PortForwarding:
    """Of the node that the pod is on. The API server verifies no kubelet's certificate unless it is told to."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    kubelet = PortForwarding(context)
    kubelet.listening[OPS_PORT] = int(extender.ops_url.rpartition(":")[2])
    node = f"control-plane-{pod[-1]}"
    cluster.node(node, cpu="1")
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}},
    }
    cluster.api.patch(f"{NODES}/{node}", {"spec": {"unschedulable": True}})
    cluster.api.patch(f"{NODES}/{node}/status", {"status": status})
    container = {"name": "extender", "image": "gang-extender", "ports": [{"containerPort": OPS_PORT}]}
    spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 0}
    cluster.api.create(SYSTEM, {"metadata": {"name": pod}, "spec": spec})
    return kubelet


def kubectl(cluster: Cluster, *arguments: str, token: str = ADMIN, code: int = 0) -> str:
    """What the real kubectl prints, with the plugin on its PATH; what it says of an error where one is wanted."""
    environ = {**os.environ, "KUBECONFIG": str(cluster.plane.kubeconfig(token))}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    ended = subprocess.run(
        [cluster.plane.binaries.kubectl, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environ,
    )
    assert ended.returncode == code, ended.stderr
    return ended.stdout if not code else ended.stderr


def test_the_leader_answers_whichever_it_is(cluster: Cluster, replicas: dict[str, Pair]) -> None:
    first, second = replicas.values()
    first.start()
    eventually(lambda: holder(cluster) == "gang-scheduler-a", within=20, what="the first replica leads")
    second.start()
    for number in range(2):
        cluster.node(f"node-{number}", cpu="4")
    cluster.pod_group("runs", 2)
    for number in range(2):
        cluster.pod(f"runs-{number}", group="runs", requests={"cpu": "3"})
    cluster.recorder.await_bound("runs-0", "runs-1", within=10)
    cluster.pod_group("waits", 3)
    for number in range(3):
        cluster.pod(f"waits-{number}", group="waits", requests={"cpu": "1"})
    cluster.recorder.await_message("waits-0", "minMember of 3 does not fit: Insufficient cpu", within=10)

    gangs = json.loads(kubectl(cluster, "gang", "list", "-o", "json"))
    assert {gang["name"]: (gang["phase"], gang["place"]) for gang in gangs} == {
        "waits": ("Denied", 1),
        "runs": ("Bound", 0),
    }
    assert "2 of 3 members would find a place" in kubectl(cluster, "gang", "explain", "waits")
    assert "1 more node with cpu 4" in kubectl(cluster, "gang", "why", "waits-1")
    assert "default/what-if: fits now" in kubectl(cluster, "gang", "whatif", "--members", "2", "--requests", "cpu=1")
    wide = kubectl(cluster, "gang", "whatif", "--members", "2", "--requests", "cpu=4", "--priority", "9")
    assert "default/what-if: does not fit" in wide
    assert "would evict" in wide
    assert all(f"default/runs-{number} on node-" in wide for number in range(2))
    drained = json.loads(kubectl(cluster, "gang", "drain", "node-0", "-o", "json"))
    [gang] = [each for each in drained["gangs"] if each["group"] == "default/runs"]
    assert (gang["below"], gang["fits"], gang["left"]) == (True, False, 1)
    eventually(  # a completion that takes longer than a moment offers nothing
        lambda: kubectl(cluster, "__complete", "gang", "explain", "wa").splitlines()[0].partition("\t")[0] == "waits",
        within=20,
        what="the gang is offered",
    )

    first.scheduler.stop()
    first.extender.stop()
    eventually(lambda: holder(cluster) == "gang-scheduler-b", within=30, what="the second replica leads")
    eventually(
        lambda: "waits" in kubectl(cluster, "gang", "list", "-o", "name"), within=10, what="the second one answers"
    )
    assert cluster.recorder.bound() - replicas.keys() == {"runs-0", "runs-1"}


def test_which_rights_it_takes(cluster: Cluster, replicas: dict[str, Pair]) -> None:
    replicas["gang-scheduler-a"].start()
    eventually(lambda: holder(cluster) == "gang-scheduler-a", within=20, what="it leads")
    said = kubectl(cluster, "gang", "list", token=TENANT, code=1)
    assert 'leases.coordination.k8s.io "gang-scheduler" is forbidden' in said
    assert "--server URL names an extender to ask" in said
    names = {"name": "asks-the-leader", "namespace": "kube-system"}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": names, "rules": RIGHTS}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": names,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "asks-the-leader"},
        "subjects": [{"kind": "User", "name": TENANT_USER, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    cluster.plane.kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all([role, binding]))
    try:
        eventually(
            lambda: "no gangs" in kubectl(cluster, "gang", "list", token=TENANT), within=10, what="the role counts"
        )
    finally:
        cluster.plane.kubectl("delete", "-n", "kube-system", "role,rolebinding", "asks-the-leader")
