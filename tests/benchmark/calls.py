"""CPU of our process for each call that a gang's pod costs, beside the bare plumbing of Flask, urllib3 and msgspec.

The verbs: the real service on an embedded cluster, asked over kept-alive connections, bind over one for each call as
kube-scheduler does it. The API's side is in api_calls. CPU seconds, so that a busy machine matters little.
"""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import urllib3

from tests.benchmark.contenders import cpu_seconds
from tests.e2e.processes import eventually, free_port

NODES = 1000
CALLS = 1000
GANG = 256
SERVER_NAME = "gang-extender.kube-system.svc"
POD_BYTES = "4 KB"


def row(what: str, milliseconds: float) -> None:
    print(f"  {what:58s} {milliseconds:7.3f} ms", flush=True)


def big_pod(name: str, gang: str = "gang-a", version: int = 1) -> dict[str, Any]:
    """A pod of 4 KB, as controllers make them and API servers show them."""
    variables = [{"name": f"VARIABLE_{number}", "value": "value-" + "x" * 24} for number in range(24)]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "b" * 36, "controller": True}
    managed: list[dict[str, Any]] = [
        {
            "manager": manager,
            "operation": "Update",
            "fieldsV1": {"f:spec": {f"f:field-{number}": {} for number in range(20)}},
        }
        for manager in ("job-controller", "kube-scheduler")
    ]
    container = {
        "name": "main", "image": "registry.k8s.io/pause:3.10", "env": variables,
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
    }  # fmt: skip
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-03-02T10:00:00Z"}
        for kind in ("PodScheduled", "Initialized", "PodReadyToStartContainers")
    ]
    return {
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "resourceVersion": str(version),
            "creationTimestamp": "2026-03-02T10:00:00Z", "generateName": "job-", "ownerReferences": [owner],
            "labels": {"scheduling.x-k8s.io/pod-group": gang, "job-name": "job"}, "managedFields": managed,
        },
        "spec": {
            "containers": [container], "schedulerName": "default-scheduler", "restartPolicy": "Never",
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        },
        "status": {"phase": "Pending", "qosClass": "Burstable", "conditions": conditions},
    }  # fmt: skip


def cluster(folder: Path) -> Path:
    nodes = [
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": f"node-{number}"},
         "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}}}
        for number in range(NODES)
    ]  # fmt: skip
    groups = [
        {"kind": "PodGroup", "apiVersion": "scheduling.x-k8s.io/v1alpha1", "metadata": {"name": gang, "namespace": "default"},
         "spec": {"minMember": GANG, "scheduleTimeoutSeconds": 100}}
        for gang in ("gang-a", "gang-b")
    ]  # fmt: skip
    pods = [big_pod(f"{gang}-{number}", gang) for gang in ("gang-a", "gang-b") for number in range(GANG)]
    file = folder / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [*nodes, *groups, *pods]}))
    return file


class Caller:
    """One connection; a client that costs little itself. tls: of it, where the service has TLS."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as Go does
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=SERVER_NAME)

    def send(self, verb: str, body: Any) -> None:
        self._socket.sendall(request(verb, body))

    def answer(self) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._received()
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(body) < length:
            body += self._received()
        assert head.startswith(b"HTTP/1.1 200"), head
        return body

    def ask(self, data: bytes) -> bytes:
        self._socket.sendall(data)
        return self.answer()

    def _received(self) -> bytes:
        data = self._socket.recv(65536)
        assert data, "the service hung up"
        return data

    def close(self) -> None:
        self._socket.close()


def request(verb: str, value: Any) -> bytes:
    """As Go writes it."""
    body = json.dumps(value).encode()
    head = (
        f"POST /{verb} HTTP/1.1\r\nHost: 127.0.0.1:8888\r\nUser-Agent: Go-http-client/1.1\r\n"
        f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
    )
    return head.encode() + body


@contextmanager
def running(*command: str) -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-m", *command], start_new_session=True)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    try:
        Caller(port).close()
    except OSError:
        return False
    return True


def ready(ops_port: int) -> bool:
    with urllib3.PoolManager(retries=False, timeout=2) as http:
        try:
            return http.request("GET", f"http://127.0.0.1:{ops_port}/readyz").status == 200
        except urllib3.exceptions.HTTPError:
            return False


def _repeated(pid: int, port: int, what: str, verb: str, body: Any) -> bytes:
    caller, data = Caller(port), request(verb, body)
    answer = caller.ask(data)
    began = cpu_seconds(pid)
    for _ in range(CALLS):
        caller.ask(data)
    row(what, (cpu_seconds(pid) - began) * 1000 / CALLS)
    caller.close()
    return answer


def _bind_body(name: str, node: str) -> Any:
    return {"PodName": name, "PodNamespace": "default", "PodUID": name, "Node": node}


def _filter_and_bind(pid: int, port: int) -> None:
    for count in (1, NODES):
        first = json.loads(_filter(port, "gang-a-0", NODES))["NodeNames"][0]
        names = [first, *(name for name in map("node-{}".format, range(NODES)) if name != first)][:count]
        body = {"Pod": big_pod("gang-a-0"), "NodeNames": names}
        answer = json.loads(_repeated(pid, port, f"filter, planned member, {count} names", "filter", body))
        assert answer["NodeNames"] == [first], answer
    places = {f"gang-b-{number}": "" for number in range(GANG)}
    for name in places:
        (places[name],) = json.loads(_filter(port, name, NODES, "gang-b"))["NodeNames"]
    began = cpu_seconds(pid)
    with ExitStack() as stack:
        callers = []
        for name, node in places.items():
            callers.append(Caller(port))
            stack.callback(callers[-1].close)
            callers[-1].send("bind", _bind_body(name, node))
        for caller in callers:
            assert json.loads(caller.answer()) == {"Error": ""}
    row("bind, held and answered, without the API's side", (cpu_seconds(pid) - began) * 1000 / GANG)


def _filter(port: int, name: str, names: int, gang: str = "gang-a") -> bytes:
    caller = Caller(port)
    try:
        body = {"Pod": big_pod(name, gang), "NodeNames": [f"node-{number}" for number in range(names)]}
        return caller.ask(request("filter", body))
    finally:
        caller.close()


def run() -> None:
    port, ops_port = free_port(), free_port()
    with running("tests.benchmark.bare_service", str(port)) as pid:
        eventually(lambda: _listens(port), within=30, what="the bare service listens")
        _repeated(pid, port, "Flask and gunicorn alone: an empty view", "bind", _bind_body("a", "node-1"))
    with tempfile.TemporaryDirectory() as folder:
        ports = [f"--port={port}", f"--ops-port={ops_port}", "-v", "1"]
        command = ("extender.cli.main", "serve", "--cluster", str(cluster(Path(folder))), *ports)
        with running(*command) as pid:
            eventually(lambda: ready(ops_port), within=60, what="the service is ready")
            _repeated(pid, port, "bind of a pod that is not there", "bind", _bind_body("a", "node-1"))
            _filter_and_bind(pid, port)
    subprocess.run([sys.executable, "-m", "tests.benchmark.api_calls"], check=True)


if __name__ == "__main__":
    run()
