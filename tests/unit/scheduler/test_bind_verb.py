"""A bind call is answered before its caller gives up; and what of it no other call may come between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.framework.binding_deadline import binding_ends_by
from extender.framework.cycle_state import CycleState
from extender.framework.permit_rejection import rejection_of
from extender.framework.runtime.framework import Framework
from extender.framework.status import SUCCESS, Status, error, unschedulable, wait
from extender.plugins.coscheduling.dependencies import COMMIT_SECONDS
from extender.scheduler.bind_verb import BindVerb
from extender.scheduler.gang_settings import bind_seconds
from extender.scheduler.in_flight import BindCall
from tests.objects import make_pod
from tests.unit.backend.objects import FakeClock

POD = make_pod().name("p").obj()
TIMEOUT = 120.0


class Plugins:
    """A framework whose Permit wants to hold the pod for a while, and lets it go at once."""

    def __init__(self, now: float, hold: float) -> None:
        self.now, self.hold = now, hold
        self.held: Mapping[str, float] = {}
        self.ends_by = 0.0
        self.nominator = SimpleNamespace(delete_nominated_pod_if_exists=lambda pod: None)

    def clock(self) -> float:
        return self.now

    def run_permit_plugins(self, state: CycleState, pod: corev1.Pod, node: str) -> tuple[Status, dict[str, float]]:
        return wait(), {"Coscheduling": self.hold}

    def add_waiting_pod(self, pod: corev1.Pod, node: str, timeouts: Mapping[str, float]) -> Callable[[], None]:
        self.held = timeouts
        return lambda: None

    def run_bind_plugins(self, state: CycleState, pod: corev1.Pod, node: str) -> Status:
        self.ends_by = binding_ends_by(state)
        return SUCCESS

    def __getattr__(self, name: str) -> Any:
        return lambda *args: SUCCESS


def bound(plugins: Plugins, call: BindCall) -> Plugins:
    cache = SimpleNamespace(assume_pod=lambda pod, node: pod, finish_binding=lambda pod: None)
    assert BindVerb(cast("Cache", cache)).run(cast("Framework", plugins), POD, "n1", call).success
    return plugins


@pytest.mark.parametrize(
    ("spent", "hold"),
    [
        pytest.param(0.0, 60.0, id="there is time: as long as Permit says"),
        pytest.param(70.0, TIMEOUT - COMMIT_SECONDS - 70.0, id="the call has waited for its pod's older call"),
        pytest.param(118.0, 0.0, id="there is time for the commit alone"),
    ],
)
def test_a_hold_ends_in_time_for_the_commit_and_the_answer(spent: float, hold: float) -> None:
    call = BindCall(deadline=bind_seconds(TIMEOUT))
    assert bound(Plugins(spent, 60.0), call).held == {"Coscheduling": pytest.approx(hold)}


def test_the_binding_itself_knows_when_the_call_has_to_be_answered() -> None:
    call = BindCall(deadline=bind_seconds(TIMEOUT))
    assert bound(Plugins(0.0, 60.0), call).ends_by == call.deadline < TIMEOUT


def test_without_a_deadline_permit_decides() -> None:
    assert bound(Plugins(0.0, 60.0), BindCall()).held == {"Coscheduling": 60.0}


def test_no_other_permit_comes_between_a_permit_and_its_waiting_pod() -> None:
    """The member that completes a gang lifts the holds of all others: one without a waiting pod would be missed."""
    cache = SimpleNamespace(assume_pod=lambda pod, node: pod, finish_binding=lambda pod: None)
    verb = BindVerb(cast("Cache", cache))
    steps: list[tuple[str, bool]] = []

    class Watched(Plugins):
        def run_permit_plugins(self, *args: Any) -> tuple[Status, dict[str, float]]:
            steps.append(("Permit", verb._cycles._permitting.locked()))
            return super().run_permit_plugins(*args)

        def add_waiting_pod(self, *args: Any) -> Callable[[], None]:
            steps.append(("waiting pod", verb._cycles._permitting.locked()))
            return lambda: None

        def wait_on_permit(self, pod: corev1.Pod) -> Status:
            steps.append(("wait", verb._cycles._permitting.locked()))
            return SUCCESS

    assert verb.run(cast("Framework", Watched(0.0, 60.0)), POD, "n1", BindCall()).success
    assert steps == [("Permit", True), ("waiting pod", True), ("wait", False)]


class Asked(Plugins):
    """Notes what each extension point is called with, in order; Bind answers `bind`, the end of the hold is `end`."""

    def __init__(self, bind: Status = SUCCESS, end: Status = SUCCESS) -> None:
        super().__init__(0.0, 60.0)
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.state: Any = None
        self.nominator = SimpleNamespace(delete_nominated_pod_if_exists=partial(self._note, "nominated no more"))
        self._answers = {
            "run_permit_plugins": (wait(), {"Coscheduling": 60.0}),
            "run_bind_plugins": bind,
            "wait_on_permit": end,
            "add_waiting_pod": lambda: None,
        }

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("run_") or name in ("wait_on_permit", "add_waiting_pod"):
            return partial(self._note, name)
        return super().__getattribute__(name)

    def _note(self, name: str, *args: Any) -> Any:
        if name.startswith("run_"):
            state, *rest = args
            assert isinstance(state, CycleState)
            assert self.state in (None, state), "one state for all of a pod's plugins"
            self.state, args = state, tuple(rest)
        self.calls.append((name, args))
        return self._answers.get(name, SUCCESS)


ON_NODE = make_pod().name("p").node("n1").obj()
UNTIL_BIND = [
    ("nominated no more", (ON_NODE,)),
    ("run_reserve_plugins_reserve", (ON_NODE, "n1")),
    ("run_permit_plugins", (ON_NODE, "n1")),
    ("add_waiting_pod", (ON_NODE, "n1", {"Coscheduling": 60.0})),
    ("wait_on_permit", (ON_NODE,)),
]
BIND = [("run_pre_bind_plugins", (ON_NODE, "n1")), ("run_bind_plugins", (ON_NODE, "n1"))]
UNRESERVE = [("run_reserve_plugins_unreserve", (ON_NODE, "n1"))]
TIMED_OUT = "rejected due to timeout after waiting 60s at plugin Coscheduling"


@pytest.mark.parametrize(
    ("answers", "answer", "calls", "stays"),
    [
        pytest.param(
            {}, SUCCESS, [*UNTIL_BIND, *BIND, ("run_post_bind_plugins", (ON_NODE, "n1"))], [ON_NODE], id="bound"
        ),
        pytest.param(
            {"bind": error("no")},
            error("no"),
            [*UNTIL_BIND, *BIND, *UNRESERVE],
            [],
            id="refused by the API server: taken back",
        ),
        pytest.param(
            {"end": unschedulable(TIMED_OUT, plugin="Coscheduling")},
            unschedulable(f'pod "p" rejected while waiting on permit: {TIMED_OUT}', plugin="Coscheduling"),
            [*UNTIL_BIND, *UNRESERVE],
            [],
            id="held for too long: taken back, and the plugin that held it named",
        ),
    ],
)
def test_every_plugin_is_asked_about_the_pod_on_its_node_and_its_state(
    answers: dict[str, Status], answer: Status, calls: list[Any], stays: list[corev1.Pod]
) -> None:
    clock = FakeClock()
    cache, plugins = Cache(30.0, clock), Asked(**answers)
    verb = BindVerb(cache)
    assert verb.run(cast("Framework", plugins), POD, "n1", BindCall()) == answer
    assert plugins.calls == calls
    assert verb.is_assumed(POD) is bool(stays)
    clock.step(31.0)
    assert cache.cleanup_assumed_pods() == stays, "its binding has finished"


@pytest.mark.parametrize(("end", "told"), [(SUCCESS, []), (unschedulable(TIMED_OUT), [("p", "n1", False)])])
def test_that_a_binding_has_failed_is_told_once_its_room_is_free(end: Status, told: list[object]) -> None:
    cache, heard = Cache(), list[object]()

    def on_forgotten(assumed: corev1.Pod) -> None:
        heard.append((assumed.name, assumed.node_name, cache.is_assumed_pod(assumed)))

    BindVerb(cache, on_forgotten).run(cast("Framework", Asked(end=end)), POD, "n1", BindCall())
    assert heard == told


def test_unreserve_is_told_why_the_hold_has_ended() -> None:
    """Coscheduling tells the other members of the gang."""
    plugins = Asked(end=unschedulable(TIMED_OUT))
    BindVerb(Cache()).run(cast("Framework", plugins), POD, "n1", BindCall())
    assert rejection_of(plugins.state) == TIMED_OUT


def test_a_pod_that_is_in_the_cache_already_is_answered_in_the_caches_words() -> None:
    cache, plugins = Cache(), Asked()
    cache.add_pod(ON_NODE)
    answer = BindVerb(cache).run(cast("Framework", plugins), POD, "n1", BindCall())
    assert answer == error(f"pod {POD.uid}({POD.key}) is in the cache, so can't be assumed")
    assert plugins.calls == []


def test_a_call_that_is_superseded_ends_its_hold_in_the_name_of_no_plugin() -> None:
    """A plugin that is named counts as the one that refused the pod."""
    call, ended = BindCall(), []

    class Held(Plugins):
        def get_waiting_pod(self, uid: str) -> Any:
            return SimpleNamespace(reject=lambda plugin, reason: ended.append((uid, plugin, reason)))

        def wait_on_permit(self, pod: corev1.Pod) -> Status:
            call.abort("superseded")
            return unschedulable("superseded")

    assert not BindVerb(Cache()).run(cast("Framework", Held(0.0, 60.0)), POD, "n1", call).success
    assert ended == [(POD.uid, "", "superseded")]
