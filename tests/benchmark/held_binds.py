"""Filter's server time with 100, 1,000 and 5,000 node names, while 0 and 500 binds are held; and memory.

The real service on an embedded cluster; the caller is this process, over one kept-alive connection.
"""

from __future__ import annotations

import contextlib
import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import urllib3

from tests.e2e.processes import free_port

NODES = 5000
HELD = 500
CALLS = 300
ROUNDS = 3
GANG = "held"


def _cluster(folder: Path) -> Path:
    nodes = [
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": f"node-{i}"},
         "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}}}
        for i in range(NODES)
    ]  # fmt: skip
    group = {
        "kind": "PodGroup", "apiVersion": "scheduling.x-k8s.io/v1alpha1", "metadata": {"name": GANG, "namespace": "default"},
        "spec": {"minMember": HELD + 1, "scheduleTimeoutSeconds": 100},
    }  # fmt: skip
    pods = [_pod(f"held-{i}", GANG) | {"kind": "Pod", "apiVersion": "v1"} for i in range(HELD)]
    file = folder / "cluster.yaml"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [*nodes, group, *pods]}))
    return file


def _pod(name: str, group: str = "") -> dict[str, object]:
    labels = {"scheduling.x-k8s.io/pod-group": group} if group else {}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
    }


@contextlib.contextmanager
def _service(folder: Path) -> Iterator[tuple[str, str, int]]:
    port, ops_port = free_port(), free_port()
    command = [sys.executable, "-m", "extender.cli.main", "serve", "--cluster", str(_cluster(folder)), "-v", "1"]
    process = subprocess.Popen([*command, f"--port={port}", f"--ops-port={ops_port}"])
    try:
        ops = f"http://127.0.0.1:{ops_port}"
        with urllib3.PoolManager(retries=False) as http:
            for _ in range(600):
                with contextlib.suppress(urllib3.exceptions.HTTPError):
                    if http.request("GET", f"{ops}/readyz").status == 200:
                        break
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}", ops, process.pid
    finally:
        process.terminate()
        process.wait()


def _filter_times(http: urllib3.PoolManager, url: str, names: int) -> list[float]:
    body = json.dumps({"Pod": _pod("asked"), "NodeNames": [f"node-{i}" for i in range(names)]})
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        answer = http.request("POST", f"{url}/filter", body=body)
        times.append(time.perf_counter() - start)
        assert len(answer.json()["NodeNames"]) == names
    return times


def _hold(url: str) -> None:
    """HELD bind calls, each on a thread and a connection of its own; they end with the service."""

    def one(index: int) -> None:
        body = json.dumps(
            {"PodName": f"held-{index}", "PodNamespace": "default", "PodUID": f"held-{index}", "Node": f"node-{index}"}
        )
        with contextlib.suppress(urllib3.exceptions.HTTPError), urllib3.PoolManager(retries=False) as http:
            http.request("POST", f"{url}/bind", body=body)

    for index in range(HELD):
        threading.Thread(target=one, args=(index,), daemon=True).start()


def _memory_mib(pid: int) -> float:
    """Resident, of the master's children: the worker."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    sizes = [re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{child}/status").read_text()) for child in children]
    return sum(int(size[1]) for size in sizes if size) / 1024


def run() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        _service(Path(folder)) as (url, ops, pid),
        urllib3.PoolManager(retries=False) as http,
    ):
        free: dict[int, float] = {}
        print(f"filter, one caller, {CALLS} calls a row, {ROUNDS} rounds; {NODES} nodes in the cache")
        for held in (0, HELD):
            if held:
                _hold(url)
                while f"gang_extender_held_binds {HELD}.0" not in http.request("GET", f"{ops}/metrics").data.decode():
                    time.sleep(0.1)
            for names in (100, 1000, 5000):
                times = sorted(t for _ in range(ROUNDS) for t in _filter_times(http, url, names))
                p50, p99 = statistics.median(times), times[len(times) * 99 // 100]
                ratio = f"  {p50 / free[names]:.2f} of with none held" if held else ""
                free.setdefault(names, p50)
                print(f"  {held:4d} held  {names:5d} names  p50 {p50 * 1e3:6.2f} ms  p99 {p99 * 1e3:6.2f} ms{ratio}")
            print(f"  {held:4d} held  memory {_memory_mib(pid):.1f} MiB", flush=True)


if __name__ == "__main__":
    run()
