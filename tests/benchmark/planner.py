"""The planner at 5,000 nodes: 512 alike members, 64 with spread and anti-affinity, and a gang that cannot fit; and gangs in slices.

The filters are the real ones; clusters are half full. Targets: 50 ms, 1 s, 1 s; 64 members in slices of 8 on 1,000 nodes 100 ms of CPU.
Members with claims of their own, none of which is like another: linear in the members, whatever other volumes there are.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from extender.api.storagev1 import NO_PROVISIONER
from extender.backend.cache.cache import Cache
from extender.backend.cache.snapshot import Snapshot
from extender.config.types import TopologyLevel
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from extender.plugins.judge import FrameworkJudge
from tests.fakes.planning import judge_with_volumes, planning_judge
from tests.objects import HOSTNAME, ZONE, make_node, make_pod, selector
from tests.unit.plugins.storage import StorageHandle, make_claim, make_class, make_volume

NODES = 5000
PODS_PER_NODE = 10
ROUNDS = 5
LEVELS = (TopologyLevel("zone", ZONE), TopologyLevel("block", "block"), TopologyLevel("rack", "rack"))
GROUP = selector({"group": "g"})


def cluster(nodes: int = NODES) -> Snapshot:
    """As the cache makes it, columns and all."""
    filler = make_pod().req(cpu="1600m", memory="4Gi").label("app", "web")
    size = make_node().capacity(cpu="32", memory="128Gi", pods="110")
    cache = Cache()
    for i in range(nodes):
        name = f"n{i:04}"
        labels = {HOSTNAME: name, ZONE: f"z{i % 3}", "block": f"b{i // 200}", "rack": f"r{i // 20}"}
        cache.add_node(size.name(name).labels(labels).obj())
        for slot in range(PODS_PER_NODE):
            cache.add_pod(filler.name(f"f{i}-{slot}").node(name).obj())
    return cache.snapshot()


def _members(count: int, pod: Any) -> list[PodInfo]:
    result = [PodInfo(pod.name(f"m{i}").label("index", str(i)).obj()) for i in range(count)]
    for info in result:  # as the cache has them: computed when the pod came
        _ = info.requests, info.host_ports
    return result


def requests() -> Mapping[str, planner.Request]:
    plain = make_pod().label("group", "g").req(cpu="2", memory="4Gi").toleration("node.kubernetes.io/not-ready")
    apart = plain.spread_constraint(1, ZONE, label_selector=GROUP).pod_anti_affinity(HOSTNAME, GROUP)
    large = make_pod().label("group", "g").req(cpu="15", memory="4Gi")
    master = make_pod().label("group", "g").label("role", "master").req(cpu="8", memory="16Gi")
    workers = plain.pod_affinity("rack", selector({"role": "master"}))
    topology = planner.Topology(LEVELS)
    racks = planner.Topology(LEVELS, required="rack")
    return {
        "512 alike": planner.Request(_members(512, plain), 512),
        "512 alike, three levels": planner.Request(_members(512, plain), 512, topology=topology),
        "64 with spread and anti-affinity": planner.Request(_members(64, apart), 64),
        "the same, three levels": planner.Request(_members(64, apart), 64, topology=topology),
        "512 with anti-affinity": planner.Request(_members(512, plain.pod_anti_affinity(HOSTNAME, GROUP)), 512),
        "6,000 of which 5,000 fit": planner.Request(_members(6000, large), 6000),
        "512 in one rack": planner.Request(_members(512, plain), 512, topology=racks),
        "32 beside their master": planner.Request([*_members(32, workers), PodInfo(master.name("master").obj())], 33),
    }


def in_slices() -> Mapping[str, planner.Request]:
    plain = make_pod().label("group", "g").req(cpu="2", memory="4Gi")
    apart = plain.pod_anti_affinity(HOSTNAME, GROUP)
    racks, nested = (("rack", 8),), (("block", 32), ("rack", 8))
    return {
        "64 in slices of 8": _sliced(64, plain, racks),
        "512 in slices of 8": _sliced(512, plain, racks),
        "512 in slices of 32 and of 8": _sliced(512, plain, nested),
        "64 with anti-affinity, of 8": _sliced(64, apart, racks),
        "400 in slices of 200: none fits": _sliced(400, plain, (("rack", 200),)),
    }


def _sliced(count: int, pod: Any, sizes: tuple[tuple[str, int], ...]) -> planner.Request:
    members = _members(count, pod)
    ranks = {info.pod.uid: rank for rank, info in enumerate(members)}
    topology = planner.Topology(LEVELS[1:])
    return planner.Request(members, count, topology=topology, sliced=[planner.Sliced(frozenset(ranks), sizes, ranks)])


def with_claims(snapshot: Snapshot) -> Mapping[str, tuple[planner.Request, FrameworkJudge]]:
    """Each member's volume is made for it, is bound, or is one of those that are there; beside 5,000 of another class."""
    made, there = make_class("made", "csi.example.com"), make_class("there", NO_PROVISIONER)
    others = [make_volume(f"other-{i}", storage_class="other") for i in range(5000)]
    result: dict[str, tuple[planner.Request, FrameworkJudge]] = {}
    for count in (128, 256, 512):
        pod = make_pod().label("group", "g").req(cpu="2", memory="4Gi")
        members = [PodInfo(pod.name(f"m{i}").pvc(f"c{i}").obj()) for i in range(count)]
        free = [make_volume(f"v{i}", storage_class="there") for i in range(count)]
        objects: dict[str, list[Any]] = {
            "made": [make_claim(f"c{i}", storage_class="made") for i in range(count)],
            "bound": [*free, *(make_claim(f"c{i}", bound_to=f"v{i}") for i in range(count))],
            "there": [*free, *(make_claim(f"c{i}", storage_class="there") for i in range(count))],
        }
        for volumes, of in objects.items():
            judge = judge_with_volumes(StorageHandle([made, there, *others, *of]).lister, snapshot)
            result[f"{count}, volumes {volumes}"] = planner.Request(members, count, budget_seconds=60), judge
    return result


def _milliseconds(work: Callable[[], object]) -> tuple[float, object]:
    times, result = [], None
    for _ in range(ROUNDS):
        start = time.process_time()
        result = work()
        times.append(time.process_time() - start)
    return statistics.median(times) * 1e3, result


def run() -> None:
    judge, snapshot = planning_judge(), cluster()
    _run(snapshot, {name: (request, judge) for name, request in {**requests(), **in_slices()}.items()})
    print("  on 1,000 nodes:")
    _run(cluster(1000), {name: (request, judge) for name, request in in_slices().items()})
    print("  a claim each, on 5,000 nodes:")
    _run(snapshot, with_claims(snapshot))


def _run(snapshot: Snapshot, of: Mapping[str, tuple[planner.Request, FrameworkJudge]]) -> None:
    for name, (request, judge) in of.items():
        took, result = _milliseconds(partial(planner.plan, snapshot, request, judge))
        if isinstance(result, planner.Placement):
            said = f"{len(set(result.nodes.values()))} nodes, {len(result.waves)} waves {result.domain}"
        else:
            assert isinstance(result, planner.NoPlacement)
            said = f"{result.cause}: {result.reason} ({result.placed} of {result.needed} {result.fits_at})"
        print(f"  {name:34} {took:9.1f} ms   {said}")


if __name__ == "__main__":
    run()
