"""What single pods notice of 100 parked gangs of 16, in a cluster in which labels of 50 pods a second change.

Ours, the gangs gated and plain, beside the scheduler's own alpha gangs, in turn. A change of a label moves every pod that
an extender has refused. The gangs count as parked when kube-scheduler has come to rest; the first single pod is made as the
changes begin and waits behind all pods that they move; the other 50 are made one by one while the changes go on, spread
over kube-scheduler's longest back-off. docs/design/0012-parked-plain-pods.md says what the numbers come from.
"""

from __future__ import annotations

import time
from functools import partial

from tests.benchmark.contenders import GATED, IN_TREE, PLAIN, Contender, Running, for_each_round, only, rival_plane
from tests.benchmark.gang_load import Watcher, clear, create_gangs
from tests.benchmark.short_of_room import (
    LONGEST_BACK_OFF,
    calls,
    changes,
    create_cluster,
    filter_counts,
    label_a_pod,
    p99,
    single_pod,
    waiting,
)
from tests.benchmark.table import Table
from tests.e2e.control_plane import ControlPlane

LOAD = waiting(100)
SINGLES = 50
RUNNING = 20  # pods whose labels change
UPDATES_PER_SECOND = 50
PAUSE = LONGEST_BACK_OFF / SINGLES
WITHIN = 30.0
ALL_WITHIN = 120.0  # no more pods are made after that


def _one_by_one(
    plane: ControlPlane, watcher: Watcher, bound: int, prefix: str, pods: int, pause: float = 0.0
) -> list[float]:
    """What each of these pods waited. bound: how many pods have a node before."""
    waits: list[float] = []
    until = time.monotonic() + ALL_WITHIN
    for number in range(pods):
        if time.monotonic() > until:
            break
        waits.append(single_pod(plane, watcher, f"{prefix}-{number}", bound + number, WITHIN))
        time.sleep(pause)
    return sorted(waits)


def _round(plane: ControlPlane, table: Table, contender: Contender, number: int) -> None:
    with Running(contender, plane, plane.folder / f"parked-{contender.name}-{number}") as running:
        watcher = Watcher(plane)
        _one_by_one(plane, watcher, 0, "running", RUNNING)
        began = time.monotonic()
        create_gangs(plane, contender, LOAD)
        rested = running.await_rest() - began
        with changes(partial(label_a_pod, plane, RUNNING), UPDATES_PER_SECOND):
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
            filter_calls=calls(before, after) / seconds,
            scheduler_cpu=(running.scheduler_seconds - cpu[0]) / seconds,
            our_cpu=(running.our_seconds - cpu[1]) / seconds,
        )
    clear(plane, contender)


def run() -> None:
    with rival_plane() as plane:
        if plane is None:
            return
        create_cluster(plane)
        table = Table(f"{LOAD.gangs} parked gangs of {LOAD.members}, {UPDATES_PER_SECOND} updates a second")
        for_each_round(only(GATED, PLAIN, IN_TREE), partial(_round, plane, table))
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
