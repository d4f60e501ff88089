"""Events that come twice, because somebody raised in the middle of them the first time, leave everything as it should be."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.backend.queue.nominator import Nominator
from extender.client.deliveries import Deliveries
from extender.plugins.coscheduling.preemption.priorities import PrioritiesOnNodes
from extender.scheduler.event_handlers import PodHandlers
from tests.objects import make_pod
from tests.unit.scheduler.conftest import Bench


class Observer:
    """Raises as often as it was told to."""

    def __init__(self) -> None:
        self.faults = 0
        self.seen: list[tuple[str, str]] = []

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        if self.faults:
            self.faults -= 1
            raise KeyError("a fault of ours")
        self.seen.append((old.node_name if old else "none", new.node_name if new else "none"))

    def on_pod_group(self, old: Any, new: Any) -> None: ...

    def on_node(self, old: Any, new: Any) -> None: ...


def pod(cpu: str, node: str = "n1") -> corev1.Pod:
    return make_pod().name("p").uid("p").req({"cpu": cpu}).node(node).obj()


class Story:
    def __init__(self) -> None:
        self.cache, self.observer, self.now = Cache(), Observer(), 0.0
        handlers = PodHandlers(self.cache, Nominator(), [self.observer], lambda pod: False)
        self.pods: Deliveries[corev1.Pod] = Deliveries(handlers, "handler-pods", lambda: self.now)

    def later(self) -> None:
        self.now += 60
        self.pods.catch_up()

    def asked_on_node(self) -> int:
        node = self.cache.dump().nodes.get("n1")
        return 0 if node is None else node.requested.milli_cpu


@pytest.mark.faults
def test_a_pod_that_changed_meanwhile_counts_as_it_is_now() -> None:
    """The cache has had the first half of the event: the pod was added, and could not be added once more."""
    story = Story()
    story.observer.faults = 1
    story.pods.tell(None, pod("1"))
    story.pods.tell(pod("1"), pod("2"))
    assert (story.asked_on_node(), story.observer.seen) == (2000, [("none", "n1")])


@pytest.mark.faults
def test_who_came_to_a_node_and_went_meanwhile_counts_no_more() -> None:
    story = Story()
    story.pods.tell(None, pod("1", node=""))
    story.observer.faults = 2
    story.pods.tell(pod("1", node=""), pod("1"))
    story.pods.tell(pod("1"), None)
    story.later()
    assert (story.asked_on_node(), story.observer.seen[1:]) == (0, [("n1", "none")])


def test_an_update_of_a_pod_that_the_cache_does_not_have_adds_it() -> None:
    """It was logged and left out, until the pod was deleted."""
    story = Story()
    story.pods.tell(pod("1"), pod("2"))
    assert story.asked_on_node() == 2000


def test_a_deletion_that_is_told_with_an_object_older_than_the_binding_is_one_all_the_same() -> None:
    story = Story()
    story.pods.tell(None, pod("1"))
    story.pods.tell(pod("1", node=""), None)
    assert (story.asked_on_node(), story.observer.seen[-1]) == (0, ("n1", "none"))


def test_a_priority_is_counted_once_for_each_pod() -> None:
    priorities = PrioritiesOnNodes()
    priorities.follow(None, pod("1"))
    priorities.follow(None, pod("1"))
    priorities.follow(pod("1"), None)
    assert not priorities.any_below(1000)
    priorities.follow(pod("1"), None)


@pytest.mark.faults
def test_the_scheduler_hears_again_of_a_pod_whose_event_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    try:
        manager = bench.scheduler._parts.coscheduling.manager
        taken, faults = manager.pod_changed, iter([True])

        def once_broken(pod: corev1.Pod) -> Any:
            if next(faults, False):
                raise KeyError("a fault of ours")
            return taken(pod)

        monkeypatch.setattr(manager, "pod_changed", once_broken)
        bench.pod("p0", group="g")  # until it is a member
    finally:
        bench.stop()
