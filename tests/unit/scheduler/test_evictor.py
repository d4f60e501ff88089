"""Evictions of whole sets of victims: who waits for one hears how it ended."""

from __future__ import annotations

import pytest

from extender.client.embedded import EmbeddedAPI
from extender.client.events import Recorder
from extender.client.interface import pod_reference
from extender.plugins.coscheduling.preemption.eviction import Eviction
from extender.scheduler.evictor import ApiEvictor
from tests.objects import make_pod


@pytest.mark.faults
def test_whatever_happens_the_gang_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would keep its places, and room for nobody, until the victims were overdue."""
    api, told = EmbeddedAPI(), []
    evictor = ApiEvictor(api, Recorder(api), lambda: True, lambda: 0.0, run=lambda job: job())

    def fails(*args: object, **options: object) -> None:
        raise KeyError("a fault of ours")

    monkeypatch.setattr(api, "delete", fails)
    victim = make_pod().name("victim").node("n1").obj()
    evictor.evict(Eviction([victim], "PodGroup default/g", pod_reference(victim), "gang-scheduler"), told.append)
    assert told == ["KeyError: 'a fault of ours'"]
