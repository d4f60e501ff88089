"""One gang of 512 on 1,000 nodes, on the real control plane: with the extender, and, in turn, kube-scheduler without it.

Last member created -> all bound. The pods are created by another process, since the API server drops a watcher that is
slow to read. Without Go, or binaries named by KUBEBUILDER_ASSETS, it says so and does nothing.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.build import UnavailableError, binaries
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane, Scheduler
from tests.e2e.extender import Extender

NODES = 1000
MEMBERS = 512
ROUNDS = 3
CREATORS = 8
WITHIN = 120.0


def _create(plane: ControlPlane, work: Callable[[Cluster, int], None], count: int) -> None:
    plane.forget_connections()  # they are the parent's

    def part(first: int) -> None:
        cluster = Cluster(plane)
        for index in range(first, count, CREATORS):
            work(cluster, index)

    with ThreadPoolExecutor(CREATORS) as pool:
        list(pool.map(part, range(CREATORS)))


def _node(cluster: Cluster, index: int) -> None:
    cluster.node(f"node-{index}", cpu="4")


def _member(cluster: Cluster, index: int) -> None:
    cluster.pod(f"member-{index}", group="big", requests={"cpu": "1"})


def _start(plane: ControlPlane, work: Callable[[Cluster, int], None], count: int) -> None:
    process = multiprocessing.get_context("fork").Process(target=_create, args=(plane, work, count))
    process.start()
    process.join()


def _round(plane: ControlPlane, folder: Path, *, extended: bool) -> float:
    extender = Extender(folder, plane.kubeconfig()).start() if extended else None
    scheduler = Scheduler(plane, folder, extender=extender.url if extender else None)
    scheduler.start()
    cluster = Cluster(plane)
    cluster.recorder.start()
    try:
        cluster.pod_group("big", MEMBERS)
        _start(plane, _member, MEMBERS)
        created = time.monotonic()
        cluster.recorder.await_bound(*(f"member-{i}" for i in range(MEMBERS)), within=WITHIN)
        return time.monotonic() - created
    finally:
        scheduler.stop()
        if extender is not None:
            extender.stop()
        cluster.recorder.stop()
        cluster.api.delete("/api/v1/namespaces/default/pods")
        cluster.delete_pod_group("big")
        while cluster.api.items("/api/v1/namespaces/default/pods", limit=1):
            time.sleep(0.1)


def run() -> None:
    try:
        found = binaries(print)
    except UnavailableError as error:
        print(f"not run: {error}")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        plane = ControlPlane(found, folder / "plane")
        plane.start()
        try:
            Cluster(plane).install_crd()
            _start(plane, _node, NODES)
            with_us: list[float] = []
            without: list[float] = []
            print(f"a gang of {MEMBERS} on {NODES} nodes, {ROUNDS} rounds in turn; last member created -> all bound")
            for number in range(ROUNDS):
                with_us.append(_round(plane, folder / f"with-{number}", extended=True))
                without.append(_round(plane, folder / f"without-{number}", extended=False))
                print(f"  round {number + 1}: with {with_us[-1]:6.2f} s   without {without[-1]:6.2f} s", flush=True)
            ours, theirs = statistics.median(with_us), statistics.median(without)
            print(f"  median : with {ours:6.2f} s   without {theirs:6.2f} s   difference {ours - theirs:+.2f} s")
        finally:
            plane.stop()


if __name__ == "__main__":
    run()
