"""What a change means for cache, nominations, waiting pods, plugins and queue, in this order.

An event that comes twice, because a handler raised in the middle of it the first time, leaves everything as it should be.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.backend.queue.nominator import Nominator
from extender.client.deliveries import Deliveries
from extender.framework.preemption.priorities_on_nodes import PrioritiesOnNodes
from extender.scheduler.event_handlers import NodeHandlers, ObjectHandlers, PodHandlers
from tests.objects import make_node, make_pod, make_pod_group
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
        self.cache.add_node(make_node().name("n1").obj())
        handlers = PodHandlers(self.cache, Nominator(), [self.observer], lambda pod: False)
        self.pods: Deliveries[corev1.Pod] = Deliveries(handlers, "handler-pods", lambda: self.now)

    def later(self) -> None:
        self.now += 60
        self.pods.catch_up()

    def asked_on_node(self) -> int:
        snapshot = self.cache.snapshot()
        node = snapshot.get("n1") if "n1" in snapshot else None
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
def test_a_pod_that_came_to_a_node_and_went_meanwhile_counts_no_more() -> None:
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


def test_a_pod_that_a_restored_etcd_takes_from_its_node_can_be_placed_anew() -> None:
    """Its UID is the same, and its binding is lost."""
    story = Story()
    story.pods.tell(None, pod("1"))
    story.pods.tell(pod("1"), pod("1", node=""))
    assert (story.asked_on_node(), story.observer.seen[1:]) == (0, [("n1", "none"), ("none", "")])
    story.cache.assume_pod(pod("1"))
    assert story.asked_on_node() == 1000


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
        manager = bench.scheduler._dependencies.coscheduling.manager
        taken, faults = manager.pod_changed, iter([True])

        def once_broken(pod: corev1.Pod) -> Any:
            if next(faults, False):
                raise KeyError("a fault of ours")
            return taken(pod)

        monkeypatch.setattr(manager, "pod_changed", once_broken)
        bench.pod("p0", group="g")  # until it is a member
    finally:
        bench.stop()


# The order, and what each hears


class Heard:
    """A plugin and a queue; each entry: which of them heard, the node as the event has it before and after, the pod's node in the cache."""

    def __init__(self, *, waits: bool = False) -> None:
        self.cache, self.nominator, self.waits = Cache(), Nominator(), waits
        self.log: list[tuple[str, ...]] = []
        plugin: Any = SimpleNamespace(on_pod=partial(self._note, "plugin"))
        self.pods = PodHandlers(self.cache, self.nominator, [plugin], self._reject, partial(self._note, "queue"))

    def _note(self, listener: str, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        self.log.append((listener, *(_node(each) for each in (old, new)), self.node()))

    def _reject(self, pod: corev1.Pod) -> bool:
        self.log.append(("wait in Permit ends" if self.waits else "no wait in Permit", "", "", self.node()))
        return self.waits

    def node(self) -> str:
        return _node(self.cache.pod_by_uid("p"))

    def assumed(self) -> Heard:
        self.cache.assume_pod(waiting().obj(), "n1")
        return self


def _node(pod: corev1.Pod | None) -> str:
    return "absent" if pod is None else pod.node_name


def waiting() -> Any:
    return make_pod().name("p").uid("p").req({"cpu": "1"})


NEW, CHANGED = waiting().obj(), waiting().label("a", "b").obj()
PLACED, MOVED = waiting().node("n1").obj(), waiting().node("n1").label("a", "b").obj()
GOING = waiting().terminating().obj()


@pytest.mark.parametrize(
    ("event", "heard"),
    [
        pytest.param(
            lambda pods: pods.on_add(NEW),
            [("plugin", "absent", "", "absent"), ("queue", "absent", "", "absent")],
            id="a pod comes",
        ),
        pytest.param(
            lambda pods: pods.on_add(PLACED),
            [("plugin", "absent", "n1", "n1"), ("queue", "absent", "n1", "n1")],
            id="a pod comes that has a node: the cache has it first",
        ),
        pytest.param(
            lambda pods: pods.on_update(NEW, CHANGED),
            [("plugin", "", "", "absent"), ("queue", "", "", "absent")],
            id="a pod that waits changes",
        ),
        pytest.param(
            lambda pods: pods.on_update(NEW, GOING),
            [("plugin", "", "", "absent"), ("queue", "", "", "absent")],
            id="a pod that waits is going",
        ),
        pytest.param(
            lambda pods: pods.on_update(NEW, PLACED),
            [("plugin", "", "n1", "n1"), ("queue", "", "n1", "n1")],
            id="a pod is bound: the cache has it first",
        ),
        pytest.param(
            lambda pods: pods.on_delete(NEW),
            [
                ("plugin", "", "absent", "absent"),
                ("no wait in Permit", "", "", "absent"),
                ("queue", "", "absent", "absent"),
            ],
            id="a pod that waits goes",
        ),
    ],
)
def test_a_pod_of_which_the_cache_has_nothing(event: Callable[[PodHandlers], None], heard: list[Any]) -> None:
    story = Heard()
    event(story.pods)
    assert story.log == heard


@pytest.mark.parametrize(
    "gone", [pytest.param(PLACED, id="by the event"), pytest.param(NEW, id="by the cache: the event is older")]
)
def test_a_pod_on_a_node_goes_from_the_cache_first(gone: corev1.Pod) -> None:
    story = Heard()
    story.pods.on_add(PLACED)
    story.log.clear()
    story.pods.on_delete(gone)
    assert [entry for entry in story.log if entry[0] != "no wait in Permit"] == [
        ("plugin", "n1", "absent", "absent"),
        ("queue", "n1", "absent", "absent"),
    ]


def test_of_an_assumed_pod_that_changes_the_queue_hears_nothing() -> None:
    story = Heard().assumed()
    story.pods.on_add(NEW)
    story.pods.on_update(NEW, CHANGED)
    assert story.log == [("plugin", "absent", "", "n1"), ("plugin", "", "", "n1")]


def test_an_assumed_pod_that_is_seen_on_its_node_is_assumed_no_more() -> None:
    story = Heard().assumed()
    story.pods.on_update(NEW, PLACED)
    assert story.log == [("plugin", "", "n1", "n1"), ("queue", "", "n1", "n1")]
    assert story.cache.assumed_count() == 0


@pytest.mark.parametrize(
    ("event", "of_event"),
    [
        pytest.param(lambda pods: pods.on_update(NEW, GOING), ("plugin", "", "", "n1"), id="is going"),
        pytest.param(lambda pods: pods.on_add(GOING), ("plugin", "absent", "", "n1"), id="is seen for the first time"),
        pytest.param(lambda pods: pods.on_delete(NEW), ("plugin", "", "absent", "n1"), id="is gone"),
    ],
)
@pytest.mark.parametrize(
    ("waits", "then"),
    [
        pytest.param(
            True,
            [("wait in Permit ends", "", "", "n1"), ("queue", "n1", "absent", "n1")],
            id="its wait in Permit ends, and its binding cycle forgets it",
        ),
        pytest.param(
            False,
            [
                ("no wait in Permit", "", "", "n1"),
                ("plugin", "n1", "absent", "absent"),
                ("queue", "n1", "absent", "absent"),
            ],
            id="its binding is under way: its room is free at once, and told of once it is",
        ),
    ],
)
def test_an_assumed_pod_that(event: Callable[[PodHandlers], None], of_event: Any, waits: bool, then: list[Any]) -> None:
    """The plugins hear of it before its wait ends: the member has gone when the rest of its gang is let go."""
    story = Heard(waits=waits).assumed()
    event(story.pods)
    assert story.log == [of_event, *then]


def test_one_that_is_going_already_ends_its_binding_cycle_once() -> None:
    story = Heard(waits=True).assumed()
    story.pods.on_update(GOING, GOING)
    assert story.log == [("plugin", "", "", "n1")]


def test_a_pod_made_again_is_one_that_goes_and_one_that_comes() -> None:
    story = Heard()
    story.pods.on_add(PLACED)
    story.log.clear()
    again = make_pod().name("p").uid("again").obj()
    story.pods.on_update(PLACED, again)
    assert [entry[:3] for entry in story.log if entry[0] == "queue"] == [
        ("queue", "n1", "absent"),
        ("queue", "absent", ""),
    ]


NOMINATED, ELSEWHERE = waiting().nominated_node_name("n1").obj(), waiting().nominated_node_name("n2").obj()


@pytest.mark.parametrize(
    ("events", "node"),
    [
        pytest.param([lambda pods: pods.on_add(NOMINATED)], "n1", id="counts from the first"),
        pytest.param([lambda pods: pods.on_update(NEW, NOMINATED)], "n1", id="counts when it is made"),
        pytest.param(
            [lambda pods: pods.on_add(NOMINATED), lambda pods: pods.on_update(NOMINATED, ELSEWHERE)], "n2", id="moves"
        ),
        pytest.param(
            [lambda pods: pods.on_add(NOMINATED), lambda pods: pods.on_update(NOMINATED, NEW)], None, id="is taken back"
        ),
        pytest.param(
            [lambda pods: pods.on_add(NOMINATED), lambda pods: pods.on_update(NOMINATED, PLACED)], None, id="is used"
        ),
        pytest.param(
            [lambda pods: pods.on_add(NOMINATED), lambda pods: pods.on_add(PLACED)], None, id="is used, and told anew"
        ),
        pytest.param(
            [lambda pods: pods.on_add(NOMINATED), lambda pods: pods.on_add(NEW)],
            None,
            id="is taken back, and told anew",
        ),
        pytest.param(
            [lambda pods: pods.on_add(NOMINATED), lambda pods: pods.on_delete(NEW)], None, id="goes with its pod"
        ),
    ],
)
def test_a_nomination(events: list[Callable[[PodHandlers], None]], node: str | None) -> None:
    story = Heard()
    for event in events:
        event(story.pods)
    assert story.nominator.nominated_node("p") == node


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(lambda pods: pods.on_update(NEW, NOMINATED), id="made while its bind call is held"),
        pytest.param(lambda pods: pods.on_add(NOMINATED), id="seen for the first time"),
    ],
)
def test_an_assumed_pod_is_not_counted_a_second_time_by_its_nomination(event: Callable[[PodHandlers], None]) -> None:
    """kube-scheduler names the expected node of a pod that it binds: it would have taken its room there twice."""
    story = Heard().assumed()
    event(story.pods)
    assert story.nominator.nominated_node("p") is None


