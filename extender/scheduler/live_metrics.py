"""Gauges that are read off live objects at each scrape: nothing keeps them up to date, so nothing can forget to.

A scheduler registers those of its parts while it runs. kube-scheduler keeps most of them by hand: pkg/scheduler/metrics/
metrics.go (pending_pods, unschedulable_pods, inflight_events), pkg/scheduler/backend/cache/cache.go (updateMetrics).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

from extender.backend.cache.cache import Cache
from extender.backend.queue.scheduling_queue import PriorityQueue
from extender.client.informer import InformerFactory
from extender.config.findings import Finding
from extender.crash import guarded
from extender.framework.resource import CPU
from extender.metrics import REGISTRY
from extender.plugins.coscheduling.report.gang_report import GangReport
from extender.plugins.coscheduling.report.largest_gang import Largest
from extender.plugins.coscheduling.report.waiting_gangs import Waiting
from extender.scheduler.leadership import Leadership

Gauge = Callable[[], GaugeMetricFamily]


class LiveMetrics(Collector):
    """Some gauges, from start to stop. Each asks its object under that object's own lock, one after the other."""

    def __init__(self, gauges: Iterable[Gauge], registry: CollectorRegistry = REGISTRY) -> None:
        self._gauges: Sequence[Gauge] = tuple(gauges)
        self._registry = registry
        self._started = False

    def start(self) -> None:
        self._registry.register(self)
        self._started = True

    def stop(self) -> None:
        """Harmless before start, and a second time."""
        if self._started:
            self._started = False
            self._registry.unregister(self)

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing is promised, so that two schedulers of one process do not get in each other's way."""
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """A gauge that raises is left out, and counted: all other metrics are served."""
        found: list[GaugeMetricFamily] = []
        for gauge in self._gauges:
            guarded("metrics", partial(_read, gauge, found))
        return iter(found)


def _read(gauge: Gauge, found: list[GaugeMetricFamily]) -> None:
    found.append(gauge())


def _family(
    name: str, text: str, labels: Sequence[str], values: Iterable[tuple[Sequence[str], float]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in sorted(values):
        family.add_metric(key, value)
    return family


def of_queue(queue: PriorityQueue) -> Iterable[Gauge]:
    def pending() -> GaugeMetricFamily:
        pods = queue.pending_pods()
        counts = {
            "active": pods.active,
            "backoff": pods.backoff,
            "unschedulable": pods.unschedulable - pods.gated,
            "gated": pods.gated,
        }
        text = "Pods that wait, by queue; gated ones were never tried."
        return _family("scheduler_pending_pods", text, ("queue",), (((name,), n) for name, n in counts.items()))

    def unschedulable() -> GaugeMetricFamily:
        counts = Counter(
            (plugin, entry.pod.spec.scheduler_name) for entry, _ in queue.waiting() for plugin in entry.rejector_plugins
        )
        text = "Pods that wait, by each of the plugins that refused them last."
        return _family("scheduler_unschedulable_pods", text, ("plugin", "profile"), counts.items())

    def in_flight() -> GaugeMetricFamily:
        counts = Counter((happened.event.label,) for happened in queue.in_flight_events())
        counts[("PodPopped",)] += len(queue.in_flight_pods())
        return _family(
            "scheduler_inflight_events", "Events kept for pods that are being tried.", ("event",), counts.items()
        )

    return pending, unschedulable, in_flight


def of_cache(cache: Cache) -> Iterable[Gauge]:
    def size() -> GaugeMetricFamily:
        counts = {"nodes": cache.node_count(), "pods": cache.pod_count(), "assumed_pods": cache.assumed_count()}
        text = "What the cache holds; assumed pods are those whose binding the watch has not shown yet."
        return _family("scheduler_cache_size", text, ("type",), (((name,), n) for name, n in counts.items()))

    return (size,)


def of_informers(informers: InformerFactory) -> Iterable[Gauge]:
    def age() -> GaugeMetricFamily:
        ages = {(state.resource,): state.age for state in informers.states() if state.served}
        return _family(
            "gang_extender_cache_age_seconds", "Since the last word of the API server.", ("resource",), ages.items()
        )

    def unreadable() -> GaugeMetricFamily:
        counts = {(state.resource,): state.unreadable for state in informers.states()}
        text = "Objects that cannot be read, and count as they were before."
        return _family("gang_extender_unreadable_objects", text, ("resource",), counts.items())

    return age, unreadable


def of_leadership(leadership: Leadership) -> Iterable[Gauge]:
    def leading() -> GaugeMetricFamily:
        text = (
            "1 while the kube-scheduler beside this extender holds the Lease, or where there is none to hold; else 0."
        )
        return _family("gang_extender_leading", text, (), [((), float(leadership.leading))])

    return (leading,)


def of_gangs(report: GangReport) -> Iterable[Gauge]:
    def gangs() -> GaugeMetricFamily:
        counts = {(phase.value,): count for phase, count in report.phases().items()}
        return _family("gang_extender_gangs", "Groups by phase.", ("phase",), counts.items())

    def quarantined() -> GaugeMetricFamily:
        text = "Gangs that are set aside for a while, since an unexpected exception was raised at them."
        return _family("gang_extender_quarantined_gangs", text, (), (((), report.quarantined()),))

    return gangs, quarantined


def of_waiting_gangs(waiting: Callable[[], Waiting]) -> Iterable[Gauge]:
    def counts() -> GaugeMetricFamily:
        text = "Groups that wait, by the reason."
        found = {(reason,): float(count) for reason, count in waiting().counts.items()}
        return _family("gang_extender_waiting_gangs", text, ("reason",), found.items())

    def oldest() -> GaugeMetricFamily:
        found = {(reason,): age for reason, age in waiting().oldest.items()}
        text = "For how long the oldest group that waits for this reason has: since it had its quorum."
        return _family("gang_extender_oldest_waiting_gang_seconds", text, ("reason",), found.items())

    return counts, oldest


def of_pod_groups(foreign: Callable[[], int]) -> Iterable[Gauge]:
    def gangs() -> GaugeMetricFamily:
        text = "PodGroups with pods that another scheduler has bound, or is to: what starts them keeps no gang whole."
        return _family("gang_extender_foreign_scheduler_gangs", text, (), [((), foreign())])

    return (gangs,)


def of_configuration(findings: Callable[[], Iterable[Finding]]) -> Iterable[Gauge]:
    def wrong() -> GaugeMetricFamily:
        counts = Counter((each.code, each.severity.value) for each in findings())
        text = "What the extender sees to be wrong with its configuration, or with kube-scheduler's."
        return _family("gang_extender_configuration_findings", text, ("code", "severity"), counts.items())

    return (wrong,)


def of_room(largest: Callable[[], Largest]) -> Iterable[Gauge]:
    def members() -> GaugeMetricFamily:
        counts = {(level,): count for level, count in largest().members.items()}
        text = "The largest gang of reference members that fits into one domain of the level."
        return _family("gang_extender_largest_gang_members", text, ("level",), counts.items())

    def reference() -> GaugeMetricFamily:
        amounts = {
            (name,): amount / 1000 if name == CPU else float(amount) for name, amount in largest().reference.items()
        }
        text = "What the reference member asks for: the median of members that wait, else of all."
        return _family("gang_extender_reference_member_request", text, ("resource",), amounts.items())

    return members, reference
