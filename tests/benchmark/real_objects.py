"""`serve` beside up to 10,000 nodes with 150,000 pods, and all that a real cluster writes into them: memory, and how soon.

A process of its own plays the API server: lists in pages, watches in which nothing happens. Measured in the worker: how soon it is ready,
how soon a gang that waited has its places, and the memory then, after filter was asked about every node, and after a second list.
"""

from __future__ import annotations

import json
import re
import socket
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, islice
from multiprocessing import get_context
from multiprocessing.context import ForkContext
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import urllib3
import yaml

from extender.api.schedulingv1alpha1 import GANG_GATE, POD_GROUP_LABEL
from tests.benchmark import scheduling_cluster as cluster
from tests.benchmark.contenders import cpu_seconds
from tests.benchmark.table import Table
from tests.e2e.extender import Extender
from tests.e2e.processes import eventually, free_port

Json = dict[str, Any]

PAGE = 500  # of a list: what the reflector asks for
GANG, MEMBERS = "gang", 16
SETTLE_SECONDS = 5.0
EMPTY = b'{"metadata":{"resourceVersion":"1"},"items":[]}'
EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
WATCHES_END_SECONDS = 0.5
SINCE = "2026-01-05T12:00:00Z"
NODES_PATH, PODS_PATH = "/api/v1/nodes", "/api/v1/pods"
GROUPS_PATH = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"


@dataclass(frozen=True)
class Size:
    """mib, ready: the bounds, in MiB and in seconds."""

    nodes: int
    pods: int
    mib: int
    ready: int

    @property
    def name(self) -> str:
        return f"{self.nodes:,} nodes, {self.pods:,} pods"


SIZES = (Size(5_000, 50_000, 400, 10), Size(5_000, 150_000, 1024, 20), Size(10_000, 150_000, 1200, 25))


def _managed(fields: int) -> Json:
    """managedFields, most of what a real object is; nothing here reads them."""
    entry = {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": SINCE, "fieldsType": "FieldsV1"}
    return {"managedFields": [{**entry, "fieldsV1": {f"f:field-{number}": {"f:more": {}} for number in range(fields)}}]}


def _node(number: int) -> Json:
    obj = cluster.node_json(number)
    conditions = [
        {"type": kind, "status": "False", "lastHeartbeatTime": SINCE, "lastTransitionTime": SINCE, "reason": f"No{kind}",
         "message": f"kubelet has no {kind}"}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")
    ]  # fmt: skip
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": SINCE, "lastTransitionTime": SINCE}
    addresses = [{"type": "InternalIP", "address": f"10.0.{number // 250}.{number % 250}"}]
    system = {"kubeletVersion": "v1.36.3", "osImage": "Linux", "kernelVersion": "6.12", "architecture": "amd64"}
    obj["metadata"] |= {
        "uid": f"node-uid-{number}",
        "resourceVersion": str(number),
        "creationTimestamp": SINCE,
        **_managed(40),
    }
    obj["status"] |= {"conditions": [*conditions, ready], "addresses": addresses, "nodeInfo": system}
    return obj


def _group() -> Json:
    return {"metadata": {"name": GANG, "namespace": "default", "uid": GANG}, "spec": {"minMember": MEMBERS}}


def _member(name: str) -> Json:
    """Of the gang that waits, without its gate."""
    obj = cluster.pod_json(name, 1, schedulerName="gang-scheduler")
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "resourceVersion": "1",
        "labels": {POD_GROUP_LABEL: GANG},
    }
    return {"metadata": metadata, "spec": obj["spec"], "status": {"phase": "Pending"}}


