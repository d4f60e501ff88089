"""Bound, or provably not: every way in which a Binding can end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.api.metav1 import ObjectMeta
from extender.client.binding import NO_TIME, RETRY_SECONDS, BindOutcome, bind_pod
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ApiError, ConnectionFailedError, TimedOutError, TooManyRequestsError
from extender.client.interface import PODS
from extender.client.time_limit import seconds_left

POD: Mapping[str, Any] = {"metadata": {"name": "p", "namespace": "team-a"}, "spec": {}}


class Moody(EmbeddedAPI):
    """Fails as scripted before it does as it is told; `done` has it done all the same, and only the answer lost."""

    def __init__(self, *failures: ApiError, done: bool = False) -> None:
        super().__init__()
        self.failures = list(failures)
        self.done = done
        self.posted: list[corev1.Binding] = []

    @property
    def posts(self) -> int:
        return len(self.posted)

    def bind(self, binding: corev1.Binding) -> None:
        self.posted.append(binding)
        if self.failures:
            if self.done:
                super().bind(binding)
            raise self.failures.pop(0)
        super().bind(binding)


class Time:
    """A machine that has been up for a while. passed: since then; sleeps: what of it was slept."""

    STARTED = 1000.0

    def __init__(self) -> None:
        self.now = self.STARTED
        self.sleeps: list[float] = []

    @property
    def passed(self) -> float:
        return self.now - self.STARTED

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


def bind(api: EmbeddedAPI, pod: corev1.Pod, node: str = "n1") -> tuple[bool, str]:
    time = Time()
    outcome = bind_pod(api, pod, node, clock=time.clock, sleep=time.sleep)
    return outcome.bound, outcome.reason


LOST = ConnectionFailedError("read timed out")


def test_a_binding_brings_annotations_beside_those_that_are_there() -> None:
    api = EmbeddedAPI()
    pod = api.create(PODS, {"metadata": {"name": "p", "namespace": "team-a", "annotations": {"a": "1"}}, "spec": {}})
    assert bind_pod(api, pod, "n1", annotations={"b": "2"}).bound
    assert api.get(PODS, "p", "team-a").metadata.annotations == {"a": "1", "b": "2"}


def test_a_binding_is_made() -> None:
    api = EmbeddedAPI()
    pod = api.create(PODS, POD)
    assert bind(api, pod) == (True, "")
    assert api.get(PODS, "p", "team-a").node_name == "n1"


def test_the_binding_that_is_posted_is_kube_schedulers() -> None:
    """kube-scheduler: pkg/scheduler/framework/plugins/defaultbinder/default_binder_test.go"""
    api = Moody()
    pod = api.create(PODS, POD)
    bind(api, pod)
    assert api.posted == [
        corev1.Binding(
            metadata=ObjectMeta(name="p", namespace="team-a", uid=pod.uid),
            target=corev1.ObjectReference(kind="Node", name="n1"),
        )
    ]


def test_a_409_for_the_same_node_is_success_and_for_another_is_not() -> None:
    api = EmbeddedAPI()
    pod = api.create(PODS, POD)
    bind(api, pod)
    assert bind(api, pod) == (True, "")
    assert bind(api, pod, "n2") == (False, 'pod p is already assigned to node "n1"')


def test_after_a_409_nothing_is_said_before_the_pod_could_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was called a failure, though the pod was bound."""
    api = EmbeddedAPI()
    pod = api.create(PODS, POD)
    bind(api, pod)
    get, failures = api.get, [LOST, TooManyRequestsError("later")]

    def moody(*args: Any) -> Any:
        if failures:
            raise failures.pop()
        return get(*args)

    monkeypatch.setattr(api, "get", moody)
    assert bind(api, pod) == (True, "")


def test_an_answer_that_was_lost_is_read_back_and_not_posted_again() -> None:
    api = Moody(LOST, done=True)
    assert bind(api, api.create(PODS, POD)) == (True, "")
    assert api.posts == 1


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(LOST, id="no answer"),
        pytest.param(TooManyRequestsError("slow down", retry_after=1.0), id="429"),
        pytest.param(ApiError("etcd is away", code=503), id="503"),
    ],
)
def test_what_may_pass_is_tried_again_on_the_same_node(failure: ApiError) -> None:
    api = Moody(failure, failure)
    assert bind(api, api.create(PODS, POD)) == (True, "")
    assert api.posts == 3


def test_it_pauses_ever_longer_and_gives_up_in_time() -> None:
    api, time = Moody(*[LOST] * 100), Time()
    outcome = bind_pod(api, api.create(PODS, POD), "n1", clock=time.clock, sleep=time.sleep)
    assert outcome == BindOutcome(False, "read timed out")
    assert time.sleeps == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]


def test_a_pod_that_is_deleted_while_its_binding_is_posted_is_not_bound() -> None:
    class Deleting(Moody):
        def bind(self, binding: corev1.Binding) -> None:
            self.delete(PODS, "p", "team-a")
            super().bind(binding)

    api = Deleting(LOST)
    assert bind(api, api.create(PODS, POD)) == (False, 'pods "p" not found')
    assert api.posts == 1


