"""Preemption that comes while a gang's bindings are on their way: as if they were written already, whole or not at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from extender.api import corev1
from extender.client.embedded import EmbeddedAPI
from tests.unit.scheduler.conftest import SECONDS, Bench, running


class SlowBindings(EmbeddedAPI):
    """Bindings of these pods, by name, wait: before they are written, or once they are, and before the answer."""

    def __init__(self) -> None:
        super().__init__()
        self.unwritten: set[str] = set()
        self.unanswered: set[str] = set()
        self.waiting: set[str] = set()
        self.go_on = threading.Event()

    def bind(self, binding: corev1.Binding) -> None:
        name = binding.metadata.name
        if name in self.unwritten:
            self._wait(name)
        super().bind(binding)
        if name in self.unanswered:
            self._wait(name)

    def _wait(self, name: str) -> None:
        self.waiting.add(name)
        assert self.go_on.wait(SECONDS)


@pytest.fixture
def api() -> SlowBindings:
    return SlowBindings()


@pytest.fixture
def bench(api: SlowBindings) -> Iterator[Bench]:
    with running(api=api) as made:
        made.until(made.may_evict, "evictions are allowed")
        yield made
        api.go_on.set()


def start(bench: Bench, api: SlowBindings) -> tuple[list[corev1.Pod], list[Future[str]]]:
    """A gang of two, r0 on n1 and r1 on n2; the binding of r1 waits."""
    bench.node("n1", cpu="1")
    bench.node("n2", cpu="1")
    bench.pod_group("running", 2)
    members = [bench.pod(f"r{i}", "running") for i in range(2)]
    answers = [bench.bind(members[0], "n1")]
    bench.held(members[0])
    answers.append(bench.bind(members[1], "n2"))
    assert answers[0].result(SECONDS) == ""
    bench.until(lambda: api.waiting == {"r1"}, "the binding of r1 waits")
    bench.until(lambda: bench.node_of_seen(members[0]) == "n1", "r0 is seen on its node")
    return members, answers


def test_a_binding_that_is_seen_before_it_is_answered_makes_a_running_gang(bench: Bench, api: SlowBindings) -> None:
    api.unanswered = {"r1"}
    members, answers = start(bench, api)
    bench.until(lambda: bench.node_of_seen(members[1]) == "n2", "r1 is seen on its node")
    vip = bench.pod("vip", priority=100)
    assert bench.preempt(vip, {"n1": members[:1], "n2": members[1:]}) == {"n1": {"r0"}}
    api.go_on.set()
    assert answers[1].result(SECONDS) == ""


@pytest.mark.parametrize(
    ("offered", "victims"),
    [
        pytest.param({"n1": 0}, {"n1": {"r0"}}, id="for the room of the bound member"),
        pytest.param({"n2": 1}, {"n2": {"r1"}}, id="for the room of the member being bound"),
    ],
)
def test_a_gang_that_is_being_bound_goes_whole(
    bench: Bench, api: SlowBindings, offered: dict[str, int], victims: dict[str, set[str]]
) -> None:
    api.unwritten = {"r1"}
    members, answers = start(bench, api)
    vip = bench.pod("vip", priority=100)
    assert bench.preempt(vip, {node: [members[index]] for node, index in offered.items()}) == victims
    (index,) = offered.values()
    bench.preempted(members[index])
    bench.until(lambda: not any(map(bench.there, members)), "the rest of the gang goes too")
    api.go_on.set()
    assert "not found" in answers[1].result(SECONDS)


def test_a_gang_takes_the_room_of_one_that_is_being_bound(bench: Bench, api: SlowBindings) -> None:
    api.unwritten = {"r1"}
    members, answers = start(bench, api)
    bench.pod_group("vips", 2)
    vips = [bench.pod(f"v{i}", "vips", priority=100) for i in range(2)]
    assert bench.filter(vips[0], "n1", "n2").node_names == []
    bench.until(lambda: not any(map(bench.there, members)), "the gang goes whole")
    api.go_on.set()
    assert "not found" in answers[1].result(SECONDS)
    bench.until(lambda: bool(bench.filter(vips[0], "n1", "n2").node_names), "the room is theirs")


def test_a_gang_that_is_refused_while_no_binding_of_another_is_seen_takes_its_room_later(
    bench: Bench, api: SlowBindings
) -> None:
    """No pod of lower priority was on a node by the watch's word, and no event asked for victims again."""
    api.unwritten = {"r0", "r1"}
    bench.node("n1", cpu="2")
    bench.pod_group("running", 2)
    members = [bench.pod(f"r{i}", "running") for i in range(2)]
    answers = [bench.bind(members[0], "n1")]
    bench.held(members[0])
    answers.append(bench.bind(members[1], "n1"))
    bench.until(lambda: api.waiting == {"r0", "r1"}, "both bindings wait")
    refused_for_room(bench)
    api.go_on.set()
    bench.until(lambda: not any(map(bench.there, members)), "the gang goes whole")


def test_a_gang_that_is_refused_while_a_single_pod_is_being_bound_takes_its_room_later(
    bench: Bench, api: SlowBindings
) -> None:
    api.unwritten = {"single"}
    bench.node("n1", cpu="1")
    single = bench.pod("single")
    bench.bind(single, "n1")
    bench.until(lambda: api.waiting == {"single"}, "the binding waits")
    refused_for_room(bench)
    api.go_on.set()
    bench.until(lambda: not bench.there(single), "the pod goes")


def refused_for_room(bench: Bench) -> None:
    """Once the first tick has had all that waits looked at."""
    bench.until(lambda: bench.scheduler._dependencies.coscheduling.lead_changes._planning, "it leads")
    bench.pod_group("vips", 1)
    vip = bench.pod("vip", "vips", priority=100)
    assert bench.filter(vip, "n1").node_names == []
    bench.flush()
