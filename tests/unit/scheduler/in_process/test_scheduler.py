"""The in-process kube-scheduler on its threads."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from extender.client.embedded import EmbeddedAPI
from extender.client.interface import NODES, PODS
from extender.config.defaults import whole_profile
from extender.config.types import KubeSchedulerConfiguration
from extender.plugins.registry import new_in_tree_registry
from extender.scheduler.in_process import scheduler as module
from extender.scheduler.in_process.scheduler import InProcessScheduler

SECONDS = 10.0


@pytest.mark.faults
def test_its_loop_outlives_an_unexpected_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread was gone, and no pod was tried any more."""
    monkeypatch.setattr(module, "POP_SECONDS", 0.01)
    api = EmbeddedAPI()
    scheduler = InProcessScheduler(api, KubeSchedulerConfiguration((whole_profile(),)), new_in_tree_registry())
    pop, faults, bound = scheduler._parts.queue.pop, iter([True]), threading.Event()

    def once_broken(timeout: float) -> Any:
        if next(faults, False):
            raise KeyError("a fault of ours")
        return pop(timeout)

    class Seen:
        def on_add(self, pod: Any) -> None: ...

        def on_update(self, old: Any, new: Any) -> None:
            if new.node_name:
                bound.set()

        def on_delete(self, pod: Any) -> None: ...

    monkeypatch.setattr(scheduler._parts.queue, "pop", once_broken)
    scheduler._parts.informers.informer(PODS).add_handler(Seen())
    scheduler.start()
    try:
        room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        api.create(NODES, {"metadata": {"name": "n1"}, "status": {"allocatable": room}})
        api.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}})
        assert bound.wait(SECONDS)
    finally:
        scheduler.stop()


@pytest.mark.faults
def test_a_pod_whose_binding_raises_an_unexpected_error_keeps_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stayed assumed on its node until the restart."""
    api = EmbeddedAPI()
    scheduler = InProcessScheduler(api, KubeSchedulerConfiguration((whole_profile(),)), new_in_tree_registry())
    cycles, over = scheduler._parts.cycles, threading.Event()
    abandon = cycles.abandon

    def broken(attempt: Any) -> bool:
        raise KeyError("a fault of ours")

    def abandoned(attempt: Any) -> None:
        abandon(attempt)
        over.set()

    monkeypatch.setattr(cycles, "begin_binding", broken)
    monkeypatch.setattr(cycles, "abandon", abandoned)
    scheduler.start()
    try:
        room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        api.create(NODES, {"metadata": {"name": "n1"}, "status": {"allocatable": room}})
        api.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}})
        assert over.wait(SECONDS)
        assert (scheduler._parts.cache.assumed_count(), len(scheduler._parts.queue.in_flight_pods())) == (0, 0)
    finally:
        scheduler.stop()
