"""How many gangs wait for what and for how long, and how long starts take: what the metrics say of a few gangs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from extender import metrics
from extender.api import corev1
from extender.plugins.coscheduling.report.waiting_gangs import LOOK_SECONDS
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group
from tests.unit.plugins.coscheduling.managing import set_wall

Make = Callable[..., World]
COMPLETE = datetime(2026, 1, 1, tzinfo=UTC)


class Gangs:
    """A world in which it is 40 s later than the PodGroups, whose quorum counts from their creation."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.seconds = 40.0
        set_wall(world.plugin.manager, lambda: COMPLETE + timedelta(seconds=self.seconds))

    def later(self, seconds: float) -> None:
        self.seconds += seconds
        self.world.clock.now += seconds

    def gang(self, name: str, members: int, minimum: int = 2, cpu: str = "1") -> list[corev1.Pod]:
        self.world.plugin.on_pod_group(None, pod_group(name, minimum))
        pods = [pod(f"{name}-{index}", name, cpu) for index in range(members)]
        self.world.create(*pods)
        for each in pods:
            self.world.filter(each)
        return pods

    def looked(self) -> dict[str, tuple[int, float]]:
        """Reason -> how many wait for it, and for how long the oldest has."""
        self.later(LOOK_SECONDS)
        self.world.plugin.tick()
        now = self.world.plugin.waiting_gangs.now
        return {str(reason): (count, now.oldest[reason]) for reason, count in now.counts.items() if count}


@pytest.fixture
def gangs(world: Make) -> Gangs:
    return Gangs(world([node("n1", cpu="4")]))


def started(outcome: str) -> tuple[float, float]:
    """How many have been measured with this outcome, and the sum of their seconds."""
    name, labels = "gang_extender_gang_start_duration_seconds", {"outcome": outcome}
    count = metrics.REGISTRY.get_sample_value(f"{name}_count", labels)
    return count or 0.0, metrics.REGISTRY.get_sample_value(f"{name}_sum", labels) or 0.0


def test_gangs_that_wait_are_counted_by_reason(gangs: Gangs) -> None:
    gangs.gang("short-1", members=1)
    gangs.gang("short-2", members=1, minimum=3)
    gangs.gang("large", members=2, cpu="9")
    found = gangs.looked()
    assert {reason: count for reason, (count, _) in found.items()} == {"QuorumMissing": 2, "InsufficientResources": 1}


def test_the_age_of_one_that_could_start_is_that_of_its_quorum(gangs: Gangs) -> None:
    gangs.gang("large", members=2, cpu="9")
    assert gangs.looked() == {"InsufficientResources": (1, 40 + LOOK_SECONDS)}
    gangs.later(100)
    assert gangs.looked() == {"InsufficientResources": (1, 140 + 2 * LOOK_SECONDS)}


def test_the_age_of_one_without_a_quorum_is_that_of_its_phase(gangs: Gangs) -> None:
    gangs.gang("short", members=1)
    gangs.looked()
    gangs.later(20)
    assert gangs.looked() == {"QuorumMissing": (1, 20 + LOOK_SECONDS)}


def test_a_gang_that_runs_waits_no_longer(gangs: Gangs) -> None:
    gangs.world.plugin.on_pod_group(None, pod_group("g", 2))
    gangs.world.create(pod("a", "g", node_name="n1"), pod("b", "g", node_name="n1"))
    assert gangs.looked() == {}


def test_a_start_is_measured_from_the_quorum_until_that_is_bound(gangs: Gangs) -> None:
    before = started("bound")
    first, second = gangs.gang("g", members=2)
    assert gangs.world.bind(first, "n1") != "starts"
    gangs.later(20)
    assert gangs.world.bind(second, "n1") == "starts"
    gangs.world.plugin.gang_permit.bound(first, "n1")
    assert started("bound") == before
    gangs.later(3)
    gangs.world.plugin.gang_permit.bound(second, "n1")
    assert started("bound") == (before[0] + 1, before[1] + 63)


def test_a_gang_that_others_started_is_not_measured(gangs: Gangs) -> None:
    """Nor is one that ran before this process did."""
    before = started("bound")
    gangs.world.plugin.on_pod_group(None, pod_group("g", 2))
    gangs.world.create(pod("a", "g", node_name="n1"), pod("b", "g", node_name="n1"))
    assert started("bound") == before


def test_a_gang_that_goes_before_it_has_started_is_measured_too(gangs: Gangs) -> None:
    before = started("gone")
    pods = gangs.gang("large", members=2, cpu="9")
    gangs.looked()
    for each in pods:
        gangs.world.plugin.on_pod(each, None)
    gangs.looked()
    assert started("gone") == (before[0] + 1, before[1] + 40 + 2 * LOOK_SECONDS)


def test_a_look_comes_every_few_seconds_and_costs_a_scrape_nothing(gangs: Gangs) -> None:
    gangs.gang("short", members=1)
    gangs.looked()
    gangs.gang("other", members=1)
    gangs.world.plugin.tick()
    assert gangs.world.plugin.waiting_gangs.now.counts["QuorumMissing"] == 1
    assert gangs.looked()["QuorumMissing"][0] == 2
