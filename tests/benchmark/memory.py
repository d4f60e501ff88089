"""The memory of `serve` beside a cluster of 5,000 nodes and 50,000 pods, and how long it takes until it is ready.

On a real API server; the pods are created with their nodes, so that no scheduler is needed.
"""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.benchmark.contenders import ALONE, pod_body, processes_of, rival_plane
from tests.benchmark.gang_load import CREATORS, create_nodes, in_process
from tests.e2e.api import PODS
from tests.e2e.control_plane import ControlPlane
from tests.e2e.extender import Extender

NODES = 5_000
PODS_PER_NODE = 10
SETTLE_SECONDS = 5.0


def _create_pods(plane: ControlPlane) -> None:
    api = plane.api()

    def one(index: int) -> None:
        body = pod_body(ALONE, f"pod-{index}", "", cpu="100m")
        body["metadata"]["labels"] = {"app": f"app-{index % 500}", "pod-template-hash": f"hash-{index % 500}"}
        body["spec"]["nodeName"] = f"node-{index % NODES}"
        api.create(PODS.format(namespace="default"), body)

    with ThreadPoolExecutor(CREATORS) as pool:
        list(pool.map(one, range(NODES * PODS_PER_NODE)))


def _mib(session: int, field: str) -> float:
    """Of all processes of the session; Pss shares out what the master and its worker have in common."""
    texts = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in processes_of(session)]
    found = (re.search(rf"^{field}:\s+(\d+)", text, re.MULTILINE) for text in texts)
    return sum(int(match[1]) for match in found if match) / 1024


def run() -> None:
    with rival_plane() as plane:
        if plane is None:
            return
        create_nodes(plane, NODES, "64")
        in_process(_create_pods, plane)
        began = time.monotonic()
        extender = Extender(plane.folder / "memory", plane.kubeconfig()).start()
        try:
            ready = time.monotonic() - began
            time.sleep(SETTLE_SECONDS)
            session = extender.program.pid
            print(f"{NODES} nodes, {NODES * PODS_PER_NODE} pods: ready after {ready:.1f} s")
            print(
                f"  memory {_mib(session, 'Pss'):.0f} MiB, with what is shared {_mib(session, 'Rss'):.0f}  at most 400"
            )
        finally:
            extender.stop()


if __name__ == "__main__":
    run()