def test_where_the_queue_keeps_nominations_the_handlers_do_not() -> None:
    PodHandlers(Cache(), None, [], lambda pod: False).on_add(NOMINATED)


def test_the_cache_hears_of_a_node_before_the_listeners_do() -> None:
    cache = Cache()
    seen: list[tuple[bool, bool, list[int]]] = []

    def listener(old: corev1.Node | None, new: corev1.Node | None) -> None:
        seen.append(
            (old is not None, new is not None, [each.allocatable.milli_cpu for each in cache.snapshot().list()])
        )

    nodes, made = NodeHandlers(cache, listener), make_node().name("n").uid("n")
    node, larger = made.capacity(cpu="1").obj(), made.capacity(cpu="2").obj()
    nodes.on_add(node)
    nodes.on_update(node, larger)
    nodes.on_delete(larger)
    nodes.on_delete(larger)  # told once more
    assert seen == [(False, True, [1000]), (True, True, [2000]), (True, False, []), (True, False, [])]


@pytest.mark.faults
def test_an_object_made_again_goes_and_comes_for_each_listener_though_another_raises() -> None:
    heard: list[tuple[str, str]] = []

    def broken(old: Any, new: Any) -> None:
        raise KeyError("a fault of ours")

    def listener(old: Any, new: Any) -> None:
        heard.append((old and old.metadata.uid, new and new.metadata.uid))

    handlers = ObjectHandlers(broken, listener)
    with pytest.raises(KeyError):
        handlers.on_update(make_pod_group().name("g").uid("one").obj(), make_pod_group().name("g").uid("two").obj())
    assert heard == [("one", None), (None, "two")]
