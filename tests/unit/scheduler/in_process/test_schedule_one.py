"""One pod's attempt, branch by branch: what is undone, what the pod is told, where it waits next.

kube-scheduler: pkg/scheduler/schedule_one_test.go
"""

from __future__ import annotations

import pytest

from extender import metrics
from extender.api import corev1
from extender.api.metav1 import ObjectMeta
from extender.backend.queue.scheduling_queue import PreCheck
from extender.client.interface import NODES, PODS
from extender.framework.interface import ClusterEvent, NominatingMode, PostFilterResult
from extender.framework.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable, wait
from tests.unit.scheduler.scripted import NAME, Bench

BOOM = RuntimeError("boom")
REFUSED, FAILED = "Unschedulable", "SchedulerError"
WAITS, BACKS_OFF = "unschedulablePods", "backoffQ"


def condition(pod: corev1.Pod) -> corev1.PodCondition:
    return next(each for each in pod.status.conditions if each.type == "PodScheduled")


def count(result: str) -> float:
    labels = {"result": result, "profile": "default-scheduler"}
    return metrics.REGISTRY.get_sample_value("scheduler_schedule_attempts_total", labels) or 0.0


def test_all_extension_points_in_their_order() -> None:
    bench = Bench()
    bench.node("n")
    bench.pod()
    before = count("scheduled")
    assert bench.attempt()
    points = ["PreFilter", "Filter", "Reserve", "Permit", "PreBindPreFlight", "Bind", "PostBind"]
    assert bench.plugin.called == points
    assert bench.get().node_name == "n"
    assert bench.said == [("Scheduled", "Successfully assigned default/p to n")]
    assert count("scheduled") == before + 1
    assert not bench.parts.queue.in_flight_pods()


ONE_NODE = "0/1 nodes are available: "
EXCEPTION = "RuntimeError: boom"
RUNNING = f'running {{}} "{NAME}": {EXCEPTION}'
BEFORE_RESERVE = ("PreFilter", "Filter")


@pytest.mark.faults
@pytest.mark.parametrize(
    ("point", "answer", "message", "reason", "place", "plugins"),
    [
        pytest.param(
            "PreFilter", unschedulable("no"), ONE_NODE + "no.", REFUSED, WAITS, {NAME}, id="PreFilter refuses"
        ),
        pytest.param(
            "PreFilter", BOOM, RUNNING.format("PreFilter plugin"), FAILED, BACKS_OFF, set(), id="PreFilter fails"
        ),
        pytest.param("Filter", unresolvable("no"), ONE_NODE + "1 no.", REFUSED, WAITS, {NAME}, id="Filter refuses"),
        pytest.param(
            "Filter", BOOM, f'running "{NAME}" filter plugin: {EXCEPTION}', FAILED, BACKS_OFF, set(), id="Filter fails"
        ),
        pytest.param("Reserve", unschedulable("no"), ONE_NODE + "1 no.", REFUSED, WAITS, {NAME}, id="Reserve refuses"),
        pytest.param("Reserve", BOOM, RUNNING.format("Reserve plugin"), FAILED, BACKS_OFF, set(), id="Reserve fails"),
        pytest.param("Permit", unschedulable("no"), ONE_NODE + "1 no.", REFUSED, WAITS, {NAME}, id="Permit refuses"),
        pytest.param("Permit", BOOM, RUNNING.format("Permit plugin"), FAILED, BACKS_OFF, set(), id="Permit fails"),
        pytest.param(
            "PreBindPreFlight",
            BOOM,
            RUNNING.format("PreBindPreFlight"),
            FAILED,
            BACKS_OFF,
            set(),
            id="PreBindPreFlight fails",
        ),
        pytest.param(
            "PreBind",
            unschedulable("no"),
            "no",
            REFUSED,
            BACKS_OFF,
            set(),
            id="PreBind refuses: counts for no pod",
        ),
        pytest.param("PreBind", BOOM, RUNNING.format("PreBind plugin"), FAILED, BACKS_OFF, set(), id="PreBind fails"),
        pytest.param("Bind", BOOM, RUNNING.format("Bind plugin"), FAILED, BACKS_OFF, set(), id="Bind fails"),
    ],
)
def test_a_failure(
    point: str,
    answer: Status | Exception,
    message: str,
    reason: str,
    place: str,
    plugins: set[str],
) -> None:
    bench = Bench()
    bench.node("n")
    pod = bench.pod()
    bench.plugin.script[point] = answer
    if point == "PreBind":
        bench.plugin.script["PreBindPreFlight"] = SUCCESS
    before = count("unschedulable" if reason == REFUSED else "error")
    assert not bench.attempt(lambda attempt: bench.see())
    found = bench.parts.queue.get(pod)
    assert found is not None
    assert (found[1].value, set(found[0].unschedulable_plugins)) == (place, plugins)
    assert bench.said == [("FailedScheduling", message)]
    told = condition(bench.get())
    assert (told.status, told.reason, told.message) == ("False", reason, message)
    assert ("Unreserve" in bench.plugin.called) is (point not in BEFORE_RESERVE)
    assert not bench.parts.cache.is_assumed_pod(pod)
    assert not bench.parts.queue.in_flight_pods()
    assert bench.get().status.nominated_node_name == ""
    assert count("unschedulable" if reason == REFUSED else "error") == before + 1


