"""A gang of which a node goes for good is evicted whole, if it asks for it, so that its controller makes it anew."""

from __future__ import annotations

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