def test_a_verdict_is_not_tried_again() -> None:
    api = Moody(ApiError("no", code=422))
    assert bind(api, api.create(PODS, POD)) == (False, "no")
    assert api.posts == 1


def test_a_pod_that_was_made_anew_under_its_name_is_another() -> None:
    api = EmbeddedAPI()
    old = api.create(PODS, POD)
    api.delete(PODS, "p", "team-a")
    new = api.create(PODS, POD)
    bound, reason = bind(api, old)
    assert not bound
    assert new.uid in reason


def test_success_is_never_told_for_another_pod_of_that_name() -> None:
    """It is on the very node, put there by another scheduler."""
    api = EmbeddedAPI()
    old = api.create(PODS, POD)
    api.delete(PODS, "p", "team-a")
    new = api.create(PODS, POD)
    assert bind(api, new, "n1") == (True, "")
    assert bind(api, old, "n1") == (False, f'pod "team-a/p" has another UID now: {new.uid}')


def test_no_binding_is_posted_before_the_server_wants_to_hear_of_it_again() -> None:
    """Retry-After of a 429, in seconds."""
    api, time = Moody(TooManyRequestsError("slow down", retry_after=2.0)), Time()
    assert bind_pod(api, api.create(PODS, POD), "n1", clock=time.clock, sleep=time.sleep).bound
    assert time.passed == 2.0


class Stalled(EmbeddedAPI):
    """Takes calls and answers none: each takes what its caller gives it, by the caller's clock. done: but does what
    it is told. reads: answers reads that have half a second."""

    def __init__(self, time: Time, *, done: bool = False, reads: bool = False) -> None:
        super().__init__()
        self.time, self.done, self.reads = time, done, reads
        self.calls: list[str] = []

    def bind(self, binding: corev1.Binding) -> None:
        self.calls.append("POST")
        if self.done:
            super().bind(binding)
        self._stall()

    def get(self, *args: Any, **options: Any) -> Any:
        self.calls.append("GET")
        if not self.reads or seconds_left() < 0.5:
            self._stall()
        return super().get(*args, **options)

    def _stall(self) -> None:
        self.time.now += min(seconds_left(), 30.0)
        raise TimedOutError("read timed out")


def stalled(**how: bool) -> tuple[Stalled, Time]:
    time = Time()
    return Stalled(time, **how), time


def test_a_server_that_answers_nothing_is_given_up_in_time() -> None:
    """Each call had 30 s of its own, and kube-scheduler did not wait for so long."""
    api, time = stalled()
    outcome = bind_pod(api, api.create(PODS, POD), "n1", clock=time.clock, sleep=time.sleep)
    assert (outcome.bound, outcome.reason) == (False, "read timed out")
    assert api.calls == ["POST", "GET"]
    assert time.passed == pytest.approx(RETRY_SECONDS, abs=0.1)


def test_a_binding_whose_answer_does_not_come_leaves_time_to_read_what_came_of_it() -> None:
    api, time = stalled(done=True, reads=True)
    assert bind_pod(api, api.create(PODS, POD), "n1", clock=time.clock, sleep=time.sleep).bound
    assert time.passed < RETRY_SECONDS


def test_of_little_time_a_third_is_kept_for_the_read() -> None:
    """A second of it would leave none for the Binding itself."""
    api, time = stalled(done=True, reads=True)
    outcome = bind_pod(api, api.create(PODS, POD), "n1", clock=time.clock, sleep=time.sleep, retry_seconds=2.4)
    assert outcome.bound
    assert time.passed == pytest.approx(1.6, abs=0.1)


def test_half_a_second_is_time_enough() -> None:
    api = Moody()
    assert bind_pod(api, api.create(PODS, POD), "n1", retry_seconds=0.5).bound


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_nothing_is_posted_when_the_answer_would_come_too_late(seconds: float) -> None:
    """The binding would land after kube-scheduler has forgotten the pod."""
    api = Moody()
    outcome = bind_pod(api, api.create(PODS, POD), "n1", retry_seconds=seconds)
    assert outcome == BindOutcome(False, NO_TIME)
    assert api.posts == 0


def test_it_does_not_pause_beyond_its_time() -> None:
    api, time = Moody(TooManyRequestsError("slow down", retry_after=RETRY_SECONDS)), Time()
    assert not bind_pod(api, api.create(PODS, POD), "n1", clock=time.clock, sleep=time.sleep).bound
    assert (api.posts, time.passed) == (1, 0.0)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param({"schedulingGates": [{"name": "g"}]}, "schedulingGates", id="a gated pod"),
        pytest.param(None, "not found", id="a pod that is gone"),
    ],
)
def test_what_cannot_be_bound_says_why_and_is_not_tried_again(change: dict[str, Any] | None, text: str) -> None:
    api = Moody()
    pod = api.create(PODS, {**POD, "spec": change or {}})
    if change is None:
        api.delete(PODS, "p", "team-a")
    bound, reason = bind(api, pod)
    assert bound is False
    assert text in reason
    assert api.posts == 1


def test_the_pod_decodes_from_json_alone() -> None:
    assert convert(POD, corev1.Pod).key == "team-a/p"
