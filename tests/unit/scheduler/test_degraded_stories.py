"""What still works when the API server is away, when planning is stuck, and when gangs cannot be served: the rows of docs/degraded.md."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from extender.api import corev1
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ConnectionFailedError
from extender.client.interface import ResourceType
from extender.plugins.coscheduling.report.gang_status import GangStatus
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.manager.specs import Specs
from extender.scheduler.interface import DEBUG_GANGS, GANG, GANGS, Page
from tests.unit.scheduler.conftest import SECONDS, Bench, running

AWAY = "connection refused"


class Leaving(EmbeddedAPI):
    """Answers, until it is away: then nothing that the extender asks or writes comes through. Watches stay open and are silent."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False

    def _check(self) -> None:
        if self.away:
            raise ConnectionFailedError(AWAY)

    def bind(self, binding: corev1.Binding) -> None:
        self._check()
        super().bind(binding)

    def get(self, resource: ResourceType[Any], name: str, namespace: str = "") -> Any:
        self._check()
        return super().get(resource, name, namespace)

    def patch(self, *args: Any, **kwargs: Any) -> Any:
        self._check()
        return super().patch(*args, **kwargs)

    def create_event(self, namespace: str, body: Mapping[str, Any]) -> None:
        self._check()
        super().create_event(namespace, body)


@pytest.fixture
def api() -> Leaving:
    return Leaving()


@pytest.fixture
def bench(api: Leaving) -> Iterator[Bench]:
    with running(api=api) as made:
        made.node("n1", "8")
        yield made


def gang(bench: Bench, name: str, size: int) -> list[corev1.Pod]:
    bench.pod_group(name, size)
    return [bench.pod(f"{name}-{number}", name) for number in range(size)]


def page(bench: Bench, path: str) -> Page:
    return {**bench.scheduler.pages(), **bench.scheduler.debug()}[path]


# The API server is away


def test_filter_goes_on_with_what_was_seen_last(bench: Bench, api: Leaving) -> None:
    single, members = bench.pod("single"), gang(bench, "train", 2)
    api.away = True
    assert bench.filter(single, "n1").node_names == ["n1"]
    assert [bench.filter(pod, "n1").node_names for pod in members] == [["n1"], ["n1"]]


def test_a_binding_that_does_not_come_through_is_an_error_and_the_next_call_binds(bench: Bench, api: Leaving) -> None:
    single = bench.pod("single")
    api.away = True
    assert bench.filter(single, "n1").node_names == ["n1"]
    assert AWAY in bench.bind(single, "n1").result(SECONDS)
    api.away = False
    assert bench.node_of(single) == ""
    assert bench.filter(single, "n1").node_names == ["n1"]
    assert bench.bind(single, "n1").result(SECONDS) == ""
    assert bench.node_of(single) == "n1"


def test_a_gang_whose_bindings_do_not_come_through_is_told_so_and_starts_whole_afterwards(
    bench: Bench, api: Leaving
) -> None:
    members = gang(bench, "train", 3)
    api.away = True
    assert all(bench.filter(pod, "n1").node_names for pod in members)
    errors = [answer.result(SECONDS) for answer in [bench.bind(pod, "n1") for pod in members]]
    assert all(AWAY in error for error in errors)
    api.away = False
    assert {bench.node_of(pod) for pod in members} == {""}
    bench.until(lambda: all(bench.filter(pod, "n1").node_names for pod in members), "they have places again")
    assert [answer.result(SECONDS) for answer in [bench.bind(pod, "n1") for pod in members]] == ["", "", ""]
    assert {bench.node_of(pod) for pod in members} == {"n1"}


def test_members_stay_held_and_the_hold_is_no_call_of_the_api_server(bench: Bench, api: Leaving) -> None:
    members = gang(bench, "train", 2)
    assert all(bench.filter(pod, "n1").node_names for pod in members)
    first = bench.bind(members[0], "n1")
    bench.held(members[0])
    api.away = True
    assert not first.done()
    api.away = False
    assert [bench.bind(members[1], "n1").result(SECONDS), first.result(SECONDS)] == ["", ""]


def test_pages_and_explain_answer_with_what_was_seen_last(bench: Bench, api: Leaving) -> None:
    gang(bench, "train", 2)
    api.away = True
    assert [each.key for each in page(bench, GANGS)()] == ["default/train"]  # type: ignore[attr-defined]
    assert isinstance(page(bench, GANG)("default/train"), GangStatus)
    assert page(bench, DEBUG_GANGS)()


# Planning is stuck


