"""What a new single pod, and a new gang that fits, notice of 200 gangs that cannot start while one node label changes each second.

The real control plane; gangs gated and plain, each without the 200 and with them, in turn. Each second a label that no pod asks
for changes on some node, a single pod is made, and a gang of four is made. Targets: bound within 1 s at p95, filter p99 under
100 ms. They are measured once the changes have gone on for longer than kube-scheduler's longest back-off; `first` is a single pod
that is made as they begin, and waits behind all plain pods that the first change moves. BENCHMARK_ONLY=gated or plain: that alone.
docs/design/0024-filter-waits-for-nothing.md says what the numbers come from.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

from tests.benchmark.contenders import (
    GATED,
    PLAIN,
    Contender,
    Running,
    for_each_round,
    group_body,
    only,
    pod_body,
    rival_plane,
)
from tests.benchmark.gang_load import Watcher, clear, create_gangs
from tests.benchmark.short_of_room import (
    LONGEST_BACK_OFF,
    calls,
    changes,
    create_cluster,
    filter_counts,
    label_a_node,
    p99,
    single_pod,
    waiting,
)
from tests.benchmark.table import Table
from tests.e2e.api import PODS
from tests.e2e.control_plane import ControlPlane

WAITING = waiting(200)
TIMES = 30  # a single pod and a gang each
MEMBERS = 4
LABELS_PER_SECOND = 1.0
WITHIN = 10.0  # as long is waited for a pod
ALL_WITHIN = 75.0  # no more pods are made after that


@dataclass(frozen=True)
class Case:
    contender: Contender
    waiting: bool

    @property
    def name(self) -> str:
        return f"{self.contender.name}, {WAITING.gangs if self.waiting else 'none'} waiting"


CASES = tuple(Case(contender, waiting) for contender in only(GATED, PLAIN) for waiting in (False, True))


def _gang(plane: ControlPlane, watcher: Watcher, contender: Contender, name: str, bound: int) -> float:
    """Seconds from its last pod's creation to the node of the last."""
    api, pods = plane.api(), PODS.format(namespace="default")
    names = [f"{name}-{member}" for member in range(MEMBERS)]
    api.create(*group_body(contender, name, MEMBERS))
    for each in names:
        api.create(pods, pod_body(contender, each, name, cpu="10m"))
    made = time.monotonic()
    seen = watcher.await_bound(bound + MEMBERS, WITHIN)
    return max(seen.get(each, made + WITHIN) for each in names) - made


def _came(plane: ControlPlane, watcher: Watcher, contender: Contender, bound: int) -> tuple[list[float], list[float]]:
    """The times of the single pods, and of the gangs."""
    singles: list[float] = []
    gangs: list[float] = []
    until = time.monotonic() + ALL_WITHIN
    for number in range(TIMES):
        began = time.monotonic()
        if began > until:
            break
        singles.append(single_pod(plane, watcher, f"single-{number}", bound, WITHIN))
        gangs.append(_gang(plane, watcher, contender, f"fits-{number}", bound + 1))
        bound += 1 + MEMBERS
        time.sleep(max(0.0, began + 1.0 - time.monotonic()))
    return sorted(singles), sorted(gangs)


def _round(plane: ControlPlane, table: Table, case: Case, number: int) -> None:
    folder = plane.folder / f"waiting-{case.contender.name}-{case.waiting}-{number}"
    with Running(case.contender, plane, folder) as running:
        assert running.extender is not None
        watcher = Watcher(plane)
        rested = 0.0
        if case.waiting:
            began = time.monotonic()
            create_gangs(plane, case.contender, WAITING)
            rested = running.await_rest(90.0) - began
        with changes(partial(label_a_node, plane), LABELS_PER_SECOND):
            first = single_pod(plane, watcher, "first", 0, 3 * WITHIN)
            time.sleep(LONGEST_BACK_OFF if case.waiting else 1.0)
            before = filter_counts(running.extender)
            cpu, began = (running.our_seconds, running.scheduler_seconds), time.monotonic()
            singles, gangs = _came(plane, watcher, case.contender, 1)
            seconds = time.monotonic() - began
        after = filter_counts(running.extender)
        watcher.stop()
        table.add(
            case.name,
            rested=rested,
            first=1000 * first,
            times=len(singles),
            single_p50=1000 * singles[len(singles) // 2],
            single_p95=1000 * singles[len(singles) * 95 // 100],
            gang_p50=1000 * gangs[len(gangs) // 2],
            gang_p95=1000 * gangs[len(gangs) * 95 // 100],
            filter_p99=p99(before, after),
            filter_calls=calls(before, after) / seconds,
            our_cpu=(running.our_seconds - cpu[0]) / seconds,
            scheduler_cpu=(running.scheduler_seconds - cpu[1]) / seconds,
        )
    clear(plane, case.contender)


def run() -> None:
    with rival_plane() as plane:
        if plane is None:
            return
        create_cluster(plane)
        table = Table(f"{WAITING.gangs} gangs of {WAITING.members} that cannot start, a node label changes each second")
        for_each_round(CASES, partial(_round, plane, table))
        for case in CASES:
            table.row(case.name, "first", "ms", "made as the changes begin")
            table.row(case.name, "single_p50", "ms")
            table.row(case.name, "single_p95", "ms", "under 1000")
            table.row(case.name, "gang_p50", "ms")
            table.row(case.name, "gang_p95", "ms", "under 1000")
            table.row(case.name, "filter_p99", "ms", "under 100 (limit of its bucket)")
            table.row(case.name, "filter_calls", "a second")
            table.row(case.name, "our_cpu", "cores")
            table.row(case.name, "scheduler_cpu", "cores")
        for contender in only(GATED, PLAIN):
            without, beside = (Case(contender, waiting).name for waiting in (False, True))
            for what in ("single_p95", "gang_p95", "our_cpu"):
                table.ratio(what, beside, without)


if __name__ == "__main__":
    run()
