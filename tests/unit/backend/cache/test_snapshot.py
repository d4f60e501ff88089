"""Snapshots: derived one from the other, equal to one from scratch, and unchanged for those that keep them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.backend.cache.snapshot import Snapshot, new_snapshot
from extender.backend.columns import resource_columns
from extender.backend.columns.resource_columns import MOST_SCALARS, ResourceColumns
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from tests.unit.backend.cache.contents import contents, copied
from tests.unit.backend.objects import a_node, a_pod

MAX = 2**63 - 1


def cordoned(name: str, zone: str) -> corev1.Node:
    node = a_node(name, zone=zone)
    return replace(node, spec=replace(node.spec, unschedulable=True))


def annotated(name: str, zone: str) -> corev1.Node:
    node = a_node(name, zone=zone)
    return replace(node, metadata=replace(node.metadata, annotations={"a": "b"}))


def a_cache(nodes: int = 4, zones: int = 2) -> Cache:
    cache = Cache()
    for number in range(nodes):
        cache.add_node(a_node(f"n{number}", zone=f"z{number % zones}"))
    return cache


@pytest.mark.parametrize(
    ("change", "cloned"),
    [
        pytest.param(lambda c: c.add_pod(a_pod("p", "n1")), {"n1"}, id="a pod added"),
        pytest.param(lambda c: c.assume_pod(a_pod("p", "n1")), {"n1"}, id="a pod assumed"),
        pytest.param(
            lambda c: (c.assume_pod(a_pod("p", "n1")), c.forget_pod(a_pod("p"))), {"n1"}, id="assumed and forgotten"
        ),
        pytest.param(
            lambda c: (c.assume_pod(a_pod("p", "n1")), c.add_pod(a_pod("p", "n2"))), {"n1", "n2"}, id="seen elsewhere"
        ),
        pytest.param(
            lambda c: (c.add_pod(a_pod("p", "n1")), c.update_pod(a_pod("p", "n1"), a_pod("p", "n1", cpu="2"))),
            {"n1"},
            id="a pod updated",
        ),
        pytest.param(lambda c: c.update_node(None, a_node("n1", zone="z1", cpu="8")), {"n1"}, id="a node updated"),
        pytest.param(lambda c: c.update_node(None, a_node("n1", zone="z0")), {"n1"}, id="a node in another zone"),
        pytest.param(lambda c: c.add_node(a_node("n9", zone="z0")), {"n9"}, id="a node added"),
        pytest.param(lambda c: c.remove_node(a_node("n1")), set(), id="a node removed"),
        pytest.param(
            lambda c: (c.remove_node(a_node("n1")), c.add_node(a_node("n1"))), {"n1"}, id="a node removed and added"
        ),
        pytest.param(
            lambda c: (c.remove_node(a_node("n1")), c.add_node(a_node("n9"))), {"n9"}, id="one goes, another comes"
        ),
        pytest.param(lambda c: c.add_pod(a_pod("p", "elsewhere")), set(), id="a pod on a node that is not known"),
        pytest.param(
            lambda c: (c.add_pod(a_pod("p", "n1")), c.remove_node(a_node("n1"))), set(), id="a node goes before its pod"
        ),
        pytest.param(lambda c: c.add_pod(a_pod("p", "n1", affinity="podAffinity")), {"n1"}, id="affinity comes"),
        pytest.param(lambda c: c.remove_pod(a_pod("with", "n3")), {"n3"}, id="affinity goes"),
        pytest.param(
            lambda c: c.add_pod(a_pod("p", "n3", affinity="podAntiAffinity")), {"n3"}, id="affinity stays on the node"
        ),
    ],
)
def test_update_snapshot_clones_what_changed_and_shares_the_rest(
    change: Callable[[Cache], object], cloned: set[str]
) -> None:
    cache = a_cache()
    cache.add_pod(a_pod("with", "n3", affinity="podAntiAffinity"))
    before = cache.snapshot()
    before.columns()
    kept = copied(before)
    change(cache)
    after = cache.snapshot()
    assert contents(after) == contents(cache.update_snapshot(Snapshot()))
    assert {
        node.name for node in after.list() if node.name not in before or before.get(node.name) is not node
    } == cloned
    assert contents(before) == kept
    assert after.generation > before.generation


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda c: None, id="of new nodes"),
        pytest.param(lambda c: c.add_pod(a_pod("p", "n1")), id="after a pod"),
        pytest.param(lambda c: c.add_pod(a_pod("p", "elsewhere")), id="after a pod on a node that is not known"),
        pytest.param(lambda c: c.remove_node(a_node("n1")), id="after a node that went"),
    ],
)
def test_nothing_changed_is_the_same_snapshot(change: Callable[[Cache], object]) -> None:
    cache = a_cache()
    cache.snapshot()
    change(cache)
    assert cache.snapshot() is cache.snapshot()


def test_an_empty_cache_has_an_empty_snapshot() -> None:
    snapshot: NodeInfoLister = Cache().snapshot()
    assert list(snapshot.list()) == []
    with pytest.raises(KeyError):
        snapshot.get("n1")


def test_lists_are_in_the_order_of_the_node_tree() -> None:
    cache = a_cache()
    for name in ("n3", "n0", "n2"):
        cache.add_pod(a_pod(f"p-{name}", name, affinity="podAntiAffinity"))
    snapshot = cache.snapshot()
    assert [node.name for node in snapshot.list()] == ["n0", "n1", "n2", "n3"]
    assert [node.name for node in snapshot.have_pods_with_affinity()] == ["n0", "n2", "n3"]
    assert [node.name for node in snapshot.have_pods_with_required_anti_affinity()] == ["n0", "n2", "n3"]
    assert snapshot.position("n2") == 2


def test_several_threads_may_each_carry_a_snapshot_of_their_own() -> None:
    cache = a_cache()
    mine = cache.update_snapshot(Snapshot())
    cache.add_pod(a_pod("a", "n0"))
    other = cache.update_snapshot(Snapshot())
    cache.add_pod(a_pod("b", "n1"))
    mine, other = cache.update_snapshot(mine), cache.update_snapshot(other)
    assert contents(mine) == contents(other) == contents(cache.snapshot())


@pytest.mark.parametrize(
    ("change", "new_version"),
    [
        pytest.param(lambda c: c.add_pod(a_pod("p", "n1")), False, id="not by a pod"),
        pytest.param(
            lambda c: (c.add_pod(a_pod("p", "n1")), c.snapshot(), c.add_pod(a_pod("q", "n2"))),
            False,
            id="not by a pod and another",
        ),
        pytest.param(
            lambda c: c.add_pod(a_pod("p", "elsewhere")), False, id="not by a pod on a node that is not known"
        ),
        pytest.param(lambda c: c.update_node(None, a_node("n1", zone="z1")), False, id="not by a heartbeat"),
        pytest.param(lambda c: c.update_node(None, cordoned("n1", zone="z1")), True, id="by the spec"),
        pytest.param(lambda c: c.update_node(None, annotated("n1", zone="z1")), True, id="by an annotation"),
        pytest.param(lambda c: c.update_node(None, a_node("n1", zone="z1", labels={"a": "b"})), True, id="by a label"),
        pytest.param(lambda c: c.update_node(None, a_node("n1", zone="z1", cpu="9")), True, id="by allocatable"),
        pytest.param(lambda c: c.add_node(a_node("n9")), True, id="by a new node"),
        pytest.param(lambda c: c.remove_node(a_node("n1")), True, id="by a node that goes"),
    ],
)
def test_node_generation_moves(change: Callable[[Cache], object], new_version: bool) -> None:
    cache = a_cache()
    before = cache.snapshot().node_generation
    change(cache)
    assert (cache.snapshot().node_generation > before) is new_version


def test_claims_in_use() -> None:
    cache = a_cache()
    cache.add_pod(a_pod("p", "n1", claim="data"))
    before = cache.snapshot()
    cache.remove_pod(a_pod("p", "n1"))
    assert before.is_pvc_used_by_pods("default/data")
    assert not cache.snapshot().is_pvc_used_by_pods("default/data")


def test_new_snapshot_leaves_out_pods_of_unknown_nodes() -> None:
    snapshot = new_snapshot(
        [a_pod("p", "n1"), a_pod("q", "n9"), a_pod("r")], [a_node("n1", images={"web:1": 3}), a_node("n2")]
    )
    assert [(node.name, len(node.pods)) for node in snapshot.list()] == [("n1", 1), ("n2", 0)]
    assert snapshot.get("n1").image_states["web:1"].num_nodes == 1


def test_what_if_replaces_nodes_in_a_snapshot_of_its_own() -> None:
    snapshot = new_snapshot([], [a_node("n1"), a_node("n2")])
    snapshot.columns()
    crowded = snapshot.get("n1").clone()
    crowded.add_pod(PodInfo(a_pod("p", "n1", affinity="podAffinity")))
    supposed = snapshot.replaced({"n1": crowded})
    assert supposed.generation > snapshot.generation
    assert supposed.columns().requested("cpu").tolist() == [100, 0]
    assert snapshot.columns().requested("cpu").tolist() == [0, 0]
    assert [node.name for node in supposed.have_pods_with_affinity()] == ["n1"]
    assert supposed.get("n2") is snapshot.get("n2")
    with pytest.raises(KeyError):
        snapshot.replaced({"n9": crowded})


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda c: c.update_node(None, a_node("n1", zone="z1", labels={"a": "new"})), id="when the node is updated"
        ),
        pytest.param(lambda c: c.add_node(a_node("n0", zone="z0", labels={"a": "new"})), id="when a node comes"),
    ],
)
def test_a_label_is_in_the_columns_at_once(change: Callable[[Cache], object]) -> None:
    cache = Cache()
    cache.add_node(a_node("n1", zone="z1", labels={"a": "old"}))
    _labels(cache.snapshot())
    change(cache)
    assert "new" in _labels(cache.snapshot())


def _labels(snapshot: Snapshot) -> list[str | None]:
    table = snapshot.table()
    assert table is not None
    column = table.label("a")
    return [column.values[code] if code >= 0 else None for code in column.codes]


def test_snapshots_of_plain_objects_are_told_apart_by_their_generation() -> None:
    first, second = new_snapshot([], [a_node("n1")]), new_snapshot([], [a_node("n2")])
    assert Snapshot().generation < first.generation < second.generation


@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param((NodeInfo(),), id="a node without its object"),
        pytest.param((NodeInfo(a_node("n1")), NodeInfo()), id="one of two without its object"),
        pytest.param((NodeInfo(a_node("n1")), NodeInfo(a_node("n1"))), id="two of one name"),
    ],
)
def test_nodes_that_have_no_name_of_their_own_have_no_table(nodes: tuple[NodeInfo, ...]) -> None:
    """Its rows are found by the names."""
    assert Snapshot(nodes).table() is None


def test_columns_say_what_the_nodes_say() -> None:
    gpu = "nvidia.com/gpu"
    pods = [
        a_pod("p", "n1", cpu="1500m", requests={"memory": "1Gi", gpu: "2", "ephemeral-storage": "5"}),
        a_pod("q", "n1"),
    ]
    columns = new_snapshot(pods, [a_node("n1", allocatable={gpu: "8"}), a_node("n2", cpu="2")]).columns()
    assert columns.allocatable("cpu").tolist() == [4000, 2000]
    assert columns.requested("cpu").tolist() == [1600, 0]
    assert columns.free("cpu").tolist() == [2400, 2000]
    assert columns.requested("memory").tolist() == [1 << 30, 0]
    assert columns.non_zero_requested("memory").tolist() == [(1 << 30) + (200 << 20), 0]
    assert columns.requested("ephemeral-storage").tolist() == [5, 0]
    assert (columns.allocatable("pods").tolist(), columns.requested("pods").tolist()) == ([110, 110], [2, 0])
    assert (columns.allocatable(gpu).tolist(), columns.requested(gpu).tolist()) == ([8, 0], [2, 0])
    assert len(columns) == 2


def test_columns_cannot_be_written() -> None:
    columns = new_snapshot([], [a_node("n1")]).columns()
    for column in (columns.allocatable("cpu"), columns.requested("cpu"), columns.allocatable("example.com/x")):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_columns_share_allocatable_while_only_pods_change() -> None:
    cache = a_cache(nodes=8)
    before = cache.snapshot().columns()
    cache.add_pod(a_pod("p", "n1"))
    after = cache.snapshot().columns()
    assert np.shares_memory(before.allocatable("cpu"), after.allocatable("cpu"))
    assert not np.shares_memory(before.requested("cpu"), after.requested("cpu"))


def test_columns_catch_up_over_snapshots_that_were_not_asked_for_theirs() -> None:
    cache = a_cache(nodes=20)
    cache.snapshot().columns().requested("example.com/gpu")
    for name in ("n1", "n2", "n3"):
        cache.add_pod(a_pod(f"p-{name}", name, requests={"example.com/gpu": "1"}))
        cache.snapshot()
    assert contents(cache.snapshot()) == contents(cache.update_snapshot(Snapshot()))


def test_amounts_beyond_64_bits_saturate() -> None:
    huge = NodeInfo(a_node("n1", allocatable={"example.com/x": "9223372036854775807"}))
    for name in ("p", "q"):
        huge.add_pod(PodInfo(a_pod(name, "n1", requests={"memory": "9223372036854775807"})))
    columns = ResourceColumns.build((huge,))
    assert columns.requested("memory").tolist() == [MAX]
    assert columns.free("memory").tolist() == [(8 << 30) - MAX]
    assert columns.allocatable("example.com/x").tolist() == [MAX]


# Scalar resources: pods may ask for any


def test_resources_that_no_node_has_share_one_column_however_many_are_asked_for() -> None:
    """A pod with a thousand of them cost two columns each, in every snapshot from then on."""
    columns = new_snapshot([], [a_node("n1", allocatable={"example.com/gpu": "8"}), a_node("n2")]).columns()
    asked = [f"example.com/x{number}" for number in range(1000)]
    one = columns.requested(asked[0])
    for name in asked:
        assert columns.allocatable(name) is one
        assert columns.requested(name) is one
    assert (one.tolist(), columns.free(asked[0]).tolist()) == ([0, 0], [0, 0])
    assert columns.allocatable("example.com/gpu").tolist() == [8, 0]


def test_a_resource_is_in_the_columns_once_a_pod_asks_for_it_on_a_node() -> None:
    cache = a_cache(nodes=8)
    assert not cache.snapshot().columns().requested("example.com/x").any()
    pod = a_pod("p", "n1", requests={"example.com/x": "3"})
    cache.add_pod(pod)
    taken = cache.snapshot()
    assert taken.columns().requested("example.com/x")[taken.position("n1")] == 3
    cache.remove_pod(pod)
    assert not cache.snapshot().columns().requested("example.com/x").any()


def test_a_resource_is_in_the_columns_once_a_node_has_it() -> None:
    cache = a_cache(nodes=8)
    assert not cache.snapshot().columns().allocatable("example.com/x").any()
    cache.update_node(None, a_node("n1", zone="z1", allocatable={"example.com/x": "3"}))
    snapshot = cache.snapshot()
    assert snapshot.columns().allocatable("example.com/x")[snapshot.position("n1")] == 3


def test_of_many_resources_that_nodes_have_some_columns_are_kept() -> None:
    names = [f"example.com/x{number}" for number in range(MOST_SCALARS + 1)]
    node = a_node("n1", allocatable={name: str(number) for number, name in enumerate(names, 1)})
    columns = new_snapshot([], [node]).columns()
    first = columns.allocatable(names[0])
    assert columns.allocatable(names[0]) is first
    assert [columns.allocatable(name).tolist() for name in names] == [[number] for number in range(1, len(names) + 1)]
    assert columns.allocatable(names[0]) is not first


def test_names_of_resources_that_are_gone_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are counted anew, and one that came meanwhile is among them."""
    monkeypatch.setattr(resource_columns, "MOST_NAMES", 3)
    cache = a_cache(nodes=8)
    cache.snapshot().columns().requested("example.com/x")
    for number in range(9):
        pod = a_pod("p", "n1", requests={f"example.com/x{number}": "3"})
        cache.add_pod(pod)
        snapshot = cache.snapshot()
        assert snapshot.columns().requested(f"example.com/x{number}")[snapshot.position("n1")] == 3
        assert len(snapshot.columns()._scalar_names or ()) <= 4
        cache.remove_pod(pod)


def test_what_the_kubelet_of_a_node_can_do_changes_node_generation() -> None:
    """What filters say of nodes is kept by it, and one of them asks for features."""
    cache = a_cache(nodes=8)
    before, node = cache.snapshot().node_generation, a_node("n1", zone="z1")
    cache.update_node(None, replace(node, status=replace(node.status, declared_features=("Fresh",))))
    assert cache.snapshot().node_generation > before