class Stuck:
    """The planner's thread, from the call of `stick` on: no plan comes to its end until `go_on`."""

    def __init__(self) -> None:
        self.planning, self._may_go_on = threading.Event(), threading.Event()
        self._may_go_on.set()

    def offload(self, function: Callable[..., Any], *args: Any) -> Any:
        if not self._may_go_on.is_set():
            self.planning.set()
        assert self._may_go_on.wait(SECONDS)
        return function(*args)

    def stick(self) -> None:
        self._may_go_on.clear()

    def go_on(self) -> None:
        self._may_go_on.set()


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    made = Stuck()
    yield made
    made.go_on()


@pytest.fixture
def planless(stuck: Stuck) -> Iterator[Bench]:
    with running(offload=stuck.offload) as made:
        made.node("n1", "8")
        yield made
        stuck.go_on()


def asked(bench: Bench, stuck: Stuck, pod: corev1.Pod) -> threading.Thread:
    """A filter call that waits for the plan that hangs."""
    call = threading.Thread(target=lambda: bench.filter(pod, "n1"))
    call.start()
    assert stuck.planning.wait(SECONDS)
    return call


def test_single_pods_are_answered_and_bound(planless: Bench, stuck: Stuck) -> None:
    members, single = gang(planless, "train", 2), planless.pod("single")
    stuck.stick()
    call = asked(planless, stuck, members[0])
    assert planless.filter(single, "n1").node_names == ["n1"]
    assert planless.bind(single, "n1").result(SECONDS) == ""
    stuck.go_on()
    call.join(SECONDS)


def test_a_gang_that_has_its_plan_starts(planless: Bench, stuck: Stuck) -> None:
    planned, members = gang(planless, "planned", 2), gang(planless, "train", 2)
    assert all(planless.filter(pod, "n1").node_names for pod in planned)
    stuck.stick()
    call = asked(planless, stuck, members[0])
    assert [answer.result(SECONDS) for answer in [planless.bind(pod, "n1") for pod in planned]] == ["", ""]
    stuck.go_on()
    call.join(SECONDS)


def test_the_list_of_gangs_and_their_state_answer(planless: Bench, stuck: Stuck) -> None:
    members = gang(planless, "train", 2)
    stuck.stick()
    call = asked(planless, stuck, members[0])
    assert [each.key for each in page(planless, GANGS)()] == ["default/train"]  # type: ignore[attr-defined]
    assert page(planless, DEBUG_GANGS)()
    stuck.go_on()
    call.join(SECONDS)


def test_livez_fails_for_planning_alone_where_a_plan_takes_too_long(
    stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extender.scheduler.factory.STUCK_PLANNING_SECONDS", 0.0)
    with running(offload=stuck.offload) as bench:
        bench.node("n1", "8")
        members = gang(bench, "train", 2)
        stuck.stick()
        call = asked(bench, stuck, members[0])
        failed = {check.name: check.reason for check in bench.scheduler.liveness() if not check.ok}
        assert failed.keys() == {"planning"}
        assert "a planning task has been running for" in failed["planning"]
        stuck.go_on()
        call.join(SECONDS)


# Gangs cannot be served


@pytest.fixture
def gangless(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Whatever is asked about any gang raises."""
    armed, spec = threading.Event(), Specs.of
    armed.set()

    def faulty(specs: Specs, group: Group) -> object:
        if armed.is_set():
            raise KeyError("a fault of ours")
        return spec(specs, group)

    with running() as made:
        made.node("n1", "8")
        monkeypatch.setattr(Specs, "of", faulty)
        yield made
        armed.clear()


@pytest.mark.faults
def test_single_pods_are_served_where_no_gang_can_be(gangless: Bench) -> None:
    members, single = gang(gangless, "train", 2), gangless.pod("single")
    refused = gangless.filter(members[0], "n1")
    assert (refused.node_names, refused.error) == ([], "")
    assert gangless.filter(single, "n1").node_names == ["n1"]
    assert gangless.bind(single, "n1").result(SECONDS) == ""
    assert {gangless.node_of(pod) for pod in members} == {""}


@pytest.mark.faults
def test_the_probes_pass_while_single_pods_are_served(gangless: Bench) -> None:
    members, single = gang(gangless, "train", 2), gangless.pod("single")
    gangless.filter(members[0], "n1")
    gangless.filter(single, "n1")
    assert [check.name for check in gangless.scheduler.readiness() if not check.ok] == []
    assert [check.name for check in gangless.scheduler.liveness() if not check.ok] == []
