"""What a scrape sees of the queue, the cache, the watches and the gangs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily

from extender.backend.cache.cache import Cache
from extender.backend.queue.queueing_hints import QueueingHints
from extender.backend.queue.scheduling_queue import PriorityQueue
from extender.client.informer import InformerState
from extender.framework import events
from extender.framework.hint_rows import HintRow
from extender.framework.interface import PreEnqueuePlugin
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins.coscheduling.report.largest_gang import Largest
from extender.scheduler.leadership import Leadership
from extender.scheduler.live_metrics import Gauge, LiveMetrics, of_cache, of_informers, of_leadership, of_queue, of_room
from tests.objects import make_node, make_pod

PROFILE = "default-scheduler"


class Gated(PreEnqueuePlugin):
    name = "SchedulingGates"

    def pre_enqueue(self, pod: Any) -> Status:
        return unresolvable("gated") if pod.gated else SUCCESS


def scrape(gauges: Iterable[Gauge]) -> dict[str, float]:
    registry = CollectorRegistry()
    live = LiveMetrics(gauges, registry)
    live.start()
    text = generate_latest(registry).decode()
    live.stop()
    assert generate_latest(registry) == b""
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def refused(queue: PriorityQueue, name: str, *plugins: str) -> None:
    queue.add(make_pod().name(name).obj())
    entry = queue.pop_ready()
    assert entry is not None
    queue.add_unschedulable_if_not_present(entry.rejected_by(plugins))


def test_pods_are_told_apart_by_where_they_wait_and_which_plugin_refused_them() -> None:
    queue = PriorityQueue(lambda a, b: a.timestamp < b.timestamp, pre_enqueue={PROFILE: [Gated()]})
    refused(queue, "a", "A")
    refused(queue, "b", "A", "B")
    refused(queue, "failed")  # by an error: into the back-off queue
    queue.add(make_pod().name("gated").scheduling_gates("x").obj())
    queue.add(make_pod().name("active").obj())
    seen = scrape(of_queue(queue))
    assert seen == {
        'scheduler_pending_pods{queue="active"}': 1,
        'scheduler_pending_pods{queue="backoff"}': 1,
        'scheduler_pending_pods{queue="unschedulable"}': 2,
        'scheduler_pending_pods{queue="gated"}': 1,
        'scheduler_unschedulable_pods{plugin="A",profile="default-scheduler"}': 2,
        'scheduler_unschedulable_pods{plugin="B",profile="default-scheduler"}': 1,
        'scheduler_unschedulable_pods{plugin="SchedulingGates",profile="default-scheduler"}': 1,
        'scheduler_inflight_events{event="PodPopped"}': 0,
    }


def test_events_are_kept_for_a_pod_that_is_being_tried() -> None:
    hints = QueueingHints({PROFILE: (HintRow(events.NODE_ADD, "A"),)})
    queue = PriorityQueue(lambda a, b: a.timestamp < b.timestamp, hints=hints)
    queue.add(make_pod().name("p").obj())
    assert queue.pop_ready() is not None
    queue.move_all_to_active_or_backoff_queue(events.NODE_ADD, None, make_node().name("n").obj())
    seen = scrape(of_queue(queue))
    assert seen['scheduler_inflight_events{event="PodPopped"}'] == 1
    assert seen['scheduler_inflight_events{event="NodeAdd"}'] == 1


@pytest.mark.parametrize(
    ("watched", "value"),
    [
        pytest.param(False, 1, id="no Lease to hold: it leads"),
        pytest.param(True, 0, id="a Lease without a holder: it does not"),
    ],
)
def test_an_extender_says_whether_it_leads(watched: bool, value: float) -> None:
    assert scrape(of_leadership(Leadership("me", lambda: 0.0, watched=watched))) == {"gang_extender_leading": value}


def test_the_cache_says_how_much_it_holds() -> None:
    cache = Cache()
    cache.add_node(make_node().name("n").obj())
    cache.add_pod(make_pod().name("p").node("n").obj())
    cache.assume_pod(make_pod().name("q").obj(), "n")
    assert scrape(of_cache(cache)) == {
        'scheduler_cache_size{type="nodes"}': 1,
        'scheduler_cache_size{type="pods"}': 2,
        'scheduler_cache_size{type="assumed_pods"}': 1,
    }


def test_watches_say_when_the_server_was_heard_last() -> None:
    class Informers:
        def states(self) -> list[InformerState]:
            return [
                InformerState("pods", True, True, False, "", 2.5, unreadable=3),
                InformerState("podgroups.scheduling.x-k8s.io", True, False, True, "", 9.0),
            ]

    informers: Any = Informers()
    assert scrape(of_informers(informers)) == {
        'gang_extender_cache_age_seconds{resource="pods"}': 2.5,
        'gang_extender_unreadable_objects{resource="pods"}': 3,
        'gang_extender_unreadable_objects{resource="podgroups.scheduling.x-k8s.io"}': 0,
    }


def test_the_largest_gang_is_told_by_level() -> None:
    largest: Any = lambda: Largest({"cluster": 40, "rack": 8}, {"cpu": 1500, "memory": 1024})  # noqa: E731
    assert scrape(of_room(largest)) == {
        'gang_extender_largest_gang_members{level="cluster"}': 40,
        'gang_extender_largest_gang_members{level="rack"}': 8,
        'gang_extender_reference_member_request{resource="cpu"}': 1.5,
        'gang_extender_reference_member_request{resource="memory"}': 1024,
    }


@pytest.mark.faults
def test_a_gauge_that_raises_is_left_out_and_the_others_are_served() -> None:
    def faulty() -> GaugeMetricFamily:
        raise KeyError("a fault of ours")

    cache = Cache()
    cache.add_node(make_node().name("n").obj())
    assert scrape([faulty, *of_cache(cache)])['scheduler_cache_size{type="nodes"}'] == 1


def test_stopping_what_was_never_started_is_harmless() -> None:
    LiveMetrics((), CollectorRegistry()).stop()
