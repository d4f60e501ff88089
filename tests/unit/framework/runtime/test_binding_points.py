"""Reserve to PostBind, and the wait in Permit.

kube-scheduler: TestReservePlugins, TestPermitPlugins, TestWaitOnPermit, TestPreBindPreFlightPlugins,
TestPreBindPlugins, TestRunBindPlugins
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import pytest

from extender.framework.cycle_state import CycleState
from extender.framework.interface import WaitingPod
from extender.framework.runtime.framework import Framework
from extender.framework.status import SKIP, SUCCESS, Code, Status, unresolvable, unschedulable
from tests.unit.framework.runtime.fakes import (
    POD,
    REASON,
    Binder,
    FakeClock,
    FakePlugin,
    make_dependencies,
    make_framework,
)

OK, E, U, UU, SK, W = (
    Code.SUCCESS,
    Code.ERROR,
    Code.UNSCHEDULABLE,
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
    Code.SKIP,
    Code.WAIT,
)


def failed(point: str, plugin: str) -> Status:
    return Status(E, (f'running {point} plugin "{plugin}": {REASON}',))


@pytest.mark.parametrize(("point", "method", "run"), [
    pytest.param("Reserve", "reserve", Framework.run_reserve_plugins_reserve, id="Reserve"),
    pytest.param("PreBind", "pre_bind", Framework.run_pre_bind_plugins, id="PreBind"),
])  # fmt: skip
@pytest.mark.parametrize(
    ("codes", "refused", "broken", "asked"),
    [
        pytest.param([], None, None, 0, id="no plugin"),
        pytest.param([OK], None, None, 1, id="success"),
        pytest.param([U], unschedulable(REASON, plugin="p0"), None, 1, id="unschedulable"),
        pytest.param([UU], unresolvable(REASON, plugin="p0"), None, 1, id="unresolvable"),
        pytest.param([E], None, "p0", 1, id="error"),
        pytest.param([SK], None, "p0", 1, id="skip is an error"),
        pytest.param([W], None, "p0", 1, id="wait is an error"),
        pytest.param([OK, OK], None, None, 2, id="two successes"),
        pytest.param([E, E], None, "p0", 1, id="two errors: the first"),
        pytest.param([OK, E], None, "p1", 2, id="success, then error"),
        pytest.param([E, OK], None, "p0", 1, id="an error ends it"),
        pytest.param([U, OK], unschedulable(REASON, plugin="p0"), None, 1, id="a refusal ends it"),
    ],
)
def test_reserve_and_pre_bind(
    point: str,
    method: str,
    run: Callable[[Framework, CycleState, object, str], Status],
    codes: list[Code],
    refused: Status | None,
    broken: str | None,
    asked: int,
) -> None:
    plugins = [FakePlugin(f"p{i}", answers={method: code}) for i, code in enumerate(codes)]
    framework = make_framework(method, *plugins)
    expected = refused or (failed(point, broken) if broken else SUCCESS)
    assert run(framework, CycleState(), POD, "n1") == expected
    assert sum(len(plugin.calls) for plugin in plugins) == asked


@pytest.mark.faults
def test_unreserve_runs_backwards_and_through_failures() -> None:
    journal: list[str] = []
    plugins = [
        FakePlugin("a", journal=journal),
        FakePlugin("b", journal=journal, raises={"unreserve": RuntimeError("no")}),
        FakePlugin("c", journal=journal),
    ]
    make_framework("reserve", *plugins).run_reserve_plugins_unreserve(CycleState(), POD, "n1")
    assert journal == ["unreserve c", "unreserve b", "unreserve a"]


@pytest.mark.faults
def test_post_bind_runs_through_failures() -> None:
    journal: list[str] = []
    plugins = [
        FakePlugin("a", journal=journal, raises={"post_bind": RuntimeError("no")}),
        FakePlugin("b", journal=journal),
    ]
    make_framework("post_bind", *plugins).run_post_bind_plugins(CycleState(), POD, "n1")
    assert journal == ["post_bind a", "post_bind b"]


WAITS = "one or more plugins asked to wait and no plugin rejected pod"


@pytest.mark.parametrize(
    ("plugins", "expected", "timeouts", "asked"),
    [
        pytest.param([], SUCCESS, {}, 0, id="no plugin"),
        pytest.param([{}], SUCCESS, {}, 1, id="success"),
        pytest.param([{"permit": U}, {}], unschedulable(REASON, plugin="p0"), {}, 1, id="unschedulable ends it"),
        pytest.param([{"permit": UU}], unresolvable(REASON, plugin="p0"), {}, 1, id="unresolvable"),
        pytest.param(
            [{"permit": E}, {"permit": E}],
            Status(E, (f'running Permit plugin "p0": {REASON}',), "p0"),
            {},
            1,
            id="an error ends it",
        ),
        pytest.param(
            [{"permit": SK}], Status(E, (f'running Permit plugin "p0": {REASON}',), "p0"), {}, 1, id="skip is an error"
        ),
        pytest.param(
            [{"permit": W, "permit_seconds": 10.0}, {"permit": W, "permit_seconds": 20.0}],
            Status(W, (REASON, WAITS)),
            {"p0": 10.0, "p1": 20.0},
            2,
            id="all that want to wait are noted, with their times",
        ),
        pytest.param(
            [{"permit": W, "permit_seconds": 3600.0}],
            Status(W, (REASON, WAITS)),
            {"p0": 900.0},
            1,
            id="no pod waits longer than 15 minutes",
        ),
        pytest.param(
            [{"permit": W}, {"permit": U}], unschedulable(REASON, plugin="p1"), {}, 2, id="a refusal beats a wait"
        ),
        pytest.param([{"permit": W}, {}], Status(W, (REASON, WAITS)), {"p0": 10.0}, 2, id="a wait beats a success"),
    ],
)
def test_permit(plugins: list[dict[str, object]], expected: Status, timeouts: Mapping[str, float], asked: int) -> None:
    fakes = [FakePlugin(f"p{i}", **given) for i, given in enumerate(plugins)]  # type: ignore[arg-type]
    assert make_framework("permit", *fakes).run_permit_plugins(CycleState(), POD, "n1") == (expected, timeouts)
    assert sum(len(plugin.calls) for plugin in fakes) == asked


def waiting(framework: Framework) -> WaitingPod:
    found = framework.get_waiting_pod(POD.uid)
    assert found is not None
    return found


def test_a_pod_that_need_not_wait_goes_on_at_once() -> None:
    framework = make_framework("permit")
    assert not framework.will_wait_on_permit(POD)
    assert framework.wait_on_permit(POD) == SUCCESS


@pytest.mark.parametrize(
    ("signal", "expected"),
    [
        pytest.param(lambda pod: pod.allow("p"), SUCCESS, id="allowed: goes on"),
        pytest.param(
            lambda pod: pod.reject("p", "not now"), unschedulable("not now", plugin="p"), id="rejected: as it was said"
        ),
        pytest.param(
            lambda pod: pod.preempt("p", "victim"),
            Status(E, ("waiting on permit for pod: victim",), "p"),
            id="preempted: an error, to be tried again",
        ),
    ],
)
def test_wait_on_permit(signal: Callable[[WaitingPod], bool], expected: Status) -> None:
    framework = make_framework("permit")
    framework.add_waiting_pod(POD, "n1", {"p": 10.0})
    assert framework.will_wait_on_permit(POD)
    assert waiting(framework).node_name == "n1"
    outcome: list[Status] = []
    thread = threading.Thread(target=lambda: outcome.append(framework.wait_on_permit(POD)))
    thread.start()
    assert signal(waiting(framework))
    thread.join(timeout=30)
    assert outcome == [expected]
    assert not framework.will_wait_on_permit(POD)


def test_the_wait_ends_with_the_smallest_timeout() -> None:
    clock = FakeClock()
    framework = make_framework("permit", dependencies=make_dependencies(clock=clock))
    framework.add_waiting_pod(POD, "n1", {"slow": 60.0, "Coscheduling": 10.0})
    clock.step(10)
    text = "rejected due to timeout after waiting 10s at plugin Coscheduling"
    assert framework.wait_on_permit(POD) == unschedulable(text, plugin="Coscheduling")


def test_a_pod_that_is_gone_is_rejected() -> None:
    framework = make_framework("permit")
    assert not framework.reject_waiting_pod(POD.uid)
    framework.add_waiting_pod(POD, "n1", {"p": 10.0})
    assert framework.reject_waiting_pod(POD.uid)
    assert framework.wait_on_permit(POD) == unschedulable("removed")


def test_an_attempt_that_ends_before_its_wait_leaves_no_waiting_pod_to_the_next() -> None:
    framework = make_framework("permit")
    drop = framework.add_waiting_pod(POD, "n1", {"p": 10.0})
    drop()
    assert not framework.will_wait_on_permit(POD)
    framework.add_waiting_pod(POD, "n1", {"p": 10.0})
    drop()
    assert framework.will_wait_on_permit(POD), "this is another attempt's"


def test_all_waiting_pods_can_be_seen() -> None:
    framework = make_framework("permit")
    framework.add_waiting_pod(POD, "n1", {"p": 10.0})
    seen: list[WaitingPod] = []
    framework.iterate_over_waiting_pods(seen.append)
    assert [pod.pod for pod in seen] == [POD]


def test_how_long_a_pod_waited_is_reported() -> None:
    seen = []
    dependencies = make_dependencies(record=lambda point, code, profile, seconds: seen.append((point, code, profile)))
    framework = make_framework("permit", dependencies=dependencies)
    framework.add_waiting_pod(POD, "n1", {"p": 10.0})
    waiting(framework).allow("p")
    framework.wait_on_permit(POD)
    assert seen == [("WaitOnPermit", "Success", "test")]


@pytest.mark.parametrize(
    ("codes", "expected", "skipped"),
    [
        pytest.param([], SKIP, set(), id="no plugin: nothing to do"),
        pytest.param([OK, SK], SUCCESS, {"p1"}, id="one has something to do"),
        pytest.param([SK, SK], SKIP, {"p0", "p1"}, id="none has anything to do"),
        pytest.param([E], Status(E, (f'running PreBindPreFlight "p0": {REASON}',)), set(), id="an error"),
        pytest.param(
            [U],
            Status(
                E,
                (
                    'PreBindPreFlight p0 returned "Unschedulable", which is unsupported. '
                    "It is supposed to return Success, Skip, or Error status",
                ),
            ),
            set(),
            id="a refusal is an error",
        ),
    ],
)
def test_pre_bind_pre_flights(codes: list[Code], expected: Status, skipped: set[str]) -> None:
    state = CycleState()
    plugins = [FakePlugin(f"p{i}", pre_bind_pre_flight=code) for i, code in enumerate(codes)]
    assert make_framework("pre_bind", *plugins).run_pre_bind_pre_flights(state, POD, "n1") == expected
    assert state.skip_pre_bind_plugins == skipped


def test_pre_bind_leaves_out_what_skipped_in_its_pre_flight() -> None:
    plugins = [FakePlugin("a", pre_bind_pre_flight=SK), FakePlugin("b")]
    framework, state = make_framework("pre_bind", *plugins), CycleState()
    framework.run_pre_bind_pre_flights(state, POD, "n1")
    assert framework.run_pre_bind_plugins(state, POD, "n1") == SUCCESS
    assert [plugin.calls.count("pre_bind") for plugin in plugins] == [0, 1]


@pytest.mark.parametrize(
    ("codes", "expected", "asked"),
    [
        pytest.param([OK], SUCCESS, 1, id="success"),
        pytest.param([SK, E], failed("Bind", "p1"), 2, id="error on the second"),
        pytest.param([SK], SKIP, 1, id="all skip"),
        pytest.param([SK, OK, E], SUCCESS, 2, id="an error that is not reached"),
        pytest.param([SK, SK], SKIP, 2, id="two skip"),
        pytest.param([W], failed("Bind", "p0"), 1, id="wait is an error"),
        pytest.param([E], failed("Bind", "p0"), 1, id="error"),
        pytest.param([SK, OK], SUCCESS, 2, id="success on the second"),
        pytest.param([U, OK], unschedulable(REASON, plugin="p0"), 1, id="a refusal ends it"),
        pytest.param([OK, E], SUCCESS, 1, id="success ends it"),
        pytest.param([E, OK], failed("Bind", "p0"), 1, id="an error ends it"),
        pytest.param([UU], unresolvable(REASON, plugin="p0"), 1, id="unresolvable"),
    ],
)
def test_bind(codes: list[Code], expected: Status, asked: int) -> None:
    plugins = [Binder(f"p{i}", code) for i, code in enumerate(codes)]
    framework = make_framework("bind", *plugins)
    assert framework.run_bind_plugins(CycleState(), POD, "n1") == expected
    assert sum(plugin.calls for plugin in plugins) == asked
