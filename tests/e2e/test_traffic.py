"""Random traffic, with and without a process that dies in the middle; judged by the history alone, and by liveness.

Gangs come and go on a cluster that is too small for them; at the end there is room for all, and every complete gang must
be bound. A failing seed is in the name of the test.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.pair import Pair

SECONDS = 6.0


class Traffic:
    """What is there now, and one random change after the other."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._random = random.Random(seed)
        self._gangs: dict[str, list[str]] = {}  # group -> the names of its pods
        self._missing: dict[str, int] = {}  # group -> members that are still to come
        self._made = 0

    def step(self) -> None:
        changes: list[Callable[[], None]] = [self._create_gang, self._create_gang, self._create_single, self._complete]
        if len(self._gangs) > 5:
            changes += [self._delete_gang, self._delete_gang]
        self._random.choice(changes)()

    def _create_gang(self) -> None:
        """Under a name that another gang may have had before: nothing of that one may be left."""
        free = [number for number in range(12) if f"gang-{number}" not in self._gangs]
        if not free:
            return
        number = self._random.choice(free)
        group, size = f"gang-{number}", 2 + number % 5
        late = self._random.choice([0, 0, 0, 1])
        self._cluster.pod_group(group, size)
        self._gangs[group] = []
        self._missing[group] = late
        self._add(group, size - late)

    def _add(self, group: str, count: int) -> None:
        for _ in range(count):
            name = f"{group}-{len(self._gangs[group])}"
            self._cluster.pod(name, group=group, requests={"cpu": "1"})
            self._gangs[group].append(name)

    def _create_single(self) -> None:
        self._made += 1
        self._cluster.pod(f"single-{self._made}", requests={"cpu": "1"})

    def _complete(self) -> None:
        for group, missing in self._missing.items():
            if missing:
                self._add(group, missing)
                self._missing[group] = 0
                return

    def _delete_gang(self) -> None:
        group = self._random.choice(sorted(self._gangs))
        for name in self._gangs.pop(group):
            self._cluster.delete_pod(name)
        self._cluster.delete_pod_group(group)
        del self._missing[group]

    def complete_pods(self) -> set[str]:
        """All that must be bound where there is room."""
        return {name for group, names in self._gangs.items() if not self._missing[group] for name in names}


def run(traffic: Traffic, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        traffic.step()
        time.sleep(0.02)


def make_room_for_all(cluster: Cluster, traffic: Traffic, within: float) -> None:
    for number in range(4):
        cluster.node(f"spare-{number}", cpu="200", pods=500)
    cluster.recorder.await_bound(*traffic.complete_pods(), within=within)
    cluster.recorder.settle()


@pytest.mark.parametrize("seed", [1, 2])
def test_gangs_that_come_and_go(
    seed: int, cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    programs.extend(Pair.of(cluster.plane, tmp_path).start())
    traffic = Traffic(cluster, seed)
    for number in range(6):
        cluster.node(f"node-{number}", cpu="4")
    run(traffic, SECONDS)
    make_room_for_all(cluster, traffic, within=20)


@pytest.mark.parametrize("victim", ["extender", "kube-scheduler"])
def test_gangs_that_come_and_go_while_a_process_dies(
    victim: str, cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    cluster.killed = True
    traffic = Traffic(cluster, seed=3)
    for number in range(6):
        cluster.node(f"node-{number}", cpu="4")
    programs.extend(Pair.of(cluster.plane, tmp_path).start())
    (process,) = (each for each in programs if each.program.name == victim)
    for _ in range(3):
        run(traffic, SECONDS / 3)
        process.kill()
        run(traffic, 0.5)
        cluster.await_back(process.start)
    make_room_for_all(cluster, traffic, within=40)
