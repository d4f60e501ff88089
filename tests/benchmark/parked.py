"""What single pods notice of 100 parked gangs of 16, in a cluster in which labels of 50 pods a second change.

Ours, the gangs gated and plain, beside the scheduler's own alpha gangs, in turn. A change of a label moves every pod that
an extender has refused. The gangs count as parked when kube-scheduler has come to rest; the first single pod is made as the
changes begin and waits behind everybody whom they move; the other 50 are made one by one while the changes go on, spread
over kube-scheduler's longest back-off. docs/design/0012-parked-plain-pods.md says what the numbers come from.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count

from tests.benchmark.contenders import (
    ALONE,
    GATED,
    IN_TREE,
    PLAIN,
    Contender,
    Running,
    for_each_round,
    pod_body,
    rival_plane,
)
from tests.benchmark.gang_load import Load, Watcher, clear, create_gangs, create_nodes
from tests.benchmark.table import Table
from tests.e2e.api import PODS
from tests.e2e.control_plane import ControlPlane
from tests.e2e.extender import Extender

LARGE, SMALL = 10, 90  # nodes: any member fits by itself on a large one, and no gang does
LOAD = Load(gangs=100, members=16, cpu="3")
SINGLES = 50
RUNNING = 20  # pods whose labels change
UPDATES_PER_SECOND = 50
LONGEST_BACK_OFF = 10.0  # seconds; podMaxBackoffSeconds
PAUSE = LONGEST_BACK_OFF / SINGLES
WITHIN = 30.0
ALL_WITHIN = 120.0  # no more pods are made after that
_BUCKET = re.compile(
    r'^gang_extender_request_duration_seconds_bucket\{le="([^"]+)",verb="filter"\} (\S+)', re.MULTILINE
)


def _update(plane: ControlPlane, stop: threading.Event) -> None:
    api = plane.api()
    began = time.monotonic()
    for number in count():
        path = f"{PODS.format(namespace='default')}/running-{number % RUNNING}"
        api.patch(path, {"metadata": {"labels": {"turn": str(number)}}})
        if stop.wait(max(0.0, began + number / UPDATES_PER_SECOND - time.monotonic())):
            return


@contextmanager
def _updates(plane: ControlPlane) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=_update, args=(plane, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _one_by_one(
    plane: ControlPlane, watcher: Watcher, bound: int, prefix: str, pods: int, pause: float = 0.0
) -> list[float]:
    """Seconds from the call that creates a pod to its node. bound: how many pods have one before."""
    api = plane.api()
    waits = []
    until = time.monotonic() + ALL_WITHIN
    for number in range(pods):
        name = f"{prefix}-{number}"
        began = time.monotonic()
        if began > until:
            break
        api.create(PODS.format(namespace="default"), pod_body(ALONE, name, "", cpu="10m"))
        seen = watcher.await_bound(bound + number + 1, WITHIN)
        waits.append(seen.get(name, began + WITHIN) - began)
        time.sleep(pause)
    return sorted(waits)


def filter_counts(extender: Extender) -> dict[float, float]:
    """Calls of filter that took at most so many seconds."""
    return {float(limit): float(calls) for limit, calls in _BUCKET.findall(extender.ops("/metrics")[1])}


def p99(before: dict[float, float], after: dict[float, float]) -> float:
    """The limit of the bucket that it is in, in ms."""
    calls = {limit: total - before.get(limit, 0) for limit, total in after.items()}
    wanted = 0.99 * max(calls.values(), default=0)
    return 1000 * min((limit for limit, total in calls.items() if total >= wanted), default=float("nan"))


def _round(plane: ControlPlane, table: Table, contender: Contender, number: int) -> None:
    with Running(contender, plane, plane.folder / f"parked-{contender.name}-{number}") as running:
        watcher = Watcher(plane)
        _one_by_one(plane, watcher, 0, "running", RUNNING)
        began = time.monotonic()
        create_gangs(plane, contender, LOAD)
        rested = running.await_rest() - began
        with _updates(plane):
            (first,) = _one_by_one(plane, watcher, RUNNING, "first", 1)
            time.sleep(LONGEST_BACK_OFF)
            before = filter_counts(running.extender) if running.extender is not None else {}
            cpu, began = (running.scheduler_seconds, running.our_seconds), time.monotonic()
            waits = _one_by_one(plane, watcher, RUNNING + 1, "single", SINGLES, PAUSE)
            seconds = time.monotonic() - began
        after = filter_counts(running.extender) if running.extender is not None else {}
        watcher.stop()
        table.add(
            contender.name,
            rested=rested,
            first=1000 * first,
            pods=len(waits),
            p50=1000 * waits[len(waits) // 2],
            p95=1000 * waits[len(waits) * 95 // 100],
            worst=1000 * waits[-1],
            filter_p99=p99(before, after),
            filter_calls=(max(after.values(), default=0) - max(before.values(), default=0)) / seconds,
            scheduler_cpu=(running.scheduler_seconds - cpu[0]) / seconds,
            our_cpu=(running.our_seconds - cpu[1]) / seconds,
        )
    clear(plane, contender)


def run() -> None:
    with rival_plane() as plane:
        if plane is None:
            return
        create_nodes(plane, LARGE, "4", "large")
        create_nodes(plane, SMALL, "2", "small")
        table = Table(f"{LOAD.gangs} parked gangs of {LOAD.members}, {UPDATES_PER_SECOND} updates a second")
        for_each_round((GATED, PLAIN, IN_TREE), partial(_round, plane, table))
        for contender, target in ((GATED, "at most 200"), (PLAIN, "at most 1000"), (IN_TREE, "")):
            table.row(contender.name, "rested", "s", "creation to kube-scheduler at rest")
            table.row(contender.name, "first", "ms", "made as the updates begin")
            table.row(contender.name, "p50", "ms")
            table.row(contender.name, "p95", "ms", target)
            table.row(contender.name, "worst", "ms")
            table.row(contender.name, "filter_calls", "a second")
            table.row(contender.name, "filter_p99", "ms", "at most 5 (limit of its bucket)" if target else "")
            table.row(contender.name, "scheduler_cpu", "cores")
            table.row(contender.name, "our_cpu", "cores")


if __name__ == "__main__":
    run()
