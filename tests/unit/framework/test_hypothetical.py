"""The cluster as it would be with pods more or less: what changes is copied, the rest is shared."""

from __future__ import annotations

from extender.framework.hypothetical import (
    HypotheticalSnapshot,
    snapshot_of,
    with_nodes,
    with_pods,
    without_pods,
)
from tests.objects import HOSTNAME, make_pod
from tests.unit.plugins.coscheduling.planning import GANG, existing, node

RUNNING = existing("r", "n1")
NODES = [node("n1").info(RUNNING.obj()), node("n2").info()]


def milli_cpu(cluster: object, name: str) -> int:
    return snapshot_of(cluster).get(name).requested.milli_cpu  # type: ignore[arg-type]


def test_a_promised_pod_counts_on_its_node_and_the_cluster_stays_as_it_was() -> None:
    there = with_pods(NODES, [("n2", existing("p", "n2").info())])
    assert (milli_cpu(there, "n2"), milli_cpu(NODES, "n2")) == (1000, 0)
    assert there.get("n1") is NODES[0], "a node without a promise is shared"


def test_a_pod_that_is_there_already_counts_once() -> None:
    assert milli_cpu(with_pods(NODES, [("n1", RUNNING.info())]), "n1") == 1000


def test_promises_on_a_node_that_is_gone_do_not_count() -> None:
    assert [info.name for info in with_pods(NODES, [("gone", RUNNING.info())]).list()] == ["n1", "n2"]


def test_a_pod_that_goes_frees_its_room() -> None:
    assert milli_cpu(without_pods(NODES, {"n1": {"r"}, "gone": {"x"}}), "n1") == 0
    same = snapshot_of(NODES)
    assert without_pods(same, {"n1": {"another"}}) is same, "nothing to take away"


def test_a_snapshot_that_can_differ_from_itself_is_asked_to() -> None:
    class Columns(HypotheticalSnapshot):
        def replaced(self, changed: object) -> HypotheticalSnapshot:
            self.changed = changed
            return HypotheticalSnapshot([])

    columns, other = Columns(NODES), node("n1", cpu=8).info()
    assert with_nodes(columns, {"n1": other}).list() == []
    assert columns.changed == {"n1": other}
    assert with_nodes(columns, {}) is columns


def test_pods_with_affinity_and_claims_in_use_are_read_off_the_nodes() -> None:
    shy = existing("shy", "n1").pod_anti_affinity(HOSTNAME, GANG).obj()
    claimed = make_pod().name("c").node("n2").pvc("data").obj()
    snapshot = HypotheticalSnapshot([node("n1").info(shy), node("n2").info(claimed)])
    assert [info.name for info in snapshot.have_pods_with_affinity()] == ["n1"]
    assert [info.name for info in snapshot.have_pods_with_required_anti_affinity()] == ["n1"]
    assert snapshot.is_pvc_used_by_pods("default/data")
    assert not snapshot.is_pvc_used_by_pods("default/other")