@pytest.mark.parametrize(
    ("signal", "message", "reason", "place"),
    [
        pytest.param("reject", ONE_NODE + "1 go away.", REFUSED, WAITS, id="rejected"),
        pytest.param(
            "time",
            ONE_NODE + f"1 rejected due to timeout after waiting 30s at plugin {NAME}.",
            REFUSED,
            WAITS,
            id="no member came in time",
        ),
        pytest.param("preempt", "waiting on permit for pod: preempted", FAILED, BACKS_OFF, id="preempted"),
    ],
)
def test_a_wait_in_permit_ends_badly(signal: str, message: str, reason: str, place: str) -> None:
    bench = Bench()
    bench.node("n")
    pod = bench.pod()
    bench.plugin.script["Permit"] = wait()
    expected = []

    def between(attempt: object) -> None:
        bench.see()
        expected.append(bench.get().status.nominated_node_name)
        waiting = next(iter(bench.parts.profiles.values())).get_waiting_pod(pod.uid)
        assert waiting is not None
        if signal == "time":
            bench.clock.advance(30)
        else:
            getattr(waiting, signal)(NAME, "go away" if signal == "reject" else "preempted")

    assert not bench.attempt(between)
    assert expected == ["n"], "others see where the pod is expected"
    bench.see()
    told = condition(bench.get())
    assert (told.reason, told.message) == (reason, message)
    assert bench.get().status.nominated_node_name == ""
    assert bench.place(pod) == place


def test_a_wait_in_permit_ends_well() -> None:
    bench = Bench()
    bench.node("n")
    pod = bench.pod()
    bench.plugin.script["Permit"] = wait()

    def allow(attempt: object) -> None:
        waiting = next(iter(bench.parts.profiles.values())).get_waiting_pod(pod.uid)
        assert waiting is not None
        waiting.allow(NAME)

    assert bench.attempt(allow)
    assert "PreBind" not in bench.plugin.called, "it had said that it has nothing to do"


def test_pre_bind_that_has_work_to_do_shows_where_the_pod_will_be() -> None:
    bench = Bench()
    bench.node("n")
    bench.pod()
    bench.plugin.script["PreBindPreFlight"] = SUCCESS
    seen = []
    assert bench.attempt(lambda attempt: seen.append(bench.get().status.nominated_node_name))
    assert seen == ["n"]
    assert bench.plugin.called[-3:] == ["PreBind", "Bind", "PostBind"]


# PostFilter


