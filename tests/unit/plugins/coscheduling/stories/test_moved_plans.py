"""A gang is planned in another domain while a member is on its way from our answer in filter to its bind call."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from extender.api import corev1
from extender.config.types import TopologyLevel
from extender.framework.cycle_state import CycleState
from extender.plugins.coscheduling.planner import Topology
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node

LEVELS = Topology((TopologyLevel("zone", "zone"),))


def zoned(name: str, cpu: str) -> corev1.Node:
    plain = node(name, cpu)
    return structs.replace(plain, metadata=structs.replace(plain.metadata, labels={"zone": name[0]}))


@pytest.fixture
def kube(world: Callable[..., World]) -> KubeScheduler:
    """Zone a is the smaller one that holds three."""
    made = world([zoned("a1", "2"), zoned("a2", "2"), zoned("b1", "4"), zoned("b2", "4")])
    made.connect(topology=LEVELS)
    return KubeScheduler(made)


def lose_zone_a(kube: KubeScheduler) -> None:
    """Another pod comes to both of its nodes, and the gang is planned again."""
    fill(kube, "a1", "a2")


def fill(kube: KubeScheduler, *names: str) -> None:
    for name in names:
        cpu = kube.world.nodes[name].status.allocatable["cpu"].value
        other = on_node(member(f"other-{name}", "", cpu=cpu), name)
        kube.world.on_nodes[other.uid] = other
        kube.create(other)
    kube.world.run_tasks()


@pytest.mark.parametrize("asks", ["own", "companion"])
def test_a_member_is_not_held_where_its_gang_has_been(kube: KubeScheduler, asks: str) -> None:
    """It was held there, and counted: the gang started in two zones."""
    required = {"topology_required": "zone"}
    if asks == "own":
        kube.apply(group(minimum=3, **required))
        pods = members(3)
    else:
        kube.apply(group(minimum=2, groups="h"), group("h", 1, **required))
        pods = [*members(2), *members(1, "h")]
    kube.create(*pods)
    before = kube.world.filter(pods[0])
    assert before[0] == "a"
    lose_zone_a(kube)
    status, _ = kube.plugin.permit(CycleState(), pods[0], before)
    assert status.message == "the gang has been planned in another zone meanwhile"
    kube.plugin.unreserve(CycleState(), pods[0], before)
    kube.run()
    assert {pod.node_name[0] for pod in kube.pods.values() if pod.name in kube.running("g") | kube.running("h")} == {
        "b"
    }
    assert len(kube.running("g") | kube.running("h")) == 3


def test_nor_where_others_have_taken_the_room_meanwhile(kube: KubeScheduler) -> None:
    """It was held there, and at the start, when all had come, ended the holds of all."""
    kube.apply(group(minimum=3))
    kube.create(*(pods := members(3)))
    before = kube.world.filter(pods[0])
    fill(kube, before)
    kube.world.on_nodes["assumed"] = on_node(member("assumed", ""), before)
    status, _ = kube.plugin.permit(CycleState(), pods[0], before)
    assert status.message == f'node "{before}" has no room left: insufficient cpu'
    assert pods[0].uid not in kube.plugin.manager.groups["default/g"].held


def test_nor_where_it_has_no_place_any_more_and_no_room(kube: KubeScheduler) -> None:
    """The plan was dropped while the member was on its way to Permit, and the room went to others."""
    kube.apply(group(minimum=3))
    kube.create(*(pods := members(3)))
    before = kube.world.filter(pods[0])
    kube.plugin.rounds.drop_plan("default/g")
    assert kube.plugin.manager.slots.get(pods[0].uid) is None
    cpu = kube.world.nodes[before].status.allocatable["cpu"].value
    kube.world.on_nodes["other"] = on_node(member("other", "", cpu=cpu), before)
    kube.world.on_nodes["assumed"] = on_node(pods[0], before)
    status, _ = kube.plugin.permit(CycleState(), pods[0], before)
    assert status.message == f'node "{before}" has no room left: insufficient cpu'
    assert not kube.plugin.manager.groups["default/g"].held


def test_a_member_of_a_gang_that_may_be_anywhere_is_held_wherever_it_comes(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3))
    kube.create(*(pods := members(3)))
    before = kube.world.filter(pods[0])
    status, _ = kube.plugin.permit(CycleState(), pods[0], "b1" if before == "b2" else "b2")
    assert status.wait


def test_a_member_may_come_to_another_node_of_its_gang_s_domain(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3, topology_required="zone"))
    kube.create(*(pods := members(3)))
    before = kube.world.filter(pods[0])
    status, _ = kube.plugin.permit(CycleState(), pods[0], "a2" if before == "a1" else "a1")
    assert status.wait
