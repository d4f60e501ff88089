"""The cluster in which gangs wait: any member fits by itself on a large node, and no gang fits. What changes in it meanwhile.

Used by parked and waiting_gangs.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from tests.benchmark.contenders import ALONE, pod_body
from tests.benchmark.gang_load import Load, Watcher, create_nodes
from tests.e2e.api import NODES, PODS
from tests.e2e.control_plane import ControlPlane
from tests.e2e.extender import Extender

LARGE, SMALL = 10, 90  # nodes
LONGEST_BACK_OFF = 10.0  # seconds; kube-scheduler's podMaxBackoffSeconds
_BUCKET = re.compile(
    r'^gang_extender_request_duration_seconds_bucket\{le="([^"]+)",verb="filter"\} (\S+)', re.MULTILINE
)


def waiting(gangs: int) -> Load:
    """The gangs that find no room."""
    return Load(gangs=gangs, members=16, cpu="3")


def create_cluster(plane: ControlPlane) -> None:
    create_nodes(plane, LARGE, "4", "large")
    create_nodes(plane, SMALL, "2", "small")


@contextmanager
def changes(act: Callable[[int], object], per_second: float) -> Iterator[None]:
    """act: called with 0, 1, 2, ... in a thread of its own, from `with` to its end."""
    stop = threading.Event()

    def work() -> None:
        began = time.monotonic()
        for number in count():
            act(number)
            if stop.wait(max(0.0, began + (number + 1) / per_second - time.monotonic())):
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def label_a_node(plane: ControlPlane, number: int) -> None:
    """With a label that no pod asks for."""
    path = f"{NODES}/small-{number % SMALL}"
    plane.api().patch(path, {"metadata": {"labels": {"benchmark/turn": str(number)}}})


def label_a_pod(plane: ControlPlane, pods: int, number: int) -> None:
    """One of those that run: running-0, running-1, ..."""
    path = f"{PODS.format(namespace='default')}/running-{number % pods}"
    plane.api().patch(path, {"metadata": {"labels": {"turn": str(number)}}})


def single_pod(plane: ControlPlane, watcher: Watcher, name: str, bound: int, within: float) -> float:
    """Seconds from the call that creates it to its node; bound: how many pods have one before."""
    began = time.monotonic()
    plane.api().create(PODS.format(namespace="default"), pod_body(ALONE, name, "", cpu="10m"))
    return watcher.await_bound(bound + 1, within).get(name, began + within) - began


def filter_counts(extender: Extender) -> dict[float, float]:
    """Calls of filter that took at most so many seconds."""
    return {float(limit): float(calls) for limit, calls in _BUCKET.findall(extender.ops("/metrics")[1])}


def p99(before: dict[float, float], after: dict[float, float]) -> float:
    """The limit of the bucket that it is in, in ms."""
    calls = {limit: total - before.get(limit, 0) for limit, total in after.items()}
    wanted = 0.99 * max(calls.values(), default=0)
    return 1000 * min((limit for limit, total in calls.items() if total >= wanted), default=float("nan"))


def calls(before: dict[float, float], after: dict[float, float]) -> float:
    return max(after.values(), default=0) - max(before.values(), default=0)
