"""Prometheus metrics, one object each; kube-scheduler's under its own names, ours with the prefix gang_extender_.

Base units, `_total` on counters, no pod or group names in labels. What is read off live objects at each scrape
(pending pods, cache sizes, gangs, ages of watches) is in scheduler/live_metrics.
kube-scheduler: pkg/scheduler/metrics/metrics.go
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for every counter, which no query uses
REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)  # process_*: of the process that is scraped, the worker
GCCollector(registry=REGISTRY)  # python_gc_*

_FAST = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_LAG = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_KUBE = tuple(0.001 * 2**i for i in range(15))
_POINT = tuple(0.0001 * 2**i for i in range(12))
_PLUGIN = tuple(0.00001 * 1.5**i for i in range(20))
_WAIT = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400)
_SLI = tuple(0.01 * 2**i for i in range(20))

Metric = TypeVar("Metric", Counter, Gauge, Histogram)


@lru_cache(maxsize=4096)
def child(metric: Metric, *labels: str) -> Metric:
    """`metric.labels(...)` for what is counted with every call: the library makes and compares text, under a lock."""
    return metric.labels(*labels)


def _counter(name: str, text: str, *labels: str) -> Counter:
    return Counter(name, text, labels, registry=REGISTRY)


def _gauge(name: str, text: str, *labels: str) -> Gauge:
    return Gauge(name, text, labels, registry=REGISTRY)


def _histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
    return Histogram(name, text, labels, registry=REGISTRY, buckets=buckets)


# The service
requests = _counter("gang_extender_requests", "Requests by verb, HTTP status and result.", "verb", "code", "result")
request_duration = _histogram("gang_extender_request_duration_seconds", "Time to answer, by verb.", _FAST, "verb")
held_binds = _gauge("gang_extender_held_binds", "Bind calls that are under way or held.")
held_binds_limit = _gauge("gang_extender_held_binds_limit", "The most bind calls that are taken at a time.")
event_loop_lag = _histogram(
    "gang_extender_event_loop_lag_seconds",
    "How late the event loop woke: the least that a call waits.",
    _LAG,
)
ready = _gauge("gang_extender_ready", "What /readyz says: 1 ready, 0 not.")
hang_ups = _counter(
    "gang_extender_hang_ups",
    "Calls whose caller had hung up before the answer; quick questions are not looked at.",
    "verb",
)
certificate_not_after = _gauge(
    "gang_extender_certificate_not_after_timestamp_seconds",
    "When a certificate of the verbs ends, in seconds since 1970: server, client_ca (the first of them), client (the last that came).",
    "certificate",
)
rejected_clients = _counter(
    "gang_extender_rejected_clients", "Connections and calls refused by client identity.", "reason"
)
log_drops = _counter("gang_extender_log_records_dropped", "Log lines dropped because the sink did not keep up.")
unexpected_errors = _counter(
    "gang_extender_unexpected_errors",
    "Unexpected exceptions, by the loop in which they were raised: the loop goes on, and retries what can be retried.",
    "where",
)
plugin_errors = _counter(
    "gang_extender_plugin_errors",
    "Exceptions of plugins, by extension point; unexpected errors count them as well.",
    "plugin",
    "extension_point",
)
build_info = _gauge("gang_extender_build_info", "1, with the version as a label.", "version")

# Gangs
podgroup_schedule_attempts = _counter(
    "gang_extender_podgroup_schedule_attempts", "Plans of whole gangs by result.", "result"
)
gang_start_duration = _histogram(
    "gang_extender_gang_start_duration_seconds",
    "From the time that a gang had its quorum until that was bound, or until the gang was gone.",
    _WAIT,
    "outcome",
)
planning_queue_duration = _histogram(
    "gang_extender_planning_queue_duration_seconds",
    "From an event that may help a gang until it was its turn to be planned.",
    _FAST,
)
planning_duration = _histogram(
    "gang_extender_planning_duration_seconds", "The turn of one gang: whether it waits, its plan, what follows.", _FAST
)
permit_wait_duration = _histogram(
    "gang_extender_permit_wait_duration_seconds",
    "How long members were held for their gang, by how it ended.",
    _FAST,
    "result",
)
partial_commits = _counter("gang_extender_partial_commits", "Bindings that failed while their gang was starting.")
filter_plan_waits = _counter(
    "gang_extender_filter_plan_waits",
    "Filter calls that needed a plan which was still to be made: answered in_time, or late and the member is woken when it is there.",
    "result",
)
early_starts = _counter(
    "gang_extender_early_starts",
    "Gangs that had room, or were to have it, while their members were still being made (begun), and how that ended (complete, given_up).",
    "result",
)
plan_refuted = _counter(
    "gang_extender_plan_refuted",
    "Planned places that came to nothing: refused by kube-scheduler's own filters, not_offered to us, or did_not_come.",
    "reason",
)
moved_slots = _counter(
    "gang_extender_moved_slots",
    "Slots that were moved, with no plan, to a node of the sample that kube-scheduler offered, which held none of the gang's.",
)
impossible_transitions = _counter(
    "gang_extender_impossible_transitions",
    "Events that cannot happen in the state that a member was in, which it kept: a fault of the extender's bookkeeping.",
    "state",
    "event",
)
steering_failures = _counter("gang_extender_steering_failures", "Patches of members that were given up.")
bind_conflicts = _counter("gang_extender_bind_conflicts", "Bindings answered with 409.")
shadows = _counter(
    "gang_extender_shadows",
    "Times that nodes were kept free for a gang in line (begun), and how that ended (started, expired, gone).",
    "result",
)
shadow_nodes = _gauge("gang_extender_shadow_nodes", "Nodes that are kept free for the gang that is first in line.")
gang_preemption_attempts = _counter(
    "gang_extender_preemption_attempts",
    "Searches for victims of whole gangs by result: victims, waiting (for pods that go anyway), none, failed.",
    "result",
)
gang_preemption_victims = _histogram(
    "gang_extender_preemption_victims", "Victims of one gang.", (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
)
gangs_broken = _counter("gang_extender_gangs_broken", "Running gangs that were preempted as a whole.")
broken_gangs = _counter(
    "gang_extender_broken_gangs", "Gangs that ran with fewer than minMember for longer than their broken-after.", "then"
)
preemption_vetoes = _counter("gang_extender_preemption_vetoes", "Candidates or calls vetoed, by reason.", "reason")

# The page
page_viewers = _gauge("gang_extender_page_viewers", "Pages that are open.")
page_work = _counter(
    "gang_extender_page_work_seconds", "What following the cluster for open pages took of the event loop."
)

# The API
watch_restarts = _counter("gang_extender_watch_restarts", "Watches that had to begin again.", "resource", "reason")
api_requests = _counter("gang_extender_api_requests", "Calls of the API server.", "verb", "code")
events_dropped = _counter("gang_extender_events_dropped", "Events not written because the queue was full.")

# kube-scheduler's own, for the in-process scheduler and the framework behind the verbs. Behind a kube-scheduler an
# attempt is a call: a filter call that refuses, or a bind call; the queue, and so everything that spans attempts, is there.
schedule_attempts = _counter(
    "scheduler_schedule_attempts",
    "Attempts by result: scheduled, unschedulable (no place for the pod), error (the scheduler's own trouble).",
    "result",
    "profile",
)
scheduling_attempt_duration = _histogram(
    "scheduler_scheduling_attempt_duration_seconds", "One attempt, algorithm and binding.", _KUBE, "result", "profile"
)
scheduling_algorithm_duration = _histogram(
    "scheduler_scheduling_algorithm_duration_seconds", "From the snapshot to the chosen node.", _KUBE
)
framework_extension_point_duration = _histogram(
    "scheduler_framework_extension_point_duration_seconds",
    "All plugins of one extension point.",
    _POINT,
    "extension_point",
    "status",
    "profile",
)
plugin_execution_duration = _histogram(
    "scheduler_plugin_execution_duration_seconds",
    "One call of one plugin (at Score: for all nodes), in one cycle of ten.",
    _PLUGIN,
    "plugin",
    "extension_point",
    "status",
)
scheduler_permit_wait_duration = _histogram(
    "scheduler_permit_wait_duration_seconds", "Waiting on Permit, by how it ended.", _KUBE, "result"
)
pod_scheduling_attempts = _histogram(
    "scheduler_pod_scheduling_attempts", "Attempts until a pod was scheduled.", (1, 2, 4, 8, 16)
)
pod_scheduling_sli_duration = _histogram(
    "scheduler_pod_scheduling_sli_duration_seconds",
    "From a pod's first attempt to its binding, by the number of attempts.",
    _SLI,
    "attempts",
)
preemption_attempts = _counter("scheduler_preemption_attempts", "Attempts to preempt.")
preemption_victims = _histogram("scheduler_preemption_victims", "Victims by attempt.", (1, 2, 4, 8, 16, 32, 64))
goroutines = _gauge("scheduler_goroutines", "Threads at work, by operation.", "operation")
queue_incoming_pods = _counter("scheduler_queue_incoming_pods", "Pods put into a queue, by event.", "queue", "event")
event_handling_duration = _histogram(
    "scheduler_event_handling_duration_seconds", "Bringing one event to the cache and the queue.", _POINT, "event"
)


def count_api_request(verb: str, code: str) -> None:
    """Fulfils client.request_counts.Count."""
    child(api_requests, verb, code).inc()
