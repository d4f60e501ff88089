"""What a new single pod, and a new gang that fits, notice of 200 gangs that cannot start while one node label changes each second.

The real control plane; gangs gated and plain, each without the 200 and with them, in turn. Each second a label that no pod asks
for changes on some node, a single pod is made, and a gang of four is made. Targets: bound within 1 s at p95, filter p99 under
100 ms. docs/design/0024-filter-waits-for-nothing.md says what the numbers come from.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count

from tests.benchmark.contenders import (
    ALONE,
    GATED,
    PLAIN,
    Contender,
    Running,
    for_each_round,
    group_body,
    pod_body,
    rival_plane,
)
from tests.benchmark.gang_load import Load, Watcher, clear, create_gangs, create_nodes
from tests.benchmark.parked import filter_counts, p99
from tests.benchmark.table import Table
from tests.e2e.api import NODES, PODS
from tests.e2e.control_plane import ControlPlane

LARGE, SMALL = 10, 90  # nodes: any member fits by itself on a large one, and no gang does
WAITING = Load(gangs=200, members=16, cpu="3")
TIMES = 30  # a single pod and a gang each
MEMBERS = 4
LABELS_EACH_SECOND = 1.0
WITHIN = 30.0


@dataclass(frozen=True)
class Case:
    contender: Contender
    waiting: bool

    @property
    def name(self) -> str:
        return f"{self.contender.name}, {WAITING.gangs if self.waiting else 'none'} waiting"


CASES = tuple(Case(contender, waiting) for contender in (GATED, PLAIN) for waiting in (False, True))


def _label(plane: ControlPlane, stop: threading.Event) -> None:
    api = plane.api()
    for number in count():
        path = f"{NODES}/small-{number % SMALL}"
        api.patch(path, {"metadata": {"labels": {"benchmark/turn": str(number)}}})
        if stop.wait(1.0 / LABELS_EACH_SECOND):
            return


@contextmanager
def _labels(plane: ControlPlane) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=_label, args=(plane, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _came(plane: ControlPlane, watcher: Watcher, contender: Contender) -> tuple[list[float], list[float]]:
    """Seconds from the last pod's creation to its node: of the single pods, and of the gangs."""
    api, pods = plane.api(), PODS.format(namespace="default")
    singles: list[float] = []
    gangs: list[float] = []
    bound = 0
    for number in range(TIMES):
        began = time.monotonic()
        api.create(pods, pod_body(ALONE, f"single-{number}", "", cpu="10m"))
        bound += 1
        singles.append(watcher.await_bound(bound, WITHIN).get(f"single-{number}", began + WITHIN) - began)
        gang, names = f"fits-{number}", [f"fits-{number}-{member}" for member in range(MEMBERS)]
        api.create(*group_body(contender, gang, MEMBERS))
        for name in names:
            api.create(pods, pod_body(contender, name, gang, cpu="10m"))
        made = time.monotonic()
        bound += MEMBERS
        seen = watcher.await_bound(bound, WITHIN)
        gangs.append(max(seen.get(name, made + WITHIN) for name in names) - made)
        time.sleep(max(0.0, began + 1.0 - time.monotonic()))
    return sorted(singles), sorted(gangs)


def _round(plane: ControlPlane, table: Table, case: Case, number: int) -> None:
    folder = plane.folder / f"waiting-{case.contender.name}-{case.waiting}-{number}"
    with Running(case.contender, plane, folder) as running:
        assert running.extender is not None
        watcher = Watcher(plane)
        if case.waiting:
            create_gangs(plane, case.contender, WAITING)
            running.await_rest()
        with _labels(plane):
            time.sleep(2.0)
            before = filter_counts(running.extender)
            cpu, began = running.our_seconds, time.monotonic()
            singles, gangs = _came(plane, watcher, case.contender)
            our_cpu = (running.our_seconds - cpu) / (time.monotonic() - began)
        after = filter_counts(running.extender)
        watcher.stop()
        table.add(
            case.name,
            single_p50=1000 * singles[len(singles) // 2],
            single_p95=1000 * singles[len(singles) * 95 // 100],
            gang_p50=1000 * gangs[len(gangs) // 2],
            gang_p95=1000 * gangs[len(gangs) * 95 // 100],
            filter_p99=p99(before, after),
            our_cpu=our_cpu,
        )
    clear(plane, case.contender)


def run() -> None:
    with rival_plane() as plane:
        if plane is None:
            return
        create_nodes(plane, LARGE, "4", "large")
        create_nodes(plane, SMALL, "2", "small")
        table = Table(f"{WAITING.gangs} gangs of {WAITING.members} that cannot start, a node label changes each second")
        for_each_round(CASES, partial(_round, plane, table))
        for case in CASES:
            table.row(case.name, "single_p50", "ms")
            table.row(case.name, "single_p95", "ms", "under 1000")
            table.row(case.name, "gang_p50", "ms")
            table.row(case.name, "gang_p95", "ms", "under 1000")
            table.row(case.name, "filter_p99", "ms", "under 100 (limit of its bucket)")
            table.row(case.name, "our_cpu", "cores")
        for contender in (GATED, PLAIN):
            without, beside = (Case(contender, waiting).name for waiting in (False, True))
            for what in ("single_p95", "gang_p95", "our_cpu"):
                table.ratio(what, beside, without)


if __name__ == "__main__":
    run()
