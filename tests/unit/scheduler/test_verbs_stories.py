"""The verbs together, on a whole scheduler: what a gang lives through between filter and binding."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from extender.api import corev1
from extender.api.extenderv1 import ExtenderFilterResult
from extender.api.metav1 import ObjectMeta
from extender.client.embedded import EmbeddedAPI
from extender.client.interface import NODES, PODS
from extender.config.types import ExtenderConfiguration
from extender.scheduler import factory, in_flight, scheduler
from extender.scheduler.interface import GANG, GANGS, NotSyncedError
from extender.server.app import create_app
from tests.unit.scheduler.conftest import SECONDS, Bench, Peer, running


def gang(bench: Bench, size: int, **spec: object) -> list[corev1.Pod]:
    bench.node("n1")
    bench.pod_group("g", size, **spec)
    return [bench.pod(f"p{i}", "g") for i in range(size)]


def test_a_single_pod_is_bound_at_once(bench: Bench) -> None:
    bench.node("n1")
    pod = bench.pod("single")
    assert bench.filter(pod, "n1").node_names == ["n1"]
    assert bench.bind(pod, "n1").result(SECONDS) == ""
    assert bench.node_of(pod) == "n1"


def test_a_single_pod_is_answered_while_a_gang_is_planned() -> None:
    """Nothing that a filter call takes is held over the plan."""
    planning, go_on = threading.Event(), threading.Event()

    def offload(function: Callable[..., Any], *args: Any) -> Any:
        planning.set()
        assert go_on.wait(SECONDS)
        return function(*args)

    with running(offload=offload) as bench:
        members = gang(bench, 2)
        answer: Future[ExtenderFilterResult] = Future()
        call = threading.Thread(target=lambda: answer.set_result(bench.filter(members[0], "n1")))
        call.start()
        assert planning.wait(SECONDS)
        single = bench.pod("single")
        assert bench.filter(single, "n1").node_names == ["n1"]
        assert bench.bind(single, "n1").result(SECONDS) == ""
        go_on.set()
        call.join(SECONDS)
        bench.until(lambda: bench.filter(members[0], "n1").node_names == ["n1"], "the plan is there")


def test_members_are_held_until_the_last_and_then_all_are_bound(bench: Bench) -> None:
    members = gang(bench, 3)
    assert [bench.filter(pod, "n1").node_names for pod in members] == [["n1"]] * 3
    answers = [bench.bind(pod, "n1") for pod in members[:2]]
    bench.held(*members[:2])
    assert not any(answer.done() for answer in answers)
    answers.append(bench.bind(members[2], "n1"))
    assert [answer.result(SECONDS) for answer in answers] == ["", "", ""]
    assert {bench.node_of(pod) for pod in members} == {"n1"}


def test_a_hold_whose_time_is_up_says_so_and_its_gang_lets_go(bench: Bench) -> None:
    members = gang(bench, 3, scheduleTimeoutSeconds=1)
    answers = [bench.bind(pod, "n1") for pod in members[:2]]
    texts = {answer.result(SECONDS) for answer in answers}
    rejected = "rejected while waiting on permit: rejected due to timeout after waiting 1s at plugin Coscheduling"
    assert texts == {f'pod "{pod.name}" {rejected}' for pod in members[:2]}
    assert {bench.node_of(pod) for pod in members} == {""}
    assert not bench.scheduler._dependencies.default_profile.waiting_pods.get(members[0].uid)


def test_a_caller_that_hangs_up_takes_its_gang_with_it(bench: Bench) -> None:
    members = gang(bench, 3)
    peer = Peer()
    answers = [bench.bind(members[0], "n1", peer), bench.bind(members[1], "n1")]
    bench.held(*members[:2])
    peer.hang_up()
    assert all("the caller has hung up" in answer.result(SECONDS) for answer in answers)


def test_a_caller_waited_until_it_hung_up_however_long_the_binding_takes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time after which kube-scheduler hangs up is told from it."""
    bench.node("n1")
    pod, peer = bench.pod("single"), Peer()
    clock = SimpleNamespace(now=10.0)
    clock.monotonic = clock.perf_counter = lambda: clock.now
    ended: list[tuple[float, bool]] = []
    observed = bench.scheduler._dependencies.observed
    monkeypatch.setattr(observed, "bind_ended", lambda held, *, hung_up: ended.append((held, hung_up)))
    monkeypatch.setattr(scheduler, "time", clock)
    monkeypatch.setattr(in_flight, "time", clock)
    bind = bench.api.bind

    def slow(*args: Any, **options: Any) -> Any:
        clock.now += 2
        peer.hang_up()
        clock.now += 20
        return bind(*args, **options)

    monkeypatch.setattr(bench.api, "bind", slow)
    assert bench.bind(pod, "n1", peer).result(SECONDS) == ""
    assert ended == [(2.0, True)]


