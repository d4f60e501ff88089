"""percentageOfNodesToScore at 100, 1,000 and 5,000 nodes: what a gang of 256 costs, and where single pods go.

Percentages of 100, 30, 10, and kube-scheduler's own by default, in turn; 100 and 10 with gated members too. Of the gang: last member
created to all bound, and the CPU of kube-scheduler and of the extender for a member. Of 120 single pods that prefer one node in fifty and
to be spread over three zones: the share that is on such a node, and by how many pods the zones differ. BENCHMARK_NODES: the sizes, as
`100,1000`; BENCHMARK_ONLY: percentages with that in their name.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tests.benchmark.contenders import ALONE, Contender, Running, for_each_round, only, pod_body, rival_plane
from tests.benchmark.gang_load import CREATORS, History, Load, Watcher, clear, create_gangs, create_nodes, in_process
from tests.benchmark.table import Table
from tests.e2e.api import NODES, PODS
from tests.e2e.control_plane import ControlPlane

SIZES = (100, 1000, 5000)
PERCENTAGES = (100, 30, 10, 0)
OF_GATED = (100, 10)
GANG = Load(gangs=1, members=256)
SINGLE = 120
WITHIN = 120.0
ZONE, POOL = "topology.kubernetes.io/zone", "example.com/pool"
ZONES, POOLS = 3, 50


def sizes() -> tuple[int, ...]:
    named = os.environ.get("BENCHMARK_NODES", "")
    return tuple(int(size) for size in named.split(",")) if named else SIZES


def _contender(percentage: int, *, gated: bool = False) -> Contender:
    name = f"{'gated' if gated else 'plain'}, {f'{percentage} %' if percentage else 'by default'}"
    return Contender(name, extended=True, gated=gated, early=True, percentage=percentage)


def _labels(number: int) -> Mapping[str, str]:
    return {ZONE: f"zone-{number % ZONES}", POOL: f"pool-{number % POOLS}"}


def _create_single(plane: ControlPlane) -> None:
    api = plane.api()
    preferred = {"matchExpressions": [{"key": POOL, "operator": "In", "values": ["pool-0"]}]}
    affinity = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": preferred}]}
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "single"}},
    }

    def one(number: int) -> None:
        body = pod_body(ALONE, f"single-{number}", "", cpu="100m")
        body["metadata"]["labels"] = {"app": "single"}
        body["spec"] |= {"affinity": {"nodeAffinity": affinity}, "topologySpreadConstraints": [spread]}
        api.create(PODS.format(namespace="default"), body)

    with ThreadPoolExecutor(CREATORS) as pool:
        list(pool.map(one, range(SINGLE)))


def _one_round(plane: ControlPlane, table: Table, contender: Contender, number: int) -> None:
    folder = plane.folder / f"{contender.name}-{number}"
    with Running(contender, plane, folder) as running:
        watcher = Watcher(plane)
        before = running.scheduler_seconds, running.our_seconds
        created = create_gangs(plane, contender, GANG)
        history = History(created, watcher.await_bound(GANG.expected, WITHIN))
        after = running.scheduler_seconds, running.our_seconds
        in_process(_create_single, plane)
        watcher.await_bound(GANG.expected + SINGLE, WITHIN)
        watcher.stop()
    bound = max(1, len(history.bound))
    table.add(
        contender.name,
        bound=len(history.bound),
        seconds=history.seconds,
        scheduler_cpu=(after[0] - before[0]) * 1000 / bound,
        our_cpu=(after[1] - before[1]) * 1000 / bound,
        **_placement(plane),
    )
    clear(plane, contender)


def _placement(plane: ControlPlane) -> dict[str, float]:
    """Of the single pods."""
    api = plane.api()
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in api.items(NODES)}
    pods = api.items(PODS.format(namespace="default"), labelSelector="app=single")
    nodes = [labels[pod["spec"]["nodeName"]] for pod in pods if pod["spec"].get("nodeName")]
    zones = Counter(node[ZONE] for node in nodes)
    return {
        "preferred": 100 * sum(node[POOL] == "pool-0" for node in nodes) / max(1, len(nodes)),
        "skew": max(zones.values(), default=0) - min((zones[f"zone-{number}"] for number in range(ZONES)), default=0),
    }


def _measure(nodes: int) -> None:
    with rival_plane() as plane:
        if plane is None:
            return
        create_nodes(plane, nodes, "4", labels=_labels)
        title = f"a gang of {GANG.members} and {SINGLE} single pods on {nodes} nodes, by percentageOfNodesToScore"
        table = Table(title, f"samples-{nodes}")
        contenders = only(*map(_contender, PERCENTAGES), *(_contender(each, gated=True) for each in OF_GATED))
        for_each_round(contenders, partial(_one_round, plane, table))
        for contender in contenders:
            table.row(contender.name, "seconds", "s", "last member created to all bound")
            table.row(contender.name, "scheduler_cpu", "ms", "for a member")
            table.row(contender.name, "our_cpu", "ms", "for a member")
            table.row(contender.name, "preferred", "%", "of the single pods are on a node that they prefer")
            table.row(contender.name, "skew", "pods", "by which the zones differ")


def run() -> None:
    for nodes in sizes():
        _measure(nodes)


if __name__ == "__main__":
    run()
