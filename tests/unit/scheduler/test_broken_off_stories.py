"""A gang whose preemption was broken off is no fraction for long; one that lost members otherwise is left alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from extender.api import corev1
from extender.client.embedded import EmbeddedAPI
from extender.client.interface import pod_reference
from extender.client.status_patch import patch_pod_status
from extender.config.types import ExtenderConfiguration
from extender.plugins.coscheduling.dependencies import Eviction
from extender.plugins.coscheduling.preemption import rest_of_gangs as broken_off
from tests.unit.scheduler.conftest import SECONDS, Bench, running

VICTIM = corev1.PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(broken_off, "SETTLED_SECONDS", 0.0)
    with running() as made:
        made.until(made.may_evict, "evictions are allowed")
        yield made


def members(bench: Bench, count: int, min_member: int) -> list[corev1.Pod]:
    bench.node("n1", cpu=str(count))
    bench.pod_group("running", min_member)
    return [bench.pod(f"r{number}", "running", node="n1") for number in range(count)]


def marked(bench: Bench, pod: corev1.Pod) -> None:
    patch_pod_status(bench.api, pod, condition=VICTIM)


def ticked(bench: Bench) -> None:
    bench.scheduler._dependencies.coscheduling.preemption.tick()
    bench.scheduler._dependencies.evictor._pool.flush()


def test_what_is_left_goes(bench: Bench) -> None:
    pods = members(bench, 2, min_member=3)
    marked(bench, pods[0])
    bench.until(lambda: not any(map(bench.there, pods)), "both go")


def test_a_replica_that_comes_after_the_death_of_another_finds_the_last_of_a_gang_though_it_sees_its_pod_group_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was looked for once, when the pod was listed: without its PodGroup it was no fraction of a gang, and ran on."""
    monkeypatch.setattr(broken_off, "SETTLED_SECONDS", 0.0)
    api = EmbeddedAPI()
    with running(api=api) as before:
        before.node("n1")
        last = before.pod("last", "running", node="n1")
        marked(before, last)
    with running(api=api) as bench:
        bench.until(bench.may_evict, "evictions are allowed")
        ticked(bench)
        assert bench.there(last)
        bench.pod_group("running", 2)
        bench.until(lambda: not bench.there(last), "it goes")


@pytest.mark.parametrize(
    ("count", "min_member", "victims"),
    [
        pytest.param(2, 3, 0, id="a gang that lost a member otherwise"),
        pytest.param(3, 2, 1, id="a victim that its gang can spare"),
    ],
)
def test_how_many_stay(bench: Bench, count: int, min_member: int, victims: int) -> None:
    pods = members(bench, count, min_member)
    for pod in pods[:victims]:
        marked(bench, pod)
    seen = bench.pod("marker")
    assert bench.there(seen)
    ticked(bench)
    assert all(map(bench.there, pods))


def test_where_gangs_are_nothing_special_no_pod_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broken_off, "SETTLED_SECONDS", 0.0)
    with running(ExtenderConfiguration(gang_victims="any")) as bench:
        bench.until(bench.may_evict, "evictions are allowed")
        pods = members(bench, 2, min_member=3)
        marked(bench, pods[0])
        assert bench.there(bench.pod("marker"))
        ticked(bench)
        assert all(map(bench.there, pods))


def test_a_drain_lets_an_eviction_that_began_come_to_its_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a SIGTERM leaves no fraction of the victims' gang."""
    victims = members(bench, 2, min_member=2)
    story: list[str] = []
    first_told, go_on = threading.Event(), threading.Event()
    delete = bench.api.delete

    def deleting(resource: Any, name: str, *args: Any, dry_run: bool, **options: Any) -> None:
        delete(resource, name, *args, dry_run=dry_run, **options)
        if not dry_run:
            story.append(f"{name} was told")
            first_told.set()
            assert go_on.wait(SECONDS)

    def drain() -> None:
        bench.scheduler.drain("shutting down")
        story.append("drained")

    monkeypatch.setattr(bench.api, "delete", deleting)
    eviction = Eviction(victims, "PodGroup default/g", pod_reference(victims[0]), "gang-scheduler")
    bench.scheduler._dependencies.evictor.evict(eviction, lambda failure: None)
    assert first_told.wait(SECONDS)
    draining = threading.Thread(target=drain)
    draining.start()
    bench.until(lambda: bench.bind(victims[0], "n1").result(SECONDS) == "shutting down", "no call is taken in any more")
    go_on.set()
    draining.join(SECONDS)
    assert story == ["r0 was told", "r1 was told", "drained"]
