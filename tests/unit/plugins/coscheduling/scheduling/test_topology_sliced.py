"""Which members are placed slice by slice and by rank, beside those that have their places."""

from __future__ import annotations

from extender.plugins.coscheduling.planner import Sliced
from extender.plugins.coscheduling.scheduling.topology import places_of, sliced_of
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, on_node
from tests.unit.plugins.coscheduling.scheduling.test_topology_confined import kube, ranked

__all__ = ["kube"]


def sliced(kube: KubeScheduler, name: str = "") -> list[Sliced]:
    manager = kube.plugin.manager
    with manager.lock:
        gang = manager.groups["default/g"]
        placed = manager.places.placed(gang)
        unplaced = [info for info in gang.pending() if info.pod.uid not in placed]
        return sliced_of(manager, gang, unplaced, name)


def uids(*names: str) -> frozenset[str]:
    return frozenset(f"default/{name}" for name in names)


def test_members_with_slices_are_one_with_those_that_have_their_nodes(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3, topology_slice="rack=2"))
    kube.create(on_node(member("g0"), "a1"), member("g1"), member("g2"))
    assert sliced(kube) == [Sliced(uids("g1", "g2"), (("rack", 2),), {}, [("default/g0", "a1")])]
    assert sliced(kube, "default/g")[0].name == "default/g", "where it is one of several groups verdicts name it"


def test_members_with_ranks_alone_are_in_an_order(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3))
    kube.create(ranked(on_node(member("g0"), "a1"), 0), ranked(member("g1"), 1), member("none"))
    assert sliced(kube) == [Sliced(uids("g1"), (), {"default/g0": 0, "default/g1": 1}, [("default/g0", "a1")])]


def test_the_ranks_of_a_job_come_after_those_of_the_job_before(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4))
    kube.create(*(ranked(member(f"g{job}{rank}"), rank, job) for job in range(2) for rank in range(3)))
    assert sliced(kube)[0].ranks == {f"default/g{job}{rank}": 3 * job + rank for job in range(2) for rank in range(3)}


def test_each_role_has_its_own_slices(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4, roles="ps=1,worker=2", topology_slice="rack=2"))
    kube.create(member("p0", role="ps"), member("w0", role="worker"), member("w1", role="worker"))
    found = sliced(kube, "default/g")
    assert [(each.uids, each.name, each.kind) for each in found] == [
        (uids("p0"), "role ps of default/g", ("ps", "")),
        (uids("w0", "w1"), "role worker of default/g", ("worker", "")),
    ]


def test_controllers_that_give_the_same_ranks_have_their_own_slices(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4))
    kube.create(*(ranked(member(f"{owner}{rank}"), rank, owner=owner) for owner in ("s", "t") for rank in range(2)))
    found = sliced(kube)
    assert [(each.uids, dict(each.ranks), each.name, each.kind) for each in found] == [
        (uids("s0", "s1"), {"default/s0": 0, "default/s1": 1}, "s", ("", "s")),
        (uids("t0", "t1"), {"default/t0": 0, "default/t1": 1}, "t", ("", "t")),
    ]


def test_controllers_that_go_on_counting_share_theirs(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4))
    kube.create(ranked(member("s0"), 0, owner="s"), ranked(member("t1"), 1, owner="t"))
    found = sliced(kube)
    assert [(each.uids, each.name, each.kind) for each in found] == [(uids("s0", "t1"), "", None)]


def test_members_with_a_rank_and_those_without_are_apart(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3, topology_slice="rack=2"))
    kube.create(ranked(member("g0"), 5), member("g1"))
    found = sliced(kube)
    assert [(each.uids, dict(each.ranks), each.kind) for each in found] == [
        (uids("g0"), {"default/g0": 5}, ("", "")),
        (uids("g1"), {}, ("", "")),
    ]


def test_slices_may_be_spread_evenly(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2, topology_slice="rack=2", topology_spread="balanced"))
    kube.create(member("g0"))
    assert sliced(kube)[0].balanced


def test_a_group_that_asks_for_nonsense_or_for_nothing_has_no_slices(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2))
    kube.create(member("g0"))
    assert sliced(kube) == []
    kube.apply(group(minimum=0, topology_slice="rack=2"))
    assert sliced(kube) == []


def test_each_member_is_at_its_node_its_hold_or_its_slot_once(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3))
    kube.create(on_node(member("g0"), "a1"), member("g1"), member("g2"))
    manager = kube.plugin.manager
    gang = manager.groups["default/g"]
    for name, where in (("g0", "b1"), ("g1", "a2"), ("g2", "b2")):
        info = gang.members[f"default/{name}"].info
        manager.slots.reserve(Slot(info, "default/g", where, 1000.0))
    assert list(places_of(manager, gang)) == ["a1", "a2", "b2"]
    assert list(places_of(manager, gang, but="default/g1")) == ["a1", "b2"]
    manager.slots.release("default/g0")
