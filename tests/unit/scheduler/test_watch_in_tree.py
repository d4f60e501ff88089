"""Two versions of kube-scheduler's PodGroup: the newer one counts where both are served, the older where the newer goes."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from extender.api.codec import convert
from extender.api.schedulingv1alpha2 import PodGroup
from extender.api.schedulingv1beta1 import PodGroup as NewPodGroup
from extender.client.embedded.api import EmbeddedAPI
from extender.client.informer import InformerFactory
from extender.client.interface import IN_TREE_POD_GROUPS
from extender.scheduler.watch_in_tree import falling_back, unless_in, watch_in_tree_groups

META = {"metadata": {"name": "g", "namespace": "default"}}
OLD, NEW, NEWER = convert(META, PodGroup), convert(META, NewPodGroup), convert(META, NewPodGroup)
Event = tuple[PodGroup | None, PodGroup | None]


@pytest.mark.parametrize(
    ("event", "other", "told"),
    [
        pytest.param((None, NEW), None, [(None, NEW)], id="it comes"),
        pytest.param((None, NEW), OLD, [(OLD, NEW)], id="it takes the older one's part"),
        pytest.param((NEW, NEWER), OLD, [(NEW, NEWER)], id="it changes"),
        pytest.param((NEW, None), None, [(NEW, None)], id="it goes"),
        pytest.param((NEW, None), OLD, [(NEW, OLD)], id="it goes, and the older one counts"),
    ],
)
def test_events_of_the_newer_version(event: Event, other: PodGroup | None, told: list[Event]) -> None:
    heard: list[Event] = []
    falling_back(lambda old, new: heard.append((old, new)), {"default/g": other}.get)(*event)
    assert heard == told


@pytest.mark.parametrize(
    ("event", "other", "told"),
    [
        pytest.param((None, OLD), None, [(None, OLD)], id="alone it counts"),
        pytest.param((None, OLD), NEW, [], id="beside the newer one it does not"),
        pytest.param((OLD, None), NEW, [], id="nor is its end anything"),
        pytest.param((OLD, None), None, [(OLD, None)], id="alone it goes"),
    ],
)
def test_events_of_the_older_version(event: Event, other: PodGroup | None, told: list[Event]) -> None:
    heard: list[Event] = []
    unless_in({"default/g": other}.get, lambda old, new: heard.append((old, new)))(*event)
    assert heard == told


def test_the_plugin_is_told_and_then_the_others() -> None:
    api, told, gone = EmbeddedAPI(), list[tuple[str, bool]](), threading.Event()

    def plugin(old: PodGroup | None, new: PodGroup | None) -> None:
        told.append(("plugin", new is not None))

    def other(old: PodGroup | None, new: PodGroup | None) -> None:
        told.append(("other", new is not None))
        if new is None:
            gone.set()

    coscheduling: Any = SimpleNamespace(
        manager=SimpleNamespace(labels=SimpleNamespace(in_tree=True)),
        on_pod_group=plugin,
        on_composite_pod_group=lambda old, new: None,
    )
    informers = InformerFactory(api)
    watch_in_tree_groups(informers, coscheduling, other)
    api.create(IN_TREE_POD_GROUPS, {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}}})
    informers.start()
    try:
        assert informers.wait_for_sync(5)
        api.delete(IN_TREE_POD_GROUPS, "g", "default")
        assert gone.wait(5)
    finally:
        informers.stop()
    assert told == [("plugin", True), ("other", True), ("plugin", False), ("other", False)]
