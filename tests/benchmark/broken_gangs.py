"""What a second costs that gangs ask to be restarted when broken (`broken-after`): all whole, or all broken for a while.

Needs no control plane. Gangs of 16 that run; of broken ones a member is gone. CPU of the tick that visits broken gangs, which holds the
manager's lock, beside gangs that ask for nothing. Targets: gangs that are whole cost nothing, ten times as many broken ones cost ten
times as much, and the tick of 1,000 broken gangs takes less than 20 ms.
"""

from __future__ import annotations

import gc
import time

from tests.benchmark.table import Table
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, members, on_node
from tests.unit.plugins.coscheduling.preempting import Preempting

MEMBERS = 16
SIZES = (100, 1000)
ROUNDS = 5
ASKS = {"broken_after": "5m", "when_broken": "restart"}
WHOLE, BROKEN, KEPT = "whole", "broken, not due", "no wish"


def _world(gangs: int, kind: str) -> Preempting:
    kube = Preempting(World([node("n0", "100000")]))
    for number in range(gangs):
        name = f"g{number}"
        kube.apply(group(name, MEMBERS, **({} if kind == KEPT else ASKS)))
        pods = [on_node(pod, "n0") for pod in members(MEMBERS, name, f"{name}-")]
        kube.create(*pods)
        if kind == BROKEN:
            kube.delete(pods[0])
    kube.plugin.tick()
    World.made.clear()
    return kube


def _tick(kube: Preempting) -> float:
    """Milliseconds of this thread's CPU."""
    gc.collect()
    began = time.thread_time()
    kube.preemption._broken.tick()
    return (time.thread_time() - began) * 1e3


def run() -> None:
    table = Table(f"a tick over gangs of {MEMBERS} that run, milliseconds of CPU")
    for size in SIZES:
        for kind in (KEPT, WHOLE, BROKEN):
            kube = _world(size, kind)
            noted = len(kube.plugin.manager.begun.broken)
            if noted != (size if kind == BROKEN else 0):
                raise RuntimeError(f"{noted} of {size} gangs are broken: {kind}")
            _tick(kube)
            for _ in range(ROUNDS):
                kube.world.clock.now += 1.0
                table.add(f"{size} {kind}", tick=_tick(kube))
    for size in SIZES:
        for kind in (KEPT, WHOLE, BROKEN):
            table.row(f"{size} {kind}", "tick", "ms", "under 20" if kind == BROKEN else "")
    table.ratio("tick", f"{SIZES[1]} {BROKEN}", f"{SIZES[0]} {BROKEN}", "at most 12")
    table.ratio("tick", f"{SIZES[1]} {WHOLE}", f"{SIZES[1]} {KEPT}", "about 1")


if __name__ == "__main__":
    run()
