"""What each change in the cluster does to the cache and the queue. kube-scheduler: pkg/scheduler/eventhandlers_test.go"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.backend.cache.cache import Cache
from extender.backend.queue.queueing_hints import QueueingHints
from extender.backend.queue.scheduling_queue import Place, PriorityQueue
from extender.client import interface as kinds
from extender.client.interface import ResourceType
from extender.framework import events
from extender.framework.events import ActionType
from extender.framework.hint_rows import HintRow
from extender.framework.interface import ClusterEvent, QueueingHint
from extender.scheduler.in_process.queue_handlers import WATCHED, watch_all
from tests.objects import make_node, make_pod, make_pod_group

PROFILE = "default-scheduler"
POD = make_pod().name("p").req(cpu="1")


class Profile:
    """A framework with pods that wait in Permit."""

    def __init__(self) -> None:
        self.waiting: set[str] = set()
        self.rejected: list[str] = []

    def reject_waiting_pod(self, uid: str) -> bool:
        self.rejected.append(uid)
        return uid in self.waiting


class Observer:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def _see(self, kind: str, old: Any, new: Any) -> None:
        self.seen.append((kind, old and old.metadata.uid, new and new.metadata.uid))

    def on_pod(self, old: Any, new: Any) -> None:
        self._see("pod", old, new)

    def on_node(self, old: Any, new: Any) -> None:
        self._see("node", old, new)

    def on_pod_group(self, old: Any, new: Any) -> None:
        self._see("group", old, new)

    def on_volumes(self, old: object, new: object) -> None:
        self.seen.append(("volumes", "", ""))


@dataclass
class Informers:
    """Hands events to the handlers that asked for them."""

    handlers: dict[ResourceType[Any], Any] = field(default_factory=dict)

    def informer(self, resource: ResourceType[Any], *, optional: bool = False) -> Any:
        informers = self

        class One:
            def add_handler(self, handler: Any) -> None:
                informers.handlers[resource] = handler

        return One()


class Story:
    """A queue in which `refused` waits, refused by a plugin that registers `wanted` and writes down what it is asked."""

    def __init__(self, *wanted: ClusterEvent, answer: QueueingHint = QueueingHint.SKIP, observed: bool = True) -> None:
        self.asked: list[tuple[str, int]] = []
        self.cache = Cache()
        self.profile = Profile()
        self.observer = Observer()
        rows = tuple(HintRow(event, "P", self._hint(event, answer)) for event in wanted)
        hints = QueueingHints({PROFILE: rows})
        self.queue = PriorityQueue(lambda a, b: a.timestamp < b.timestamp, hints=hints)
        informers: Any = Informers()
        profiles: Any = {PROFILE: self.profile}
        observers: Any = ([self.observer], self.observer.on_volumes) if observed else ()
        watch_all(informers, self.queue, self.cache, profiles, hints.wanted_events(), *observers)
        self.handlers: Mapping[ResourceType[Any], Any] = informers.handlers
        self.pods, self.nodes = self.handlers[kinds.PODS], self.handlers[kinds.NODES]

    def _hint(self, event: ClusterEvent, answer: QueueingHint) -> Callable[[corev1.Pod, object, object], QueueingHint]:
        def hint(pod: corev1.Pod, old: object, new: object) -> QueueingHint:
            self.asked.append((event.resource, event.action))
            return answer

        return hint

    def refuse(self, pod: corev1.Pod) -> None:
        self.queue.add(pod)
        entry = self.queue.pop_ready()
        assert entry is not None
        self.queue.add_unschedulable_if_not_present(entry.rejected_by(["P"]))

    def place(self, pod: corev1.Pod) -> Place | None:
        known = self.queue.get(pod)
        return None if known is None else known[1]


def everything(resource: str) -> ClusterEvent:
    return ClusterEvent(resource, ActionType.ALL)


def test_a_pod_that_is_told_twice_is_not_tried_twice() -> None:
    story = Story()
    story.pods.on_add(POD.obj())
    assert story.queue.pop_ready() is not None
    story.pods.on_add(POD.obj())
    assert story.queue.pop_ready() is None


def test_a_pod_of_ours_that_waits_comes_into_the_queue_and_another_ones_does_not() -> None:
    story = Story()
    story.pods.on_add(POD.obj())
    story.pods.on_add(make_pod().name("q").scheduler_name("other").obj())
    assert (story.place(POD.obj()), story.place(make_pod().name("q").obj())) == (Place.ACTIVE, None)


def test_an_assigned_pod_of_any_scheduler_counts_on_its_node_and_is_an_event() -> None:
    story = Story(everything(events.ASSIGNED_POD))
    story.refuse(POD.obj())
    other = make_pod().name("q").scheduler_name("other").node("n").obj()
    story.pods.on_add(other)
    assert story.cache.get_pod(other) is other
    assert story.asked == [(events.ASSIGNED_POD, ActionType.ALL)]


@pytest.mark.parametrize(
    ("wanted", "asked"),
    [
        pytest.param(everything(events.POD), 0, id="a plugin that waits for pods hears of no pod without a node"),
        pytest.param(everything(events.UNSCHEDULABLE_POD), 1, id="a plugin that waits for siblings hears of each"),
    ],
)
def test_a_pod_without_a_node_is_an_event_only_for_gangs(wanted: ClusterEvent, asked: int) -> None:
    story = Story(wanted)
    story.refuse(POD.obj())
    story.pods.on_add(make_pod().name("q").obj())
    assert len(story.asked) == asked


def test_a_pod_that_is_bound_leaves_the_queue_for_the_cache() -> None:
    story = Story()
    story.pods.on_add(POD.obj())
    bound = POD.node("n").obj()
    story.pods.on_update(POD.obj(), bound)
    assert story.place(bound) is None
    assert story.cache.get_pod(bound) is bound


def test_a_pod_that_is_deleted_leaves_the_queue() -> None:
    story = Story()
    story.pods.on_add(POD.obj())
    story.pods.on_delete(POD.obj())
    assert story.place(POD.obj()) is None


def test_a_pod_of_another_scheduler_that_is_deleted_is_an_event_for_its_room_alone() -> None:
    story = Story(everything(events.ASSIGNED_POD), everything(events.UNSCHEDULABLE_POD))
    story.refuse(POD.obj())
    other = make_pod().name("q").scheduler_name("other")
    story.pods.on_delete(other.obj())
    assert (story.asked, story.profile.rejected) == ([], [])
    story.pods.on_delete(other.node("n").obj())
    assert len(story.asked) == 1


def test_a_pod_made_again_under_its_name_is_a_new_one() -> None:
    story = Story()
    story.pods.on_add(POD.node("n").obj())
    again = POD.uid("again").obj()
    story.pods.on_update(POD.node("n").obj(), again)
    assert story.cache.get_pod(POD.obj()) is None
    assert story.place(again) is Place.ACTIVE


def test_a_resync_does_not_touch_the_queue() -> None:
    story = Story(everything(events.UNSCHEDULABLE_POD), answer=QueueingHint.QUEUE)
    same = POD.label("a", "b")._meta("resourceVersion", "7").obj()
    story.refuse(same)
    story.pods.on_update(same, same)
    assert story.place(same) is Place.UNSCHEDULABLE


def test_an_assumed_pod_that_changes_is_not_tried_again() -> None:
    story = Story()
    story.cache.assume_pod(POD.obj(), "n")
    story.pods.on_update(POD.obj(), POD.label("a", "b").obj())
    assert story.place(POD.obj()) is None


@pytest.mark.parametrize("deleted", [pytest.param(False, id="is going"), pytest.param(True, id="is gone")])
@pytest.mark.parametrize(
    ("waits", "forgotten"),
    [
        pytest.param(True, False, id="its wait in Permit ends, which takes everything back"),
        pytest.param(False, True, id="its binding is under way: its room is free at once"),
    ],
)
def test_an_assumed_pod_that(deleted: bool, waits: bool, forgotten: bool) -> None:
    story = Story(everything(events.ASSIGNED_POD))
    story.refuse(make_pod().name("refused").obj())
    story.cache.assume_pod(POD.obj(), "n")
    if waits:
        story.profile.waiting.add("p")
    if deleted:
        story.pods.on_delete(POD.obj())
    else:
        story.pods.on_update(POD.obj(), POD.terminating().obj())
    assert story.profile.rejected == ["p"]
    assert (story.cache.get_pod(POD.obj()) is None) is forgotten
    assert len(story.asked) == 1


@pytest.mark.parametrize(
    ("priority", "asked"),
    [
        pytest.param(5, 1, id="a pod of equal priority hears of it"),
        pytest.param(6, 0, id="a pod of higher priority never minded it"),
    ],
)
@pytest.mark.parametrize("deleted", [pytest.param(False, id="taken back"), pytest.param(True, id="gone with its pod")])
def test_a_nomination(priority: int, asked: int, deleted: bool) -> None:
    story = Story(everything(events.ASSIGNED_POD))
    story.refuse(make_pod().name("refused").priority(priority).obj())
    nominated = POD.priority(5).nominated_node_name("n").obj()
    if deleted:
        story.pods.on_delete(nominated)
    else:
        story.pods.on_update(nominated, POD.priority(5).obj())
    assert len(story.asked) == asked


def test_an_assigned_pod_that_changes_or_goes_is_an_event() -> None:
    story = Story(everything(events.ASSIGNED_POD))
    placed = POD.node("n")
    story.pods.on_add(placed.obj())
    story.refuse(make_pod().name("refused").obj())
    story.pods.on_update(placed.obj(), placed.label("a", "b").obj())
    story.pods.on_delete(placed.label("a", "b").obj())
    assert len(story.asked) == 2
    assert story.cache.get_pod(POD.obj()) is None


def test_a_node_comes_changes_and_goes() -> None:
    story = Story(everything(events.NODE))
    story.refuse(POD.obj())
    node = make_node().name("n").capacity(cpu="1")
    larger = make_node().name("n").capacity(cpu="2")
    story.nodes.on_add(node.obj())
    story.nodes.on_update(node.obj(), larger.obj())
    assert story.cache.snapshot().get("n").allocatable.milli_cpu == 2000
    story.nodes.on_update(larger.obj(), larger.obj())  # a heartbeat
    story.nodes.on_delete(larger.obj())
    assert len(story.asked) == 3
    assert list(story.cache.snapshot().list()) == []


@pytest.mark.parametrize("resource", [name for name in WATCHED if name != events.POD_GROUP])
def test_objects_of_other_kinds_are_events_where_a_plugin_waits_for_them(resource: str) -> None:
    story = Story(everything(resource))
    story.refuse(POD.obj())
    obj = convert({"metadata": {"name": "x"}}, kinds.NODES.type)  # handlers look at no field
    handler = story.handlers[WATCHED[resource]]
    handler.on_add(obj)
    handler.on_update(obj, obj)
    handler.on_delete(obj)
    assert len(story.asked) == 3


def test_kinds_that_no_plugin_waits_for_are_not_handled() -> None:
    assert set(Story(observed=False).handlers) == {kinds.PODS, kinds.NODES}


def test_only_the_actions_that_a_plugin_waits_for_move_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(ClusterEvent(events.CSI_NODE, ActionType.ADD))
    story.refuse(POD.obj())
    moved: list[object] = []
    monkeypatch.setattr(story.queue, "move_all_to_active_or_backoff_queue", lambda *args: moved.append(args))
    obj = convert({"metadata": {"name": "x"}}, kinds.NODES.type)
    story.handlers[kinds.CSI_NODES].on_update(obj, obj)
    story.handlers[kinds.CSI_NODES].on_delete(obj)
    assert (story.asked, moved) == ([], [])
    story.handlers[kinds.CSI_NODES].on_add(obj)
    assert len(moved) == 1


def test_plugins_that_keep_state_hear_of_everything() -> None:
    story = Story()
    story.pods.on_add(POD.obj())
    story.nodes.on_add(make_node().name("n").uid("n").obj())
    story.nodes.on_update(make_node().name("n").uid("n").obj(), make_node().name("n").uid("m").obj())
    story.handlers[kinds.POD_GROUPS].on_add(make_pod_group().name("g").uid("g").obj())
    story.handlers[kinds.PERSISTENT_VOLUMES].on_add(convert({"metadata": {"name": "v"}}, corev1.PersistentVolume))
    assert story.observer.seen == [
        ("pod", None, "p"),
        ("node", None, "n"),
        ("node", "n", None),
        ("node", None, "m"),
        ("group", None, "g"),
        ("volumes", "", ""),
    ]
