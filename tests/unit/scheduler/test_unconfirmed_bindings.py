"""A pod that was bound and deleted before any watch has shown it keeps no room; one that is only shown late keeps its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ApiError, ConnectionFailedError
from extender.client.interface import PODS
from extender.scheduler import unconfirmed_bindings as module
from extender.scheduler.unconfirmed_bindings import ASKED_AFTER_SECONDS, AT_ONCE, UnconfirmedBindings
from tests.unit.scheduler.conftest import GROUP_LABEL, SECONDS, Bench

CPU = {"name": "c", "resources": {"requests": {"cpu": "1"}}}


class Asked(EmbeddedAPI):
    """Notes which pods it is asked about; raises what it is told to, once."""

    def __init__(self) -> None:
        super().__init__()
        self.about: list[str] = []
        self.raises: list[ApiError] = []

    def get(self, resource: Any, name: str, namespace: str = "") -> Any:
        self.about.append(name)
        if self.raises:
            raise self.raises.pop()
        return super().get(resource, name, namespace)


class Story:
    def __init__(self) -> None:
        self.api, self.now = Asked(), 100.0
        self.cache = Cache(clock=lambda: self.now)
        self.shown: dict[str, corev1.Pod] = {}
        self.gone: list[str] = []
        self.jobs: list[Callable[[], None]] = []
        self.bindings = UnconfirmedBindings(
            self.cache, self.api, self.shown.get, self.jobs.append, self._is_gone, lambda: self.now
        )

    def _is_gone(self, pod: corev1.Pod) -> None:
        self.gone.append(pod.name)
        self.cache.forget_pod(pod)

    def bound(self, name: str) -> corev1.Pod:
        metadata = {"name": name, "namespace": "team"}
        pod = self.api.create(PODS, {"metadata": metadata, "spec": {"containers": [{"name": "c"}]}})
        self.cache.finish_binding(self.cache.assume_pod(pod, "n1"))
        return pod

    def deleted(self, pod: corev1.Pod) -> None:
        self.api.delete(PODS, pod.name, pod.namespace)

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.bindings.tick()
        self.does()

    def does(self) -> None:
        while self.jobs:
            self.jobs.pop(0)()


@pytest.fixture
def s() -> Story:
    return Story()


def test_one_that_is_deleted_unseen_is_forgotten(s: Story) -> None:
    s.deleted(s.bound("p"))
    s.passes(ASKED_AFTER_SECONDS)
    assert (s.gone, s.cache.assumed_count()) == ([], 1)
    s.passes(0.1)
    assert (s.gone, s.cache.assumed_count()) == (["p"], 0)
    s.passes(100.0)
    assert s.api.about == ["p"]


def test_so_is_one_whose_name_another_pod_has_by_now(s: Story) -> None:
    s.deleted(s.bound("p"))
    metadata = {"name": "p", "namespace": "team"}
    s.shown["team/p"] = s.api.create(PODS, {"metadata": metadata, "spec": {"containers": [{"name": "c"}]}})
    s.passes(31.0)
    assert s.gone == ["p"]


def test_one_that_is_there_keeps_its_room_however_far_the_watch_is_behind(s: Story) -> None:
    pod = s.bound("p")
    for _ in range(3):
        s.passes(31.0)
    assert (s.gone, s.api.about) == ([], ["p", "p", "p"])
    s.passes(1.0)
    assert len(s.api.about) == 3, "not each second"
    s.deleted(pod)
    s.passes(31.0)
    assert s.gone == ["p"]


@pytest.mark.parametrize(
    ("act", "why"),
    [
        pytest.param(lambda s, pod: s.shown.update({pod.key: pod}), "the watch has shown it", id="shown"),
        pytest.param(lambda s, pod: s.cache.add_pod(s.cache.get_pod(pod)), "its binding is confirmed", id="confirmed"),
        pytest.param(lambda s, pod: s.cache.forget_pod(pod), "it is on no node any more", id="forgotten"),
    ],
)
def test_the_api_server_is_not_asked_about_others(s: Story, act: Callable[[Story, corev1.Pod], None], why: str) -> None:
    act(s, s.bound("p"))
    s.passes(31.0)
    assert s.api.about == [], why


def test_one_whose_binding_is_under_way_is_not_asked_about(s: Story) -> None:
    pod = s.api.create(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}})
    s.cache.assume_pod(pod, "n1")
    s.passes(1000.0)
    assert s.api.about == []


def test_where_the_api_server_does_not_answer_it_is_asked_again_and_the_others_are_asked_all_the_same(s: Story) -> None:
    for name in ("p", "q"):
        s.deleted(s.bound(name))
    s.api.raises.append(ConnectionFailedError("refused"))
    s.passes(31.0)
    assert len(s.gone) == 1
    s.passes(31.0)
    assert sorted(s.gone) == ["p", "q"]


@pytest.mark.faults
def test_where_the_end_of_one_raises_the_others_end(
    s: Story, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("p", "q"):
        s.deleted(s.bound(name))
    end, faults = s._is_gone, [KeyError("a fault of ours")]

    def once_broken(pod: corev1.Pod) -> None:
        if faults:
            raise faults.pop()
        end(pod)

    monkeypatch.setattr(s.bindings, "_gone", once_broken)
    s.passes(31.0)
    assert "unexpected error where=unconfirmed-binding" in caplog.text
    s.passes(31.0)
    assert sorted(s.gone) == ["p", "q"]


def test_those_that_are_there_are_not_asked_about_again_for_the_others_sake(s: Story) -> None:
    for number in range(AT_ONCE + 1):
        s.bound(f"p{number}")
    for seconds in (31.0, 1.0, 1.0, 1.0):
        s.passes(seconds)
    assert len(s.api.about) == len(set(s.api.about)) == AT_ONCE + 1


def test_so_many_are_asked_about_at_a_time_and_the_others_in_the_next_turn(s: Story) -> None:
    for number in range(AT_ONCE + 5):
        s.deleted(s.bound(f"p{number}"))
    s.now += 31.0
    s.bindings.tick()
    s.bindings.tick()
    assert len(s.jobs) == 1, "one job asks"
    s.does()
    assert len(s.gone) == AT_ONCE
    s.passes(0.0)
    assert len(s.gone) == AT_ONCE + 5
    s.passes(0.0)
    assert s.bindings._again == {}


def test_the_scheduler_gives_the_room_back_and_tells_the_plugins(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch shows nothing of the pod from its creation to its end; the next of its gang is counted with it no longer."""
    bench.node("n1", cpu="1")
    bench.pod_group("g", 1)
    parts = bench.scheduler._dependencies
    watch = parts.informers.informer(PODS)
    with monkeypatch.context() as silent:
        silent.setattr(watch, "changed", lambda old, new: None)
        body = {"metadata": {"name": "p", "labels": {GROUP_LABEL: "g"}}, "spec": {"containers": [CPU]}}
        pod = bench.api.create(PODS, body)
        assert bench.filter(pod, "n1").node_names == ["n1"]
        assert bench.bind(pod, "n1").result(SECONDS) == ""
        bench.api.delete(PODS, "p", "default")
    cache = parts.bind_verb._cache
    assert cache.assumed_count() == 1
    monkeypatch.setattr(module, "ASKED_AFTER_SECONDS", -1.0)
    parts.background._ticks["unconfirmed-bindings"]()
    bench.until(lambda: cache.assumed_count() == 0, "its room is free")
    bench.until(lambda: not parts.coscheduling.manager.groups["default/g"].members, "its gang is without it")
    assert cache.snapshot().get("n1").requested.milli_cpu == 0
