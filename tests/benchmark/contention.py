"""32 gangs of 16 with room for 12, pods created shuffled on 100 nodes: how many each contender starts, how soon, at what cost.

Ours gated and plain, with early start and without, beside the scheduler's own alpha gangs, in turn. When the last gang has started, plain
members of the others are still to be told that there is no room, each once: that is the settling. The CPU of the ten seconds after it
shows which of them is idle.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from tests.benchmark.contenders import (
    GATED,
    GATED_EARLY,
    IN_TREE,
    PLAIN,
    PLAIN_EARLY,
    Contender,
    Running,
    for_each_round,
    only,
    rival_plane,
)
from tests.benchmark.gang_load import History, Load, Watcher, clear, create_gangs, create_nodes
from tests.benchmark.table import Table
from tests.e2e.control_plane import ControlPlane

NODES = 100
LOAD = Load(gangs=32, members=16, starts=12)
WITHIN = 60.0
IDLE_SECONDS = 10.0


def _round(plane: ControlPlane, table: Table, contender: Contender, number: int) -> None:
    folder = plane.folder / f"contention-{contender.name}-{number}"
    with Running(contender, plane, Path(folder)) as running:
        watcher = Watcher(plane)
        scheduler, ours = running.scheduler_seconds, running.our_seconds
        created = create_gangs(plane, contender, LOAD)
        watcher.await_bound(LOAD.expected, WITHIN)
        after = running.scheduler_seconds, running.our_seconds
        bound = time.monotonic()
        rested = running.await_rest() - bound
        settled = running.scheduler_seconds, running.our_seconds
        time.sleep(IDLE_SECONDS)
        idle = running.scheduler_seconds, running.our_seconds
        history = History(created, watcher.await_bound(0, 0))
        watcher.stop()
    waits = history.waits(LOAD)
    table.add(
        contender.name,
        whole=len(waits),
        partial=history.partial(LOAD),
        slowest=max(waits, default=float("inf")),
        scheduler_cpu=after[0] - scheduler,
        our_cpu=after[1] - ours,
        both_cpu=sum(after) - scheduler - ours,
        rested=rested,
        scheduler_settling=settled[0] - after[0],
        our_settling=settled[1] - after[1],
        scheduler_idle=idle[0] - settled[0],
        our_idle=idle[1] - settled[1],
    )
    clear(plane, contender)


def run() -> None:
    with rival_plane() as plane:
        if plane is None:
            return
        create_nodes(plane, NODES, "2")
        table = Table(
            f"{LOAD.gangs} gangs of {LOAD.members}, room for {LOAD.starts}, shuffled, {NODES} nodes", "contention"
        )
        wanted = {
            GATED: 1.5,
            PLAIN: 5,
            IN_TREE: 0,
            GATED_EARLY: 0,
            PLAIN_EARLY: 0,
        }  # seconds; 0 for no target of its own
        contenders = only(*wanted)
        for_each_round(contenders, partial(_round, plane, table))
        for contender in contenders:
            seconds = wanted[contender]
            name = contender.name
            known = bool(seconds)
            table.row(name, "whole", "gangs", "all 12" if known else "")
            table.row(name, "partial", "gangs", "none" if known else "")
            table.row(name, "slowest", "s", f"at most {seconds} after its last pod" if known else "")
            table.row(name, "scheduler_cpu", "s", "at most 8" if known else "")
            table.row(name, "our_cpu", "s", "at most 4" if known else "")
            table.row(name, "rested", "s", "last gang started to kube-scheduler at rest")
            table.row(name, "scheduler_settling", "s", "CPU until then")
            table.row(name, "our_settling", "s", "CPU until then")
            table.row(name, "scheduler_idle", "s", f"CPU of the {IDLE_SECONDS:g} s after that")
            table.row(name, "our_idle", "s", f"CPU of the {IDLE_SECONDS:g} s after that")
        for early, bound in ((GATED_EARLY, 1.0), (PLAIN_EARLY, 2.0)):
            if early in contenders and IN_TREE in contenders:
                table.ratio("slowest", early.name, IN_TREE.name, f"at most {bound}")
                table.ratio("both_cpu", early.name, IN_TREE.name, "at most 2")
        for early, without in ((GATED_EARLY, GATED), (PLAIN_EARLY, PLAIN)):
            if early in contenders and without in contenders:
                table.ratio("slowest", early.name, without.name, "at most 1")


if __name__ == "__main__":
    run()
