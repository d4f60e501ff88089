"""Groups that start together: no member of one starts without the others; after that each is on its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from extender.api import corev1
from extender.config.types import TopologyLevel
from extender.plugins.coscheduling.events.scheduler_feedback import STOOD_SECONDS
from extender.plugins.coscheduling.planner import Topology
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, broken, group, member, members, on_node

Make = Callable[..., World]

BOTH = {"a0", "a1", "b0", "b1"}


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "2"), node("n2", "2")]))


def pair(kube: KubeScheduler) -> None:
    """a names b; both have minMember 2 and no pods yet."""
    kube.apply(group("a", groups="b"), group("b"))


def test_the_first_waits_for_the_second_that_is_created_later(kube: KubeScheduler) -> None:
    kube.apply(group("a", groups="b"))
    kube.create(*members(2, "a"))
    kube.run()
    assert kube.reason("default/a") == "CompanionNotReady"
    assert kube.told["a0"].startswith("PodGroup default/b, which it is to start together with, is not found")
    kube.apply(group("b"))
    kube.create(member("b0", "b"))
    kube.run()
    assert kube.running() == set()
    kube.create(member("b1", "b"))
    kube.run()
    assert kube.starts == [BOTH]
    assert list(broken(kube)) == []


def test_gated_groups_are_planned_and_sent_as_one(kube: KubeScheduler) -> None:
    pair(kube)
    kube.create(*members(2, "a", gated=True), *members(2, "b", gated=True))
    kube.world.run_tasks()
    assert kube.world.plans == 1
    kube.run()
    assert kube.starts == [BOTH]


def test_it_is_enough_that_one_of_two_groups_of_a_namespace_names_the_other(kube: KubeScheduler) -> None:
    kube.apply(group("b"))
    kube.create(*members(2, "b"))
    kube.apply(group("a", groups="default/b"))
    kube.run()
    assert (kube.running(), kube.reason("default/b")) == (set(), "CompanionNotReady")
    kube.create(*members(2, "a"))
    kube.run()
    assert kube.starts == [BOTH]


def test_across_namespaces_both_have_to_name_each_other(kube: KubeScheduler) -> None:
    kube.apply(group("a", groups="other/b"), group("b", namespace="other"))
    kube.create(*members(2, "a"), *members(2, "b", namespace="other"))
    kube.run()
    assert kube.starts == [{"b0", "b1"}], "a stranger's naming holds no gang back"
    assert "is not found or does not name it" in kube.told["a0"]
    kube.apply(group("b", namespace="other", groups="default/a"))
    kube.run()
    assert kube.running("a") == {"a0", "a1"}


def test_an_invalid_group_holds_the_others_back_and_they_say_so(kube: KubeScheduler) -> None:
    kube.apply(group("a", groups="b"), group("b", 0))
    kube.create(*members(2, "a"), *members(2, "b"))
    kube.run()
    assert kube.running() == set()
    assert "PodGroup default/b, which it is to start together with, cannot start: " in kube.told["a0"]
    assert "spec.minMember: Invalid value: 0" in kube.told["a0"]
    kube.apply(group("b"))
    kube.run()
    assert kube.starts == [BOTH]


def test_one_that_does_not_fit_keeps_the_others_from_starting(kube: KubeScheduler) -> None:
    pair(kube)
    kube.create(*members(2, "a"), *members(2, "b", cpu=3))
    kube.run()
    assert (kube.running(), kube.held(), len(kube.plugin.manager.slots)) == (set(), set(), 0)
    cause = "PodGroups that start together (default/a, default/b) do not fit: minMember of default/b: Insufficient cpu"
    assert kube.told["a0"] == f"pod with pgName: default/a last failed in 3s, deny: {cause}"
    assert kube.told["b0"] in ("Insufficient cpu", f"pod with pgName: default/b last failed in 3s, deny: {cause}")
    assert kube.reason("default/b") == "InsufficientResources"


def test_together_they_do_not_fit_though_each_would_alone(kube: KubeScheduler) -> None:
    kube.world.nodes.pop("n2")
    pair(kube)
    kube.create(*members(2, "a"), *members(2, "b"))
    kube.run()
    assert (kube.running(), len(kube.plugin.manager.slots)) == (set(), 0)
    text = "PodGroups that start together (default/a, default/b) do not fit: Insufficient cpu"
    assert [kube.told[name].endswith(text) for name in sorted(BOTH)] == [True] * 4
    assert kube.world.plans == 1, "not one for every member that asks"
    kube.world.nodes["n2"] = node("n2", "2")
    kube.plugin.on_node(None, kube.world.nodes["n2"])
    kube.run()
    assert kube.starts == [BOTH]


def test_members_that_were_told_of_the_other_group_are_told_that_there_is_no_room(kube: KubeScheduler) -> None:
    kube.world.nodes.pop("n2")
    pair(kube)
    kube.create(*members(2, "a"))
    kube.run()
    assert "cannot start: fewer pods exist" in kube.told["a0"]
    kube.create(*members(2, "b"))
    kube.run()
    kube.plugin.tick()
    kube.world.clock.now += STOOD_SECONDS
    kube.plugin.tick()
    kube.run()
    assert {kube.told[name].partition("deny: ")[2] for name in BOTH} == {
        "PodGroups that start together (default/a, default/b) do not fit: Insufficient cpu"
    }
    kube.plugin.tick()
    assert kube.world.woken == [], "once"


def test_a_third_group_uses_the_room_of_a_unit_that_does_not_fit(kube: KubeScheduler) -> None:
    pair(kube)
    kube.create(*members(2, "a"), *members(2, "b", cpu=3))
    kube.run()
    kube.apply(group("c"))
    kube.create(*members(2, "c"))
    kube.run()
    assert kube.starts == [{"c0", "c1"}]


def held(kube: KubeScheduler) -> None:
    """a0 and b0 are held, the others are on their way."""
    pair(kube)
    kube.create(*members(2, "a"), *members(2, "b"))
    kube.attempt("default/a0")
    kube.attempt("default/b0")
    assert kube.held() == {"a0", "b0"}


def test_a_hold_that_ends_in_one_group_ends_those_of_the_other(kube: KubeScheduler) -> None:
    held(kube)
    kube.time_out(member("a0", "a"))
    assert kube.held() == set()
    assert "rejected due to timeout after waiting 60s" in kube.told["b0"]
    assert not len(kube.plugin.manager.slots)
    kube.run()
    assert kube.starts == [BOTH], "they try again, all of them"


@pytest.mark.parametrize("gone", ["a", "b"])
def test_a_group_that_is_deleted_ends_the_holds_of_the_other(gone: str, kube: KubeScheduler) -> None:
    held(kube)
    kube.remove(group(gone))
    assert kube.held() == set()
    assert not len(kube.plugin.manager.slots)
    assert list(broken(kube)) == []


def test_a_member_that_is_deleted_voids_the_plan_of_both(kube: KubeScheduler) -> None:
    pair(kube)
    kube.create(*members(2, "a", gated=True), *members(2, "b", gated=True))
    kube.world.run_tasks()
    assert len(kube.plugin.manager.slots) == 4
    kube.delete(member("b1", "b"))
    assert not len(kube.plugin.manager.slots)
    kube.run()
    assert kube.running() == set()
    kube.create(member("again", "b", gated=True))
    kube.run()
    assert kube.starts == [{"a0", "a1", "b0", "again"}]


def test_one_that_is_named_no_longer_starts_by_itself(kube: KubeScheduler) -> None:
    pair(kube)
    kube.create(*members(2, "b", gated=True), member("a0", "a", gated=True))
    kube.run()
    assert kube.running() == set()
    kube.apply(group("a"))
    kube.run()
    assert kube.starts == [{"b0", "b1"}]


def test_after_they_have_been_whole_each_is_on_its_own(kube: KubeScheduler) -> None:
    pair(kube)
    kube.create(*members(2, "a"), *members(2, "b"))
    kube.run()
    assert kube.starts == [BOTH]
    kube.delete(*members(2, "b"))
    kube.delete(member("a0", "a"))
    kube.create(member("again", "a"))
    kube.run()
    assert kube.starts[1:] == [{"again"}], "though no member of b runs"
    kube.delete(member("again", "a"), member("a1", "a"))
    kube.create(*members(2, "a", prefix="c"))
    kube.run()
    assert kube.starts[2:] == [], "no member runs at all: from the beginning"
    assert "PodGroup default/b" in kube.told["c0"]


def test_that_they_have_been_whole_is_learnt_from_the_watch_after_a_restart(kube: KubeScheduler) -> None:
    pair(kube)
    kube.create(*(on_node(pod, "n1") for pod in members(2, "a")), *(on_node(pod, "n2") for pod in members(2, "b")))
    kube.delete(*members(2, "b"))
    kube.delete(member("a0", "a"))
    kube.create(member("again", "a"))
    kube.run()
    assert kube.starts == [{"again"}]


def test_a_plan_whose_members_do_not_come_denies_all_of_them_for_a_while(kube: KubeScheduler) -> None:
    pair(kube)
    kube.create(*members(2, "a", gated=True), *members(2, "b", gated=True))
    kube.world.run_tasks()
    kube.world.clock.now += 61
    kube.plugin.tick()
    kube.world.run_tasks()
    assert (len(kube.plugin.manager.slots), kube.world.plans) == (0, 1), "others have their turn first"
    assert {kube.reason(key) for key in ("default/a", "default/b")} == {"MembersDidNotCome"}


RACKS = Topology((TopologyLevel("zone", "zone"), TopologyLevel("rack", "rack")))


@pytest.mark.parametrize("first", ["a", "b"])
def test_one_topology_holds_for_all_for_every_caller(first: str, world: Make) -> None:
    """Only one of them asks for a rack; rack r1 has room for one group alone."""
    made = world([])
    for name, rack, cpu in (("n1", "r1", "3"), ("n2", "r2", "2"), ("n3", "r2", "2")):
        made.nodes[name] = _racked(name, rack, cpu)
    made.connect(topology=RACKS)
    kube = KubeScheduler(made)
    kube.apply(group("a", groups="b", topology_required="rack"), group("b", topology_preferred="zone"))
    other = "b" if first == "a" else "a"
    kube.create(*members(2, first), *members(2, other))
    kube.run()
    assert {pod.node_name for pod in kube.pods.values()} == {"n2", "n3"}


def _racked(name: str, rack: str, cpu: str) -> corev1.Node:
    plain = node(name, cpu)
    return structs.replace(plain, metadata=structs.replace(plain.metadata, labels={"rack": rack, "zone": "z"}))


def test_an_extra_member_of_one_group_does_not_stand_for_one_that_another_lacks(kube: KubeScheduler) -> None:
    """A start that was cut short: a is whole, b lacks a member that fits nowhere."""
    pair(kube)
    kube.create(*(on_node(each, "n1") for each in members(2, "a")), on_node(member("b0", "b"), "n2"))
    kube.create(member("a2", "a"), member("b1", "b", cpu=2))
    kube.run()
    assert (kube.running("a"), kube.reason("default/b")) == ({"a0", "a1"}, "InsufficientResources")
    assert (len(kube.plugin.manager.slots), dict(kube.world.waiting)) == (0, {}), "a2 keeps no room meanwhile"


def test_batches_of_a_group_that_starts_in_batches_are_on_their_own_once_all_groups_have_been_whole(
    kube: KubeScheduler,
) -> None:
    kube.apply(group("a", groups="b", match_policy="only-waiting"), group("b", 1))
    kube.create(*members(2, "a"), *members(1, "b"))
    kube.run()
    assert kube.starts == [{"a0", "a1", "b0"}]
    kube.create(*members(2, "a", prefix="next"))
    kube.run()
    assert not kube.running() & {"next0", "next1"}, "one place is left for two"
    kube.create(member("b1", "b"))
    kube.run()
    assert "b1" in kube.running(), "it waits for no batch of the other"