@pytest.mark.faults
@pytest.mark.parametrize(
    ("nominating", "status", "nominated", "ending"),
    [
        pytest.param(
            PostFilterResult("n", NominatingMode.OVERRIDE), SUCCESS, "n", "", id="room is made: nominated"
        ),
        pytest.param(
            PostFilterResult("", NominatingMode.OVERRIDE), unschedulable("no use"), "", " no use", id="no use: cleared"
        ),
        pytest.param(None, unschedulable("wait"), "old", " wait", id="no word on the nomination: it stays"),
        pytest.param(None, BOOM, "old", " RuntimeError: boom", id="PostFilter fails: the nomination stays"),
    ],
)  # fmt: skip
def test_post_filter(
    nominating: PostFilterResult | None, status: Status | Exception, nominated: str, ending: str
) -> None:
    bench = Bench()
    bench.node("n")
    pod = bench.pod()
    bench.api.patch(PODS, "p", {"status": {"nominatedNodeName": "old"}}, namespace="default", subresource="status")
    bench.see()
    bench.plugin.script.update(Filter=unschedulable("no"), PostFilter=status)
    bench.plugin.nominating = nominating
    assert not bench.attempt()
    assert bench.said[-1][1].startswith(ONE_NODE + "1 no.")
    assert bench.said[-1][1].endswith(ending)
    assert bench.get().status.nominated_node_name == nominated
    assert (bench.parts.queue.nominator.nominated_node(pod.uid) or "") == nominated


def test_an_empty_cluster_asks_no_plugin() -> None:
    bench = Bench()
    pod = bench.pod()
    assert not bench.attempt()
    assert bench.plugin.called == []
    assert condition(bench.get()).message == "no nodes available to schedule pods"
    assert condition(bench.get()).reason == REFUSED
    assert bench.place(pod) == BACKS_OFF


# skipPodSchedule, and pods that are not there as they were


def test_a_pod_that_is_being_deleted_is_skipped() -> None:
    bench = Bench()
    bench.node("n")
    pod = bench.pod(name="p")
    entry = bench.parts.queue.pop_ready()
    assert entry is not None
    gone = corev1.Pod(
        ObjectMeta(name="p", namespace="default", uid=pod.uid, deletion_timestamp=pod.metadata.creation_timestamp),
        pod.spec,
    )
    assert bench.parts.cycles.schedule_one(entry.with_pod(gone)) is None
    assert bench.said == [("FailedScheduling", "skip schedule deleting pod: default/p")]
    assert not bench.parts.queue.in_flight_pods()


def test_a_pod_that_is_assumed_already_is_skipped() -> None:
    bench = Bench()
    bench.node("n")
    pod = bench.pod()
    bench.parts.cache.assume_pod(pod, "n")
    assert bench.schedule() is None
    assert (bench.plugin.called, bench.said) == ([], [])
    assert not bench.parts.queue.in_flight_pods()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param("deleted", 1, id="gone: not requeued"),
        pytest.param("recreated", 0, id="made anew: another pod's matter"),
        pytest.param("bound", 1, id="bound meanwhile: not requeued"),
    ],
)
def test_a_pod_changes_while_it_is_tried(change: str, said: int) -> None:
    bench = Bench()
    bench.node("n")
    pod = bench.pod()
    entry = bench.parts.queue.pop_ready()
    assert entry is not None
    if change == "bound":
        target = corev1.ObjectReference(kind="Node", name="n")
        bench.api.bind(corev1.Binding(metadata=ObjectMeta(name="p", namespace="default", uid=pod.uid), target=target))
    else:
        bench.api.delete(PODS, "p", "default")
    bench.see()
    if change == "recreated":
        bench.pod()
    bench.plugin.script["Filter"] = unschedulable("no")
    bench.parts.cycles.schedule_one(entry)
    assert len(bench.said) == said
    assert not bench.parts.queue.in_flight_pods()
    assert bench.place(pod) == ("activeQ" if change == "recreated" else "")


