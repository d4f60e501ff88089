"""What single pods notice of 50 gangs that are being made and never are complete, beside the same single pods without them, in turn.

Of each gang all members but one are created while the single pods are, one after the other; 20 a second, as a controller makes them, so
that early starts begin, last for as long as they may, and end within the time. Beside early start and none: the single pods alone, and with
as many pods of no gang, which says what is the creations' own. docs/design/0050-early-start.md
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from tests.benchmark.contenders import (
    ALONE,
    PLAIN,
    PLAIN_EARLY,
    Contender,
    Running,
    for_each_round,
    group_body,
    pod_body,
    rival_plane,
)
from tests.benchmark.gang_load import FORK, Watcher, clear, create_nodes
from tests.benchmark.table import Table
from tests.e2e.api import PODS
from tests.e2e.control_plane import ControlPlane

NODES = 100
GANGS, MEMBERS = 50, 8
CREATIONS_A_SECOND = 20
WITHIN = 30.0
SINGLE = "single"


@dataclass(frozen=True)
class Beside:
    """What is made while the single pods are. contender: what schedules; gangs, or as many pods of no gang, or nothing."""

    name: str
    contender: Contender
    gangs: bool = False
    pods: bool = False


WITH_EARLY_START = Beside("gangs, early start", PLAIN_EARLY, gangs=True)
WITHOUT = Beside("gangs, no early start", PLAIN, gangs=True)
PODS_OF_NO_GANG = Beside("pods of no gang", PLAIN_EARLY, pods=True)
NOTHING = Beside("nothing", PLAIN_EARLY)


def _create(plane: ControlPlane, beside: Beside) -> None:
    """Of each gang all members but one, the gangs' members in turn."""
    api = plane.api()
    if beside.gangs:
        for gang in range(GANGS):
            api.create(*group_body(beside.contender, f"gang-{gang}", MEMBERS))
    began = time.monotonic()
    for number in range(GANGS * (MEMBERS - 1)):
        member, gang = divmod(number, GANGS)
        if beside.gangs or beside.pods:
            maker = beside.contender if beside.gangs else ALONE
            pod = pod_body(maker, f"gang-{gang}-{member}", f"gang-{gang}" if beside.gangs else "")
            api.create(PODS.format(namespace="default"), pod)
        time.sleep(max(0.0, began + (number + 1) / CREATIONS_A_SECOND - time.monotonic()))


class Singles:
    """Made one after the other. What the watcher has seen of them comes by a queue, since others are bound meanwhile."""

    def __init__(self, plane: ControlPlane) -> None:
        self._api = plane.api()
        self._seen = FORK.Queue()
        self._watcher = Watcher(plane, self._note)

    def _note(self, pod: str, at: float) -> None:
        """In the watcher's process."""
        if pod.startswith(SINGLE):
            self._seen.put((pod, at))

    def wait_of(self, name: str) -> float:
        """Seconds from the call that creates it to its node. Raises queue.Empty where it has none in time."""
        pod, began = f"{SINGLE}-{name}", time.monotonic()
        self._api.create(PODS.format(namespace="default"), pod_body(ALONE, pod, "", cpu="10m"))
        while True:
            seen, at = self._seen.get(timeout=WITHIN)
            if seen == pod:
                return float(at) - began

    def stop(self) -> None:
        self._watcher.stop()


def _round(plane: ControlPlane, table: Table, beside: Beside, number: int) -> None:
    contender = beside.contender
    with (
        Running(contender, plane, plane.folder / f"gathering-{beside.name}-{number}") as running,
        ThreadPoolExecutor(1) as pool,
    ):
        singles = Singles(plane)
        singles.wait_of("first")  # all programs are up
        cpu = running.scheduler_seconds, running.our_seconds
        made = pool.submit(_create, plane, beside)
        waits: list[float] = []
        while not made.done():
            waits.append(singles.wait_of(str(len(waits))))
        made.result()
        waits.sort()
        table.add(
            beside.name,
            pods=len(waits),
            p50=1000 * waits[len(waits) // 2],
            p95=1000 * waits[len(waits) * 95 // 100],
            worst=1000 * waits[-1],
            scheduler_cpu=running.scheduler_seconds - cpu[0],
            our_cpu=running.our_seconds - cpu[1],
        )
        singles.stop()
    clear(plane, contender)


def run() -> None:
    with rival_plane() as plane:
        if plane is None:
            return
        create_nodes(plane, NODES, "8")
        title = f"single pods beside {GANGS} gangs of {MEMBERS} that never are complete, {NODES} nodes"
        table = Table(title, "gathering")
        contenders = (WITH_EARLY_START, WITHOUT, PODS_OF_NO_GANG, NOTHING)
        for_each_round(contenders, partial(_round, plane, table))
        for beside in contenders:
            for what, unit in (("pods", ""), ("p50", "ms"), ("p95", "ms"), ("worst", "ms")):
                table.row(beside.name, what, unit)
            table.row(beside.name, "scheduler_cpu", "s")
            table.row(beside.name, "our_cpu", "s")
        table.ratio("p95", WITH_EARLY_START.name, NOTHING.name, "at most 1.5")
        table.ratio("p95", PODS_OF_NO_GANG.name, NOTHING.name, "what the creations cost by themselves")
        table.ratio("p95", WITH_EARLY_START.name, WITHOUT.name)


if __name__ == "__main__":
    run()
