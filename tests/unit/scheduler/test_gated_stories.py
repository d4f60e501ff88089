"""Gated gangs on a whole scheduler: from the pods' creation to their bindings, with no call for a pod that is gated."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from extender.api import corev1
from extender.client.interface import IN_TREE_POD_GROUPS, POD_GROUPS, PODS, ResourceType
from extender.config.defaults import behind_profile
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import ExtenderConfiguration, KubeSchedulerProfile
from extender.scheduler.factory import _most_nodes_offered
from tests.unit.scheduler.conftest import SECONDS, Bench, running

GATED: dict[str, Any] = {"schedulingGates": [{"name": "scheduling.x-k8s.io/gang"}]}


def gang(bench: Bench, size: int, minimum: int | None = None) -> list[corev1.Pod]:
    bench.pod_group("g", minimum or size)
    return [bench.pod(f"p{i}", "g", **GATED) for i in range(size)]


def now(bench: Bench, pod: corev1.Pod) -> corev1.Pod:
    return bench.api.get(PODS, pod.name, pod.namespace)


def test_a_gang_is_freed_with_no_nomination_and_then_binds(bench: Bench) -> None:
    bench.node("n1")
    members = gang(bench, 3)
    bench.until(lambda: not any(now(bench, pod).gated for pod in members), "the gates are gone")
    assert {now(bench, pod).status.nominated_node_name for pod in members} == {""}
    answers = [bench.bind(now(bench, pod), "n1") for pod in members]
    assert [answer.result(SECONDS) for answer in answers] == ["", "", ""]


@pytest.mark.parametrize(
    ("percentage", "nodes", "nominated"),
    [
        pytest.param(0, 100, False, id="so few nodes are always all offered"),
        pytest.param(0, 101, True, id="of more a sample of which nothing is known"),
        pytest.param(99, 101, False, id="which one is told of, and slots are moved to what it holds"),
        pytest.param(10, 501, False, id="also of a larger cluster"),
        pytest.param(100, 101, False, id="where all are offered"),
        pytest.param(100, 500, False, id="up to five hundred"),
        pytest.param(100, 501, True, id="beyond, kube-scheduler should not have to judge them all for each member"),
    ],
)
def test_gated_members_are_nominated_where_that_is_cheaper_or_not_all_nodes_are_offered(
    percentage: int, nodes: int, nominated: bool
) -> None:
    with running(ExtenderConfiguration(percentage_of_nodes_to_score=percentage)) as bench:
        for number in range(nodes):
            bench.node(f"n{number}")
        members = gang(bench, 2)
        bench.until(lambda: not any(now(bench, pod).gated for pod in members), "the gates are gone")
        assert all(bool(now(bench, pod).status.nominated_node_name) == nominated for pod in members)


def test_a_profile_that_offers_a_sample_counts_for_all() -> None:
    profiles = (KubeSchedulerProfile("all"), KubeSchedulerProfile("sample", percentage_of_nodes_to_score=50))
    configuration = ExtenderConfiguration(percentage_of_nodes_to_score=100, profiles=profiles)
    assert _most_nodes_offered(configuration) == 100
    assert _most_nodes_offered(replace(configuration, profiles=profiles[:1])) == 500


def test_a_gang_without_room_stays_gated_and_its_group_says_why(bench: Bench) -> None:
    bench.node("n1", cpu="1")
    members = gang(bench, 2)
    bench.until(lambda: "GangRejected" in {event["reason"] for event in bench.api.events()}, "an event")
    assert all(now(bench, pod).gated for pod in members)
    bench.node("n2", cpu="1")
    bench.until(lambda: not any(now(bench, pod).gated for pod in members), "the gates are gone")


@pytest.mark.parametrize(
    ("resource", "spec"),
    [
        pytest.param(POD_GROUPS, {"minMember": 2}, id="ours"),
        pytest.param(IN_TREE_POD_GROUPS, {"schedulingPolicy": {"gang": {"minCount": 2}}}, id="kube-scheduler's own"),
    ],
)
def test_of_a_group_that_has_gone_nothing_is_remembered_that_it_was_told(
    resource: ResourceType[Any], spec: dict[str, Any]
) -> None:
    in_tree = {"Coscheduling": CoschedulingArgs(in_tree_pod_groups=True)}
    profile = replace(behind_profile("default-scheduler"), plugin_config=in_tree)
    with running(ExtenderConfiguration(profiles=(profile,))) as bench:
        said = bench.scheduler._dependencies.verdicts._last
        bench.node("n1", cpu="1")
        bench.api.create(resource, {"metadata": {"name": "g"}, "spec": spec})
        bench.until(lambda: bench.store(resource).get("default/g") is not None, "the group is seen")
        own: dict[str, Any] = {} if resource is POD_GROUPS else {"schedulingGroup": {"podGroupName": "g"}}
        members = [bench.pod(f"p{i}", "g" if resource is POD_GROUPS else "", **GATED, **own) for i in range(2)]
        bench.until(lambda: bool(said), "it is told that there is no room")
        for pod in members:
            bench.api.delete(PODS, pod.name, pod.namespace)
        bench.api.delete(resource, "g", "default")
        bench.until(lambda: not said, "that is forgotten")


def test_a_gang_of_labels_says_why_on_a_member(bench: Bench) -> None:
    bench.node("n1", cpu="1")
    labels = {
        "pod-group.scheduling.sigs.k8s.io/name": "g",
        "pod-group.scheduling.sigs.k8s.io/min-available": "2",
    }
    for name in ("p0", "p1"):
        container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
        body = {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container], **GATED}}
        bench.api.create(PODS, body)
    bench.until(lambda: "p0" in {event["regarding"]["name"] for event in bench.api.events()}, "an event on a member")


def test_a_bind_call_that_is_ahead_of_our_watch_is_taken_at_the_api_s_word(bench: Bench) -> None:
    """kube-scheduler has seen the gate go; our own watch is late."""
    bench.node("n1")
    pod = bench.pod("single", **GATED)
    late = threading.Event()
    informer = bench.scheduler._dependencies.informers.informer(PODS)
    seen = informer.store.get(pod.key)
    assert seen is not None
    assert seen.gated
    get = informer.store.get
    informer.store.get = lambda key: seen if key == pod.key and not late.is_set() else get(key)  # type: ignore[method-assign]
    assert "has scheduling gates" in bench.bind(pod, "n1").result(SECONDS)
    bench.api.patch(PODS, "single", {"spec": {"schedulingGates": []}}, namespace="default")
    assert bench.bind(pod, "n1").result(SECONDS) == ""
    late.set()