def test_a_node_that_the_api_server_does_not_have_is_offered_no_more() -> None:
    bench = Bench()
    bench.node("n", "m")
    bench.pod()
    bench.plugin.script["Bind"] = error("node not found")

    def lose_the_node(attempt: object) -> None:
        bench.api.delete(NODES, bench.parts.cache.snapshot().list()[0].name)
        bench.api.delete(NODES, bench.parts.cache.snapshot().list()[1].name)

    assert not bench.attempt(lose_the_node)
    assert len(bench.parts.cache.snapshot()) == 1


def test_the_room_of_a_failed_binding_wakes_others_but_not_the_refused_pod_itself() -> None:
    bench = Bench()
    bench.node("n")
    bench.plugin.script["Permit"] = wait()
    first = bench.pod("first")
    moved: list[tuple[str, bool, bool]] = []
    original = bench.parts.queue.move_all_to_active_or_backoff_queue

    def move(event: ClusterEvent, old: object = None, new: object = None, pre_check: PreCheck | None = None) -> None:
        in_queue = bench.place(first) != ""
        moved.append((event.label, in_queue, pre_check is not None and not pre_check(first)))
        original(event, old, new, pre_check)

    bench.parts.queue.move_all_to_active_or_backoff_queue = move  # type: ignore[method-assign]
    assert not bench.attempt(lambda attempt: bench.clock.advance(30))
    assert moved == [("AssignedPodDelete", True, True)], "after it came back, and without it"
    moved.clear()
    bench.plugin.script = {"Bind": error("no")}
    bench.pod("second")
    assert not bench.attempt()
    assert moved[0][1:] == (True, False) or moved[0][0] == "AssignedPodDelete"


# Profiles and nominations


def test_each_pod_has_its_own_profile() -> None:
    bench = Bench(scheduler_names=("default-scheduler", "other"))
    bench.node("n")
    bench.pod("a", schedulerName="other")
    assert bench.attempt()
    assert (bench.plugins["default-scheduler"].called, bench.plugins["other"].called[0]) == ([], "PreFilter")
    bench.pod("b", schedulerName="another")
    assert bench.parts.queue.pop_ready() is None


def nominated(bench: Bench, node: str) -> None:
    bench.api.patch(PODS, "p", {"status": {"nominatedNodeName": node}}, namespace="default", subresource="status")
    bench.see()


def test_the_nominated_node_is_tried_first_and_alone() -> None:
    bench = Bench()
    bench.node("a", "b", "c")
    bench.pod()
    nominated(bench, "b")
    assert bench.attempt()
    assert (bench.get().node_name, bench.plugin.called.count("Filter")) == ("b", 1)


def test_a_nominated_node_that_does_not_fit_is_one_of_many() -> None:
    bench = Bench()
    bench.node("a", "b", "c")
    bench.pod()
    nominated(bench, "gone")
    assert bench.attempt()
    assert bench.get().node_name in ("a", "b", "c")


@pytest.mark.parametrize(
    ("of_all", "of_profile", "nodes", "looked"),
    [
        pytest.param(0, None, 200, 98, id="by the cluster's size, and at least 100"),
        pytest.param(0, None, 1000, 420, id="by the cluster's size"),
        pytest.param(70, None, 1000, 700, id="the scheduler's percentage"),
        pytest.param(70, 30, 1000, 300, id="the profile's counts more"),
        pytest.param(70, 0, 1000, 420, id="a profile's 0 is by the cluster's size"),
        pytest.param(1, None, 99, 99, id="a small cluster is looked at whole"),
    ],
)
def test_how_many_nodes_are_enough(of_all: int, of_profile: int | None, nodes: int, looked: int) -> None:
    bench = Bench(percentage=of_all)
    algorithm = bench.parts.cycles._algorithm
    assert algorithm.num_feasible_nodes_to_find(of_profile, nodes) == max(looked, min(100, nodes))


def test_bind_plugins_that_all_hand_on_are_an_error() -> None:
    bench = Bench()
    bench.node("n")
    pod = bench.pod()
    bench.plugin.script["Bind"] = SKIP
    assert not bench.attempt()
    assert bench.place(pod) == BACKS_OFF
