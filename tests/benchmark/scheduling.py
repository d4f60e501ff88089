"""One pod through PreFilter..Score of the whole profile on 5,000 nodes with 50,000 pods: exact rules, and columns.

Each round changes a few pods first, so columns are brought up to date within what is measured. Run by `make benchmark`;
prints, asserts nothing but that both sides agree.
"""

from __future__ import annotations

import importlib.util
import random
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.backend.queue.nominator import Nominator
from extender.client.embedded import EmbeddedAPI
from extender.client.events import Recorder
from extender.client.store import Store
from extender.config.defaults import MULTI_POINT
from extender.config.types import KubeSchedulerProfile, Plugins, PluginSet
from extender.framework.cycle_state import CycleState
from extender.framework.listers import NodeInfoLister
from extender.framework.runtime.framework import Framework, Surroundings
from extender.plugins import registry
from extender.scheduler.schedule_one import Algorithm
from tests.benchmark import scheduling_cluster as cluster
from tests.fakes.without_columns import WithoutColumns

ROUNDS = 30
EXACT_ROUNDS = 3
CHANGES = 3

KINDS: Sequence[tuple[str, Callable[[str], corev1.Pod], float]] = (
    ("resources, taints, selectors", cluster.plain, 5.0),
    ("Deployment: spread, preferred", cluster.deployment, 25.0),
    ("required pod affinity", cluster.with_affinity, 60.0),
)

Answer = tuple[list[str], Mapping[str, object], list[tuple[str, int]]]


def built_plugins() -> Iterable[str]:
    """The default profile's plugins that this version has."""
    for ref in MULTI_POINT.enabled:
        module = registry._IN_TREE[ref.name]
        if importlib.util.find_spec(f"extender.plugins.{module}") is not None:
            yield ref.name


def framework(cache: Cache, stores: Mapping[type[Any], Store[Any]]) -> Framework:
    names = frozenset(built_plugins())
    refs = tuple(ref for ref in MULTI_POINT.enabled if ref.name in names)
    api = EmbeddedAPI()
    return Framework(
        KubeSchedulerProfile("default-scheduler", Plugins(PluginSet(refs))),
        registry.new_in_tree_registry(),
        Surroundings(
            api=api,
            events=Recorder(api),
            newest_snapshot=cache.snapshot,
            lister=lambda type_: stores.get(type_, Store()),
            nominator=Nominator(),
        ),
    )


def one_cycle(whole: Framework, pod: corev1.Pod, snapshot: NodeInfoLister) -> tuple[float, Answer]:
    """All feasible nodes are looked for and scored."""
    algorithm = Algorithm(percentage_of_nodes_to_score=100, rng=random.Random(1))
    state = CycleState()
    started = time.perf_counter()
    whole.set_snapshot(snapshot)
    feasible, diagnosis = algorithm.find_nodes_that_fit_pod(whole, state, pod, snapshot.list())
    scores = algorithm.prioritize_nodes(whole, state, pod, feasible)
    algorithm.select_host(scores)
    taken = time.perf_counter() - started
    answer = (
        [node.name for node in feasible],
        dict(diagnosis.node_to_status.statuses),
        [(entry.name, entry.total_score) for entry in scores],
    )
    return taken, answer


def _change(cache: Cache, round_: int) -> None:
    """A few pods come, on different nodes."""
    for index in range(CHANGES):
        number = (round_ * CHANGES + index) * 13 % cluster.NODES
        pod = cluster.pod_json(f"new-{round_}-{index}", (round_ + index) % cluster.APPS, nodeName=f"node-{number}")
        cache.add_pod(cluster.convert(pod, corev1.Pod))


def run() -> None:
    cache = cluster.cache()
    whole = framework(cache, cluster.stores())
    print(
        f"one pod, PreFilter..Score, {cluster.NODES} nodes, {cache.pod_count()} pods, {CHANGES} pods changed before each"
    )
    rounds = iter(range(1_000_000))
    for title, make, wanted in KINDS:
        exact, columns = [], []
        for number in range(ROUNDS):
            _change(cache, next(rounds))
            snapshot = cache.snapshot()
            pod = make(f"asked-{number}")
            taken, answer = one_cycle(whole, pod, snapshot)
            columns.append(taken)
            if number < EXACT_ROUNDS:
                taken, expected = one_cycle(whole, pod, WithoutColumns(snapshot))
                exact.append(taken)
                assert answer == expected, title
        ours, theirs, first = statistics.median(columns[1:]), statistics.median(exact), columns[0]
        slow = sorted(columns[1:])[-2]
        print(
            f"  {title:30} exact {theirs * 1e3:8.1f} ms   columns {ours * 1e3:6.2f} ms (p95 {slow * 1e3:6.2f}, first "
            f"{first * 1e3:6.1f})   {theirs / ours:6.1f} times faster; wanted {wanted:.0f} ms",
            flush=True,
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  memory, everything in one process: at most {peak:.0f} MiB")


if __name__ == "__main__":
    run()
