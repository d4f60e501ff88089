"""Our CPU for a gang's pod beside another version's, in turn: `BENCHMARK_BASE=<worktree with a .venv>` names the other.

One gang of 512 and 64 gangs of 16 on 1,000 nodes, plain and gated, from the first creation until all are bound: user and system
time of our processes for each bound pod. Phases of a machine differ by more than most changes give: what counts is the ratio.
Each version starts gangs early if it does so by itself. BENCHMARK_ONLY (plain, gated) and BENCHMARK_ROUNDS as for gangs.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.benchmark.contenders import GATED, PLAIN, Contender, for_each_round, only, rival_plane
from tests.benchmark.gang_load import CREATORS, Load, in_process
from tests.benchmark.gangs import MANY, NODES, ONE, one_round
from tests.benchmark.table import Table
from tests.e2e.api import NODES as NODE_PATH
from tests.e2e.control_plane import ControlPlane
from tests.e2e.node_objects import node

TARGET = "at most 0.55 of e9a7eca"


def _create_nodes(plane: ControlPlane) -> None:
    """Without an image that has no names, of which Go writes null: early versions of ours could not read such a node."""
    api = plane.api()

    def create(number: int) -> None:
        body = node(f"node-{number}", {"cpu": "4", "memory": "256Gi", "pods": "110"}, {}, with_driver=False)
        del body["status"]["images"]
        api.create(NODE_PATH, body)

    with ThreadPoolExecutor(CREATORS) as pool:
        list(pool.map(create, range(NODES)))


def _of(base: Path, contender: Contender) -> Contender:
    return replace(contender, name=f"{contender.name}, base", program=(str(base / ".venv" / "bin" / "gang-extender"),))


def _compare(plane: ControlPlane, base: Path, load: Load, what: str) -> None:
    table = Table(f"{what} on {NODES} nodes, our CPU for a bound pod")
    as_they_are = [replace(contender, early=None) for contender in only(PLAIN, GATED)]
    pairs = [(contender, _of(base, contender)) for contender in as_they_are]
    for_each_round(tuple(each for pair in pairs for each in pair), partial(one_round, plane, table, load))
    for ours, theirs in pairs:
        table.row(theirs.name, "cpu_per_pod", "ms")
        table.row(ours.name, "cpu_per_pod", "ms")
        table.ratio("cpu_per_pod", ours.name, theirs.name, TARGET)
        table.ratio("seconds", ours.name, theirs.name)


def run() -> None:
    base = os.environ.get("BENCHMARK_BASE")
    if not base:
        print("not run: BENCHMARK_BASE names no worktree to compare with")
        return
    with rival_plane() as plane:
        if plane is None:
            return
        in_process(_create_nodes, plane)
        _compare(plane, Path(base), ONE, "one gang of 512")
        _compare(plane, Path(base), MANY, "64 gangs of 16, shuffled,")


if __name__ == "__main__":
    run()
