"""A gang that is still being made: its members are held as they come, and what they have is given back in time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from extender.api.schedulingv1alpha1 import GANG_GATE
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import SCHEDULER_NAME, ControlPlane
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

GATED = {"schedulingGates": [{"name": GANG_GATE}]}
CPU = {"cpu": "1"}
NO_END = 60  # longer than any story
MAX_SECONDS = 3
SEEN_SECONDS = 2  # the extender looks once a second, and the calls that were held end then


def gathering_for(plane: ControlPlane, folder: Path, seconds: int) -> Iterator[Pair]:
    args = {"earlyStart": True, "earlyStartSilenceSeconds": NO_END, "earlyStartMaxSeconds": seconds}
    profile = {"schedulerName": SCHEDULER_NAME, "pluginConfig": [{"name": "Coscheduling", "args": args}]}
    with Pair.of(plane, folder, settings={"profiles": [profile]}).running() as pair:
        eventually(
            lambda: "leading: " in pair.extender.log(), within=5, what="gangs that come from now on count as new"
        )
        yield pair


@pytest.fixture(scope="module")
def module_programs(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """In place of conftest's: an early start ends by itself after longer than a story takes."""
    yield from gathering_for(plane, tmp_path_factory.mktemp("pair"), NO_END)


@pytest.fixture
def briefly(plane: ControlPlane, tmp_path: Path) -> Iterator[Pair]:
    yield from gathering_for(plane, tmp_path, MAX_SECONDS)


def come(cluster: Cluster, pair: Pair, gang: str, members: int, **spec: Any) -> list[str]:
    """Members that come one after the other, each when the ones before are held."""
    names = [f"{gang}-{number}" for number in range(members)]
    before = pair.extender.held()
    for number, name in enumerate(names):
        cluster.pod(name, group=gang, requests=CPU, **spec)
        eventually(partial(_hold, pair, before + number + 1), within=5, what=f"{name} is held")
    return names


def _hold(pair: Pair, calls: int) -> bool:
    return pair.extender.held() == calls


@pytest.mark.parametrize("spec", [pytest.param({}, id="plain"), pytest.param(GATED, id="gated")])
def test_members_are_held_as_they_come_and_the_last_one_starts_all(
    spec: dict[str, Any], cluster: Cluster, module_programs: Pair
) -> None:
    cluster.node("node-1", cpu="8")
    cluster.pod_group("train", min_member=4)
    names = come(cluster, module_programs, "train", 3, **spec)
    assert cluster.recorder.bound() == set()
    cluster.pod("train-last", group="train", requests=CPU, **spec)
    cluster.recorder.await_bound(*names, "train-last", within=5)


def test_a_single_pod_that_needs_the_room_takes_it_at_once(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="8")
    cluster.pod_group("slow", min_member=4)
    come(cluster, module_programs, "slow", 3)
    cluster.pod("single", requests={"cpu": "6"})
    cluster.recorder.await_bound("single", within=15)
    assert cluster.recorder.bound() == {"single"}


def test_a_complete_gang_that_needs_the_room_takes_it_at_once(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="8")
    cluster.pod_group("slow", min_member=4)
    come(cluster, module_programs, "slow", 3)
    cluster.pod_group("quick", min_member=2)
    quick = ["quick-0", "quick-1"]
    for name in quick:
        cluster.pod(name, group="quick", requests={"cpu": "3"})
    cluster.recorder.await_bound(*quick, within=15)
    assert cluster.recorder.bound() == set(quick)


def test_a_gang_that_never_is_complete_keeps_its_room_for_no_longer_than_it_may(
    cluster: Cluster, briefly: Pair
) -> None:
    """Though its members never cease to come."""
    for number in range(10):
        cluster.node(f"node-{number}", cpu="32")
    cluster.pod_group("endless", min_member=150)
    cluster.pod("endless-first", group="endless", requests=CPU)
    eventually(briefly.extender.held, within=5, what="the first member is held")
    began, numbers = time.monotonic(), count()

    def given_back() -> bool:
        cluster.pod(f"endless-{next(numbers)}", group="endless", requests=CPU)
        return briefly.extender.held() == 0

    eventually(given_back, within=2 * (MAX_SECONDS + SEEN_SECONDS), what="what it had is given back", every=0.1)
    assert time.monotonic() - began <= MAX_SECONDS + SEEN_SECONDS
    assert cluster.recorder.bound() == set()
    text = "cannot find enough sibling pods"
    cluster.recorder.await_message("endless-first", text, within=15)
