"""Two versions of kube-scheduler's PodGroup: the newer one counts where both are served, the older where the newer goes."""

from __future__ import annotations

import pytest

from extender.api.codec import convert
from extender.api.schedulingv1alpha2 import PodGroup
from extender.api.schedulingv1beta1 import PodGroup as NewPodGroup
from extender.scheduler.watch_in_tree import falling_back, unless_in

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
