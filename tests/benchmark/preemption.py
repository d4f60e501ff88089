"""What kube-scheduler's own preemption costs with our verb preempt in between: single pods that each take a victim's place.

100 nodes, each full with one pod of low priority; 40 pods of high priority come one by one, each when the one before is
bound. With the extender and without, in turn; the difference a pod is what counts.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from tests.benchmark.contenders import ALONE, PLAIN, Contender, Running, for_each_round, pod_body, rival_plane
from tests.benchmark.gang_load import Watcher, clear, create_nodes
from tests.benchmark.table import Table
from tests.e2e.api import PODS
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane

NODES, PODS_TO_COME, PRIORITY = 100, 40, 1000
WITHIN = 30.0


def _create(plane: ControlPlane, name: str, **spec: Any) -> None:
    body = pod_body(ALONE, name, "", cpu="1")
    body["spec"].update(spec)
    plane.api().create(PODS.format(namespace="default"), body)


def _round(plane: ControlPlane, table: Table, contender: Contender, number: int) -> None:
    with Running(contender, plane, plane.folder / f"preemption-{contender.extended}-{number}"):
        watcher = Watcher(plane)
        for node in range(NODES):
            _create(plane, f"low-{node}", nodeName=f"node-{node}")
        watcher.await_bound(NODES, WITHIN)
        waits = []
        for pod in range(PODS_TO_COME):
            began = time.monotonic()
            _create(plane, f"high-{pod}", priorityClassName=f"priority-{PRIORITY}")
            seen = watcher.await_bound(NODES + pod + 1, WITHIN)
            waits.append(seen.get(f"high-{pod}", began + WITHIN) - began)
        watcher.stop()
        waits.sort()
        table.add(contender.name, p50=1000 * waits[len(waits) // 2], p95=1000 * waits[len(waits) * 95 // 100])
    clear(plane, contender)


def run() -> None:
    with rival_plane() as plane:
        if plane is None:
            return
        create_nodes(plane, NODES, "1")
        Cluster(plane).priority_class(PRIORITY)
        table = Table(f"{PODS_TO_COME} pods that preempt one pod each, on {NODES} full nodes")
        for_each_round((PLAIN, ALONE), partial(_round, plane, table))
        for contender in (PLAIN, ALONE):
            table.row(contender.name, "p50", "ms")
            table.row(contender.name, "p95", "ms")
        more = table.median(PLAIN.name, "p50") - table.median(ALONE.name, "p50")
        print(f"  with the verb, a pod (p50): {more:+.1f} ms  at most 10")
        table.ratio("p50", PLAIN.name, ALONE.name)


if __name__ == "__main__":
    run()
