"""One pod through PreFilter..Score of the whole profile on 5,000 nodes with 50,000 pods: exact rules, and columns.

Each round changes a few pods first, so columns are brought up to date within what is measured. Run by `make benchmark`;
prints, asserts nothing but that both sides agree.
"""

from __future__ import annotations

import importlib.util
import itertools
import random
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extender.api import corev1
from extender.api.codec import convert
from extender.backend.cache.cache import Cache
from extender.backend.queue.nominator import Nominator
from extender.client.embedded import EmbeddedAPI
from extender.client.events import Recorder
from extender.client.store import Store
from extender.config.defaults import MULTI_POINT
from extender.config.types import KubeSchedulerProfile, Plugins, PluginSet
from extender.framework.cycle_state import CycleState
from extender.framework.listers import NodeInfoLister
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.plugins import registry
from extender.scheduler.in_process.schedule_one import Algorithm
from tests.benchmark import scheduling_cluster as cluster
from tests.fakes.without_columns import WithoutColumns

ROUNDS = 101
EXACT_ROUNDS = 4
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
        FrameworkDependencies(
            api=api,
            events=Recorder(api),
            newest_snapshot=cache.snapshot,
            lister=lambda type_: stores.get(type_, Store()),
            nominator=Nominator(),
        ),
    )


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds on the clock, and of the CPU: on a machine that is shared the second says more."""

    wall: float
    cpu: float


def one_cycle(whole: Framework, pod: corev1.Pod, snapshot: NodeInfoLister) -> tuple[Took, Answer]:
    """All feasible nodes are looked for and scored."""
    algorithm = Algorithm(percentage_of_nodes_to_score=100, rng=random.Random(1))
    state = CycleState()
    started, cpu = time.perf_counter(), time.thread_time()
    whole.set_snapshot(snapshot)
    feasible, diagnosis = algorithm.find_nodes_that_fit_pod(whole, state, pod, snapshot.list())
    scores = algorithm.prioritize_nodes(whole, state, pod, feasible)
    algorithm.select_host(scores)
    took = Took(time.perf_counter() - started, time.thread_time() - cpu)
    answer = (
        [node.name for node in feasible],
        dict(diagnosis.node_to_status.statuses),
        [(entry.name, entry.total_score) for entry in scores],
    )
    return took, answer


def _change(cache: Cache, round_: int) -> None:
    """A few pods come, on different nodes."""
    for index in range(CHANGES):
        number = (round_ * CHANGES + index) * 13 % cluster.NODES
        pod = cluster.pod_json(f"new-{round_}-{index}", (round_ + index) % cluster.APPS, nodeName=f"node-{number}")
        cache.add_pod(convert(pod, corev1.Pod))


def _kind(
    whole: Framework, cache: Cache, make: Callable[[str], corev1.Pod], rounds: Iterator[int]
) -> Sequence[Timings]:
    """By columns, and by the exact rules on the same snapshots; what they answer is the same."""
    columns, exact = Timings(), Timings()
    for number in range(ROUNDS):
        _change(cache, next(rounds))
        snapshot = cache.snapshot()
        pod = make(f"asked-{number}")
        took, answer = one_cycle(whole, pod, snapshot)
        columns.append(took)
        if number < EXACT_ROUNDS:
            took, expected = one_cycle(whole, pod, WithoutColumns(snapshot))
            exact.append(took)
            assert answer == expected, pod.name
    return columns, exact


class Timings(list[Took]):
    """In milliseconds; the first, which builds what later ones bring up to date, stands apart."""

    def wall(self, percent: int) -> float:
        return 1e3 * sorted(took.wall for took in self[1:])[(len(self) - 1) * percent // 100]

    def cpu(self) -> float:
        return 1e3 * statistics.median(took.cpu for took in self[1:])


def _snapshots(cache: Cache) -> float:
    """What a snapshot takes after one pod has come."""
    taken = []
    for number in range(ROUNDS):
        pod = cluster.pod_json(f"one-{number}", number, nodeName=f"node-{number * 17 % cluster.NODES}")
        cache.add_pod(convert(pod, corev1.Pod))
        started = time.perf_counter()
        cache.snapshot()
        taken.append(time.perf_counter() - started)
    return 1e3 * statistics.median(taken)


def run() -> None:
    cache = cluster.cache()
    whole = framework(cache, cluster.stores())
    print(
        f"one pod, PreFilter..Score, {cluster.NODES} nodes, {cache.pod_count()} pods, {CHANGES} pods changed before each; ms"
    )
    print(
        f"  {'':30} {'wanted':>6} {'p50':>7} {'p99':>7} {'CPU':>7} {'first':>7}   {'exact':>7} {'CPU':>7}   times faster"
    )
    rounds = itertools.count()
    for title, make, wanted in KINDS:
        ours, exact = _kind(whole, cache, make, rounds)
        print(
            f"  {title:30} {wanted:6.0f} {ours.wall(50):7.2f} {ours.wall(99):7.2f} {ours.cpu():7.2f} {ours[0].wall * 1e3:7.1f}"
            f"   {exact.wall(50):7.1f} {exact.cpu():7.1f}   {exact.cpu() / ours.cpu():12.1f}",
            flush=True,
        )
    print(f"  {'snapshot after one pod came':30} {1:6.0f} {_snapshots(cache):7.2f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  memory, everything in one process: at most {peak:.0f} MiB")


if __name__ == "__main__":
    run()
