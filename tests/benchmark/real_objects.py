"""What `serve` keeps in memory of 5,000 nodes and 50,000 pods, with all that a real cluster writes into them.

A process of its own plays the API server: lists in pages, watches in which nothing happens. Measured in the worker, when it is
ready, after filter was asked about every node, and at the highest.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import urllib3
import yaml

from tests.benchmark import scheduling_cluster as cluster
from tests.e2e.extender import Extender
from tests.e2e.processes import free_port

Json = dict[str, Any]

WANTED_MIB = 400
EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
WATCHES_END_SECONDS = 0.5
SINCE = "2026-01-05T12:00:00Z"
NODES_PATH, PODS_PATH = "/api/v1/nodes", "/api/v1/pods"


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


def _pod(number: int) -> Json:
    """Running, with what a kubelet and admission write."""
    obj = cluster.running_json(number // cluster.PODS_PER_NODE, number % cluster.PODS_PER_NODE)
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
    expired: Any  # events of multiprocessing: all watches end, with 410; and how many pages of a path were asked for
    pages: Any

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
            self.expired.wait()
            line = json.dumps({"type": "ERROR", "object": EXPIRED}).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(line), line))
        elif parts.path == "/version":
            self._answer({"major": "1", "minor": "36"})
        else:
            if parts.path == PODS_PATH and int(query.get("limit", "500")) > 1:
                with self.pages.get_lock():
                    self.pages.value += 1
            self._answer(_page(parts.path, int(query.get("limit", "500")), int(query.get("continue") or 0)))

    def do_POST(self) -> None:
        """Reviews of what we may: everything. Events: thank you."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        self._answer({**body, "status": {"allowed": True}})

    do_PATCH = do_POST  # noqa: N815

    def _answer(self, body: Json) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _page(path: str, limit: int, start: int) -> Json:
    total, make = {
        NODES_PATH: (cluster.NODES, _node),
        PODS_PATH: (cluster.NODES * cluster.PODS_PER_NODE, _pod),
    }.get(path, (0, _node))
    end = min(start + limit, total)
    following = str(end) if end < total else ""
    return {"metadata": {"resourceVersion": "1", "continue": following}, "items": [make(i) for i in range(start, end)]}


def _play(port: int, expired: Any, pages: Any) -> None:
    _Handler.expired, _Handler.pages = expired, pages
    ThreadingHTTPServer(("127.0.0.1", port), _Handler).serve_forever()


@dataclass(frozen=True)
class Played:
    kubeconfig: Path
    expired: Any
    pages: Any

    def expire(self) -> None:
        """Every watch ends, once: the version that it goes on from is too old."""
        self.expired.set()
        time.sleep(WATCHES_END_SECONDS)
        self.expired.clear()

    def pages_of_pods(self) -> int:
        """How many were asked for by now."""
        return int(self.pages.value)


@contextmanager
def played_api_server(folder: Path) -> Iterator[Played]:
    port, context = free_port(), get_context("fork")
    expired, pages = context.Event(), context.Value("i", 0)
    process = context.Process(target=_play, args=(port, expired, pages), daemon=True)
    process.start()
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "played",
        "clusters": [{"name": "played", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "player", "user": {}}],
        "contexts": [{"name": "played", "context": {"cluster": "played", "user": "player"}}],
    }  # fmt: skip
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(config))
    try:
        yield Played(file, expired, pages)
    finally:
        process.terminate()
        process.join()


def _worker_mib(pid: int, what: str) -> float:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    sizes = [re.search(rf"{what}:\s+(\d+)", Path(f"/proc/{child}/status").read_text()) for child in children]
    return sum(int(size[1]) for size in sizes if size) / 1024


def _filter(url: str) -> float:
    names = [f"node-{number}" for number in range(cluster.NODES)]
    pod = cluster.pod_json("asked", 20, schedulerName="gang-scheduler")
    started = time.perf_counter()
    with urllib3.PoolManager(retries=False, timeout=60) as http:
        answer = http.request("POST", f"{url}/filter", body=json.dumps({"Pod": pod, "NodeNames": names}).encode())
    assert answer.status == 200, answer.data
    return time.perf_counter() - started


def run() -> None:
    print(
        f"serve with {cluster.NODES} nodes and {cluster.NODES * cluster.PODS_PER_NODE} pods; wanted: {WANTED_MIB} MiB"
    )
    with tempfile.TemporaryDirectory() as temporary, played_api_server(Path(temporary)) as played:
        extender = Extender(Path(temporary), played.kubeconfig)
        started = time.perf_counter()
        extender.start(wait=False)
        try:
            extender.program.await_ready(lambda: extender.ops("/readyz")[0] == 200, within=600)
            print(
                f"  ready after {time.perf_counter() - started:5.1f} s     {_worker_mib(extender.program.pid, 'VmRSS'):6.1f} MiB"
            )
            took = max(_filter(extender.url) for _ in range(3))
            print(f"  filter, at most {took * 1e3:5.0f} ms   {_worker_mib(extender.program.pid, 'VmRSS'):6.1f} MiB")
            print(f"  the highest               {_worker_mib(extender.program.pid, 'VmHWM'):6.1f} MiB", flush=True)
        finally:
            extender.stop()


if __name__ == "__main__":
    run()
