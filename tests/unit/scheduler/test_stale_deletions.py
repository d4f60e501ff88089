"""Pods that are deleted while our watch is behind: after a relist the deletion is told with the last that was shown of a pod, and
that may be older than its binding. Reflector, informer, handlers and cache are real; the API server's answers are scripted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.backend.cache.cache import Cache
from extender.backend.queue.nominator import Nominator
from extender.backend.queue.queueing_hints import QueueingHints
from extender.backend.queue.scheduling_queue import PriorityQueue
from extender.client.connection import Connection
from extender.client.informer import InformerFactory
from extender.client.interface import PODS
from extender.scheduler.event_handlers import PodHandlers
from extender.scheduler.in_process.queue_handlers import watch_all
from tests.fakes.api_server import Answer, FakeAPIServer, event, page, status_of
from tests.unit.client.conftest import connection, kubeconfig, quick, server, token_file

__all__ = ["connection", "kubeconfig", "quick", "server", "token_file"]  # fixtures

BODY: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "default", "uid": "p", "resourceVersion": "5"},
    "spec": {"schedulerName": "default-scheduler", "containers": [{"resources": {"requests": {"cpu": "3"}}}]},
}
AGAIN = {**BODY, "metadata": {**BODY["metadata"], "uid": "again", "resourceVersion": "9"}}
POD = convert(BODY, corev1.Pod)
ON_NODE = {**BODY, "metadata": {**BODY["metadata"], "resourceVersion": "6"}, "spec": {**BODY["spec"], "nodeName": "n1"}}


class Scheduler:
    """Its cache and handlers; `told` has, for each pod that went, its node, and what the cache counted there at that time."""

    def __init__(self) -> None:
        self.cache = Cache()
        self.waiting: set[str] = set()
        self.told: list[tuple[str, int]] = []
        self._changed = threading.Condition()
        self._shown = 0
        self.watch: Any = None

    def start(self) -> None:
        """Once the script is complete. Returns when the pod has been shown."""
        self.watch.start()
        with self._changed:
            assert self._changed.wait_for(lambda: self._shown == 1, 5)

    def reject_waiting_pod(self, uid: str) -> bool:
        return uid in self.waiting

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        with self._changed:
            self._shown += new is not None
            if old is not None and new is None:
                self.told.append((old.node_name, self.milli_cpu()))
            self._changed.notify_all()

    def on_node(self, old: object, new: object) -> None: ...

    def on_pod_group(self, old: object, new: object) -> None: ...

    def milli_cpu(self) -> int:
        snapshot = self.cache.snapshot()
        node = snapshot.get("n1") if "n1" in snapshot else None
        return node.requested.milli_cpu if node is not None else 0

    def await_gone(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.told) >= count, 5), self.told


def behind_kube_scheduler(informers: InformerFactory, scheduler: Scheduler) -> None:
    handlers = PodHandlers(scheduler.cache, Nominator(), [scheduler], lambda pod: scheduler.reject_waiting_pod(pod.uid))
    informers.informer(PODS).add_handler(handlers)


def in_process(informers: InformerFactory, scheduler: Scheduler) -> None:
    queue = PriorityQueue(lambda a, b: a.timestamp < b.timestamp, hints=QueueingHints({"default-scheduler": ()}))
    profiles: Any = {"default-scheduler": scheduler}
    watch_all(informers, queue, scheduler.cache, profiles, {}, [scheduler])


@pytest.fixture(params=[behind_kube_scheduler, in_process])
def scheduler(request: pytest.FixtureRequest, connection: Connection) -> Iterator[Scheduler]:
    made, informers = Scheduler(), InformerFactory(connection)
    request.param(informers, made)
    made.watch = informers.informer(PODS)
    yield made
    made.watch.stop()


def bound(scheduler: Scheduler) -> None:
    scheduler.cache.finish_binding(scheduler.cache.assume_pod(POD, "n1"))


def binding(scheduler: Scheduler) -> None:
    scheduler.cache.assume_pod(POD, "n1")


@pytest.fixture
def gone(server: FakeAPIServer) -> threading.Event:
    """Set, it ends the watch with a 410. The pod is in the first list, and nothing is shown after it."""
    told = threading.Event()
    server.lists.append(page(BODY, version="5"))
    server.watches.extend([Answer(**{**vars(status_of(410, "Expired")), "until": told}), Answer(hang=True)])
    return told


@pytest.mark.parametrize("state", [bound, binding], ids=["bound", "on its way to be bound"])
@pytest.mark.parametrize("later", [page(version="9"), page(AGAIN, version="9")], ids=["gone", "made again"])
def test_a_pod_that_went_before_a_relist_keeps_no_room(
    server: FakeAPIServer,
    gone: threading.Event,
    scheduler: Scheduler,
    state: Callable[[Scheduler], None],
    later: Answer,
) -> None:
    """It was kept until the restart: the store's object had no node yet."""
    server.lists.append(later)
    scheduler.start()
    state(scheduler)
    gone.set()
    scheduler.await_gone(2)
    assert (scheduler.milli_cpu(), scheduler.cache.assumed_count()) == (0, 0)
    assert scheduler.told[-1] == ("n1", 0), "pods that wait for room are moved when some is free"


def test_one_that_waits_in_permit_is_forgotten_by_its_own_call(
    server: FakeAPIServer,
    gone: threading.Event,
    scheduler: Scheduler,
) -> None:
    server.lists.append(page(version="9"))
    scheduler.start()
    binding(scheduler)
    scheduler.waiting.add("p")
    gone.set()
    scheduler.await_gone(1)
    assert scheduler.cache.assumed_count() == 1


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([event("DELETED", BODY)], id="the deletion alone, with an object from before the binding"),
        pytest.param([event("MODIFIED", ON_NODE), event("DELETED", BODY)], id="the binding, and an old object deleted"),
    ],
)
def test_a_deletion_counts_whatever_its_object_says(
    server: FakeAPIServer,
    scheduler: Scheduler,
    events: list[Mapping[str, Any]],
) -> None:
    told = threading.Event()
    server.lists.append(page(BODY, version="5"))
    server.watches.extend([Answer(lines=list(events), hang=True, until=told)])
    scheduler.start()
    bound(scheduler)
    told.set()
    scheduler.await_gone(1)
    pods = scheduler.cache
    tick = threading.Event()
    for _ in range(500):
        if pods.pod_count() == 0:
            break
        tick.wait(0.01)
    assert (scheduler.milli_cpu(), pods.pod_count()) == (0, 0)
