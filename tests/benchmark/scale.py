"""How the work of the gang room grows with the gangs that wait: a line for each bound, at 100, 200, 400 and 1,000 gangs.

Needs no control plane. 1,000 nodes; gangs of 16 that wait, or all fit. What can be counted is counted, since it is the same on every
machine; seconds are of CPU, but for filter calls. The last columns say how much ten times as many gangs cost, what is wanted, and
whether it is so. `make benchmark scale`; BENCHMARK_ONLY=tick: the bounds with that in their name alone.
"""

from __future__ import annotations

import gc
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import urllib3
from prometheus_client import generate_latest

from extender.api import corev1
from extender.metrics import REGISTRY
from extender.scheduler.live_metrics import LiveMetrics, of_cache, of_gangs, of_room
from extender.server import collector
from tests.benchmark import filter_beside_plans, gang_churn, planned_gangs
from tests.benchmark.planned_gangs import MEMBERS, NODES, Cluster
from tests.benchmark.waiting_world import POOLS, WaitingWorld, look
from tests.objects import make_pod
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, members

SIZES = (100, 200, 400, 1000)
MOST = SIZES[-1]
LINEAR, LINEAR_TO = (
    1.125,
    400,
)  # 400 at most 4.5 times 100: how far the cost of one may grow where the whole is to grow linearly
SCRAPED_MEMBERS = 32  # of each gang
CAP = 64  # bind calls
ROUNDS = 3


@dataclass(frozen=True)
class Line:
    """What was measured at each size. at_most: what is wanted at the largest; linear: that each gang costs as much at every size."""

    name: str
    unit: str
    values: Sequence[float]
    at_most: float = math.inf
    linear: bool = False

    @property
    def growth(self) -> float:
        return self.values[-1] / self.values[0] if self.values[0] else float(bool(self.values[-1]))

    @property
    def holds(self) -> bool:
        if self.linear:
            costs = [value / size for value, size in zip(self.values, SIZES, strict=True) if size <= LINEAR_TO]
            return max(costs) <= LINEAR * costs[0]
        return self.values[-1] <= self.at_most

    def __str__(self) -> str:
        values = "".join(f"{value:9.{0 if float(value).is_integer() else 2}f}" for value in self.values)
        wanted = "linear" if self.linear else f"at most {self.at_most:g}" if self.at_most < math.inf else ""
        verdict = "" if not wanted else "yes" if self.holds else "NO"
        return f"  {self.name:58s} {self.unit:6s}{values}  x {self.growth:6.1f}  {wanted:13s} {verdict}"


Measure = Callable[[int], Sequence[float]]


@dataclass(frozen=True)
class Bounds:
    """measure: what each of the lines is at a size, in their order. rounds: of all sizes in turn, of which the medians count."""

    lines: Sequence[Callable[[Sequence[float]], Line]]
    measure: Measure
    rounds: int = 1

    def run(self) -> None:
        rounds = [[self.measure(size) for size in SIZES] for _ in range(self.rounds)]
        for number, line in enumerate(self.lines):
            values = ([found[at][number] for found in rounds] for at in range(len(SIZES)))
            print(line(list(map(statistics.median, values))), flush=True)


def _line(
    name: str, unit: str, at_most: float = math.inf, *, linear: bool = False
) -> Callable[[Sequence[float]], Line]:
    return lambda values: Line(name, unit, values, at_most, linear)


def _cpu_ms(act: Callable[[], object]) -> float:
    gc.collect()
    began = time.thread_time()
    act()
    return (time.thread_time() - began) * 1e3


def _filter_calls(gangs: int) -> Sequence[float]:
    """By the clock, of the service as a process of its own, while it plans gangs that fit nowhere."""
    setting = filter_beside_plans.Setting(NODES, pool=MEMBERS // 2, gangs=gangs, members=MEMBERS)
    with filter_beside_plans.service(setting) as addresses, urllib3.PoolManager(retries=False) as http:
        found = filter_beside_plans.measure(http, addresses, NODES, calls=200)
    return found.p99 * 1e3, (found.p99 - _without_gangs().p99) * 1e3, found.plans


@cache
def _without_gangs() -> filter_beside_plans.Measured:
    """On the same machine with the same load: the clock knows of all that runs there."""
    with (
        filter_beside_plans.service(filter_beside_plans.Setting(NODES)) as addresses,
        urllib3.PoolManager(retries=False) as http,
    ):
        return filter_beside_plans.measure(http, addresses, NODES, calls=200)


def _plans(gangs: int) -> Sequence[float]:
    """With Python's collector as the server sets it, and the shipped limit of held binds."""
    thresholds = gc.get_threshold()
    nodes = planned_gangs.empty_nodes()
    planned_gangs.plan_seconds(nodes, 10)  # columns are made
    try:
        collector.keep_what_was_listed()
        return (planned_gangs.plan_seconds(nodes, gangs) * 1e3,)
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)


def _events(gangs: int) -> Sequence[float]:
    """Gangs that are looked at, and plans that are made, as pods and nodes change."""
    world = WaitingWorld(gangs)
    before = world.plans
    deleted = world.look(lambda: world.delete_pod(0))
    plans = world.plans - before
    others = [
        world.look(act) for act in (lambda: world.delete_finished_pod(1), lambda: world.cordon(2), lambda: world.tick())
    ]
    return len(deleted.gangs), plans, *(len(each.gangs) for each in others), others[-1].calls


def _pieces(gangs: int) -> Sequence[float]:
    world = WaitingWorld(gangs)
    deletions = (world.longest_piece(partial(world.delete_pod, number)) for number in range(0, 5 * POOLS, POOLS))
    ticks = (world.longest_piece(world.tick) for _ in range(5))
    return tuple(sorted(pieces)[2] * 1e3 for pieces in (ticks, deletions))


