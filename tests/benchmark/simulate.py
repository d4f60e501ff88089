"""`simulate` of 10,000 pods on 1,000 nodes beside the real kube-scheduler on the same cluster, in turn, as a ratio.

The pods are created while no scheduler runs, and dumped by kubectl as a user would. Measured on both sides: from the start of
the program until every pod has its node; the real one beside etcd and the API server, which take their share of the machine.
Without Go, or binaries named by KUBEBUILDER_ASSETS, only simulate runs, on the same objects written by hand.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.e2e import api as paths
from tests.e2e.api import Json
from tests.e2e.build import UnavailableError, binaries
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane, Scheduler

NODES = 1_000
PODS = 10_000
ROUNDS = 2
CREATORS = 4
WITHIN = 600.0
POLL = 0.25
TICKS = os.sysconf("SC_CLK_TCK")
PROFILE = "default-scheduler"


@dataclass(frozen=True, slots=True)
class Run:
    """seconds: on the clock; cpu: of the program itself."""

    seconds: float
    cpu: float


def _node(number: int) -> dict[str, Any]:
    return {"labels": {"topology.kubernetes.io/zone": f"zone-{number % 3}"}, "cpu": "32", "memory": "128Gi"}


def _pod(number: int) -> dict[str, Any]:
    requests = {"cpu": "1", "memory": "2Gi"} if number % 2 else {"cpu": "500m", "memory": "1Gi"}
    return {"labels": {"app": f"app-{number % 100}"}, "requests": requests, "scheduler_name": PROFILE}


def _create(plane: ControlPlane, first: int, kind: str, count: int) -> None:
    plane.forget_connections()  # they are the parent's
    cluster = Cluster(plane)
    for number in range(first, count, CREATORS):
        if kind == "node":
            cluster.node(f"node-{number}", **_node(number))
        else:
            cluster.pod(f"pod-{number}", **_pod(number))


def _fill(plane: ControlPlane, kind: str, count: int) -> None:
    context = get_context("fork")
    creators = [context.Process(target=_create, args=(plane, first, kind, count)) for first in range(CREATORS)]
    for process in creators:
        process.start()
    for process in creators:
        process.join()
    assert not any(process.exitcode for process in creators)


def _default_profile(config: Json) -> None:
    """kube-scheduler as it comes, the sampling of nodes included; simulate's default is the same."""
    config["profiles"] = [{"schedulerName": PROFILE}]
    del config["percentageOfNodesToScore"]


def _cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def real(plane: ControlPlane, folder: Path) -> Run:
    """The pods are there and wait; asks, without reading them all, whether one still does."""
    scheduler = Scheduler(plane, folder, extender=None, change=_default_profile, flags=["-v=0"])
    started = time.perf_counter()
    scheduler.program.start()
    try:
        while plane.api().items(paths.ALL_PODS, limit=1, fieldSelector="spec.nodeName="):
            if time.perf_counter() - started > WITHIN:
                raise AssertionError(f"pods were not bound within {WITHIN:g} s\n{scheduler.program.tail()}")
            time.sleep(POLL)
        return Run(time.perf_counter() - started, _cpu_of(scheduler.program.pid))
    finally:
        scheduler.stop()


def simulated(dump: Path) -> tuple[Run, Json]:
    """The command, from the file to the report."""
    command = [sys.executable, "-m", "extender.cli.main", "simulate", str(dump), "-o", "json"]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return Run(time.perf_counter() - started, used.ru_utime + used.ru_stime), json.loads(text)


def _dump(plane: ControlPlane, file: Path) -> None:
    command = [
        str(plane.binaries.kubectl),
        f"--kubeconfig={plane.kubeconfig()}",
        "get",
        "nodes,pods",
        "-A",
        "-o",
        "yaml",
    ]
    with file.open("wb") as out:
        subprocess.run(command, stdout=out, check=True)


def _even(pods_of_node: Counter[str]) -> str:
    each = [pods_of_node[f"node-{number}"] for number in range(NODES)]
    return f"{min(each)} to {max(each)} pods a node"


@contextmanager
def _control_plane(folder: Path) -> Iterator[ControlPlane]:
    plane = ControlPlane(binaries(print), folder / "plane")
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


def _round(plane: ControlPlane, folder: Path) -> tuple[Run, Run]:
    _fill(plane, "node", NODES)
    _fill(plane, "pod", PODS)
    dump = folder / "cluster.yaml"
    _dump(plane, dump)
    ours, report = simulated(dump)
    theirs = real(plane, folder)
    here = Counter(pod["node"] for pod in report["pods"])
    there = Counter(pod["spec"]["nodeName"] for pod in plane.api().items(paths.ALL_PODS))
    print(
        f"  simulate {ours.seconds:6.1f} s ({ours.cpu:5.1f} s of CPU, {_even(here)})   kube-scheduler "
        f"{theirs.seconds:6.1f} s ({theirs.cpu:5.1f} s of CPU, {_even(there)})",
        flush=True,
    )
    return ours, theirs


def run() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        try:
            print(f"{PODS} pods on {NODES} nodes, {ROUNDS} rounds in turn; start of the program -> all pods placed")
            rounds = []
            for number in range(ROUNDS):
                with _control_plane(folder / str(number)) as plane:
                    rounds.append(_round(plane, folder / str(number)))
        except UnavailableError as error:
            print(f"not beside kube-scheduler: {error}")
            print(f"  simulate alone {simulated(_by_hand(folder))[0].seconds:6.1f} s")
            return
    print(f"  seconds: simulate takes {_ratio(rounds, lambda side: side.seconds):.2f} of what kube-scheduler takes")
    print(f"  CPU:     simulate takes {_ratio(rounds, lambda side: side.cpu):.2f} of what kube-scheduler alone takes")


def _ratio(rounds: list[tuple[Run, Run]], of: Callable[[Run], float]) -> float:
    return statistics.median(of(ours) / of(theirs) for ours, theirs in rounds)


def _by_hand(folder: Path) -> Path:
    """The same cluster as `_fill` makes, as far as scheduling looks at it."""
    items: list[Json] = []
    for number in range(NODES):
        node = _node(number)
        room = {"cpu": node["cpu"], "memory": node["memory"], "pods": "110"}
        metadata = {"name": f"node-{number}", "labels": {"kubernetes.io/hostname": f"node-{number}", **node["labels"]}}
        items.append({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": room}})
    for number in range(PODS):
        pod = _pod(number)
        container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": pod["requests"]}}
        metadata = {"name": f"pod-{number}", "namespace": "default", "labels": pod["labels"]}
        items.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}})
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return file


if __name__ == "__main__":
    run()
