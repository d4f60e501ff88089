"""Gated gangs of 16 that all fit on 1,000 nodes, and what it takes to plan them one after the other. Used by scale.

The true planner, filters, cache and nominator in one process; each gang's places and nominations stay while the next is planned.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence, Set
from typing import Any

from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.backend.queue.nominator import Nominator
from extender.config.types import ExtenderConfiguration
from extender.plugins.coscheduling.dependencies import here
from tests.fakes.planning import planning_judge
from tests.objects import HOSTNAME, ZONE, make_node, make_pod, make_pod_group
from tests.unit.plugins.coscheduling.conftest import Rooms, World

NODES = 1000
MEMBERS = 16
GATE = "scheduling.x-k8s.io/gang"


class Cluster(World):
    """Nominations come back at once, as the watch brings them."""

    def __init__(self, cache: Cache, **others: Any) -> None:
        """others: dependencies in place of the world's own."""
        self._nominated = Nominator()
        self.sent = 0  # members, to kube-scheduler
        super().__init__([])
        self.connect(
            **{"newest_snapshot": cache.snapshot, "judges": Rooms(planning_judge()), "offload": here, **others}
        )

    def nominated_nodes(self) -> list[str]:
        return list(self._nominated.nominated_nodes())

    def nominated_pods_for_node(self, name: str) -> list[corev1.Pod]:
        return list(self._nominated.nominated_pods_for_node(name))

    def nominated_pods_but(self, uids: Set[str]) -> list[tuple[str, corev1.Pod]]:
        return list(self._nominated.nominated_pods_but(uids))

    def nominate(self, places: Sequence[tuple[corev1.Pod, str]]) -> None:
        self.sent += len(places)
        for pod, node_name in places:
            self._nominated.add_nominated_pod(pod, node_name)


def empty_nodes() -> Cache:
    """1,000 of them, with room for 1,000 gangs."""
    cache = Cache()
    for number in range(NODES):
        labels = {HOSTNAME: f"n{number}", ZONE: f"z{number % 3}"}
        cache.add_node(
            make_node().name(f"n{number}").labels(labels).capacity(cpu="16", memory="64Gi", pods="110").obj()
        )
    return cache


def add_gangs(cluster: Cluster, gangs: int) -> None:
    for gang in range(gangs):
        name = f"g{gang}"
        cluster.plugin.on_pod_group(None, make_pod_group().name(name).min_member(MEMBERS).obj())
        member = make_pod().pod_group(name).req(cpu="1").scheduling_gates(GATE)
        for number in range(MEMBERS):
            cluster.plugin.on_pod(None, member.name(f"{name}-{number}").obj())


def plan_all(cluster: Cluster) -> None:
    while cluster.tasks:
        cluster.run_tasks()


def plan_seconds(cache: Cache, gangs: int) -> float:
    """CPU of this thread: on a machine that is shared it says more than the clock."""
    cluster = Cluster(cache, max_held_binds=ExtenderConfiguration().max_held_binds)
    add_gangs(cluster, gangs)
    gc.collect()
    began = time.thread_time()
    plan_all(cluster)
    took = time.thread_time() - began
    places = len(list(cluster.plugin.manager.slots))
    if places != gangs * MEMBERS:
        raise RuntimeError(f"{places} places for {gangs} gangs")
    return took
