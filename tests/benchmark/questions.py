"""What questions cost (`kubectl gang whatif` and `drain`), and what they cost the filter calls beside them.

The real service on an embedded cluster of 5,000 nodes and 1,000 gangs of 16: 312 run, on all nodes, the others wait in vain. Each question
is asked again and again while a single pod is filtered, offered 100 nodes. Targets: an answer within 10 s; at most 15 ms more at a
filter call's p99.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import threading
import time
from collections.abc import Iterator
from typing import Any

import urllib3

from tests.benchmark.filter_beside_plans import GATE, measure, object_of, serving
from tests.objects import HOSTNAME, ZONE, make_node, make_pod, make_pod_group

NODES, GANGS, MEMBERS = 5000, 1000, 16
LABEL = "scheduling.x-k8s.io/pod-group"
JSON = {"Content-Type": "application/json"}
CPU = re.compile(r"^process_cpu_seconds_total (\S+)", re.MULTILINE)
REST_SECONDS, REST_CPU, MOST_RESTS = 5.0, 0.5, 60


def objects() -> Iterator[dict[str, Any]]:
    """A member with 6 of 8 CPUs is on each node; 4 more are asked for by each that waits."""
    for i in range(NODES):
        labels = {HOSTNAME: f"node-{i}", ZONE: f"z{i % 3}"}
        yield object_of(
            "Node", make_node().name(f"node-{i}").labels(labels).capacity(cpu="8", memory="32Gi", pods="110")
        )
    for number in range(GANGS):
        name, first = f"gang-{number}", number * MEMBERS
        runs = first + MEMBERS <= NODES
        yield object_of("PodGroup", make_pod_group().name(name).min_member(MEMBERS))
        for i in range(MEMBERS):
            pod = make_pod().pod_group(name).name(f"{name}-{i}").req(cpu="6" if runs else "4")
            yield object_of("Pod", pod.node(f"node-{first + i}") if runs else pod.scheduling_gates(GATE))


def question(members: int, cpu: str, priority: int = 0) -> bytes:
    spec = {"schedulerName": "", "priority": priority, "containers": [{"resources": {"requests": {"cpu": cpu}}}]}
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "asked"}}
    pods = [{"metadata": {"name": f"p{i}", "labels": {LABEL: "asked"}}, "spec": spec} for i in range(members)]
    return json.dumps({"pods": pods, "podGroups": [{**group, "spec": {"minMember": members}}]}).encode()


QUESTIONS: dict[str, tuple[str, bytes | None]] = {
    "16 that fit": ("/whatif", question(16, "1")),
    "2,000 that fit": ("/whatif", question(2000, "1")),
    "16 too large for any node": ("/whatif", question(16, "64")),
    "16 that take the room of others": ("/whatif", question(16, "6", 9)),
    "512 that fit": ("/whatif", question(512, "1")),
    "512 too large for any node": ("/whatif", question(512, "64")),
    "512 that take the room of others": ("/whatif", question(512, "6", 9)),
    "a drain": ("/drain/node-7", None),
}


class Asking(threading.Thread):
    """Asks again and again, until it is told to end; at least once. times: of the answers, in seconds."""

    def __init__(self, http: urllib3.PoolManager, url: str, body: bytes | None) -> None:
        super().__init__()
        self._http, self._url, self._body = http, url, body
        self._over = threading.Event()
        self.times: list[float] = []

    def run(self) -> None:
        while not self._over.is_set() or not self.times:
            began = time.perf_counter()
            method = "POST" if self._body else "GET"
            answer = self._http.request(method, self._url, body=self._body, headers=JSON, timeout=60)
            self.times.append(time.perf_counter() - began)
            assert answer.status == 200, answer.data[:300]

    def end(self) -> None:
        self._over.set()
        self.join()


def _await_rest(http: urllib3.PoolManager, ops: str) -> None:
    """The gangs that wait have been planned; on a machine that is busy that takes longer."""
    before = -math.inf
    for _ in range(MOST_RESTS):
        [now] = map(float, CPU.findall(http.request("GET", f"{ops}/metrics").data.decode()))
        if now - before < REST_CPU:
            return
        before = now
        time.sleep(REST_SECONDS)
    print("  it has not come to rest", flush=True)


def run() -> None:
    with serving(objects()) as (url, ops), urllib3.PoolManager(retries=False) as http:
        _await_rest(http, ops)
        alone = measure(http, (url, ops), 100)
        print(f"  no question: filter p50 {alone.p50 * 1e3:.2f} ms  p99 {alone.p99 * 1e3:.2f} ms", flush=True)
        for name, (path, body) in QUESTIONS.items():
            asking = Asking(http, ops + path, body)
            asking.start()
            beside = measure(http, (url, ops), 100)
            asking.end()
            print(
                f"  {name}: {len(asking.times)} answers, median {statistics.median(asking.times):.3f} s, "
                f"longest {max(asking.times):.3f} s; "
                f"filter p50 {(beside.p50 - alone.p50) * 1e3:+.2f} ms  p99 {(beside.p99 - alone.p99) * 1e3:+.2f} ms",
                flush=True,
            )


if __name__ == "__main__":
    run()
