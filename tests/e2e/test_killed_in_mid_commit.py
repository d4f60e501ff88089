"""A gang of 512 of which some are bound when a process is killed: whole soon after the restart, never left a fraction."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.history import RECOVERY_SECONDS
from tests.e2e.pair import Pair
from tests.e2e.test_gated_gangs import gang

SIZE = 512


@pytest.fixture
def pair(cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]) -> Pair:
    made = Pair.of(cluster.plane, tmp_path)
    programs.extend(made)
    return made.start()


@pytest.mark.parametrize("victim", ["kube-scheduler", "extender"])
def test_killed_in_mid_commit(victim: str, cluster: Cluster, pair: Pair) -> None:
    """What was begun the extender finishes without a kube-scheduler; without the extender it is finished after its restart."""
    cluster.killed = True
    for number in range(6):
        cluster.node(f"node-{number}", cpu="128", pods=128)
    cluster.pod_group("big", min_member=SIZE, scheduleTimeoutSeconds=60)
    names = gang(cluster, "big", SIZE)
    recorder, began = cluster.recorder, time.monotonic()
    recorder.wait(lambda: len(recorder.bound()) >= 16, within=90, what="the commit has begun")
    # A machine without time needs more of it, and for the other 496 Bindings alone some seconds.
    cluster.recovery = max(2 * RECOVERY_SECONDS, 3 * (time.monotonic() - began))
    program: Extender | Scheduler = pair.extender if victim == "extender" else pair.scheduler
    program.kill()
    assert victim == "kube-scheduler" or 0 < len(recorder.bound()) < SIZE, "not killed in mid-commit"
    cluster.await_back(program.start)
    recorder.await_bound(*names, within=cluster.recovery)
