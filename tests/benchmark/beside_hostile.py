"""How soon the gangs of an honest tenant start beside one that writes what no parser may take, and without it, in turn.

The hostile tenant is that of the fault runs, which acts about every other second there: pods and PodGroups with nonsense in every key and
field that is read, from before the first gang until the last has started; when it has its fill all of them go, and it begins anew. A third
side has a tenant that makes as much and means well: what any objects cost beside what the hostile ones cost. CPU is for all gangs.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.benchmark.contenders import GATED, PLAIN, Contender, Running, rival_plane, rounds
from tests.benchmark.gang_load import FORK, History, Load, Watcher, clear, create_gangs, create_nodes
from tests.benchmark.table import Table
from tests.e2e.api import ALL_PODS, POD_GROUPS, PODS
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane
from tests.e2e.fault_run.hostile_tenant import MOST, HostileTenant
from tests.e2e.processes import eventually
from tests.e2e.test_hostile_objects import NAMESPACE

NODES = 100
LOAD = Load(gangs=24, members=4, shuffled=False)
WITHIN = 60.0
ACTS_A_SECOND = 10
ALONE, ORDINARY, HOSTILE = SIDES = ("alone", "beside an ordinary one", "beside a hostile one")
AHEAD_SECONDS = 5.0


class OrdinaryTenant:
    """Makes a PodGroup of one and its pod at a time, which fit; a HostileTenant else."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._number = 0
        cluster.namespace(NAMESPACE)

    def act(self) -> None:
        self._number += 1
        if self._number % MOST == 0:
            self.go()
        name = f"ordinary-{self._number}"
        self._cluster.pod_group(name, 1, namespace=NAMESPACE)
        self._cluster.pod(name, namespace=NAMESPACE, group=name, requests={"cpu": "10m"})

    def go(self) -> None:
        """Deletes all that it has made."""
        for path in (PODS, POD_GROUPS):
            self._cluster.api.delete(path.format(namespace=NAMESPACE))


@contextmanager
def tenant(plane: ControlPlane, side: str, seed: int) -> Iterator[None]:
    """At work, in a process of its own, within the context; then all that is its own goes."""
    if side == ALONE:
        yield
        return
    ended = FORK.Event()
    process = FORK.Process(target=_act, args=(plane, side, seed, ended), daemon=True)
    process.start()
    try:
        time.sleep(AHEAD_SECONDS)
        yield
    finally:
        ended.set()
        process.join(WITHIN)


def _act(plane: ControlPlane, side: str, seed: int, ended: threading.Event) -> None:
    plane.forget_connections()
    cluster = Cluster(plane)
    at_work = OrdinaryTenant(cluster) if side == ORDINARY else HostileTenant(cluster, seed)
    while not ended.wait(1 / ACTS_A_SECOND):
        at_work.act()
    at_work.go()


def _round(plane: ControlPlane, table: Table, contender: Contender, number: int, side: str) -> None:
    """Waits are from the last member created to the last member bound, of each gang; inf of those that did not start."""
    with Running(contender, plane, plane.folder / f"tenants-{contender.name}-{number}-{side}") as running:
        watcher = Watcher(plane)
        with tenant(plane, side, number):
            before = running.our_seconds, running.scheduler_seconds
            history = _start(plane, contender, watcher)
            after = running.our_seconds, running.scheduler_seconds
        watcher.stop()
    waits = history.waits(LOAD)
    waits += [float("inf")] * (LOAD.gangs - len(waits))
    table.add(
        f"{contender.name}, {side}",
        median=statistics.median(waits),
        slowest=max(waits),
        our_cpu=after[0] - before[0],
        scheduler_cpu=after[1] - before[1],
    )
    eventually(lambda: not _pods_of_tenants(plane), within=WITHIN, what="the tenant's pods are gone")
    clear(plane, contender)


def _start(plane: ControlPlane, contender: Contender, watcher: Watcher) -> History:
    created = create_gangs(plane, contender, LOAD)
    until = time.monotonic() + WITHIN
    bound = watcher.await_bound(LOAD.expected, WITHIN)
    while not created.keys() <= bound.keys() and time.monotonic() < until:  # some of the bound are the hostile tenant's
        bound = watcher.await_bound(len(bound) + 1, 1)
    return History(created, {name: at for name, at in bound.items() if name in created})


def _pods_of_tenants(plane: ControlPlane) -> bool:
    return any(pod["metadata"]["namespace"] == NAMESPACE for pod in plane.api().items(ALL_PODS))


def run() -> None:
    with rival_plane() as plane:
        if plane is None:
            return
        create_nodes(plane, NODES, "2")
        table = Table(
            f"{LOAD.gangs} gangs of {LOAD.members}, {NODES} nodes; other tenants act {ACTS_A_SECOND} times a second"
        )
        for number in range(rounds()):
            for contender in (GATED, PLAIN):
                for side in SIDES:
                    _round(plane, table, contender, number, side)
        for contender in (GATED, PLAIN):
            for side in SIDES:
                table.row(f"{contender.name}, {side}", "median", "s", "last member created to last member bound")
                table.row(f"{contender.name}, {side}", "slowest", "s")
                table.row(f"{contender.name}, {side}", "our_cpu", "s")
                table.row(f"{contender.name}, {side}", "scheduler_cpu", "s")
            hostile = f"{contender.name}, {HOSTILE}"
            for what in ("median", "our_cpu"):
                table.ratio(what, hostile, f"{contender.name}, {ALONE}", "at most 2")
                table.ratio(what, hostile, f"{contender.name}, {ORDINARY}")


if __name__ == "__main__":
    run()
