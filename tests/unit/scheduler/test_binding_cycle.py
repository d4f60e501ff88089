"""The steps of a binding cycle in their order, and what each that fails takes back, the last first."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from extender.api import corev1
from extender.backend.cache.cache import Cache, CacheError
from extender.framework.cycle_state import CycleState
from extender.framework.permit_rejection import rejection_of
from extender.framework.runtime.framework import Framework
from extender.framework.status import SKIP, SUCCESS, Status, error, unschedulable, wait
from extender.scheduler.bind_verb import BindVerb
from extender.scheduler.binding_cycle import BindingCycle, BindingCycles
from extender.scheduler.in_flight import BindCall
from tests.objects import make_pod
from tests.unit.scheduler.scripted import Bench

POD = make_pod().name("p").uid("p").req(cpu="1").obj()
BEGUN = ("assume", "no nomination", "Reserve", "Permit")
WAITED = (*BEGUN, "wait")
TAKEN_BACK = ("Unreserve", "forget")
BOOM = RuntimeError("boom")


class Books(Cache):
    """The real cache, which writes down what the cycle does with it."""

    def __init__(self, calls: list[str]) -> None:
        super().__init__()
        self._calls = calls

    def assume_pod(self, pod: corev1.Pod, node_name: str = "") -> corev1.Pod:
        self._calls.append("assume")
        return super().assume_pod(pod, node_name)

    def forget_pod(self, pod: corev1.Pod) -> None:
        self._calls.append("forget")
        super().forget_pod(pod)

    def finish_binding(self, pod: corev1.Pod) -> None:
        self._calls.append("finish")
        super().finish_binding(pod)


class Plugins:
    """A framework that writes down what it is asked; `script`: extension point -> its answer, SUCCESS where there is none."""

    def __init__(self, **script: Status | Exception) -> None:
        self.script = script
        self.calls: list[str] = []
        self.cause = ""  # why the wait in Permit has failed, as Unreserve sees it
        self.nominator = SimpleNamespace(delete_nominated_pod_if_exists=lambda pod: self.says("no nomination"))
        self.profile_name = "default-scheduler"

    def says(self, point: str) -> Status:
        self.calls.append(point)
        answer = self.script.get(point, SUCCESS)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def clock(self) -> float:
        return 0.0

    def run_reserve_plugins_reserve(self, state: CycleState, pod: corev1.Pod, node: str) -> Status:
        return self.says("Reserve")

    def run_reserve_plugins_unreserve(self, state: CycleState, pod: corev1.Pod, node: str) -> None:
        self.cause = rejection_of(state)
        self.says("Unreserve")

    def run_permit_plugins(self, state: CycleState, pod: corev1.Pod, node: str) -> tuple[Status, dict[str, float]]:
        return self.says("Permit"), {}

    def add_waiting_pod(self, *args: Any) -> Callable[[], None]:
        return lambda: self.calls.append("no waiting pod")

    def get_waiting_pod(self, uid: str) -> None: ...

    def wait_on_permit(self, pod: corev1.Pod) -> Status:
        return self.says("wait")

    def run_pre_bind_pre_flights(self, state: CycleState, pod: corev1.Pod, node: str) -> Status:
        assert (pod.node_name, node) == ("n1", "n1")
        return self.says("PreBindPreFlight")

    def run_pre_bind_plugins(self, *args: Any) -> Status:
        return self.says("PreBind")

    def run_bind_plugins(self, *args: Any) -> Status:
        return self.says("Bind")

    def run_post_bind_plugins(self, *args: Any) -> None:
        self.says("PostBind")


def begun(plugins: Plugins) -> tuple[BindingCycle, Books]:
    cache = Books(plugins.calls)
    return BindingCycles(cache).begin(cast("Framework", plugins), CycleState(), POD, "n1"), cache


@pytest.mark.parametrize(
    ("script", "calls"),
    [
        pytest.param({}, (*WAITED, "PreBind", "Bind", "finish", "PostBind"), id="bound"),
        pytest.param({"Permit": wait()}, (*WAITED, "PreBind", "Bind", "finish", "PostBind"), id="bound after a wait"),
        pytest.param({"Reserve": unschedulable("no")}, (*BEGUN[:-1], *TAKEN_BACK), id="Reserve refuses"),
        pytest.param({"Permit": unschedulable("no")}, (*BEGUN, *TAKEN_BACK), id="Permit refuses"),
        pytest.param({"Permit": error("no")}, (*BEGUN, *TAKEN_BACK), id="Permit fails"),
        pytest.param(
            {"Permit": wait(), "wait": unschedulable("no")},
            (*WAITED, "no waiting pod", *TAKEN_BACK),
            id="wait ends badly",
        ),
        pytest.param({"PreBind": error("no")}, (*WAITED, "PreBind", *TAKEN_BACK), id="PreBind fails"),
        pytest.param({"Bind": error("no")}, (*WAITED, "PreBind", "Bind", *TAKEN_BACK), id="Bind fails"),
        pytest.param({"Bind": SKIP}, (*WAITED, "PreBind", "Bind", *TAKEN_BACK), id="no plugin binds"),
    ],
)
def test_behind_the_bind_verb(script: dict[str, Status], calls: tuple[str, ...]) -> None:
    plugins = Plugins(**script)
    cache = Books(plugins.calls)
    status = BindVerb(cache).run(cast("Framework", plugins), POD, "n1", BindCall())
    assert tuple(plugins.calls) == calls
    assert (status.success, cache.pod_count()) == ((True, 1) if "finish" in calls else (False, 0))


@pytest.mark.parametrize("point", ["no nomination", "Reserve", "Permit", "wait", "PreBind", "Bind"])
def test_an_exception_leaves_nothing_behind(point: str) -> None:
    plugins = Plugins(**{point: BOOM})
    cache = Books(plugins.calls)
    with pytest.raises(RuntimeError):
        BindVerb(cache).run(cast("Framework", plugins), POD, "n1", BindCall())
    reserved = point != "no nomination"
    assert plugins.calls[plugins.calls.index(point) + 1 :] == [*(["Unreserve"] if reserved else []), "forget"]
    assert cache.pod_count() == 0


@pytest.mark.parametrize("point", ["Reserve", "Permit"])
def test_a_cycle_that_is_refused_at_its_beginning_is_taken_back_once(point: str) -> None:
    plugins = Plugins(**{point: unschedulable("no")})
    cycle, cache = begun(plugins)
    assert (cycle.status.message, cache.pod_count()) == ("no", 0)
    cycle.take_back()
    assert plugins.calls.count("Unreserve") == plugins.calls.count("forget") == 1


def test_unreserve_is_told_why_the_wait_in_permit_has_failed() -> None:
    plugins = Plugins(Permit=wait(), wait=unschedulable("a member has gone"))
    cycle, _ = begun(plugins)
    cycle.wait_on_permit()
    cycle.take_back()
    assert plugins.cause == "a member has gone"


def test_a_pod_that_is_assumed_already_begins_no_second_cycle() -> None:
    plugins = Plugins()
    cycle, cache = begun(plugins)
    with pytest.raises(CacheError, match="is in the cache"):
        BindingCycles(cache).begin(cast("Framework", plugins), CycleState(), POD, "n1")
    assert (cycle.take_back(), plugins.calls.count("Unreserve")) == (True, 1)


def test_a_bound_pod_is_not_taken_back() -> None:
    plugins = Plugins()
    cycle, cache = begun(plugins)
    assert cycle.bind().success
    assert not cycle.take_back()
    assert (cache.pod_count(), "Unreserve" in plugins.calls) == (1, False)


def test_a_pod_that_the_watch_has_confirmed_meanwhile_keeps_its_room() -> None:
    """Its binding was accepted, and its answer lost."""
    plugins = Plugins(Bind=error("no answer"))
    cycle, cache = begun(plugins)
    cache.add_pod(cycle.pod)
    cycle.bind()
    assert not cycle.take_back()
    assert (cache.pod_count(), plugins.calls[-2:]) == (1, ["Unreserve", "forget"])


@pytest.mark.parametrize(
    ("script", "calls"),
    [
        pytest.param({"PreBindPreFlight": SKIP}, ["PreBindPreFlight", "wait", "Bind", "finish"], id="nothing to do"),
        pytest.param({}, ["PreBindPreFlight", "wait", "PreBind", "Bind", "finish"], id="there is work for PreBind"),
    ],
)
def test_pre_bind_is_left_out_where_a_driver_has_asked_for_its_pre_flight(
    script: dict[str, Status], calls: list[str]
) -> None:
    plugins = Plugins(**script)
    cycle, _ = begun(plugins)
    cycle.run_pre_flights()
    cycle.wait_on_permit()
    assert cycle.bind().success
    assert plugins.calls[len(BEGUN) :] == calls


def test_a_driver_may_bind_in_place_of_the_plugins() -> None:
    plugins = Plugins()
    cycle, _ = begun(plugins)
    assert cycle.bind(lambda: plugins.says("extender")).success
    assert plugins.calls[len(BEGUN) :] == ["PreBind", "extender", "finish"]


# The in-process driver: its outcomes are in in_process/test_schedule_one.py


@pytest.mark.parametrize(
    ("point", "before"),
    [
        pytest.param("Reserve", ["Reserve"], id="Reserve"),
        pytest.param("Permit", ["Reserve", "Permit"], id="Permit"),
        pytest.param("PreBindPreFlight", ["Reserve", "Permit", "PreBindPreFlight"], id="PreBindPreFlight"),
        pytest.param("Bind", ["Reserve", "Permit", "PreBindPreFlight", "Bind"], id="Bind"),
    ],
)
def test_in_process_a_pod_is_unreserved_and_then_forgotten(
    point: str, before: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    bench.node("n")
    bench.pod()
    forget = bench.parts.cache.forget_pod

    def noted(pod: corev1.Pod) -> None:
        bench.plugin.called.append("forget")
        forget(pod)

    monkeypatch.setattr(bench.parts.cache, "forget_pod", noted)
    bench.plugin.script[point] = error("no")
    assert not bench.attempt()
    assert bench.plugin.called == ["PreFilter", "Filter", *before, *TAKEN_BACK]


def test_in_process_an_abandoned_attempt_keeps_neither_room_nor_events() -> None:
    bench = Bench()
    bench.node("n")
    bench.pod()
    attempt = bench.schedule()
    assert attempt is not None
    bench.parts.cycles.abandon(attempt)
    assert (bench.parts.cache.assumed_count(), len(bench.parts.queue.in_flight_pods())) == (0, 0)
    assert bench.plugin.called[-1] == "Unreserve"
