"""scheduleOne with HTTP extenders: which are asked, what their answers and their errors do to a pod.

kube-scheduler: pkg/scheduler/extender_test.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from extender.client.status_patch import patch_pod_status
from extender.config.types import ExtenderConfig
from extender.framework.status import unschedulable
from tests.fakes.extender import FakeExtender
from tests.unit.scheduler.scripted import NAME, Bench

Serve = Callable[[dict[str, Any]], FakeExtender]


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[FakeExtender] = []

    def start(answers: dict[str, Any]) -> FakeExtender:
        servers.append(FakeExtender(answers))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def entry(server: FakeExtender, **settings: Any) -> ExtenderConfig:
    return ExtenderConfig(server.url, **{"node_cache_capable": True, **settings})


def run(*extenders: ExtenderConfig, nodes: tuple[str, ...] = ("a", "b", "c"), **spec: Any) -> tuple[Bench, bool]:
    bench = Bench(extenders)
    bench.node(*nodes)
    bench.pod(**spec)
    try:
        return bench, bench.attempt()
    finally:
        bench.close()


def test_a_filter_narrows_what_the_next_is_asked(serve: Serve) -> None:
    first, second = serve({"filter": {"NodeNames": ["b", "c"]}}), serve({"filter": {"NodeNames": ["c"]}})
    bench, bound = run(entry(first, filter_verb="filter"), entry(second, filter_verb="filter"))
    assert (bound, bench.get().node_name) == (True, "c")
    assert sorted(first.asked["filter"][0]["NodeNames"]) == ["a", "b", "c"]
    assert second.asked["filter"][0]["NodeNames"] == ["b", "c"]


def test_refusals_are_counted_and_the_pod_waits_for_anything(serve: Serve) -> None:
    answer = {"FailedNodes": {"a": "busy", "b": "busy"}, "FailedAndUnresolvableNodes": {"b": "gone", "c": "gone"}}
    bench, bound = run(entry(serve({"filter": answer}), filter_verb="filter"))
    assert not bound
    assert bench.said == [("FailedScheduling", "0/3 nodes are available: 1 busy, 2 gone.")]
    found = bench.parts.queue.get(bench.get())
    assert found is not None
    assert found[0].unschedulable_plugins == {"Extender"}
    bench.node("d")
    assert bench.place(bench.get()) == "backoffQ"


@pytest.mark.parametrize(
    ("ignorable", "bound"),
    [
        pytest.param(True, True, id="one that may be ignored: as if it were not there"),
        pytest.param(False, False, id="one that may not: the pod fails"),
    ],
)
def test_a_filter_that_fails(serve: Serve, ignorable: bool, bound: bool) -> None:
    broken = serve({"filter": {"Error": "out of order"}})
    bench, is_bound = run(entry(broken, filter_verb="filter", ignorable=ignorable))
    assert is_bound is bound
    if not bound:
        assert bench.said == [("FailedScheduling", "out of order")]
        assert bench.get().status.conditions[0].reason == "SchedulerError"
        assert bench.place(bench.get()) == "backoffQ"


def test_those_that_may_be_ignored_are_asked_last(serve: Serve) -> None:
    ignorable, strict = serve({"filter": {"NodeNames": ["a"]}}), serve({"filter": {"NodeNames": ["a", "b"]}})
    run(entry(ignorable, filter_verb="filter", ignorable=True), entry(strict, filter_verb="filter"))
    assert sorted(strict.asked["filter"][0]["NodeNames"]) == ["a", "b", "c"]
    assert ignorable.asked["filter"][0]["NodeNames"] == ["a", "b"]


def test_only_pods_that_ask_for_a_managed_resource_are_sent(serve: Serve) -> None:
    server = serve({"filter": {"NodeNames": ["a"]}})
    config = entry(server, filter_verb="filter", managed_resources=frozenset({"example.com/gpu"}))
    _, bound = run(config)
    assert (bound, server.asked) == (True, {})
    gpu = {"name": "c", "resources": {"limits": {"example.com/gpu": "1"}}}
    bench, bound = run(config, containers=[gpu])
    assert (bound, bench.get().node_name) == (True, "a")


def test_scores_are_weighted_and_added(serve: Serve) -> None:
    one = serve({"prioritize": [{"Host": "a", "Score": 5}, {"Host": "b", "Score": 1}]})
    other = serve({"prioritize": [{"Host": "b", "Score": 3}, {"Host": "elsewhere", "Score": 10}]})
    bench, bound = run(
        entry(one, prioritize_verb="prioritize", weight=1), entry(other, prioritize_verb="prioritize", weight=2)
    )
    assert (bound, bench.get().node_name) == (True, "b"), "50 against 10 + 60"


def test_a_score_that_does_not_come_counts_nothing(serve: Serve) -> None:
    good, broken = serve({"prioritize": [{"Host": "b", "Score": 1}]}), serve({})
    bench, bound = run(entry(broken, prioritize_verb="prioritize"), entry(good, prioritize_verb="prioritize"))
    assert (bound, bench.get().node_name) == (True, "b")


def test_an_extender_that_binds_comes_before_the_plugins(serve: Serve) -> None:
    server = serve({"bind": {"Error": ""}})
    bench, bound = run(entry(server, bind_verb="bind"))
    assert bound
    assert server.asked["bind"][0]["PodUID"] == bench.get().uid
    assert "Bind" not in bench.plugin.called
    assert "PostBind" in bench.plugin.called


@pytest.mark.parametrize(
    ("ignorable", "bound"),
    [
        pytest.param(True, True, id="one that may be ignored: the plugins bind"),
        pytest.param(False, False, id="one that may not: the binding fails"),
    ],
)
def test_a_bind_that_fails(serve: Serve, ignorable: bool, bound: bool) -> None:
    server = serve({"bind": {"Error": "no"}})
    bench, is_bound = run(entry(server, bind_verb="bind", ignorable=ignorable))
    assert is_bound is bound
    assert ("Bind" in bench.plugin.called) is bound
    if not bound:
        assert bench.said == [("FailedScheduling", "no")]


def test_the_nominated_node_is_asked_about_alone(serve: Serve) -> None:
    server = serve({"filter": {"NodeNames": ["b"]}})
    bench = Bench([entry(server, filter_verb="filter")])
    bench.node("a", "b", "c")
    made = bench.pod()
    patch_pod_status(bench.api, made, nominated_node_name="b")
    bench.see()
    assert bench.attempt()
    bench.close()
    assert [asked["NodeNames"] for asked in server.asked["filter"]] == [["b"]]


def test_plugins_have_the_first_word(serve: Serve) -> None:
    server = serve({"filter": {"NodeNames": []}})
    bench = Bench([entry(server, filter_verb="filter")])
    bench.node("a")
    bench.pod()
    bench.plugin.script["Filter"] = unschedulable("no")
    assert not bench.attempt()
    bench.close()
    assert server.asked == {}, "none is asked about no nodes"
    found = bench.parts.queue.get(bench.get())
    assert found is not None
    assert found[0].unschedulable_plugins == {NAME}
