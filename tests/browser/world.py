"""An extender that serves a little cluster from a file: two zones of racks, gangs that run, one that has its places, ones that wait.

No kube-scheduler is beside it: a test asks the verbs itself. Used by conftest.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

import urllib3
import yaml

from tests.e2e.processes import Program, eventually, free_port

GROUP = "scheduling.x-k8s.io/pod-group"
GATE = "scheduling.x-k8s.io/gang"
GPU = "nvidia.com/gpu"
SCHEDULER = "gang-scheduler"
HOSTILE = "<img src=x onerror=\"document.title='taken'\">"
RACK_NODES, MEMBERS = 16, 8
CONFIGURATION = {
    "apiVersion": "gang-extender.dev/v1alpha1",
    "kind": "ExtenderConfiguration",
    "schedulerNames": [SCHEDULER],
    "topology": ["topology.kubernetes.io/zone", {"name": "rack", "nodeLabel": "example.com/rack"}],
}

Json = dict[str, Any]


class World:
    """team-a/next has places and waits for kube-scheduler; team-b/big-0 to big-2 find no room; team-b/hostile asks for nonsense."""

    def __init__(self, folder: Path) -> None:
        cluster, configuration = folder / "cluster.yaml", folder / "extender.yaml"
        cluster.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": list(_objects())}))
        configuration.write_text(yaml.safe_dump(CONFIGURATION))
        self._port, ops_port = free_port(), free_port()
        self.ops_url = f"http://localhost:{ops_port}"
        self.url = f"{self.ops_url}/ui"
        command = [
            sys.executable,
            "-m",
            "extender.cli.main",
            "serve",
            f"--cluster={cluster}",
            f"--config={configuration}",
        ]
        self._program = Program("extender", [*command, f"--port={self._port}", f"--ops-port={ops_port}"], folder)
        self._http = urllib3.PoolManager(retries=False, timeout=30, maxsize=MEMBERS)

    def start(self) -> World:
        self._program.start()
        self._program.await_ready(lambda: self.get("/readyz") is not None, within=30)
        eventually(lambda: self.phase("team-a/next") == "Planned", within=20, what="the gang has places")
        refused = [f"team-b/{gang}" for gang in ("big-0", "big-1", "big-2", "hostile")]
        eventually(
            lambda: {self.phase(gang) for gang in refused} == {"Denied"}, within=20, what="the others are refused"
        )
        return self

    def stop(self) -> None:
        self._http.clear()
        self._program.stop()

    def get(self, path: str) -> Any:
        try:
            answer = self._http.request("GET", self.ops_url + path)
        except urllib3.exceptions.HTTPError:
            return None
        if answer.status != 200:
            return None
        return json.loads(answer.data) if answer.data[:1] in (b"{", b"[") else answer.data.decode()

    def viewers(self) -> int:
        """Pages that are open."""
        found = re.search(r"^gang_extender_page_viewers (\S+)", str(self.get("/metrics")), re.MULTILINE)
        return int(float(found[1])) if found else 0

    def phase(self, gang: str) -> str:
        page = self.get(f"/gangs/{gang}")
        return page["gang"]["phase"] if page else ""

    def places(self, gang: str) -> dict[str, str]:
        return {each["name"]: each["node"] for each in self.get(f"/gangs/{gang}")["memberList"]}

    def bind_others(self) -> None:
        """As kube-scheduler: each other member comes to filter, then to bind where filter let it. Returns once all are bound."""
        nodes = [node["metadata"]["name"] for node in _nodes()]
        others = [f"next-{number}" for number in range(1, MEMBERS)]
        with ThreadPoolExecutor(MEMBERS) as calls:
            answers = list(calls.map(lambda name: self._schedule(name, nodes), others))
        assert answers == [{"Error": ""}] * len(others)

    def hold_one(self) -> Thread:
        """The first member of team-a/next comes to bind, and is held until the others come. Join it at the end."""
        nodes = [node["metadata"]["name"] for node in _nodes()]
        held = Thread(target=self._schedule, args=("next-0", nodes))
        held.start()
        return held

    def _schedule(self, name: str, nodes: Sequence[str]) -> Any:
        pod = _pod(name, "team-a", "next")
        del pod["spec"]["schedulingGates"]
        found = self._post("filter", {"Pod": pod, "NodeNames": list(nodes)})
        assert found["NodeNames"], found
        args = {"PodName": name, "PodNamespace": "team-a", "PodUID": name, "Node": found["NodeNames"][0]}
        return self._post("bind", args)

    def _post(self, verb: str, body: Json) -> Any:
        url = f"http://localhost:{self._port}/{verb}"
        return json.loads(self._http.request("POST", url, body=json.dumps(body)).data)


def _nodes() -> Iterator[Json]:
    for zone in range(2):
        for rack in range(4):
            for number in range(RACK_NODES):
                yield _node(f"n{zone}{rack}-{number}", f"zone-{zone}", f"rack-{zone}{rack}", cordoned=number == 15)


def _node(name: str, zone: str, rack: str, *, cordoned: bool) -> Json:
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone, "example.com/rack": rack}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {
            "allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110", GPU: "8"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _objects() -> Iterator[Json]:
    yield from _nodes()
    for number in range(12):
        name, namespace = f"run-{number}", ("team-a", "team-b")[number % 2]
        rack = f"n{number % 2}{number % 3}"
        yield from _gang(name, namespace, MEMBERS, [f"{rack}-{(3 * number + each) % 15}" for each in range(MEMBERS)])
    yield from _gang("next", "team-a", MEMBERS)
    for number in range(3):
        yield from _gang(f"big-{number}", "team-b", 150)
    yield _group("short", "team-a", 4)
    yield _pod("short-0", "team-a", "short")
    yield from _gang("hostile", "team-b", 2, annotations={"gang-extender.dev/topology-required": HOSTILE})


def _gang(
    name: str, namespace: str, size: int, nodes: Sequence[str] = (), annotations: Mapping[str, str] | None = None
) -> Iterator[Json]:
    yield _group(name, namespace, size, annotations)
    for number in range(size):
        yield _pod(f"{name}-{number}", namespace, name, nodes[number] if nodes else "")


def _group(name: str, namespace: str, size: int, annotations: Mapping[str, str] | None = None) -> Json:
    metadata = {"name": name, "namespace": namespace, "annotations": dict(annotations or {})}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"minMember": size},
    }


def _pod(name: str, namespace: str, group: str, node: str = "") -> Json:
    """A member that has a node already, or one that our gate holds until its gang has places."""
    requests = {"cpu": "8", "memory": "16Gi", GPU: "4"}
    spec: Json = {"schedulerName": SCHEDULER, "containers": [{"name": "c", "resources": {"requests": requests}}]}
    spec |= {"nodeName": node} if node else {"schedulingGates": [{"name": GATE}]}
    metadata = {"name": name, "namespace": namespace, "uid": name, "labels": {GROUP: group}}
    status = {"phase": "Running" if node else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
