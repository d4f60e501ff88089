"""What plans that run beside them cost the filter calls of other pods: p50 and p99 of a single pod's calls.

The real service on an embedded cluster, twice: without gangs, and with gated gangs that fit nowhere and take long to say so, one
after the other on a native thread. The caller is this process, over one kept-alive connection. Targets: at most 3 ms more at
p50 and 15 ms more at p99.
"""

from __future__ import annotations

import contextlib
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

from tests.e2e.processes import free_port
from tests.objects import HOSTNAME, ZONE, Builder, make_node, make_pod, make_pod_group, selector

GATE = "scheduling.x-k8s.io/gang"
PLANS = re.compile(r"podgroup_schedule_attempts_total\{[^}]*\} (\d+)")


@dataclass(frozen=True)
class Setting:
    """gangs of so many members each that may go to the first `pool` of the nodes, and find no room there."""

    nodes: int = 5000
    pool: int = 200
    gangs: int = 0
    members: int = 250


WITHOUT, BESIDE = Setting(), Setting(gangs=40)


@dataclass(frozen=True)
class Measured:
    """p50 and p99 of the calls, in seconds; and how many plans of gangs were made meanwhile, in how many seconds."""

    p50: float
    p99: float
    plans: int
    took: float


def object_of(kind: str, builder: Builder[Any]) -> dict[str, Any]:
    return {
        "kind": kind,
        "apiVersion": "scheduling.x-k8s.io/v1alpha1" if kind == "PodGroup" else "v1",
        **builder.json(),
    }


def _objects(setting: Setting) -> Iterator[dict[str, Any]]:
    for i in range(setting.nodes):
        labels = {HOSTNAME: f"node-{i}", ZONE: f"z{i % 3}", "pool": "gangs" if i < setting.pool else "others"}
        node = make_node().name(f"node-{i}").labels(labels).capacity(cpu="8", memory="32Gi", pods="110")
        yield object_of("Node", node)
    for number in range(setting.gangs):
        name = f"gang-{number}"
        group = selector({"scheduling.x-k8s.io/pod-group": name})
        yield object_of("PodGroup", make_pod_group().name(name).min_member(setting.members))
        member = make_pod().pod_group(name).req(cpu="1").scheduling_gates(GATE).node_selector({"pool": "gangs"})
        member = member.pod_anti_affinity(HOSTNAME, group).spread_constraint(1, ZONE, label_selector=group)
        for i in range(setting.members):
            yield object_of("Pod", member.name(f"{name}-{i}"))


def service(setting: Setting) -> contextlib.AbstractContextManager[tuple[str, str]]:
    return serving(_objects(setting))


@contextlib.contextmanager
def serving(objects: Iterator[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """A service on a cluster of these: its addresses for verbs and for probes, once it is ready."""
    port, ops_port = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.yaml"
        file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": list(objects)}))
        command = [sys.executable, "-m", "extender.cli.main", "serve", "--cluster", str(file), "-v", "1"]
        process = subprocess.Popen([*command, f"--port={port}", f"--ops-port={ops_port}"])
        try:
            with urllib3.PoolManager(retries=False) as http:
                for _ in range(3000):
                    with contextlib.suppress(urllib3.exceptions.HTTPError):
                        if http.request("GET", f"http://127.0.0.1:{ops_port}/readyz").status == 200:
                            break
                    time.sleep(0.02)
            yield f"http://127.0.0.1:{port}", f"http://127.0.0.1:{ops_port}"
        finally:
            process.terminate()
            process.wait()


def _plans(http: urllib3.PoolManager, ops: str) -> int:
    return sum(int(found) for found in PLANS.findall(http.request("GET", f"{ops}/metrics").data.decode()))


def _times(http: urllib3.PoolManager, url: str, names: int, calls: int) -> list[float]:
    pod = make_pod().name("asked").req(cpu="1").json()
    body = json.dumps({"Pod": pod, "NodeNames": [f"node-{i}" for i in range(names)]})
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        answer = http.request("POST", f"{url}/filter", body=body)
        times.append(time.perf_counter() - start)
        assert answer.status == 200
        time.sleep(0.005)  # as kube-scheduler: it does other things in between
    return times


def measure(http: urllib3.PoolManager, addresses: tuple[str, str], names: int, calls: int = 400) -> Measured:
    """Calls for a single pod that is offered so many nodes."""
    url, ops = addresses
    _times(http, url, names, 10)
    before, began = _plans(http, ops), time.perf_counter()
    times = sorted(_times(http, url, names, calls))
    took = time.perf_counter() - began
    return Measured(statistics.median(times), times[len(times) * 99 // 100], _plans(http, ops) - before, took)


def run() -> None:
    alone: dict[int, Measured] = {}
    for setting in (WITHOUT, BESIDE):
        with service(setting) as addresses, urllib3.PoolManager(retries=False) as http:
            for names in (100, 5000):
                found = measure(http, addresses, names)
                base = alone.setdefault(names, found)
                more = f"  {(found.p50 - base.p50) * 1e3:+.1f} and {(found.p99 - base.p99) * 1e3:+.1f} ms"
                print(
                    f"  {found.plans:3d} plans in {found.took:4.1f} s  {names:5d} names  "
                    f"p50 {found.p50 * 1e3:6.2f} ms  p99 {found.p99 * 1e3:6.2f} ms{more if setting.gangs else ''}",
                    flush=True,
                )


if __name__ == "__main__":
    run()
