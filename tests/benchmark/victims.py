"""Victims for a gang of 64, and for one in slices of 8, on 1,000 nodes with 10,000 pods: the time of one plan, each pod a possible victim.

The yardstick beside it is the plan of the same gang on the same cluster with all pods of lower priority gone.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from extender.backend.cache.cache import Cache
from extender.backend.queue.nominator import Nominator
from extender.client.embedded import EmbeddedAPI
from extender.client.events import Recorder
from extender.client.store import Store
from extender.config.defaults import planning_profile
from extender.config.types import TopologyLevel
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.planner import Request, Sliced, Topology
from extender.plugins.coscheduling.preemption.evictable import Rules, evictable_pods
from extender.plugins.coscheduling.preemption.planning import VictimPlan, plan_with_victims
from extender.plugins.judge import FrameworkJudge
from extender.plugins.registry import new_registry
from tests.objects import HOSTNAME, NodeBuilder, make_node, make_pod

NODES, PODS_PER_NODE, MEMBERS, ROUNDS = 1000, 10, 64, 5
RACKS = Topology((TopologyLevel("rack", "rack"),))


def run() -> None:
    cache = _cluster()
    snapshot = cache.snapshot()
    judge = FrameworkJudge(Framework(planning_profile(), new_registry(), _dependencies(cache)))
    members = [make_pod().name(f"m{i}").priority(100).req(cpu="4").info() for i in range(MEMBERS)]
    request = Request(members=members, needed=MEMBERS)
    ranks = {info.pod.uid: rank for rank, info in enumerate(members)}
    slices = replace(request, topology=RACKS, sliced=[Sliced(frozenset(ranks), (("rack", 8),), ranks)])
    evictable = evictable_pods(snapshot.list(), (), Rules(100))
    empty = [_node(i).info() for i in range(NODES)]

    print(f"victims for a gang of {MEMBERS} on {NODES} nodes, {NODES * PODS_PER_NODE} pods (median of {ROUNDS})")
    for name, asked in (("all alike", request), ("in slices of 8", slices)):
        plan = plan_with_victims(snapshot, asked, judge, evictable, ())
        assert isinstance(plan, VictimPlan)
        ours = _median(partial(plan_with_victims, snapshot, asked, judge, evictable, ()))
        alone = _median(partial(planner.plan, empty, asked, judge))
        print(f"  {name:14}  with victims {1000 * ours:8.1f} ms   {len(plan.victims)} victims")
        print(f"  {'':14}  on empty nodes {1000 * alone:6.1f} ms   ratio {ours / alone:.1f}")


def _median(call: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def _node(number: int) -> NodeBuilder:
    made = make_node().name(f"n{number}").label(HOSTNAME, f"n{number}").label("rack", f"r{number // 20}")
    return made.capacity(cpu=10, memory="64Gi")


def _cluster() -> Cache:
    rng = random.Random(1)
    cache = Cache()
    for i in range(NODES):
        cache.add_node(_node(i).obj())
        for j in range(PODS_PER_NODE):
            pod = make_pod().name(f"p{i}-{j}").priority(rng.choice((0, 1, 5, 10))).req(cpu="1").node(f"n{i}")
            cache.add_pod(pod.start_time(f"2026-01-01T00:{rng.randrange(60):02}:00Z").obj())
    return cache


def _dependencies(cache: Cache) -> FrameworkDependencies:
    api = EmbeddedAPI()
    return FrameworkDependencies(
        api=api,
        events=Recorder(api),
        newest_snapshot=cache.snapshot,
        lister=lambda type_: Store(),
        nominator=Nominator(),
    )


if __name__ == "__main__":
    run()
