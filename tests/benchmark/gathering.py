"""What single pods notice of 50 gangs that are being made and never are complete: with early start, without, and with no gang, in turn.

Of each gang all members but one are created while the single pods are, one after the other. With early start the gangs have up to half of
the room in turn until they are silent, and single pods go to the rest. docs/design/0050-early-start.md
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from tests.benchmark.contenders import (
    ALONE,
    PLAIN,
    PLAIN_EARLY,
    Contender,
    Running,
    for_each_round,
    group_body,
    only,
    pod_body,
    rival_plane,
)
from tests.benchmark.gang_load import Watcher, clear, create_nodes
from tests.benchmark.short_of_room import single_pod
from tests.benchmark.table import Table
from tests.e2e.api import PODS
from tests.e2e.control_plane import ControlPlane

NODES = 100
GANGS, MEMBERS = 50, 8
SINGLES = 60
WITHIN = 30.0


def _create_all_but_one(plane: ControlPlane, contender: Contender) -> None:
    """Of each gang, the gangs' members in turn, as long as the single pods are made."""
    api = plane.api()
    for gang in range(GANGS):
        api.create(*group_body(contender, f"gang-{gang}", MEMBERS))
    for member in range(MEMBERS - 1):
        for gang in range(GANGS):
            api.create(
                PODS.format(namespace="default"), pod_body(contender, f"gang-{gang}-{member}", f"gang-{gang}", "1")
            )


def _round(plane: ControlPlane, table: Table, contender: Contender, number: int) -> None:
    with (
        Running(contender, plane, plane.folder / f"gathering-{contender.name}-{number}") as running,
        ThreadPoolExecutor(1) as beside,
    ):
        watcher = Watcher(plane)
        single_pod(plane, watcher, "first", 0, WITHIN)  # all programs are up
        made: list[Future[None]] = []
        if contender is not ALONE:
            made.append(beside.submit(_create_all_but_one, plane, contender))
        cpu = running.scheduler_seconds, running.our_seconds
        began = time.monotonic()
        waits: list[float] = []
        while len(waits) < SINGLES or not all(each.done() for each in made):
            waits.append(single_pod(plane, watcher, f"single-{len(waits)}", len(waits) + 1, WITHIN))
        for each in made:
            each.result()
        waits.sort()
        table.add(
            contender.name,
            pods=len(waits),
            seconds=time.monotonic() - began,
            p50=1000 * waits[len(waits) // 2],
            p95=1000 * waits[len(waits) * 95 // 100],
            worst=1000 * waits[-1],
            scheduler_cpu=running.scheduler_seconds - cpu[0],
            our_cpu=running.our_seconds - cpu[1],
        )
        watcher.stop()
    clear(plane, contender)


def run() -> None:
    with rival_plane() as plane:
        if plane is None:
            return
        create_nodes(plane, NODES, "4")
        title = f"single pods beside {GANGS} gangs of {MEMBERS} that never are complete, {NODES} nodes"
        table = Table(title, "gathering")
        contenders = only(PLAIN, PLAIN_EARLY, ALONE)
        for_each_round(contenders, partial(_round, plane, table))
        for contender in contenders:
            for what, unit in (("pods", ""), ("seconds", "s"), ("p50", "ms"), ("p95", "ms"), ("worst", "ms")):
                table.row(contender.name, what, unit)
            table.row(contender.name, "scheduler_cpu", "s")
            table.row(contender.name, "our_cpu", "s")
        table.ratio("p95", PLAIN_EARLY.name, PLAIN.name, "at most 1.5")


if __name__ == "__main__":
    run()