def _sets(number: int) -> Sequence[float]:
    """Leaders with their workers, made one by one; then one group of the last set names its leader no more, and names it again."""
    world = World([node("n1")])

    def make(index: int) -> None:
        world.plugin.on_pod_group(None, group(f"leader-{index}", 1))
        world.plugin.on_pod_group(None, group(f"workers-{index}", 2, groups=f"leader-{index}"))
        world.create(*members(1, f"leader-{index}", gated=True), *members(2, f"workers-{index}", gated=True))
        world.tasks.clear()

    def change_links() -> None:
        linked, free = group("workers-0", 2, groups="leader-0"), group("workers-0", 2)
        world.plugin.on_pod_group(linked, free)
        world.plugin.on_pod_group(free, linked)

    def make_all() -> None:
        for index in range(number):
            make(index)

    made = _cpu_ms(make_all)
    looked = look(world.plugin.manager.groups, change_links)
    return made, len(looked.gangs), looked.calls


def _scraped(gangs: int) -> Sequence[float]:
    """After one member has changed, and after none has. One half of the gangs runs."""
    cluster = Cluster(planned_gangs.empty_nodes())
    plugin = cluster.plugin
    for number in range(gangs):
        made = members(SCRAPED_MEMBERS, f"g{number}", gated=bool(number % 2))
        plugin.on_pod_group(None, group(f"g{number}", SCRAPED_MEMBERS))
        for index, pod in enumerate(made):
            plugin.on_pod(None, pod if number % 2 else _on_node(pod, f"n{(number * SCRAPED_MEMBERS + index) % NODES}"))
    report = plugin.report
    live = LiveMetrics([*of_gangs(report), *of_cache(planned_gangs.empty_nodes()), *of_room(report.largest)])
    live.start()
    try:
        generate_latest(REGISTRY)
        plugin.on_pod(None, members(1, "g1", prefix="more", gated=True)[0])
        changed = _cpu_ms(lambda: generate_latest(REGISTRY))
        return changed, _cpu_ms(lambda: generate_latest(REGISTRY))
    finally:
        live.stop()


def _on_node(pod: corev1.Pod, node_name: str) -> corev1.Pod:
    return (
        make_pod()
        .name(pod.name)
        .uid(pod.uid)
        .namespace(pod.metadata.namespace)
        .labels(pod.labels)
        .node(node_name)
        .obj()
    )


def _churn(gangs: int) -> Sequence[float]:
    """What is left of gangs that came, ran and went, once their UIDs need not be known any more."""
    world = World([node("n1")])

    def round_of(prefix: str) -> int:
        gang_churn.come_and_go(world, [f"{prefix}-{index}" for index in range(gangs)], labels_only=False)
        gang_churn.forget_uids(world)
        return len(gc.get_objects())

    for number in range(math.ceil(MOST / gangs)):  # what is kept of a number of gangs, and no more, is full then
        round_of(f"warm-{number}")
    before, _, after = (round_of(prefix) for prefix in ("first", "second", "third"))
    return len(world.plugin.manager.groups), max(0, after - before)


def _held_binds(gangs: int) -> Sequence[float]:
    """Members that are sent to kube-scheduler at a time, of gangs that all have their places."""
    cluster = planned_gangs.Cluster(planned_gangs.empty_nodes(), max_held_binds=CAP)
    planned_gangs.add_gangs(cluster, gangs)
    planned_gangs.plan_all(cluster)
    return (cluster.sent,)


BOUNDS: dict[str, Bounds] = {
    "filter": Bounds(
        [
            _line("filter: p99 beside plans, clock", "ms", 20),
            _line("  beyond one without gangs", "ms"),
            _line("  plans beside it", "plans"),
        ],
        _filter_calls,
    ),
    "plan": Bounds([_line("plan: gangs that all fit", "ms", linear=True)], _plans, ROUNDS),
    "events": Bounds(
        [
            _line(f"a pod deleted: gangs looked at, of {POOLS} pools", "gangs", MOST / POOLS),
            _line("  planned", "plans", MOST / POOLS),
            _line("a finished pod deleted: gangs looked at", "gangs", 0),
            _line("a node cordoned: gangs looked at", "gangs", 0),
            _line("a tick, nothing is due: gangs looked at", "gangs"),
            _line("  calls inside the room", "calls"),
        ],
        _events,
    ),
    "pieces": Bounds(
        [_line("a tick: longest piece", "ms", 2), _line("a pod deleted: longest piece but plans", "ms", 2)], _pieces
    ),
    "sets": Bounds(
        [
            _line("leader-and-worker sets made one by one", "ms", linear=True),
            _line("a link taken off and put back: gangs looked at", "gangs", 4),
            _line("  calls inside the room", "calls"),
        ],
        _sets,
    ),
    "scrape": Bounds(
        [
            _line(f"a scrape after a change, {SCRAPED_MEMBERS} members a gang", "ms", 20),
            _line("a scrape after none", "ms", 20),
        ],
        _scraped,
    ),
    "churn": Bounds(
        [_line("gangs come and gone: groups left", "groups", 0), _line("  objects of Python left", "", 100)], _churn
    ),
    "binds": Bounds([_line(f"members sent at a time where {CAP} binds are held", "pods", CAP)], _held_binds),
}


def run() -> None:
    wanted = os.environ.get("BENCHMARK_ONLY", "")
    print(f"  {f'{NODES} nodes; gangs:':65s}" + "".join(f"{size:9d}" for size in SIZES) + "  growth")
    for name, bounds in BOUNDS.items():
        if wanted in name:
            bounds.run()


if __name__ == "__main__":
    run()
