"""Which nodes a shadow falls on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.config.types import TopologyLevel
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.backfill.backfill_nodes import Choice, choose_nodes
from extender.plugins.coscheduling.planner import Request, Sliced, Topology
from tests.unit.plugins.coscheduling.conftest import Room, Snapshot, node, pod

RACKS = Topology((TopologyLevel("rack", "rack"),))
SPREAD = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}]


def in_rack(name: str, rack: str, cpu: str = "4") -> corev1.Node:
    made = node(name, cpu)
    return convert(
        {
            "metadata": {"name": name, "labels": {"rack": rack}},
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
        },
        type(made),
    )


def on(node_name: str, cpu: str, kind: str = "ReplicaSet", api_version: str = "apps/v1", **owner: Any) -> corev1.Pod:
    return convert(
        {
            "metadata": {
                "name": f"on-{node_name}-{kind}",
                "uid": f"{node_name}-{kind}",
                "ownerReferences": [{"kind": kind, "apiVersion": api_version, "controller": True, **owner}],
            },
            "spec": {"nodeName": node_name, "containers": [{"resources": {"requests": {"cpu": cpu}}}]},
        },
        corev1.Pod,
    )


def gang(count: int, cpu: str = "2", **options: Any) -> Request:
    spec = options.pop("spec", {})
    members = [PodInfo(pod(f"m{number}", "g", cpu=cpu, **spec)) for number in range(count)]
    return replace(Request(members, count), **options)


def chosen(nodes: Sequence[corev1.Node], pods: Sequence[corev1.Pod], request: Request, most: int = 10) -> Choice | None:
    return choose_nodes(Snapshot(nodes, pods), request, Room(), most)


def test_least_missing_comes_first_and_no_more_nodes_than_it_takes() -> None:
    nodes = [node(f"n{number}") for number in range(4)]
    pods = [on("n0", "4"), on("n1", "2"), on("n2", "0"), on("n3", "0")]
    assert chosen(nodes, pods, gang(6), most=3) == Choice("the cluster", frozenset({"n1", "n2", "n3"}))


@pytest.mark.parametrize(
    ("most", "found"),
    [
        pytest.param(3, {"n0", "n1", "n2"}, id="enough"),
        pytest.param(2, {"n0", "n1"}, id="just enough"),
        pytest.param(1, None, id="too few"),
    ],
)
def test_at_most_so_many_nodes(most: int, found: set[str] | None) -> None:
    nodes = [node(f"n{number}") for number in range(4)]
    choice = chosen(nodes, [on(each.name, "2") for each in nodes], gang(8, cpu="1"), most)
    assert (choice.nodes if choice is not None else None) == found


@pytest.mark.parametrize("spec", [{}, {"topologySpreadConstraints": SPREAD}], ids=["by room", "one by one"])
def test_for_a_gang_that_asks_for_no_member_none_is_chosen(spec: dict[str, Any]) -> None:
    assert chosen([node("n0"), node("n1")], [], replace(gang(2, spec=spec), needed=0)) is None


def test_where_the_freest_nodes_are_too_small_larger_ones_are_taken() -> None:
    nodes = [node("small", "2"), node("large", "8")]
    pods = [on("large", "8")]
    assert chosen(nodes, pods, gang(4), most=1) == Choice("the cluster", frozenset({"large"}))


def test_of_a_required_level_the_domain_where_least_is_missing_then_by_name() -> None:
    nodes = [in_rack(f"{rack}{number}", rack) for rack in ("a", "b", "c", "tiny") for number in range(2)]
    pods = [on(each.name, "2" if each.name in ("b0", "c1") else "4") for each in nodes]
    request = gang(4, topology=replace(RACKS, required="rack"))
    assert chosen(nodes, pods, request) == Choice("rack b", frozenset({"b0", "b1"}))


def test_a_domain_that_would_not_hold_it_empty_is_none() -> None:
    nodes = [in_rack("a0", "a"), in_rack("b0", "b"), in_rack("b1", "b")]
    request = gang(3, topology=replace(RACKS, required="rack"))
    assert chosen(nodes, [on("b0", "4"), on("b1", "4")], request) == Choice("rack b", frozenset({"b0", "b1"}))


def test_where_members_run_already_it_is_their_domain() -> None:
    nodes = [in_rack("a0", "a"), in_rack("b0", "b")]
    request = gang(1, topology=replace(RACKS, required="rack"), placed=["b0"])
    assert chosen(nodes, [on("a0", "3"), on("b0", "4")], request) == Choice("rack b", frozenset({"b0"}))


def test_a_preferred_level_is_tried_before_the_cluster() -> None:
    nodes = [in_rack("a0", "a"), in_rack("b0", "b"), in_rack("b1", "b")]
    pods = [on("a0", "4"), on("b0", "4"), on("b1", "4")]
    preferring = replace(RACKS, preferred="rack")
    assert chosen(nodes, pods, gang(4, topology=preferring)) == Choice("rack b", frozenset({"b0", "b1"}))
    assert chosen(nodes, pods, gang(6, topology=preferring)) == Choice("the cluster", frozenset({"a0", "b0", "b1"}))


def test_what_belongs_to_a_node_stays_on_it() -> None:
    nodes = [node("n0"), node("n1")]
    pods = [on("n0", "3", "DaemonSet"), on("n0", "1"), on("n1", "4")]
    assert chosen(nodes, pods, gang(2)) == Choice("the cluster", frozenset({"n1"}))
    assert chosen(nodes, [on(each.name, "3", "DaemonSet") for each in nodes], gang(2)) is None
    assert chosen(nodes, [on(each.name, "3", "Node", "v1") for each in nodes], gang(2)) is None


def test_a_pod_that_only_looks_as_if_it_belonged_to_a_node_is_expected_to_end() -> None:
    nodes = [node("n0"), node("n1")]
    pods = [on("n0", "3", "DaemonSet", controller=False), on("n1", "3", "Node", "tenant.example/v1")]
    assert chosen(nodes, pods, gang(2, cpu="4")) == Choice("the cluster", frozenset({"n0", "n1"}))


def test_members_that_keep_apart_get_as_many_nodes_as_they_need() -> None:
    nodes = [node(f"n{number}") for number in range(4)]
    pods = [on(each.name, "4") for each in nodes]
    request = gang(4, cpu="1", spec={"topologySpreadConstraints": SPREAD})
    assert chosen(nodes, pods, request) == Choice("the cluster", frozenset({"n0", "n1", "n2", "n3"}))
    assert chosen(nodes, pods, request, most=3) is None


def test_places_that_are_promised_to_others_are_no_free_room() -> None:
    nodes = [node("n0"), node("n1")]
    promised = [("n0", PodInfo(pod("other", cpu="4")))]
    assert chosen(nodes, [on("n1", "2")], gang(2, promised=promised)) == Choice("the cluster", frozenset({"n1"}))


@pytest.mark.parametrize(
    ("used", "count", "most", "expected"),
    [
        pytest.param(
            {"a": [0, 4, 4], "b": [0, 4, 4], "c": [2, 0, 4]}, 4, 2, {"c0", "c1"}, id="a rack where least is missing"
        ),
        pytest.param(
            {"a": [0, 4, 4], "b": [0, 4, 4], "c": [4, 4, 4]}, 4, 2, {"a0", "a1"}, id="no free nodes of two racks"
        ),
        pytest.param(
            {"a": [0, 0], "b": [0, 4], "c": [4, 0], "d": [2, 2]}, 8, 4, {"a0", "a1", "b0", "b1"}, id="two slices"
        ),
        pytest.param({"a": [0], "b": [0], "c": [0]}, 4, 3, None, id="no rack is large enough"),
    ],
)
def test_a_gang_in_slices_has_nodes_of_whole_slices(
    used: dict[str, list[int]], count: int, most: int, expected: set[str] | None
) -> None:
    """Slices of four, two members a node. used: CPUs on the nodes of each rack."""
    cpus = {f"{rack}{i}": cpu for rack, each in used.items() for i, cpu in enumerate(each)}
    request = gang(count, topology=RACKS)
    ranks = {info.pod.uid: rank for rank, info in enumerate(request.members)}
    request = replace(request, sliced=[Sliced(frozenset(ranks), (("rack", 4),), ranks)])
    nodes = [in_rack(name, name[0]) for name in cpus]
    choice = chosen(nodes, [on(name, str(cpu)) for name, cpu in cpus.items()], request, most)
    assert (choice.nodes if choice is not None else None) == expected
