"""Pods and gangs come and go, many times: afterwards the running extender has no more of anything than before.

Sizes are those that `/debug` shows; the memory of the process is looked at as well, as far as a few hundred pods can be seen in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from extender.client.transport import POOL_SIZE
from tests.e2e.cluster import Cluster
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

BEFORE, ROUNDS = 3, 6
PODS = 30  # of a round
MEGABYTES = 10.0  # of what an allocator does not give back; 5 were seen once, and then no more


def a_round(cluster: Cluster) -> None:
    """Of two gangs that start, one that waits for members, one that waits for room, and single pods with and without room."""
    names: list[str] = []
    for name, size, members, cpu in (("a", 8, 8, "1"), ("b", 6, 6, "1"), ("few", 9, 4, "1"), ("large", 6, 6, "60")):
        cluster.pod_group(name, min_member=size)
        for number in range(members):
            names.append(f"{name}-{number}")
            cluster.pod(names[-1], group=name, requests={"cpu": cpu})
    for number, cpu in enumerate(("1", "1", "1", "1", "90", "90")):
        names.append(f"single-{number}")
        cluster.pod(names[-1], requests={"cpu": cpu})
    assert len(names) == PODS
    start = [name for name in names if name[0] in "ab" or name in ("single-0", "single-1", "single-2", "single-3")]
    cluster.recorder.await_bound(*start, within=30)
    cluster.delete_all_pods()
    for group in ("a", "b", "few", "large"):
        cluster.delete_pod_group(group)


def sizes(pair: Pair) -> dict[str, int]:
    """What there is of a kind that comes and goes."""
    cache, gangs = (json.loads(pair.extender.ops(page)[1]) for page in ("/debug/cache", "/debug/gangs"))
    return {"gangs": len(gangs), "pods": cache["pods"], "assumed": cache["assumed"], "held": pair.extender.held()}


def process(pair: Pair) -> dict[str, Any]:
    found = {"megabytes": pair.extender.metric("process_resident_memory_bytes") / 1e6}
    return {**found, "files": pair.extender.metric("process_open_fds")}


def rises(seen: Sequence[dict[str, Any]]) -> int:
    """In how many rounds there were more open files than in the one before: a burst opens connections that are kept, once; what is lost
    in each round is lost in each."""
    return sum(later["files"] > earlier["files"] for earlier, later in pairwise(seen))


NOTHING = {"gangs": 0, "pods": 0, "assumed": 0, "held": 0}


def test_pods_and_gangs_that_came_and_went_leave_nothing(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="80")
    seen: list[dict[str, Any]] = []
    for _ in range(BEFORE + ROUNDS):
        a_round(cluster)
        eventually(lambda: sizes(module_programs) == NOTHING, within=20, what="nothing is left", every=0.1)
        seen.append(process(module_programs))
    print(seen)
    before, after = seen[BEFORE - 1], seen[-1]
    assert after["megabytes"] < before["megabytes"] + MEGABYTES
    assert rises(seen[BEFORE - 1 :]) <= ROUNDS // 2
    assert after["files"] <= before["files"] + 2 * POOL_SIZE, "the connections that are kept, of calls and of Bindings"
    assert "Traceback" not in module_programs.extender.log()
