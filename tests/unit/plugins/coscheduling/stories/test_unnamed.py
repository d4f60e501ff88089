"""Gated members where kube-scheduler offers every feasible node: freed by one patch, told where by our filter."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.api import corev1
from extender.plugins.coscheduling.messages import PLACE_NOT_OFFERED
from extender.plugins.coscheduling.planner.request import Topology
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group
from tests.unit.plugins.coscheduling.planning import LEVELS
from tests.unit.plugins.coscheduling.sampling import SAMPLE, apply, cluster
from tests.unit.plugins.coscheduling.stories.test_gated import gated, refused, start, ungated

Make = Callable[..., World]


@pytest.fixture
def small(world: Make) -> Make:
    """A world of so few nodes that all are offered."""

    def make(nodes: list[corev1.Node]) -> World:
        w = world(nodes)
        w.connect(offers_all=lambda: True)
        return w

    return make


def freed(w: World, member: corev1.Pod) -> corev1.Pod:
    """The member as the watch shows it without its gate."""
    seen = ungated(member)
    w.plugin.on_pod(member, seen)
    w.run_tasks()
    return seen


def test_members_are_freed_with_no_nomination_and_find_their_places(small: Make) -> None:
    w = small([node("n1", "1"), node("n2", "1")])
    members = [gated("p0"), gated("p1")]
    start(w, *members)
    assert (sorted(w.ungated), w.steered) == (["p0", "p1"], [])
    assert {w.filter(freed(w, member)) for member in members} == {"n1", "n2"}
    assert (len(w.ungated), w.steered, w.woken, w.plans) == (2, [], [], 1)


def test_a_plain_sibling_that_is_parked_is_nominated(small: Make) -> None:
    w = small([node("n1", "2")])
    plain = pod("p1", "g")
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(plain)
    assert "cannot find enough sibling pods" in w.filter(plain)
    w.create(gated("p0"))
    w.run_tasks()
    assert (w.ungated, w.steered) == (["p0"], [("p1", "n1")])


def test_one_that_kube_scheduler_s_own_filters_refuse_is_nominated(small: Make) -> None:
    w = small([node("n1", "2")])
    member = gated("p0")
    start(w, member, gated("p1"))
    seen = freed(w, member)
    w.plugin.on_pod(seen, refused(seen))
    w.run_tasks()
    assert w.steered == [("p0", "n1")]


def test_one_whose_node_has_gone_meanwhile_is_told_another_when_it_comes(small: Make) -> None:
    w = small([node("n1", "1"), node("n2", "1"), node("n3", "1")])
    members = {name: gated(name) for name in ("p0", "p1")}
    start(w, *members.values())
    seen = {name: freed(w, member) for name, member in members.items()}
    planned = {place.uid: place.node_name for place in w.plugin.manager.slots}
    w.plugin.on_node(w.nodes.pop(planned["p0"]), None)
    w.run_tasks()
    assert w.filter(seen["p0"]) in w.nodes.keys() - {planned["p1"]}
    assert w.filter(seen["p1"]) == planned["p1"]
    assert w.released == []


def test_one_whose_node_goes_while_its_gate_does_has_a_place_again_before_it_is_asked_about(small: Make) -> None:
    w = small([node("n1", "1"), node("n2", "1"), node("n3", "1")])
    members = {name: gated(name) for name in ("p0", "p1")}
    start(w, *members.values())
    planned = {place.uid: place.node_name for place in w.plugin.manager.slots}
    w.plugin.on_node(w.nodes.pop(planned["p0"]), None)
    for member in members.values():
        w.plugin.on_pod(member, ungated(member))  # seen before the look that the node's end asked for
    w.run_tasks()
    places = {place.uid: place.node_name for place in w.plugin.manager.slots}
    assert places == {"p0": next(iter(w.nodes.keys() - {planned["p1"]})), "p1": planned["p1"]}


def test_one_that_comes_without_its_node_is_given_one_that_is_offered(small: Make) -> None:
    w = small([node("n1", "2"), node("n2", "2")])
    member = gated("p0")
    start(w, member, gated("p1"))
    (planned,) = {place.node_name for place in w.plugin.manager.slots if place.uid == "p0"}
    (other,) = w.nodes.keys() - {planned}
    assert w.filter(freed(w, member), [other]) == other
    assert "p0" not in dict(w.steered)


def test_nothing_is_taken_back_of_a_member_that_was_not_nominated_and_one_that_was_refused_is_nominated_by_the_next_plan(
    small: Make,
) -> None:
    w = small([node("n1", "1"), node("n2", "1")])
    member = gated("p0")
    start(w, member, gated("p1"))
    gone = w.nodes.pop("n2")
    w.plugin.on_node(gone, None)
    w.run_tasks()
    seen = freed(w, member)
    assert "does not fit" in w.filter(seen)
    assert (w.released, w.steered) == ([], [])
    w.nodes["n2"] = gone
    w.plugin.on_node(None, gone)
    w.run_tasks()
    assert [name for name, _ in w.steered] == ["p0"]
    assert w.ungated.count("p1") == 2


def test_where_a_sample_is_offered_they_are_freed_too_and_their_slots_go_where_they_are_asked_about(
    world: Make,
) -> None:
    w = cluster(world, offers_few=lambda: True)
    members = [gated("p0"), gated("p1")]
    start(w, *members)
    assert (sorted(w.ungated), w.steered) == (["p0", "p1"], [])
    assert {w.filter(freed(w, member), SAMPLE) for member in members} == set(SAMPLE[:2])
    assert (len(w.ungated), w.steered, w.woken, w.plans) == (2, [], [], 1)


def test_where_a_sample_is_offered_those_are_nominated_that_have_to_be_where_they_are(world: Make) -> None:
    w = cluster(world, offers_few=lambda: True, topology=Topology(LEVELS[1:]))
    apply(w, "g", 2, topology_required="rack")
    w.create(gated("p0"), gated("p1"))
    w.run_tasks()
    assert w.ungated == []
    assert sorted(name for name, _ in w.steered) == ["p0", "p1"]


def test_one_that_finds_no_room_in_its_sample_is_nominated_to_its_slot(world: Make) -> None:
    w = cluster(world, offers_few=lambda: True)
    member = gated("p0")
    start(w, member, gated("p1"))
    seen = freed(w, member)
    for name in SAMPLE:
        w.on_nodes[name] = pod(f"x-{name}", node_name=name)
    (slot,) = (each for each in w.plugin.manager.slots if each.uid == "p0")
    assert w.filter(seen, SAMPLE) == PLACE_NOT_OFFERED
    w.run_tasks()
    assert (w.steered, w.plans) == ([("p0", slot.node_name)], 1)
    assert w.filter(seen, [slot.node_name]) == slot.node_name
