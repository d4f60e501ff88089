"""How soon the gangs of an honest tenant start beside one that writes what no parser may take, and without it, in turn.

The hostile tenant is that of the fault runs, which acts about every other second there: pods and PodGroups with nonsense in every key and
field that is read, from before the first gang until the last has started; when it has its fill all of them go, and it begins anew.
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
from tests.e2e.api import ALL_PODS
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane
from tests.e2e.fault_run.hostile_tenant import HostileTenant
from tests.e2e.processes import eventually

NODES = 100
LOAD = Load(gangs=24, members=4, shuffled=False)
WITHIN = 60.0
RATES = (0, 5, 20)  # acts a second; 0: there is none
AHEAD_SECONDS = 5.0


@contextmanager
def hostile_tenant(plane: ControlPlane, seed: int, rate: int) -> Iterator[None]:
    """At work, in a process of its own, within the context; then all that is its own goes."""
    ended = FORK.Event()
    process = FORK.Process(target=_act, args=(plane, seed, rate, ended), daemon=True)
    process.start()
    try:
        yield
    finally:
        ended.set()
        process.join(WITHIN)


def _act(plane: ControlPlane, seed: int, rate: int, ended: threading.Event) -> None:
    plane.forget_connections()
    tenant = HostileTenant(Cluster(plane), seed)
    while not ended.wait(1 / rate):
        tenant.act()
    tenant.go()


def _round(plane: ControlPlane, contender: Contender, number: int, rate: int) -> list[float]:
    """Last member created to last member bound, of each gang; inf of those that did not start."""
    with Running(contender, plane, plane.folder / f"hostile-{contender.name}-{number}-{rate}"):
        watcher = Watcher(plane)
        if rate:
            with hostile_tenant(plane, number, rate):
                time.sleep(AHEAD_SECONDS)
                history = _start(plane, contender, watcher)
        else:
            history = _start(plane, contender, watcher)
        watcher.stop()
    waits = history.waits(LOAD)
    eventually(lambda: not _hostile_pods(plane), within=WITHIN, what="the hostile tenant's pods are gone")
    clear(plane, contender)
    return [*waits, *[float("inf")] * (LOAD.gangs - len(waits))]


def _start(plane: ControlPlane, contender: Contender, watcher: Watcher) -> History:
    created = create_gangs(plane, contender, LOAD)
    until = time.monotonic() + WITHIN
    bound = watcher.await_bound(LOAD.expected, WITHIN)
    while not created.keys() <= bound.keys() and time.monotonic() < until:  # some of the bound are the hostile tenant's
        bound = watcher.await_bound(len(bound) + 1, 1)
    return History(created, {name: at for name, at in bound.items() if name in created})


def _hostile_pods(plane: ControlPlane) -> bool:
    return any(pod["metadata"]["namespace"] == "hostile" for pod in plane.api().items(ALL_PODS))


def run() -> None:
    with rival_plane() as plane:
        if plane is None:
            return
        create_nodes(plane, NODES, "2")
        table = Table(f"{LOAD.gangs} gangs of {LOAD.members}, {NODES} nodes; a hostile tenant's acts a second")
        for number in range(rounds()):
            for contender in (GATED, PLAIN):
                for rate in RATES:
                    waits = _round(plane, contender, number, rate)
                    table.add(_named(contender, rate), median=statistics.median(waits), slowest=max(waits))
        for contender in (GATED, PLAIN):
            for rate in RATES:
                table.row(_named(contender, rate), "median", "s", "last member created to last member bound")
                table.row(_named(contender, rate), "slowest", "s")
            for rate in RATES[1:]:
                table.ratio("median", _named(contender, rate), _named(contender, 0), "at most 2")


def _named(contender: Contender, rate: int) -> str:
    return f"{contender.name}, {rate} a second"


if __name__ == "__main__":
    run()
