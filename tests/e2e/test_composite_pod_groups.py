"""CompositePodGroups, groups of groups, on the API server of Kubernetes 1.37 beside the same kube-scheduler.

Two of three prefill groups and the decode group start together, each in one rack, all in one zone.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.api import Refused
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import ControlPlane
from tests.e2e.in_tree import Groups, in_tree_plane, pair
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

pytestmark = pytest.mark.composites
ZONE, BLOCK, RACK = "topology.kubernetes.io/zone", "example.com/block", "example.com/rack"
PREFILL = tuple(f"prefill-{number}" for number in range(3))


@pytest.fixture(scope="module")
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with in_tree_plane(request, tmp_path_factory.mktemp("composites-plane"), composites=True) as started:
        yield started


@pytest.fixture(scope="module")
def module_programs(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with pair(plane, tmp_path_factory.mktemp("pair")).running() as started:
        yield started


@pytest.fixture
def groups(cluster: Cluster, module_programs: Pair) -> Iterator[Groups]:
    made = Groups(cluster)
    yield made
    made.end()


def racks(cluster: Cluster, **sizes: int) -> None:
    """Rack -> its CPUs, on nodes of one each; the zone is the first letter, the block the first two."""
    for rack, cpus in sizes.items():
        for number in range(cpus):
            cluster.node(f"{rack}-{number}", cpu="1", labels={RACK: rack, BLOCK: rack[:2], ZONE: rack[0]})


def make(groups: Groups) -> None:
    groups.composite("serve", 2, level=ZONE)
    groups.composite("prefill", 2, parent="serve")
    for name in PREFILL:
        groups.create(name, 2, level=RACK, parent="prefill")
    groups.create("decode", 1, level=RACK, parent="serve")


def members(groups: Groups) -> list[str]:
    return [*(member for name in PREFILL for member in groups.members(name, 2)), *groups.members("decode", 1)]


def racks_of(cluster: Cluster, group: str, count: int = 2) -> set[str]:
    nodes = [cluster.recorder.node_of(f"{group}-{number}") for number in range(count)]
    return {node.partition("-")[0] for node in nodes}


def test_two_of_three_and_the_other_group_are_placed(cluster: Cluster, groups: Groups) -> None:
    """Zone a has more room, but in racks that are too small; zone b has it for two and the decode group."""
    racks(cluster, a1=1, a2=1, a3=1, a4=1, a5=1, a6=1, b1=2, b2=2, b3=1)
    make(groups)
    members(groups)
    cluster.recorder.wait(lambda: len(cluster.recorder.bound()) == 5, within=20, what="two groups and decode are bound")
    cluster.recorder.settle()
    bound = cluster.recorder.bound()
    chosen = [name for name in PREFILL if f"{name}-0" in bound]
    assert (len(chosen), len(bound)) == (2, 5)
    assert {rack for name in chosen for rack in racks_of(cluster, name)} == {"b1", "b2"}
    assert racks_of(cluster, "decode", 1) == {"b3"}
    for name in (*chosen, "decode"):
        groups.await_condition(name, "True", "Scheduled")


def test_where_only_one_fits_none_starts_and_the_part_that_is_missing_is_named(
    cluster: Cluster, groups: Groups
) -> None:
    racks(cluster, a1=2, a2=1, a3=1, b1=1, b2=1)
    make(groups)
    names = members(groups)
    text = "1 of 3 groups of CompositePodGroup default/prefill fit, 2 are needed"
    cluster.recorder.await_message(names[0], text, within=15)
    groups.await_condition("prefill-0", "False", "Unschedulable", text=text)
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set()
    racks(cluster, a4=2)
    cluster.recorder.wait(lambda: len(cluster.recorder.bound()) == 5, within=20, what="two groups and decode are bound")


def test_the_third_follows_in_the_zone_that_the_others_are_in(
    cluster: Cluster, groups: Groups, module_programs: Pair
) -> None:
    """After a restart of ours too: which groups run says which were chosen."""
    cluster.killed = True
    racks(cluster, b1=2, b2=2, b3=1)
    make(groups)
    members(groups)
    cluster.recorder.wait(lambda: len(cluster.recorder.bound()) == 5, within=20, what="two groups and decode are bound")
    first = cluster.recorder.bound()
    module_programs.extender.kill()
    cluster.await_back(module_programs.extender.start)
    racks(cluster, a1=4)
    cluster.recorder.settle()
    assert cluster.recorder.bound() == first
    racks(cluster, b4=2)
    cluster.recorder.wait(lambda: len(cluster.recorder.bound()) == 7, within=20, what="the third group is bound")
    (last,) = [name for name in PREFILL if f"{name}-0" not in first]
    assert racks_of(cluster, last) == {"b4"}


def test_a_restart_while_it_waits_and_a_group_that_comes_last(
    cluster: Cluster, groups: Groups, module_programs: Pair
) -> None:
    cluster.killed = True
    racks(cluster, b1=2, b2=2, b3=1)
    groups.composite("prefill", 2, parent="serve")
    for name in PREFILL:
        groups.create(name, 2, level=RACK, parent="prefill")
    groups.create("decode", 1, level=RACK, parent="serve")
    names = members(groups)
    cluster.recorder.await_message(names[0], "CompositePodGroup default/serve", within=15)
    module_programs.extender.kill()
    cluster.await_back(module_programs.extender.start)
    eventually(lambda: module_programs.extender.gang("default/decode"), within=10, what="the groups are known again")
    assert cluster.recorder.bound() == set()
    groups.composite("serve", 2, level=ZONE)
    cluster.recorder.wait(lambda: len(cluster.recorder.bound()) == 5, within=20, what="two groups and decode are bound")


def test_four_composites_deep_each_holds_its_groups_in_its_domain(cluster: Cluster, groups: Groups) -> None:
    """Two prefill groups in one block, in one zone with the decode group; the widest asks for no domain, and one of its parts is enough."""
    racks(cluster, a1x=2, a1y=2, b1x=2, b2x=2, b3x=1)
    groups.composite("pool", 1)
    groups.composite("serve", 2, level=ZONE, parent="pool")
    groups.composite("half", 1, level=BLOCK, parent="serve")
    groups.composite("prefill", 2, parent="half")
    for name in PREFILL:
        groups.create(name, 2, level=RACK, parent="prefill")
    groups.create("decode", 1, level=RACK, parent="serve")
    names = members(groups)
    cluster.recorder.await_message(names[0], "CompositePodGroup default/", within=15)
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set(), "zone a has no room for decode, and zone b none for two in one block"
    racks(cluster, b1y=2)
    cluster.recorder.wait(lambda: len(cluster.recorder.bound()) == 5, within=20, what="two groups and decode are bound")
    chosen = [name for name in PREFILL if f"{name}-0" in cluster.recorder.bound()]
    assert {rack for name in chosen for rack in racks_of(cluster, name)} == {"b1x", "b1y"}
    assert {rack[0] for rack in racks_of(cluster, "decode", 1)} == {"b"}


def test_a_composite_that_is_made_anew_asks_for_fewer_groups(cluster: Cluster, groups: Groups) -> None:
    """The API server lets no minGroupCount change."""
    racks(cluster, b1=2, b2=1)
    make(groups)
    names = members(groups)
    cluster.recorder.await_message(names[0], "1 of 3 groups of CompositePodGroup default/prefill fit", within=15)
    with pytest.raises(Refused, match="field is immutable"):
        groups.change_composite("prefill", schedulingPolicy={"gang": {"minGroupCount": 1}})
    groups.delete_composite("prefill")
    cluster.recorder.await_message(names[0], "CompositePodGroup default/prefill", within=15)
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set()
    groups.composite("prefill", 1, parent="serve")
    cluster.recorder.wait(lambda: len(cluster.recorder.bound()) == 3, within=20, what="one group and decode are bound")
    cluster.recorder.settle()
    assert racks_of(cluster, "decode", 1) == {"b2"}