def test_a_member_that_is_deleted_while_held_ends_its_call(bench: Bench) -> None:
    members = gang(bench, 3)
    answers = [bench.bind(pod, "n1") for pod in members[:2]]
    bench.held(*members[:2])
    bench.api.delete(PODS, "p0", "default")
    assert "removed" in answers[0].result(SECONDS)
    assert "a member of the PodGroup was deleted while waiting" in answers[1].result(SECONDS)


def test_a_second_call_for_a_pod_ends_the_first(bench: Bench) -> None:
    members = gang(bench, 2)
    first = bench.bind(members[0], "n1")
    bench.held(members[0])
    second = bench.bind(members[0], "n1")
    assert "superseded" in first.result(SECONDS)
    bench.held(members[0])
    last = bench.bind(members[1], "n1")
    assert (second.result(SECONDS), last.result(SECONDS)) == ("", "")


def test_a_bind_that_is_repeated_is_success_and_for_another_node_is_not(bench: Bench) -> None:
    bench.node("n1")
    bench.node("n2")
    pod = bench.pod("single")
    assert bench.bind(pod, "n1").result(SECONDS) == ""
    assert bench.bind(pod, "n1").result(SECONDS) == ""
    assert "already assigned to node" in bench.bind(pod, "n2").result(SECONDS)


@pytest.mark.parametrize("seen", [True, False], ids=["the watch has shown the new one", "the watch is behind"])
def test_a_bind_that_is_replayed_binds_no_other_pod_of_that_name(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, seen: bool
) -> None:
    """The pod that it was for is gone; a controller has made it anew."""
    bench.node("n1")
    old = bench.pod("worker-0")
    if not seen:
        monkeypatch.setattr(bench.store(PODS), "get", lambda key: old)
    bench.api.delete(PODS, "worker-0", "default")
    new = bench.api.create(PODS, {"metadata": {"name": "worker-0"}, "spec": {"containers": [{"name": "c"}]}})
    if seen:
        bench.until(lambda: bench.store(PODS).get(new.key).uid == new.uid, "the new one is seen")
    error = bench.bind(old, "n1").result(SECONDS)
    assert f'pod "default/worker-0" has another UID now: {new.uid}' in error
    assert bench.node_of(new) == ""


def test_a_pod_that_was_made_anew_is_bound_before_the_watch_shows_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.node("n1")
    old = bench.pod("worker-0")
    monkeypatch.setattr(bench.store(PODS), "get", lambda key: old)
    bench.api.delete(PODS, "worker-0", "default")
    new = bench.api.create(PODS, {"metadata": {"name": "worker-0"}, "spec": {"containers": [{"name": "c"}]}})
    assert bench.bind(new, "n1").result(SECONDS) == ""
    assert bench.node_of(new) == "n1"


def test_what_cannot_be_bound_is_refused_by_name(bench: Bench) -> None:
    bench.node("n1")
    bench.node("cordoned", unschedulable=True)
    pod = bench.pod("single")
    gated = bench.pod("gated", schedulingGates=[{"name": "example.com/wait"}])
    unknown = corev1.Pod(metadata=corev1_meta("unknown"))
    assert bench.bind(pod, "gone").result(SECONDS) == 'node "gone" not found'
    assert bench.bind(pod, "cordoned").result(SECONDS) == 'node "cordoned" is unschedulable'
    assert bench.bind(gated, "n1").result(SECONDS) == 'pod "default/gated" has scheduling gates'
    assert bench.bind(unknown, "n1").result(SECONDS) == 'pod "default/unknown" not found'
    assert bench.node_of(pod) == ""


def corev1_meta(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace="default", uid=name)


