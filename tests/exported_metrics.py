"""Every metric that an extender exports, with its labels: for the tests of docs/metrics.md and of manifests/monitoring."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client import Counter, Gauge, Histogram

from extender import metrics
from extender.backend.cache.cache import Cache
from extender.backend.queue.scheduling_queue import PriorityQueue
from extender.client.embedded import EmbeddedAPI
from extender.client.informer import InformerFactory
from extender.plugins.coscheduling.report.largest_gang import Largest
from extender.plugins.coscheduling.report.waiting_gangs import Waiting
from extender.scheduler.leadership import Leadership
from extender.scheduler.live_metrics import (
    of_cache,
    of_configuration,
    of_gangs,
    of_informers,
    of_leadership,
    of_pod_groups,
    of_queue,
    of_room,
    of_waiting_gangs,
)
from tests.unit.plugins.coscheduling.conftest import World


def exported() -> dict[str, tuple[str, ...]]:
    """Name, as it is scraped -> labels: of those that are kept, and of those that are read off at each scrape."""
    kept = [each for each in vars(metrics).values() if isinstance(each, Counter | Gauge | Histogram)]
    found = {
        f"{each._name}_total" if isinstance(each, Counter) else each._name: tuple(each._labelnames) for each in kept
    }
    gauges = [
        *of_queue(PriorityQueue(lambda a, b: a.timestamp < b.timestamp)),
        *of_cache(Cache()),
        *of_informers(InformerFactory(EmbeddedAPI())),
        *of_leadership(Leadership("", time.monotonic, watched=False)),
        *of_gangs(World([]).plugin.report),
        *of_waiting_gangs(Waiting),
        *of_pod_groups(lambda: 0),
        *of_room(lambda: Largest({}, {})),
        *of_configuration(tuple),
    ]
    found |= dict(of_the_process())
    return found | {family.name: tuple(family._labelnames) for family in (gauge() for gauge in gauges)}


def of_the_process() -> Iterator[tuple[str, tuple[str, ...]]]:
    """What the library's own collectors tell of this process and of Python."""
    for family in metrics.REGISTRY.collect():
        if family.name.startswith(("process_", "python_")):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            yield name, tuple(family.samples[0].labels)
