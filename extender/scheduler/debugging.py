"""What is looked at where the extender itself is in doubt: its cache against what the watch has shown, or against the API server; and
the state of gangs as it is kept.

Scheduler.debug hands it to the server.
kube-scheduler: pkg/scheduler/backend/cache/debugger (on SIGUSR2, against its informers)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from msgspec import Struct

from extender.backend.cache.cache import Cache
from extender.backend.cache.comparer import Difference, compare
from extender.client.errors import ApiError
from extender.client.informer import InformerFactory
from extender.client.interface import API, NODES, PODS, ResourceType, T
from extender.client.short_steps import ShortSteps, pause
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.plugins.coscheduling.questions import one_at_a_time
from extender.plugins.coscheduling.report import gang_dump
from extender.scheduler.interface import DEBUG_CACHE, DEBUG_GANG, DEBUG_GANGS, BusyError, Page

SETTLING_SECONDS = 1.0  # after which a difference that was only on its way is none
MOST_NAMES = 100  # of one kind of difference
PLACED = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


class Side(Struct, frozen=True, rename="camel"):
    """How many differ, and the first of them by name. missed: the other side has it, the cache has not; redundant: the other way round."""

    missed: int
    redundant: int
    missed_names: tuple[str, ...]
    redundant_names: tuple[str, ...]


class CacheReport(Struct, frozen=True, rename="camel"):
    """against: `watch` or `api`. The counts are the cache's; assumed: pods that it has on a node by our word alone.

    differs: something does, and did a second before. unanswered: what the API server said in place of a list; nothing is compared then.
    """

    against: str
    nodes: int
    pods: int
    assumed: int
    differs: bool
    of_nodes: Side
    of_pods: Side
    unanswered: str = ""


@dataclass(eq=False)
class Debugger:
    """Thread-safe: one question at a time. sleep: between two looks."""

    cache: Cache
    informers: InformerFactory
    api: API
    coscheduling: Coscheduling
    sleep: Callable[[float], None] = time.sleep
    _turns: one_at_a_time.OneAtATime = field(default_factory=one_at_a_time.OneAtATime)

    def pages(self) -> Mapping[str, Page]:
        """Also before the whole cluster has been seen: why it has not may be what is looked for."""
        return {
            DEBUG_CACHE: self.compare_cache,
            DEBUG_GANGS: partial(gang_dump.all_gangs, self.coscheduling.manager),
            DEBUG_GANG: partial(gang_dump.one_gang, self.coscheduling.manager),
        }

    def compare_cache(self, against_api: bool = False) -> CacheReport:
        """against_api: nodes and pods are listed anew, as at a start; a second time where something differs. Raises BusyError."""
        try:
            with self._turns.turn():
                return self._report(against_api)
        except one_at_a_time.BusyError as error:
            raise BusyError(str(error)) from error

    def _report(self, against_api: bool) -> CacheReport:
        look = self._against_api if against_api else self._against_watch
        difference, unanswered = Difference(), ""
        try:
            difference = look()
            if difference:
                self.sleep(SETTLING_SECONDS)
                difference = _in_both(difference, look())
        except ApiError as error:
            unanswered = str(error)
        dump = self.cache.dump()
        return CacheReport(
            against="api" if against_api else "watch",
            nodes=len(dump.nodes),
            pods=len(dump.pods),
            assumed=len(dump.assumed_pods),
            differs=bool(difference),
            of_nodes=_side(difference.missed_nodes, difference.redundant_nodes),
            of_pods=_side(difference.missed_pods, difference.redundant_pods),
            unanswered=unanswered,
        )

    def _against_watch(self) -> Difference:
        nodes, pods = self.informers.informer(NODES).store, self.informers.informer(PODS).store
        return compare(self.cache.dump(), nodes.list(), pods.list())

    def _against_api(self) -> Difference:
        nodes = list(self._listed(NODES))
        pods = list(self._listed(PODS, PLACED))
        return compare(self.cache.dump(), nodes, pods)

    def _listed(self, resource: ResourceType[T], field_selector: str = "") -> Iterator[T]:
        token, steps = "", ShortSteps()
        while True:
            page = self.api.list_page(resource, field_selector=field_selector, continue_token=token)
            for each in page.items:
                yield each
                steps.pause_if_due()
            token = page.next
            if not token:
                return
            pause()


def _in_both(one: Difference, other: Difference) -> Difference:
    return Difference(
        *(
            tuple(sorted(set(a) & set(b)))
            for a, b in (
                (one.missed_nodes, other.missed_nodes),
                (one.redundant_nodes, other.redundant_nodes),
                (one.missed_pods, other.missed_pods),
                (one.redundant_pods, other.redundant_pods),
            )
        )
    )


def _side(missed: Iterable[str], redundant: Iterable[str]) -> Side:
    there, too_many = tuple(missed), tuple(redundant)
    return Side(len(there), len(too_many), there[:MOST_NAMES], too_many[:MOST_NAMES])