def test_a_node_that_goes_between_plan_and_start_stops_the_gang(bench: Bench) -> None:
    members = gang(bench, 2)
    answer = bench.bind(members[0], "n1")
    bench.held(members[0])
    bench.api.patch(NODES, "n1", {"spec": {"unschedulable": True}})
    bench.until(lambda: bench.store(NODES).get("n1").spec.unschedulable, "the cordon is seen")
    last = bench.bind(members[1], "n1")
    assert 'node "n1" is unschedulable' in last.result(SECONDS)
    assert 'node "n1" is unschedulable' in answer.result(SECONDS)
    assert {bench.node_of(pod) for pod in members} == {""}


def test_a_drain_answers_every_held_bind_and_takes_no_more(bench: Bench) -> None:
    members = gang(bench, 3)
    answers = [bench.bind(pod, "n1") for pod in members[:2]]
    bench.held(*members[:2])
    bench.scheduler.drain("the extender is shutting down")
    assert all("the extender is shutting down" in answer.result(SECONDS) for answer in answers)
    assert bench.bind(members[2], "n1").result(SECONDS) == "the extender is shutting down"


def test_a_parked_member_is_nominated_and_woken_when_its_gang_is_planned(bench: Bench) -> None:
    bench.node("n1")
    bench.pod_group("g", 2)
    first = bench.pod("p0", "g")
    assert bench.filter(first, "n1").node_names == []
    second = bench.pod("p1", "g")
    assert bench.filter(second, "n1").node_names == ["n1"]
    bench.until(
        lambda: bench.api.get(PODS, "p0", "default").status.nominated_node_name == "n1", "the first is nominated"
    )
    conditions = bench.api.get(PODS, "p0", "default").status.conditions
    assert [(c.type, c.status) for c in conditions] == [("scheduling.x-k8s.io/GangReady", "True")]


def test_scores_are_whole_numbers_for_each_node(bench: Bench) -> None:
    bench.node("n1")
    scores = bench.prioritize(bench.pod("single"), "n1", "unseen")
    assert [(entry.host, type(entry.score)) for entry in scores] == [("n1", int), ("unseen", int)]


def whole_node(name: str) -> dict[str, Any]:
    """As a kubelet fills it, long lists of images included."""
    images = [{"names": [f"registry.example.com/{name}/{'i' * 200}:{i}"], "sizeBytes": 2**33} for i in range(500)]
    meta = {"name": name, "labels": {"a": "b"}, "annotations": {"c": "d" * 5000}, "creationTimestamp": None}
    status = {"capacity": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": meta, "spec": {"taints": None}, "status": {**status, "images": [*images, {"names": None}]}}


def whole_pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": {"containers": [{"name": "c"}]}}


WHOLE = json.dumps(
    {
        "Pod": whole_pod("single"),
        "Nodes": {"metadata": {}, "items": [whole_node("n1"), whole_node("n2")]},
        "NodeNames": None,
        "NodeNameToVictims": {"n1": {"Pods": [whole_pod("victim")], "NumPDBViolations": 0}},
        "NodeNameToMetaVictims": None,
    }
)
ANSWERED = {
    "filter": "the extender needs nodeCacheCapable: true, and got no NodeNames",
    "prioritize": "the extender needs nodeCacheCapable: true, and got no NodeNames",
    "preempt": "the extender needs nodeCacheCapable: true, and got no NodeNameToMetaVictims",
}


@pytest.mark.parametrize("verb", ANSWERED)
def test_without_node_cache_capable_every_verb_names_the_setting(bench: Bench, verb: str) -> None:
    """kube-scheduler sends whole nodes and whole victims then, as the API server has them."""
    bench.node("n1")
    pod = bench.pod("single")
    response = create_app(bench.scheduler).test_client().post(f"/{verb}", data=WHOLE)
    assert response.get_json()["Error"] == ANSWERED[verb]
    assert (response.status_code == 200) is (verb == "filter")  # whose Error kube-scheduler reads
    assert bench.filter(pod, "n1").node_names == ["n1"]


def test_pages_say_nothing_of_half_a_cluster() -> None:
    """PodGroups may come after pods: `PodGroup not found` would be wrong."""
    scheduler = factory.build(ExtenderConfiguration(), EmbeddedAPI())
    for page, arguments in ((GANGS, ()), (GANG, ("default/g",))):
        with pytest.raises(
            NotSyncedError, match=r"yet: pods not synced; .*podgroups\.scheduling\.x-k8s\.io not synced"
        ):
            scheduler.pages()[page](*arguments)
