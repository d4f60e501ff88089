"""A pod's way through the queue, on a clock that the tests move."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from extender.api import corev1
from extender.backend.queue.nominator import PodRef
from extender.backend.queue.queued_pod import QueuedPod
from extender.backend.queue.queueing_hints import QueueingHints
from extender.backend.queue.scheduling_queue import Place, PriorityQueue, QueueError
from extender.framework import events
from extender.framework.events import ActionType
from extender.framework.hint_rows import HintRow
from extender.framework.interface import ClusterEvent, PreEnqueuePlugin, QueuedPodInfo, QueueingHint
from extender.framework.status import SUCCESS, Status, error, unresolvable
from tests.unit.backend.objects import FakeClock, a_pod

PROFILE = "default-scheduler"
START = 1000.0  # not a tick of the flush of leftovers: those come at 1020, 1050, ...
GATES_GONE = ClusterEvent(events.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
POD_LABEL = ClusterEvent(events.POD, ActionType.UPDATE_POD_LABEL)


def by_priority(first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
    """PrioritySort."""
    if first.pod.priority != second.pod.priority:
        return first.pod.priority > second.pod.priority
    return first.timestamp < second.timestamp


def yes(*_: object) -> QueueingHint:
    return QueueingHint.QUEUE


def no(*_: object) -> QueueingHint:
    return QueueingHint.SKIP


class SchedulingGates(PreEnqueuePlugin):
    name = "SchedulingGates"
    calls = 0

    def pre_enqueue(self, pod: corev1.Pod) -> Status:
        self.calls += 1
        return unresolvable("waiting for scheduling gates") if pod.gated else SUCCESS


class Fails(PreEnqueuePlugin):
    name = "Fails"

    def pre_enqueue(self, pod: corev1.Pod) -> Status:
        if "raise" in pod.labels:
            raise RuntimeError("broken")
        return error("broken") if "error" in pod.labels else SUCCESS


HINTS = (
    HintRow(events.NODE_ADD, "Yes", yes),
    HintRow(events.NODE_ADD, "No", no),
    HintRow(POD_LABEL, "Yes", yes),
    HintRow(POD_LABEL, "No", no),
    HintRow(POD_LABEL, "Labels", yes),
    HintRow(GATES_GONE, "SchedulingGates", yes),
)


class Story:
    """A queue with one profile, and its clock."""

    def __init__(self, *, pop_from_backoff: bool = True, hints: Sequence[HintRow] = HINTS) -> None:
        self.clock = FakeClock(START)
        self.gates = SchedulingGates()
        self.queue = PriorityQueue(
            by_priority,
            pre_enqueue={PROFILE: [self.gates, Fails()]},
            hints=QueueingHints({PROFILE: hints}),
            pop_from_backoff=pop_from_backoff,
            clock=self.clock,
        )

    def pop(self) -> QueuedPod:
        entry = self.queue.pop_ready()
        assert entry is not None
        return entry

    def refused(self, pod: corev1.Pod, *plugins: str, pending: Sequence[str] = ()) -> Place:
        """The pod is added, tried and refused; no plugins for an error."""
        self.queue.add(pod)
        return self.queue.add_unschedulable_if_not_present(self.pop().rejected_by(plugins, pending))

    def where(self, pod: corev1.Pod) -> Place | None:
        found = self.queue.get(pod)
        return None if found is None else found[1]

    def entry(self, pod: corev1.Pod) -> QueuedPod:
        found = self.queue.get(pod)
        assert found is not None
        return found[0]


@pytest.fixture
def story() -> Story:
    return Story()


P = a_pod("p")


def test_pods_are_popped_by_priority_then_age(story: Story) -> None:
    for name, priority in (("low", 1), ("high", 9), ("younger", 1)):
        story.queue.add(a_pod(name, priority=priority))
        story.clock.step(1)
    assert [story.pop().pod.name for _ in range(3)] == ["high", "low", "younger"]
    assert story.queue.pop_ready() is None


def test_a_popped_pod_is_in_flight_at_its_next_attempt_and_refused_by_no_plugin(story: Story) -> None:
    story.refused(P, "Yes")
    story.queue.activate([P])
    entry = story.pop()
    assert (entry.attempts, entry.rejector_plugins) == (2, frozenset())
    assert (entry.initial_attempt_timestamp, entry.unschedulable_count) == (START, 1)
    assert [each.uid for each in story.queue.in_flight_pods()] == ["uid-p"]
    story.queue.done("uid-p")
    assert story.queue.in_flight_pods() == ()


@pytest.mark.parametrize(
    ("plugins", "pending", "event", "age", "place"),
    [
        pytest.param(["Yes"], [], events.NODE_ADD, 0, Place.BACKOFF, id="a yes while it backs off"),
        pytest.param(["Yes"], [], events.NODE_ADD, 2, Place.ACTIVE, id="a yes after its back-off"),
        pytest.param(["No"], [], events.NODE_ADD, 2, Place.UNSCHEDULABLE, id="a no"),
        pytest.param(["No", "Yes"], [], events.NODE_ADD, 2, Place.ACTIVE, id="one yes is enough"),
        pytest.param(["Yes"], [], events.NODE_DELETE, 2, Place.UNSCHEDULABLE, id="an event that no plugin registered"),
        pytest.param([], ["Yes"], events.NODE_ADD, 0, Place.ACTIVE, id="a pending plugin's yes skips back-off"),
        pytest.param(["Yes"], [], events.FORCE_ACTIVATE, 0, Place.BACKOFF, id="a wildcard keeps to back-off"),
    ],
)
def test_move_all_with_hints(
    story: Story, plugins: list[str], pending: list[str], event: ClusterEvent, age: float, place: Place
) -> None:
    story.refused(P, *plugins, pending=pending)
    story.clock.step(age)
    story.queue.move_all_to_active_or_backoff_queue(event)
    assert story.where(P) is place


def test_move_all_leaves_alone_what_the_pre_check_refuses(story: Story) -> None:
    story.refused(P, "Yes")
    story.refused(a_pod("q"), "Yes")
    story.queue.move_all_to_active_or_backoff_queue(events.NODE_ADD, pre_check=lambda pod: pod.name == "q")
    assert (story.where(P), story.where(a_pod("q"))) == (Place.UNSCHEDULABLE, Place.BACKOFF)


@pytest.mark.parametrize(
    ("event", "plugins", "pending", "place"),
    [
        pytest.param(None, ["Yes"], [], Place.UNSCHEDULABLE, id="nothing happened"),
        pytest.param(events.NODE_ADD, ["Yes"], [], Place.BACKOFF, id="something that helps"),
        pytest.param(events.NODE_ADD, ["No"], [], Place.UNSCHEDULABLE, id="something that does not"),
        pytest.param(events.NODE_DELETE, ["Yes"], [], Place.UNSCHEDULABLE, id="something that no plugin registered"),
        pytest.param(events.NODE_ADD, [], ["Yes"], Place.ACTIVE, id="what a pending plugin waited for"),
        pytest.param(None, [], [], Place.BACKOFF, id="an error: always after back-off"),
    ],
)
def test_what_happened_during_the_attempt_is_replayed(
    story: Story, event: ClusterEvent | None, plugins: list[str], pending: list[str], place: Place
) -> None:
    story.queue.add(P)
    entry = story.pop()
    if event is not None:
        story.queue.move_all_to_active_or_backoff_queue(event)
    assert story.queue.add_unschedulable_if_not_present(entry.rejected_by(plugins, pending)) is place
    assert story.where(P) is place
    assert story.queue.in_flight_pods() == ()
    assert story.queue.in_flight_events() == ()


def test_what_a_pending_plugin_waited_for_counts_after_what_helps_another(story: Story) -> None:
    story.queue.add(P)
    entry = story.pop().rejected_by(["Yes"], ["Labels"])
    story.queue.move_all_to_active_or_backoff_queue(events.NODE_ADD)
    story.queue.move_all_to_active_or_backoff_queue(POD_LABEL)
    assert story.queue.add_unschedulable_if_not_present(entry) is Place.ACTIVE


def test_activate_during_the_attempt_counts_as_an_event(story: Story) -> None:
    story.queue.add(P)
    entry = story.pop()
    story.queue.activate([P])
    assert story.queue.add_unschedulable_if_not_present(entry.rejected_by(["No"])) is Place.BACKOFF


def test_an_update_during_the_attempt_counts_as_an_event(story: Story) -> None:
    story.queue.add(P)
    entry = story.pop()
    story.queue.update(P, a_pod("p", labels={"a": "b"}))
    assert story.where(P) is None
    assert story.queue.add_unschedulable_if_not_present(entry.rejected_by(["Yes"])) is Place.BACKOFF


@pytest.mark.parametrize(
    ("place", "words"),
    [
        pytest.param(Place.ACTIVE, "active", id="active"),
        pytest.param(Place.BACKOFF, "backoff", id="back-off"),
        pytest.param(Place.UNSCHEDULABLE, "unschedulable", id="unschedulable"),
    ],
)
def test_a_pod_that_is_here_is_not_taken_back(story: Story, place: Place, words: str) -> None:
    story.queue.add(P)
    entry = story.pop()
    if place is Place.ACTIVE:
        story.queue.add(P)
    else:
        assert story.refused(a_pod("p", uid="anew"), *(["Yes"] if place is Place.UNSCHEDULABLE else [])) is place
    with pytest.raises(QueueError, match=f"Pod default/p is already present in the {words} queue"):
        story.queue.add_unschedulable_if_not_present(entry.rejected_by(["Yes"]))
    assert story.queue.in_flight_pods() == ()


def test_refusals_and_errors_are_counted_apart_and_a_refusal_ends_a_row_of_errors(story: Story) -> None:
    story.refused(P)
    for plugins, counts in ((("Yes",), (1, 0)), ((), (1, 1)), ((), (1, 2)), (("Yes",), (2, 0))):
        story.clock.step(20)
        story.queue.activate([P])
        story.queue.add_unschedulable_if_not_present(story.pop().rejected_by(plugins))
        entry = story.entry(P)
        assert (entry.unschedulable_count, entry.consecutive_errors_count) == counts
        assert entry.timestamp == story.clock.now


def test_back_off_flow() -> None:
    """1, 2, 4, 8, 10, 10 seconds, each to the end of the second in which it ends."""
    story = Story(pop_from_backoff=False)
    story.queue.add(P)
    for seconds in (1, 2, 4, 8, 10, 10):
        entry = story.pop()
        story.queue.move_all_to_active_or_backoff_queue(events.NODE_ADD)
        assert story.queue.add_unschedulable_if_not_present(entry.rejected_by(["Yes"])) is Place.BACKOFF
        assert story.queue.next_wakeup() == story.clock.now + seconds + 1
        story.clock.step(seconds + 0.9)
        assert story.queue.pop_ready() is None
        story.clock.step(0.1)


def test_an_idle_queue_pops_refused_pods_before_their_back_off_ends(story: Story) -> None:
    story.refused(P, "Yes")
    story.queue.move_all_to_active_or_backoff_queue(events.NODE_ADD)
    assert story.where(P) is Place.BACKOFF
    story.queue.add(a_pod("active"))
    assert story.pop().pod.name == "active"
    assert story.queue.next_wakeup() == START
    assert story.pop().pod.name == "p"


def test_pods_that_failed_by_an_error_serve_their_back_off(story: Story) -> None:
    assert story.refused(P) is Place.BACKOFF
    assert story.queue.pop_ready() is None
    assert story.queue.next_wakeup() == START + 2
    story.clock.step(2)
    assert story.pop().attempts == 2


def test_without_early_pops_the_queue_waits() -> None:
    story = Story(pop_from_backoff=False)
    story.refused(P, "Yes")
    story.queue.move_all_to_active_or_backoff_queue(events.NODE_ADD)
    assert story.queue.pop_ready() is None


def test_leftovers_are_tried_again_after_five_minutes(story: Story) -> None:
    story.refused(P, "No")
    assert story.queue.next_wakeup() is None
    assert story.queue.next_wakeup(leftovers=True) == 1320  # the first tick after 1300
    story.clock.now = 1300.0
    assert story.queue.pop_ready() is None
    story.clock.now = 1320.0
    assert story.pop().pod.name == "p"


@pytest.mark.parametrize(
    ("plugins", "new", "place"),
    [
        pytest.param(["Yes"], a_pod("p", labels={"a": "b"}), Place.ACTIVE, id="a change that helps"),
        pytest.param(["No"], a_pod("p", labels={"a": "b"}), Place.UNSCHEDULABLE, id="a change that does not help"),
        pytest.param(["Yes"], a_pod("p", nominated="n1"), Place.UNSCHEDULABLE, id="a change that no plugin registered"),
    ],
)
def test_update_of_a_refused_pod(story: Story, plugins: list[str], new: corev1.Pod, place: Place) -> None:
    story.refused(P, *plugins)
    story.clock.step(5)
    story.queue.update(P, new)
    assert story.where(P) is place
    assert story.entry(P).pod is new


def test_update_in_the_active_queue_keeps_the_pods_turn(story: Story) -> None:
    story.queue.add(P)
    story.queue.add(a_pod("q"))
    new = a_pod("p", labels={"a": "b"})
    story.queue.update(P, new)
    assert story.pop().pod is new


def test_update_in_the_back_off_queue_leaves_it_there(story: Story) -> None:
    story.refused(P)
    new = a_pod("p", labels={"a": "b"})
    story.queue.update(P, new)
    assert (story.where(P), story.entry(P).pod) == (Place.BACKOFF, new)


@pytest.mark.parametrize("old", [pytest.param(P, id="with an old object"), pytest.param(None, id="without one")])
def test_update_of_an_unknown_pod_adds_it(story: Story, old: corev1.Pod | None) -> None:
    story.queue.update(old, P)
    assert story.where(P) is Place.ACTIVE


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(Place.ACTIVE, id="from the active queue"),
        pytest.param(Place.BACKOFF, id="from the back-off queue"),
        pytest.param(Place.UNSCHEDULABLE, id="from the unschedulable pods"),
    ],
)
def test_delete_takes_the_pod_and_its_nomination_out(story: Story, place: Place) -> None:
    pod = a_pod("p", nominated="n1")
    if place is Place.ACTIVE:
        story.queue.add(pod)
    else:
        story.refused(pod, *(["Yes"] if place is Place.UNSCHEDULABLE else []))
    assert story.where(pod) is place
    story.queue.delete(pod)
    assert story.where(pod) is None
    assert story.queue.nominator.nominated_pods() == {}


@pytest.mark.parametrize(
    ("plugins", "place"),
    [
        pytest.param(["No"], Place.ACTIVE, id="from the unschedulable pods"),
        pytest.param([], Place.ACTIVE, id="from the back-off queue, not waiting for its end"),
    ],
)
def test_activate(story: Story, plugins: list[str], place: Place) -> None:
    story.refused(P, *plugins)
    story.queue.activate([a_pod("unknown"), P])
    assert story.where(P) is place
    assert story.queue.pending_pods().summary == "activeQ:1; backoffQ:0; unschedulablePods:0"


def test_activate_leaves_an_active_pod_as_it_is(story: Story) -> None:
    story.queue.add(P)
    before = story.entry(P)
    story.queue.activate([P])
    assert story.entry(P) is before


def test_a_gated_pod_waits_until_its_last_gate_is_off(story: Story) -> None:
    gated = a_pod("p", gates=["x"])
    story.queue.add(gated)
    assert story.queue.pop_ready() is None
    assert story.entry(P).gating_plugin == "SchedulingGates"
    assert story.entry(P).initial_attempt_timestamp is None
    assert story.queue.pending_pods().gated == 1
    story.queue.update(gated, P)
    entry = story.pop()
    assert (entry.attempts, entry.initial_attempt_timestamp, entry.gated) == (1, START, False)


def test_a_gated_pod_is_not_asked_about_events_of_others(story: Story) -> None:
    story.queue.add(a_pod("p", gates=["x"]))
    asked = story.gates.calls
    story.queue.move_all_to_active_or_backoff_queue(events.NODE_ADD)
    story.clock.now = 2000.0
    assert story.queue.pop_ready() is None
    assert story.queue.next_wakeup(leftovers=True) is None
    assert story.gates.calls == asked


def test_activating_a_gated_pod_does_not_open_its_gate(story: Story) -> None:
    story.queue.add(a_pod("p", gates=["x"]))
    story.queue.activate([P])
    assert story.where(P) is Place.UNSCHEDULABLE


@pytest.mark.faults
@pytest.mark.parametrize("label", [pytest.param("error", id="says error"), pytest.param("raise", id="raises")])
def test_a_pre_enqueue_plugin_that_fails_gates_the_pod(
    story: Story, label: str, caplog: pytest.LogCaptureFixture
) -> None:
    story.queue.add(a_pod("p", labels={label: ""}))
    assert story.entry(P).gating_plugin == "Fails"
    assert "Fails" in caplog.text


def test_pre_enqueue_is_asked_before_back_off_and_not_again_after(story: Story) -> None:
    story.refused(P)
    asked = story.gates.calls
    story.clock.step(2)
    story.pop()
    assert story.gates.calls == asked


def test_a_pod_that_was_gated_while_it_was_tried_waits_as_gated(story: Story) -> None:
    story.queue.add(P)
    entry = story.pop().with_pod(a_pod("p", gates=["x"]))
    assert story.queue.add_unschedulable_if_not_present(entry.rejected_by([])) is Place.UNSCHEDULABLE
    assert story.entry(P).gated


def test_nominated_pods_are_found_while_they_wait(story: Story) -> None:
    nominator = story.queue.nominator
    story.queue.add(a_pod("active", nominated="n1", priority=3))
    story.refused(a_pod("refused", nominated="n1", priority=9), "Yes")
    story.refused(a_pod("failed", nominated="n1", priority=8))
    found = {pod.name: pod.priority for pod in nominator.nominated_pods_for_node("n1")}
    assert found == {"active": 3, "refused": 9, "failed": 8}
    story.pop()
    bare = next(pod for pod in nominator.nominated_pods_for_node("n1") if pod.name == "active")
    assert bare.priority == 0
    assert PodRef("active", "default", "uid-active") in nominator.nominated_pods()["n1"]


def test_an_update_keeps_the_nomination_in_memory(story: Story) -> None:
    story.queue.add(P)
    story.queue.nominator.add_nominated_pod(P, "n1")
    story.queue.update(P, a_pod("p", labels={"a": "b"}))
    assert story.queue.nominator.nominated_node("uid-p") == "n1"


def test_pending_pods_are_summed_up(story: Story) -> None:
    story.refused(P, "Yes")
    story.refused(a_pod("error"))
    story.queue.add(a_pod("active"))
    story.queue.add(a_pod("gated", gates=["x"]))
    pending = story.queue.pending_pods()
    assert pending.summary == "activeQ:1; backoffQ:1; unschedulablePods:2"
    assert {pod.name for pod in pending.pods} == {"p", "error", "active", "gated"}


def test_assigned_pods_wake_by_hint() -> None:
    story = Story(
        hints=[HintRow(ClusterEvent(events.ASSIGNED_POD, ActionType.ADD | ActionType.UPDATE_POD_LABEL), "Yes")]
    )
    story.refused(P, "Yes")
    story.clock.step(5)
    story.queue.assigned_pod_added(a_pod("other", "n1"))
    assert story.where(P) is Place.ACTIVE
    story.queue.add_unschedulable_if_not_present(story.pop().rejected_by(["Yes"]))
    story.queue.assigned_pod_updated(a_pod("other", "n1"), a_pod("other", "n1", labels={"a": "b"}))
    assert story.where(P) is Place.BACKOFF


def test_pop_waits_for_a_pod_and_ends_when_the_queue_is_closed() -> None:
    queue = PriorityQueue(by_priority)
    popped: list[QueuedPod | None] = []
    first = threading.Event()

    def pop_twice() -> None:
        popped.append(queue.pop())
        first.set()
        popped.append(queue.pop())

    thread = threading.Thread(target=pop_twice)
    thread.start()
    queue.add(P)
    assert first.wait(10)
    queue.close()
    thread.join(10)
    assert not thread.is_alive()
    assert [entry.pod.name if entry else None for entry in popped] == ["p", None]


def test_an_event_that_helps_wakes_the_thread_that_waits_in_pop() -> None:
    queue = PriorityQueue(by_priority, hints=QueueingHints({PROFILE: HINTS}))
    queue.add(P)
    entry = queue.pop()
    assert entry is not None
    queue.add_unschedulable_if_not_present(entry.rejected_by(["Yes"]))
    popped: list[QueuedPod | None] = []
    thread = threading.Thread(target=lambda: popped.append(queue.pop(timeout=30)))
    thread.start()
    while not queue._changed._waiters:  # type: ignore[attr-defined]  # until it waits
        threading.Event().wait(0.001)
    queue.move_all_to_active_or_backoff_queue(events.NODE_ADD)
    thread.join(10)
    queue.close()
    thread.join(10)
    assert [each.attempts for each in popped if each] == [2]


def test_pop_gives_up_at_its_timeout() -> None:
    assert PriorityQueue(by_priority).pop(timeout=0.01) is None
