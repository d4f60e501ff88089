"""Bind calls for a pod that has one already, as after a timeout or a restart of kube-scheduler: one Binding is posted."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any

import pytest

from extender.api import corev1
from extender.config.types import ExtenderConfiguration
from extender.scheduler.in_flight import SUPERSEDED
from tests.unit.scheduler.conftest import SECONDS, Bench, running


class Postings:
    """The Bindings that are posted, in order; each waits for `go_on` before the API server has it."""

    def __init__(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[str, str]] = []
        self.first = threading.Event()
        self.go_on = threading.Event()
        bind = bench.api.bind

        def binding(body: corev1.Binding) -> None:
            self.made.append((body.metadata.name, body.target.name))
            self.first.set()
            assert self.go_on.wait(SECONDS)
            bind(body)

        monkeypatch.setattr(bench.api, "bind", binding)


@pytest.fixture
def postings(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Postings:
    bench.node("n1")
    bench.node("n2")
    return Postings(bench, monkeypatch)


def bind_again(bench: Bench, pod: corev1.Pod, node: str) -> Future[str]:
    """Returns when the newer call has taken the older one's turn."""
    calls = bench.scheduler._dependencies.in_flight._calls
    older = calls[pod.uid]
    answer = bench.bind(pod, node)
    bench.until(lambda: calls[pod.uid] is not older, "the newer call is there")
    return answer


@pytest.mark.parametrize(
    ("node", "answer"),
    [
        pytest.param("n1", "", id="for the same node: both are told that it is bound"),
        pytest.param(
            "n2", 'pod "default/single" is already assigned to node "n1"', id="for another: it is told the node"
        ),
    ],
)
def test_a_call_that_comes_while_the_binding_is_posted(
    bench: Bench, postings: Postings, node: str, answer: str
) -> None:
    pod = bench.pod("single")
    first = bench.bind(pod, "n1")
    assert postings.first.wait(SECONDS)
    second = bind_again(bench, pod, node)
    postings.go_on.set()
    assert (first.result(SECONDS), second.result(SECONDS)) == ("", answer)
    assert postings.made == [("single", "n1")]


def test_a_call_for_another_node_ends_the_one_that_is_held_and_its_node_counts(
    bench: Bench, postings: Postings
) -> None:
    """kube-scheduler had given the first up after its timeout: that must bind nothing any more."""
    postings.go_on.set()
    bench.pod_group("g", 2)
    member, last = bench.pod("p0", "g"), bench.pod("p1", "g")
    first = bench.bind(member, "n1")
    bench.held(member)
    second = bind_again(bench, member, "n2")
    assert SUPERSEDED in first.result(SECONDS)
    bench.held(member)
    assert bench.bind(last, "n1").result(SECONDS) == second.result(SECONDS) == ""
    assert sorted(postings.made) == [("p0", "n2"), ("p1", "n1")]
    assert bench.node_of(member) == "n2"


def test_gangs_that_are_held_leave_calls_for_single_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as `maxHeldBinds` allows may be held by gangs; that many single pods are bound at the same time all the same."""
    with running(ExtenderConfiguration(max_held_binds=2)) as bench:
        postings = Postings(bench, monkeypatch)
        bench.node("n1", cpu="8")
        bench.pod_group("g", 2)
        first, second = (bench.pod(f"m{number}", "g") for number in range(2))
        assert bench.filter(first, "n1").node_names == ["n1"]
        answers = [bench.bind(first, "n1")]
        bench.held(first)
        singles = [bench.pod(f"single{number}") for number in range(4)]
        answers += [bench.bind(pod, "n1") for pod in singles]
        bench.until(lambda: len(postings.made) == len(singles), "all of them are posted at the same time")
        postings.go_on.set()
        answers.append(bench.bind(second, "n1"))
        assert [answer.result(SECONDS) for answer in answers] == [""] * 6


def test_a_pod_of_another_scheduler_is_not_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """For any caller: the filter is asked about all pods of a kube-scheduler, and bind binds ours alone."""
    with running(ExtenderConfiguration(scheduler_names=("gang-scheduler",))) as bench:
        postings = Postings(bench, monkeypatch)
        postings.go_on.set()
        bench.node("n1")
        pods: dict[str, Any] = {
            name: bench.pod(name.partition("-")[0], schedulerName=name)
            for name in ("default-scheduler", "gang-scheduler")
        }
        refusal = 'pod "default/default" is not of this scheduler: default-scheduler'
        assert bench.bind(pods["default-scheduler"], "n1").result(SECONDS) == refusal
        assert bench.bind(pods["gang-scheduler"], "n1").result(SECONDS) == ""
        assert postings.made == [("gang", "n1")]
