"""Gangs on 1,000 nodes, last member created -> all bound: ours, kube-scheduler alone, and its own alpha gangs, in turn.

One gang of 512; 64 gangs of 16 whose pods are made shuffled; a gang of 1,000. With kube-scheduler's default QPS of 50 as
well, under which it binds no more than 50 pods a second by itself: bindings through an extender do not count against it. And the
extender without plans, which holds members and starts them, and decides nothing.
Alone it binds most pods while the others are still being made; so for that comparison it finds them all when it starts,
and its time is that from the first to the last that it binds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from tests.benchmark.contenders import (
    ALONE,
    ALONE_50,
    GATED,
    GATED_50,
    GATED_EARLY,
    IN_TREE,
    PLAIN,
    PLAIN_EARLY,
    PLANLESS,
    Contender,
    Running,
    for_each_round,
    machine_seconds,
    only,
    plane_seconds,
    rival_plane,
)
from tests.benchmark.gang_load import History, Load, Watcher, clear, create_gangs, create_nodes
from tests.benchmark.gang_stream import percentile
from tests.benchmark.table import Table
from tests.e2e.control_plane import ControlPlane

NODES = 1000
WITHIN = 120.0
ONE = Load(gangs=1, members=512)
MANY = Load(gangs=64, members=16)
HUGE = Load(gangs=1, members=1000)
# Of kube-scheduler's own gangs' time, as shipped (early start): what, plain at most, gated at most.
BOUNDS: Mapping[Load, Sequence[tuple[str, float, float]]] = {
    ONE: (("seconds", 0.5, 0.8), ("from_first", 0.75, 0)),
    MANY: (("slowest", 0.6, 0.8), ("median", 0.6, 0.8)),
}
ALL = (GATED, IN_TREE, PLAIN, PLAIN_EARLY, GATED_EARLY, PLANLESS, ALONE, GATED_50, ALONE_50)


def one_round(plane: ControlPlane, table: Table, load: Load, contender: Contender, number: int) -> None:
    folder = plane.folder / f"{load.gangs}-of-{load.members}-{contender.name}-{number}"
    made = create_gangs(plane, contender, load) if contender is ALONE_50 else None
    with Running(contender, plane, folder) as running:
        watcher = Watcher(plane)
        scheduler, ours, around = running.scheduler_seconds, running.our_seconds, plane_seconds(plane)
        machine = machine_seconds()
        created = made or create_gangs(plane, contender, load)
        history = History(created, watcher.await_bound(load.expected, WITHIN))
        busy, idle = (after - before for before, after in zip(machine, machine_seconds(), strict=True))
        watcher.stop()
        waits = history.waits(load)
        table.add(
            contender.name,
            bound=len(history.bound),
            seconds=history.seconds if made is None else history.binding_seconds,
            from_first=history.seconds_from_first,
            median=percentile(waits, 50),
            slowest=percentile(waits, 100),
            scheduler_cpu=running.scheduler_seconds - scheduler,
            plane_cpu=plane_seconds(plane) - around,
            machine_cpu=busy,
            machine_idle=idle,
            cpu_per_pod=(running.our_seconds - ours) * 1000 / max(1, len(history.bound)),
        )
    clear(plane, contender)


def _compare(plane: ControlPlane, load: Load, what: str, key: str) -> None:
    table = Table(f"{what} on {NODES} nodes", key)
    contenders = only(*ALL)
    for_each_round(contenders, partial(one_round, plane, table, load))
    for contender in contenders:
        table.row(contender.name, "seconds", "s", "last member created to all bound")
        table.row(contender.name, "from_first", "s", "first member created to all bound")
        table.row(contender.name, "median", "s", "a gang's last member created to all of it bound")
        table.row(contender.name, "slowest", "s", "the same")
        table.row(contender.name, "scheduler_cpu", "s")
        table.row(contender.name, "plane_cpu", "s", "API server and etcd")
        table.row(contender.name, "machine_cpu", "s", "of all programs")
        table.row(contender.name, "machine_idle", "s", "of the cores")
    table.row(GATED.name, "cpu_per_pod", "ms", "at most 4")
    table.row(PLAIN.name, "cpu_per_pod", "ms", "at most 4")
    for what, plain, gated in BOUNDS[load]:
        table.ratio(what, PLAIN_EARLY.name, IN_TREE.name, f"at most {plain}")
        table.ratio(what, GATED_EARLY.name, IN_TREE.name, f"at most {gated}" if gated else "")
        table.ratio(what, PLANLESS.name, IN_TREE.name, "what no extender in these programs can be below")
    table.ratio("plane_cpu", PLAIN_EARLY.name, IN_TREE.name, "at most 1")
    table.ratio("seconds", ALONE_50.name, GATED_50.name, "at least 3")


def _huge(plane: ControlPlane) -> None:
    table = Table(f"one gang of {HUGE.members} on {NODES} nodes, gated")
    for_each_round(only(GATED), partial(one_round, plane, table, HUGE))
    table.row(GATED.name, "bound", "pods", f"{HUGE.members}")
    table.row(GATED.name, "seconds", "s")
    table.row(GATED.name, "cpu_per_pod", "ms", "at most 4")


def run() -> None:
    with rival_plane() as plane:
        if plane is None:
            return
        create_nodes(plane, NODES, "4")
        _compare(plane, ONE, "one gang of 512", "gangs-512")
        _compare(plane, MANY, "64 gangs of 16, shuffled,", "gangs-64x16")
        _huge(plane)


if __name__ == "__main__":
    run()
