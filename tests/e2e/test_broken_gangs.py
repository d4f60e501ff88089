"""A gang of which a node goes for good is evicted whole, if it asks for it, so that its controller makes it anew; within budgets, and
though the extender is killed meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.e2e import api as paths
from tests.e2e.cluster import Cluster
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

ASKS = {"gang-extender.dev/broken-after": "3s", "gang-extender.dev/when-broken": "restart"}


def test_a_gang_whose_node_goes_starts_anew(cluster: Cluster, module_programs: Pair) -> None:
    for number in range(3):
        cluster.node(f"node-{number}", cpu="1")
    cluster.pod_group("patient", 3, annotations=ASKS)
    first, again = ([f"{prefix}-{number}" for number in range(3)] for prefix in ("first", "again"))
    for name in first:
        cluster.pod(name, group="patient", requests={"cpu": "1"})
    cluster.recorder.await_bound(*first, within=10)
    lost = next(pod["metadata"]["name"] for pod in cluster.all_pods() if pod["spec"]["nodeName"] == "node-2")
    cluster.api.delete(f"{paths.NODES}/node-2")
    cluster.excused |= {f"default/{name}" for name in first}
    cluster.delete_pod(lost)  # as the garbage collector does it for a node that is not there
    eventually(lambda: not cluster.all_pods(), within=20, what="the rest is evicted")
    assert any(text.startswith("GangBroken: fewer than minMember of 3") for text in cluster.events("patient"))
    assert cluster.verdict_on_group("patient") == ("False", "GangBroken")
    cluster.node("node-3", cpu="1")
    for name in again:
        cluster.pod(name, group="patient", requests={"cpu": "1"})
    cluster.recorder.await_bound(*again, within=15)
    rest = next(name for name in first if name != lost)
    assert any(text.startswith("GangRestarted") for text in cluster.events(rest))
    eventually(lambda: cluster.verdict_on_group("patient")[0] == "True", within=10, what="the gang starts anew")


BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def budget(cluster: Cluster, allowed: int) -> None:
    """Of all pods of the job. There is no controller of budgets here: its status is written as one would write it."""
    name = f"{BUDGETS}/keeps"
    generation = cluster.api.get(name)["metadata"]["generation"]
    status = {"disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 2 - allowed, "expectedPods": 2}
    cluster.api.patch(f"{name}/status", {"status": {**status, "observedGeneration": generation}})


@pytest.fixture
def broken(cluster: Cluster) -> Iterator[list[str]]:
    """A gang of three on nodes of their own, and a budget that allows none of its pods to go. The names of those that are left of it."""
    body = {"metadata": {"name": "keeps"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"job": "steady"}}}}
    cluster.api.create(BUDGETS, body)
    budget(cluster, 0)
    for number in range(4):
        cluster.node(f"node-{number}", cpu="1")
    cluster.pod_group("steady", 3, annotations=ASKS)
    make(cluster, "first", 3)
    cluster.excused |= {f"default/first-{number}" for number in range(3)}
    cluster.delete_pod("first-2")
    yield ["first-0", "first-1"]
    cluster.api.delete(f"{BUDGETS}/keeps")


def make(cluster: Cluster, prefix: str, count: int, *, within: float = 10) -> None:
    """As many pods of the gang, which start."""
    names = [f"{prefix}-{number}" for number in range(count)]
    for name in names:
        cluster.pod(name, group="steady", labels={"job": "steady"}, requests={"cpu": "1"})
    cluster.recorder.await_bound(*names, within=within)


def names(cluster: Cluster) -> set[str]:
    return {pod["metadata"]["name"] for pod in cluster.all_pods()}


def says_so(cluster: Cluster) -> bool:
    return cluster.verdict_on_group("steady") == ("False", "GangBroken")


def test_what_a_budget_forbids_is_not_done_by_halves(
    cluster: Cluster, module_programs: Pair, broken: list[str]
) -> None:
    eventually(lambda: says_so(cluster), within=15, what="the gang is said to be broken")
    budget(cluster, 1)
    refused = len(re.findall("may not be evicted whole", module_programs.extender.log()))
    eventually(
        lambda: len(re.findall("may not be evicted whole", module_programs.extender.log())) > refused,
        within=30,
        what="asked again",
    )
    assert names(cluster) == {*broken}, "one of two may go: none does"
    budget(cluster, 2)
    eventually(lambda: not names(cluster), within=60, what="both go")
    make(cluster, "again", 3, within=15)


def test_a_gang_that_is_made_whole_while_a_budget_forbids_its_restart_runs_on(
    cluster: Cluster, module_programs: Pair, broken: list[str]
) -> None:
    eventually(lambda: says_so(cluster), within=15, what="the gang is said to be broken")
    make(cluster, "spare", 1, within=20)
    budget(cluster, 2)
    eventually(
        lambda: "broken gang is whole again group=default/steady" in module_programs.extender.log(),
        within=30,
        what="looked at again",
    )
    assert names(cluster) == {*broken, "spare-0"}


def test_a_restart_that_the_extender_did_not_live_to_finish_is_finished(
    cluster: Cluster, module_programs: Pair, broken: list[str]
) -> None:
    """It is killed once it has said that the gang is broken; one of the two goes by another's hand meanwhile."""
    eventually(lambda: says_so(cluster), within=15, what="the gang is said to be broken")
    module_programs.extender.kill()
    cluster.annotate_pod_group("steady", {"gang-extender.dev/broken-after": "720h"})
    budget(cluster, 2)
    cluster.delete_pod(broken[0])
    module_programs.extender.start()
    eventually(lambda: not names(cluster), within=30, what="the rest goes, 720 hours not waited for")
    make(cluster, "again", 3, within=20)
