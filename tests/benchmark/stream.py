"""A stream of gangs of 4 to 64 on 1,000 nodes, made faster than they are bound, that end five seconds after: bound pods a second.

Beside it the time from a gang's last creation to its last binding at p50 and p99, and the CPU of each process for a bound pod. Ours plain
and gated, with and without early start, in-tree gangs, an extender without plans and kube-scheduler alone, in turn. BENCHMARK_SECONDS: how
long each streams (120); BENCHMARK_ONLY: contenders with that in their name.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tests.benchmark.contenders import (
    ALONE,
    GATED,
    GATED_EARLY,
    IN_TREE,
    PLAIN,
    PLAIN_EARLY,
    PLANLESS,
    Contender,
    Running,
    cpu_seconds,
    for_each_round,
    only,
    rival_plane,
)
from tests.benchmark.gang_load import clear, create_nodes
from tests.benchmark.gang_stream import SIZES, Outcome, Stream, Streaming, percentile
from tests.benchmark.table import Table
from tests.e2e.control_plane import ControlPlane

NODES = 1000
NODE_CPU = "16"  # with 4 the nodes were full of pods that were to be deleted, and room decided
WITHIN = 60.0  # for what waits when the last gang is made
SETTLING = 0.15  # of the time: what is bound then counts for nothing
ALL = (PLAIN, IN_TREE, GATED, PLAIN_EARLY, GATED_EARLY, PLANLESS, ALONE)


def seconds() -> float:
    return float(os.environ.get("BENCHMARK_SECONDS", "120"))


def one_round(plane: ControlPlane, table: Table, stream: Stream, contender: Contender, number: int) -> None:
    folder = plane.folder / f"stream-{contender.name}-{number}"
    with Running(contender, plane, folder) as running, Streaming(plane, contender, stream) as streaming:

        def cpu() -> dict[str, float]:
            around = {"apiserver": cpu_seconds(plane.apiserver.pid), "etcd": cpu_seconds(plane.etcd.pid)}
            return {"scheduler": running.scheduler_seconds, "ours": running.our_seconds, **around}

        began = time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            made = pool.submit(streaming.make)
            time.sleep(SETTLING * stream.seconds)
            since, before = time.monotonic(), cpu()
            time.sleep(began + stream.seconds - time.monotonic())
            until, after = time.monotonic(), cpu()
            created = made.result()
        outcome = Outcome(created, streaming.await_bound(len(created), WITHIN), since, until)
    waits = outcome.waits()
    bound = max(1.0, outcome.bound_a_second * (until - since))
    table.add(
        contender.name,
        bound_a_second=outcome.bound_a_second,
        p50=percentile(waits, 50),
        p99=percentile(waits, 99),
        partial=outcome.partial,
        unbound=outcome.unbound,
        **{f"{name}_cpu": (after[name] - before[name]) * 1000 / bound for name in before},
    )
    clear(plane, contender)


def run() -> None:
    with rival_plane() as plane:
        if plane is None:
            return
        create_nodes(plane, NODES, NODE_CPU)
        stream = Stream(seconds())
        title = (
            f"gangs of {SIZES[0]} to {SIZES[-1]} for {stream.seconds:g} s on {NODES} nodes, {stream.ahead} pods ahead"
        )
        table = Table(title, "stream")
        contenders = only(*ALL)
        for_each_round(contenders, partial(one_round, plane, table, stream))
        for contender in contenders:
            table.row(contender.name, "bound_a_second", "pods/s")
            table.row(contender.name, "p50", "s", "last member created to last bound")
            table.row(contender.name, "p99", "s")
            table.row(contender.name, "partial", "gangs", "none" if contender is not ALONE else "")
            for process in ("scheduler", "ours", "apiserver", "etcd"):
                table.row(contender.name, f"{process}_cpu", "ms", "for a bound pod")
        remarks = {PLAIN_EARLY: "at least 1.2", PLANLESS: "what no extender in these programs can be above"}
        for contender in (PLAIN, PLAIN_EARLY, GATED, GATED_EARLY, PLANLESS):
            table.ratio("bound_a_second", contender.name, IN_TREE.name, remarks.get(contender, ""))


if __name__ == "__main__":
    run()
