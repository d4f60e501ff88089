"""The level that a gang set requires, and the domains that a member has to stay in when it is scheduled alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from msgspec import structs

from extender.api import corev1
from extender.api.codec import convert
from extender.api.metav1 import OwnerReference
from extender.config.types import TopologyLevel
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.composites import Composites
from extender.plugins.coscheduling.planner.domains import Domains
from extender.plugins.coscheduling.scheduling.topology import (
    Confinement,
    GangSetDomains,
    confinements,
    confining_level,
    position_in,
    shared_topologies,
    topology_of,
)
from extender.plugins.coscheduling.spec.in_tree import CompositeSpec
from extender.plugins.coscheduling.spec.topology import AskedTopology, Slicing
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.conftest import Snapshot, World
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, on_node
from tests.unit.plugins.coscheduling.scheduling.test_tree_request import Trees, composite, named, part

LEVELS = (TopologyLevel("zone", "example.com/zone"), TopologyLevel("rack", "example.com/rack"))
TOPOLOGY = planner.Topology(LEVELS)
INDEX = "apps.kubernetes.io/pod-index"


def node(name: str, rack: str, zone: str = "z") -> corev1.Node:
    labels = {"example.com/zone": zone, "example.com/rack": rack} if rack else {}
    status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}}
    return convert({"metadata": {"name": name, "labels": labels}, "status": status}, corev1.Node)


NODES = [node("a1", "a"), node("a2", "a"), node("b1", "b"), node("b2", "b"), node("c1", "c", "y"), node("bare", "")]


def ranked(pod: corev1.Pod, rank: int, job: int | None = None, owner: str = "") -> corev1.Pod:
    labels = {**pod.metadata.labels, INDEX: str(rank)}
    labels |= {"jobset.sigs.k8s.io/job-global-index": str(job)} if job is not None else {}
    owners = (
        (OwnerReference(api_version="apps/v1", kind="StatefulSet", name=owner, uid=owner, controller=True),)
        if owner
        else ()
    )
    return structs.replace(pod, metadata=structs.replace(pod.metadata, labels=labels, owner_references=owners))


@pytest.fixture
def kube(world: Callable[..., World]) -> KubeScheduler:
    w = world(NODES)
    w.connect(topology=TOPOLOGY)
    return KubeScheduler(w)


# The level that is required


def test_the_narrowest_level_that_any_group_requires_counts() -> None:
    asked = [AskedTopology(required="zone"), AskedTopology(required="rack", preferred="zone"), AskedTopology()]
    found = topology_of(TOPOLOGY, asked)
    assert (found.levels, found.required, found.preferred) == (LEVELS, "rack", "zone")
    assert confining_level(TOPOLOGY, asked) == (found, 1)


def test_labels_that_no_level_has_are_levels_of_their_own_the_first_the_widest() -> None:
    slicing = Slicing((("row", 2),), node_labels=("row", "example.com/rack"))
    asked = [
        AskedTopology(node_label="block", preferred_label="row"),
        AskedTopology(slicing=slicing, by_pods=((("x",), Slicing(node_labels=("shelf",))),)),
    ]
    found = topology_of(TOPOLOGY, asked)
    assert [level.name for level in found.levels] == ["block", "row", "shelf", "zone", "rack"]
    assert [level.key for level in found.levels[:3]] == ["block", "row", "shelf"]
    assert (found.required, found.preferred) == ("block", "")
    assert confining_level(TOPOLOGY, asked) == (found, 0)


@pytest.mark.parametrize("required", ["", "row"], ids=["none", "one that is not configured"])
def test_no_domain_confines_a_gang_that_requires(required: str) -> None:
    assert confining_level(TOPOLOGY, [AskedTopology(required=required)]) is None


def test_where_nothing_is_asked_for_the_configured_levels_are_the_same() -> None:
    assert topology_of(TOPOLOGY, [AskedTopology(), AskedTopology()]) is TOPOLOGY


# Domains


def confined(kube: KubeScheduler, uid: str, key: str = "default/g") -> list[tuple[int, list[str], int]]:
    """(level, nodes, size) of each."""
    manager = kube.plugin.manager
    with manager.lock:
        found = list(confinements(manager, TOPOLOGY, manager.groups[key], uid))
    return [(each.level, sorted(each.nodes), each.size) for each in found]


def left(kube: KubeScheduler, uid: str, node_name: str, key: str = "default/g") -> str:
    manager = kube.plugin.manager
    with manager.lock:
        domains = GangSetDomains(manager, TOPOLOGY)
        return domains.left(manager.groups[key], uid, node_name, kube.world.snapshot())


def test_a_later_member_stays_in_the_rack_of_its_siblings(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2, topology_required="rack"))
    kube.create(on_node(member("g0"), "a1"), member("g1"))
    assert confined(kube, "default/g1") == [(1, ["a1"], 0)]
    assert confined(kube, "default/g0") == [], "it is no sibling of its own"
    found = {name: left(kube, "default/g1", name) for name in ("a2", "b1", "bare", "gone")}
    assert found == {"a2": "", "b1": "rack", "bare": "rack", "gone": ""}


def test_where_no_rack_is_required_it_goes_anywhere(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2, topology_preferred="rack"))
    kube.create(on_node(member("g0"), "a1"), member("g1"))
    assert confined(kube, "default/g1") == []
    assert left(kube, "default/g1", "b1") == ""


def test_one_whose_siblings_are_on_nodes_of_no_rack_goes_anywhere(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2, topology_required="rack"))
    kube.create(on_node(member("g0"), "bare"), member("g1"))
    assert left(kube, "default/g1", "b1") == ""


def test_a_member_goes_beside_those_of_the_groups_that_it_starts_with(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=1, groups="b", topology_required="zone"), group("b", 2))
    kube.create(member("g0"), on_node(member("b0", "b"), "c1"))
    assert confined(kube, "default/g0") == [(0, ["c1"], 0)]
    assert left(kube, "default/g0", "a1") == "zone"


@pytest.mark.parametrize(
    ("rank", "nodes"),
    [
        pytest.param(1, ["a1"], id="the first slice has one on a1"),
        pytest.param(3, ["b1"], id="the second has one on b1"),
        pytest.param(4, [], id="the third has none yet"),
    ],
)
def test_a_member_with_a_rank_goes_to_the_rack_of_its_slice(rank: int, nodes: list[str], kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2, topology_slice="rack=2"))
    kube.create(ranked(on_node(member("g0"), "a1"), 0), ranked(on_node(member("g2"), "b1"), 2))
    kube.create(ranked(member("late"), rank))
    assert confined(kube, "default/late") == ([(1, nodes, 0)] if nodes else [])
    assert left(kube, "default/late", "c1") == ("rack" if nodes else "")


def test_a_member_without_one_completes_a_slice(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2, topology_slice="rack=2"))
    kube.create(
        *(on_node(member(f"g{number}"), name) for number, name in enumerate(("a1", "a2", "b1"))), member("late")
    )
    assert confined(kube, "default/late") == [(1, ["a1", "a2", "b1"], 2)]
    assert {name: left(kube, "default/late", name) for name in ("a1", "b2", "c1")} == {
        "a1": "rack",
        "b2": "",
        "c1": "rack",
    }
    kube.create(on_node(member("g3"), "b2"))
    assert left(kube, "default/late", "c1") == "", "all slices are complete: it begins one"


def test_slices_of_a_level_that_is_not_configured_confine_none(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2, topology_slice="row=2"))
    kube.create(on_node(member("g0"), "a1"), member("late"))
    assert confined(kube, "default/late") == []


def test_a_member_that_is_gone_or_of_a_group_that_asks_for_nonsense_has_no_slice(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2, topology_slice="rack=2"))
    kube.create(on_node(member("g0"), "a1"), member("late"))
    assert confined(kube, "default/gone") == []
    kube.apply(group(minimum=0, topology_slice="rack=2"))
    assert confined(kube, "default/late") == []


def domains_of(confinement: Confinement) -> set[str]:
    """By the names of their racks."""
    snapshot = Snapshot(NODES, [])
    domains = Domains(snapshot, LEVELS)
    found = confinement.domains(domains, position_in(snapshot))
    return {domains.names[confinement.level][number] for number in found}


@pytest.mark.parametrize(
    ("nodes", "size", "racks"),
    [
        pytest.param(["a1", "a2", "b1"], 0, {"a", "b"}, id="any that has one of the nodes"),
        pytest.param(["a1", "a2", "b1"], 2, {"b"}, id="those with a slice that is not complete"),
        pytest.param(["a1", "a2", "b1"], 3, {"a", "b"}, id="none is complete"),
        pytest.param(["a1", "gone"], 2, {"a"}, id="a node that is gone counts for nothing"),
        pytest.param(["bare"], 2, set(), id="a node of no rack is in none"),
    ],
)
def test_which_racks_a_member_may_go_to(nodes: list[str], size: int, racks: set[str]) -> None:
    found = domains_of(Confinement(TOPOLOGY, 1, nodes, size))
    assert {name.rpartition("/")[2] for name in found} == racks


# Trees


def with_label(composites: Composites, key: str, label: str) -> None:
    known = composites.spec(key)
    assert known is not None
    composites.put(CompositeSpec(known.key, known.min_groups, known.parent, node_label=label))


def test_a_group_of_a_tree_stands_for_itself_and_shares_the_domains_of_the_composites_above(
    world: Callable[..., World],
) -> None:
    w = world(NODES, in_tree_pod_groups=True)
    kube = Trees(w)
    kube.composite(composite("top", 1), composite("inner", 1, "top"))
    kube.parts(part("a", "inner"), part("b", "inner"), part("c", "top"))
    kube.create(on_node(named("b", 0), "a1"), on_node(named("c", 0), "c1"), named("a", 0))
    manager = kube.plugin.manager
    with_label(manager.composites, "default/inner", "example.com/rack")
    assert confined(kube, "default/a-0", "default/a") == [(1, ["a1"], 0)]
    with_label(manager.composites, "default/top", "example.com/zone")
    assert confined(kube, "default/a-0", "default/a") == [(1, ["a1"], 0), (0, ["a1", "c1"], 0)]
    with manager.lock:
        found = [
            sorted(each.key[-1] for each in groups)
            for _, groups in shared_topologies(manager, manager.groups["default/a"])
        ]
    assert found == [["a"], ["a", "b"], ["a", "b", "c"]]


def test_the_plan_of_a_tree_is_in_the_domains_of_its_composites(world: Callable[..., World]) -> None:
    kube = Trees(world(NODES, in_tree_pod_groups=True))
    kube.world.connect(topology=TOPOLOGY)
    kube.composite(composite("top", 2), composite("inner", 1, "top"))
    kube.parts(part("a", "inner"), part("b", "top"))
    kube.members("a", "b")
    manager = kube.plugin.manager
    info = manager.groups["default/a"].members["default/a-0"].info
    manager.slots.reserve(Slot(info, "default/a", "a2", 1000.0))
    with_label(manager.composites, "default/inner", "example.com/rack")
    with manager.lock:
        gang_set = [manager.groups[key] for key in ("default/b", "default/a")]
        tree = kube.plugin.rounds.requests.question(gang_set, "", kube.world.snapshot()).request.tree
    assert tree is not None
    inner = next(child for child in tree.children if isinstance(child, planner.Branch))
    assert (inner.name, inner.topology.required, list(inner.placed)) == ("default/inner", "example.com/rack", ["a2"])
    assert (tree.topology.required, list(tree.placed), tree.needed) == ("", ["a2"], 2)
    manager.slots.release("default/a-0")


def test_rows_of_nodes_are_found_by_name() -> None:
    position: Mapping[str, int | None] = {
        name: position_in(Snapshot(NODES, []))(name) for name in ("a1", "b1", "bare", "gone")
    }
    assert position == {"a1": 0, "b1": 2, "bare": 5, "gone": None}
