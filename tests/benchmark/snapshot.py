"""How long a snapshot takes after one pod has changed, or a node has come, at 5,000 nodes with 50,000 pods, beside building it anew.

Run by `make benchmark`; prints, asserts nothing.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from extender.api import corev1
from extender.api.codec import convert
from extender.backend.cache.cache import Cache
from extender.backend.cache.snapshot import Snapshot
from tests.objects import ZONE

NODES = 5_000
PODS_PER_NODE = 10
ROUNDS = 200
NODES_THAT_COME = 9


def _node(number: int) -> corev1.Node:
    return convert(
        {
            "metadata": {"name": f"node-{number}", "labels": {ZONE: f"zone-{number % 3}"}},
            "status": {"allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"}},
        },
        corev1.Node,
    )


def _pod(name: str, node_name: str) -> corev1.Pod:
    return convert(
        {
            "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": "web", "own": name}},
            "spec": {
                "nodeName": node_name,
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
            },
        },
        corev1.Pod,
    )


def _full_cache() -> Cache:
    cache = Cache()
    for number in range(NODES):
        cache.add_node(_node(number))
        for slot in range(PODS_PER_NODE):
            cache.add_pod(_pod(f"pod-{number}-{slot}", f"node-{number}"))
    return cache


def _median(work: Callable[[int], object], rounds: int) -> float:
    times = []
    for round_ in range(rounds):
        start = time.perf_counter()
        work(round_)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _by_columns(snapshot: Snapshot) -> None:
    """All that filters and scores look at."""
    table = snapshot.table()
    assert table is not None
    table.resources(), table.pods(), table.affinity(), table.label(ZONE), table.ports_in_use(lambda port: True)


def run() -> None:
    cache = _full_cache()
    full = _median(lambda _: cache.update_snapshot(Snapshot()), 3)
    fresh = iter([cache.update_snapshot(Snapshot()) for _ in range(3)])
    full_columns = _median(lambda _: next(fresh).columns(), 3)
    cache.snapshot().columns()
    pods = [_pod(f"new-{round_}", f"node-{round_ * 7 % NODES}") for round_ in range(3 * ROUNDS)]

    def change(round_: int, then: Callable[[], object]) -> float:
        cache.assume_pod(pods[round_])
        start = time.perf_counter()
        then()
        return time.perf_counter() - start

    plain = statistics.median(change(i, cache.snapshot) for i in range(ROUNDS))
    with_columns = statistics.median(change(ROUNDS + i, lambda: cache.snapshot().columns()) for i in range(ROUNDS))
    _by_columns(cache.snapshot())

    def node_comes(number: int) -> None:
        cache.add_node(_node(NODES + number))
        _by_columns(cache.snapshot())

    with_node = _median(node_comes, NODES_THAT_COME)
    all_anew = _median(lambda _: _by_columns(cache.update_snapshot(Snapshot())), 3)
    unchanged = _median(lambda _: cache.snapshot(), ROUNDS)
    print(f"snapshot of {NODES} nodes, {NODES * PODS_PER_NODE} pods (median of {ROUNDS})")
    print(f"  from scratch                  {full * 1e3:9.3f} ms   columns {full_columns * 1e3:8.3f} ms")
    print(f"  after one pod change          {plain * 1e3:9.3f} ms   {full / plain:8.0f} times faster")
    print(f"  the same, with columns        {with_columns * 1e3:9.3f} ms")
    print(f"  a node comes, all columns     {with_node * 1e3:9.3f} ms   built anew {all_anew * 1e3:8.3f} ms")
    print(f"  nothing changed               {unchanged * 1e3:9.3f} ms")


if __name__ == "__main__":
    run()