def _pod(number: int, nodes: int) -> Json:
    """Running, with what a kubelet and admission write."""
    obj = cluster.running_json(number % nodes, number // nodes)
    token = {"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
    sources = [{"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "kube-root-ca.crt"}}]
    seconds = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    obj["metadata"] |= {"resourceVersion": str(number), "creationTimestamp": SINCE, **_managed(40)}
    obj["metadata"]["annotations"] = {"example.com/checksum": f"{number % cluster.APPS:064}"}
    obj["spec"] |= {
        "volumes": [{"name": "kube-api-access", "projected": {"sources": sources}}],
        "tolerations": [{"key": f"node.kubernetes.io/{key}", **seconds} for key in ("not-ready", "unreachable")],
        "schedulerName": "default-scheduler", "serviceAccountName": "default", "dnsPolicy": "ClusterFirst", "priority": 0,
    }  # fmt: skip
    for container in obj["spec"]["containers"]:
        container |= {"volumeMounts": [token], "env": [{"name": f"KEY_{i}", "value": f"value {i}"} for i in range(8)]}
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    status = {
        "name": "c",
        "ready": True,
        "restartCount": 0,
        "containerID": f"containerd://{number:064}",
        "started": True,
    }
    obj["status"] = {
        "phase": "Running", "startTime": SINCE, "hostIP": "10.0.0.1", "podIP": "10.1.0.1", "qosClass": "Burstable",
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": SINCE} for kind in kinds],
        "containerStatuses": [{**status, "resources": container["resources"]} for container in obj["spec"]["containers"]],
    }  # fmt: skip
    return obj


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if query.get("watch") == "true":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            self.server.shared.expired.wait()
            line = json.dumps({"type": "ERROR", "object": EXPIRED}).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(line), line))
        elif parts.path == "/version":
            self._answer({"major": "1", "minor": "36"})
        elif int(query.get("limit", "500")) > 1:
            number = int(query.get("continue") or 0)
            if parts.path == PODS_PATH:
                self.server.shared.pages.value = number + 1
                self.server.shared.lists.value += not number
            self._send(self.server.page(parts.path, number))
        else:
            self._answer({"metadata": {"resourceVersion": "1"}, "items": []})

    def do_POST(self) -> None:
        """Reviews of what we may: everything. Events: thank you."""
        self._answer({**self._body(), "status": {"allowed": True}})

    def do_PATCH(self) -> None:
        """A member without its gate, the first time: it is noted when."""
        self._body()
        name = urlsplit(self.path).path.removesuffix("/status").rpartition("/")[2]
        if name in self.server.gated:
            self.server.gated.discard(name)
            self.server.shared.freed.value = time.monotonic()
        self._answer(_member(name) if name.startswith(GANG) else {})

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")

    def _answer(self, body: Json) -> None:
        self._send(json.dumps(body).encode())

    def _send(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    """Its pages are made before it serves: what is measured waits for nothing that a real one would be faster at."""

    def __init__(self, port: int, size: Size, shared: _Shared) -> None:
        self.shared = shared
        self.gated = {f"{GANG}-{number}" for number in range(MEMBERS)}
        members = [
            _member(name) | {"spec": {**_member(name)["spec"], "schedulingGates": [{"name": GANG_GATE}]}}
            for name in self.gated
        ]
        pods = chain(members, (_pod(number, size.nodes) for number in range(size.pods)))
        self._pages = {
            NODES_PATH: list(_pages(map(_node, range(size.nodes)), size.nodes)),
            PODS_PATH: list(_pages(pods, size.pods + MEMBERS)),
            GROUPS_PATH: list(_pages([_group()], 1)),
        }
        super().__init__(("127.0.0.1", port), _Handler)

    def page(self, path: str, number: int) -> bytes:
        return self._pages[path][number] if path in self._pages else EMPTY


def _pages(objects: Iterable[Json], total: int) -> Iterator[bytes]:
    """The token of the next page is its number."""
    left = iter(objects)
    last = (total - 1) // PAGE
    for number in range(last + 1):
        meta = {"resourceVersion": "1", "continue": str(number + 1) if number < last else ""}
        yield msgspec.json.encode({"metadata": meta, "items": list(islice(left, PAGE))})


def _play(port: int, size: Size, shared: _Shared) -> None:
    _Server(port, size, shared).serve_forever()


class _Shared:
    """Among processes. expired: all watches end, with 410. lists: of pods that were begun; pages: of the last one, answered so far;
    freed: when the gate of a member was taken off last."""

    def __init__(self, context: ForkContext) -> None:
        self.expired = context.Event()
        self.lists, self.pages = context.Value("i", 0), context.Value("i", 0)
        self.freed = context.Value("d", 0.0)


@dataclass(frozen=True)
class Played:
    kubeconfig: Path
    _shared: _Shared

    def list_again(self) -> None:
        """Every watch ends, once: the version that it goes on from is too old. Returns when all pods have been listed anew."""
        lists, last = self._shared.lists.value, self._shared.pages.value
        self._shared.expired.set()
        time.sleep(WATCHES_END_SECONDS)
        self._shared.expired.clear()
        eventually(
            lambda: self._shared.lists.value > lists and self._shared.pages.value == last,
            within=600,
            what="pods are listed again",
        )

    @property
    def freed(self) -> float:
        """When the last gate of a member was taken off, on the monotonic clock; 0 where none was."""
        return float(self._shared.freed.value)


@contextmanager
def played_api_server(folder: Path, size: Size) -> Iterator[Played]:
    port, context = free_port(), get_context("fork")
    shared = _Shared(context)
    process = context.Process(target=_play, args=(port, size, shared), daemon=True)
    process.start()
    eventually(lambda: _listens(port), within=300, what="pages are made")
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "played",
        "clusters": [{"name": "played", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "player", "user": {}}],
        "contexts": [{"name": "played", "context": {"cluster": "played", "user": "player"}}],
    }  # fmt: skip
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    try:
        yield Played(file, shared)
    finally:
        process.terminate()
        process.join()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _worker_mib(pid: int, what: str) -> float:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    sizes = [re.search(rf"{what}:\s+(\d+)", Path(f"/proc/{child}/status").read_text()) for child in children]
    return sum(int(size[1]) for size in sizes if size) / 1024


def _filter(url: str, nodes: int) -> float:
    names = [f"node-{number}" for number in range(nodes)]
    pod = cluster.pod_json("asked", 20, schedulerName="gang-scheduler")
    started = time.perf_counter()
    with urllib3.PoolManager(retries=False, timeout=60) as http:
        answer = http.request("POST", f"{url}/filter", body=json.dumps({"Pod": pod, "NodeNames": names}).encode())
    assert answer.status == 200, answer.data
    return time.perf_counter() - started


def await_ready(extender: Extender) -> None:
    """Asked four times a second: each answer is CPU of the worker's."""
    eventually(lambda: extender.ops("/readyz")[0] == 200, within=600, every=0.25, what="it is ready")


def _measure(table: Table, size: Size, folder: Path) -> None:
    with played_api_server(folder, size) as played:
        extender = Extender(folder, played.kubeconfig)
        began = time.monotonic()
        extender.start(wait=False)
        try:
            await_ready(extender)
            ready, cpu = time.monotonic() - began, cpu_seconds(extender.program.pid)
            first = eventually(lambda: played.freed, within=60, what="the gang has its room") and played.freed - began
            pid = extender.program.pid
            memory = _worker_mib(pid, "VmRSS")
            asked = max(_filter(extender.url, size.nodes) for _ in range(3))
            highest = _worker_mib(pid, "VmHWM")
            played.list_again()
            time.sleep(SETTLE_SECONDS)
            table.add(
                size.name,
                ready=ready,
                ready_cpu=cpu,
                first_gang=first,
                memory=memory,
                highest=highest,
                filter=asked * 1e3,
                memory_again=_worker_mib(pid, "VmRSS"),
                highest_again=_worker_mib(pid, "VmHWM"),
            )
        finally:
            extender.stop()


def run() -> None:
    table = Table("serve beside what real clusters hold", "size")
    for size in SIZES:
        with tempfile.TemporaryDirectory() as temporary:
            _measure(table, size, Path(temporary))
    for size in SIZES:
        table.row(size.name, "ready", "s", f"at most {size.ready}")
        table.row(size.name, "ready_cpu", "s", "CPU until then")
        table.row(size.name, "first_gang", "s", "until a gang that waited has its places")
        table.row(size.name, "memory", "MiB", f"at most {size.mib}")
        table.row(size.name, "highest", "MiB", "after filter was asked about all nodes")
        table.row(size.name, "filter", "ms", "about all nodes, the longest of three")
        table.row(size.name, "memory_again", "MiB", "after all was listed again")
        table.row(size.name, "highest_again", "MiB", f"at most {size.mib}")


if __name__ == "__main__":
    run()
