"""Members that Permit does not hold: what each is told, and that it does not wait."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from extender.api import corev1
from extender.config.types import TopologyLevel
from extender.framework.cycle_state import CycleState
from extender.framework.status import SUCCESS, unschedulable, wait
from extender.plugins.coscheduling.planner import Topology
from tests.unit.plugins.coscheduling.conftest import World, in_rack, node, pod, pod_group
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node

Make = Callable[..., World]


def is_deleted(w: World, asked: corev1.Pod) -> None:
    w.plugin.on_pod(asked, None)


def is_bound(w: World, asked: corev1.Pod) -> None:
    w.plugin.on_pod(asked, pod(asked.name, "g", node_name="n1"))


def loses_its_group(w: World, asked: corev1.Pod) -> None:
    w.plugin.on_pod_group(pod_group("g", 2), None)


def asks_for_nonsense(w: World, asked: corev1.Pod) -> None:
    w.plugin.on_pod_group(pod_group("g", 2), pod_group("g", 0))


def waits_for_another(w: World, asked: corev1.Pod) -> None:
    w.plugin.on_pod_group(pod_group("g", 2), group("g", 2, groups="h"))


@pytest.mark.parametrize(
    ("happens", "told"),
    [
        pytest.param(is_deleted, "a member of the PodGroup was deleted while waiting", id="it was deleted"),
        pytest.param(is_bound, "the pod is on a node already", id="it was bound"),
        pytest.param(loses_its_group, "PodGroup not found", id="its PodGroup was deleted"),
        pytest.param(
            asks_for_nonsense,
            "PodGroup default/g is invalid: spec.minMember: Invalid value: 0: must be greater than or equal to 1",
            id="its PodGroup asks for nonsense by now",
        ),
        pytest.param(
            waits_for_another,
            "PodGroup default/h, which it is to start together with, is not found or does not name it",
            id="its PodGroup names a group that is not there",
        ),
    ],
)
def test_a_member_is_not_held_after_what_has_happened_on_its_way(
    happens: Callable[[World, corev1.Pod], None], told: str, world: Make
) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(first := pod("p0", "g"), pod("p1", "g"))
    assert w.filter(first) == "n1"
    happens(w, first)
    assert w.plugin.gang_permit.permit(first, "n1", 60.0) == (unschedulable(told), 0)
    assert not w.plugin.manager.groups["default/g"].held


def test_a_pod_of_no_gang_goes_on_at_once(world: Make) -> None:
    assert world([node("n1")]).plugin.gang_permit.permit(pod("single"), "n1", 60.0) == (SUCCESS, 0)


def test_a_member_of_a_gang_that_has_been_whole_goes_on_at_once_though_another_group_is_missing(world: Make) -> None:
    """With once-satisfied it waits for no other any more, of its own gang or of another."""
    kube = KubeScheduler(world([node("n1")]))
    kube.apply(group(minimum=2, match_policy="once-satisfied"))
    kube.create(*members(2))
    kube.run()
    kube.apply(group(minimum=2, match_policy="once-satisfied", groups="h"))
    kube.create(late := member("late"))
    assert kube.plugin.gang_permit.permit(late, "n1", 60.0) == (SUCCESS, 0)
    assert kube.plugin.gang_permit.check_commit(CycleState(), late, "n1").success


def test_a_member_that_comes_after_the_early_start_of_its_gang_has_ended_is_told_how_many_are_missing(
    world: Make,
) -> None:
    kube = KubeScheduler(world([node("n1", "4"), node("n2", "4")], early_start=True))
    kube.apply(group(minimum=4))
    kube.create(*members(2))
    kube.run()
    kube.create(late := member("late"))
    node_name = kube.filter_call(late)
    kube.world.clock.now += 10.0
    kube.plugin.tick()
    kube.run()
    told = "pre-filter pod late cannot find enough sibling pods, current pods number: 3, minMember of group: 4"
    assert kube.plugin.gang_permit.permit(late, node_name, 60.0) == (unschedulable(told), 0)
    kube.create(member("last"))
    assert kube.plugin.gang_permit.permit(late, node_name, 60.0)[0] == wait(), "now all are there"


@pytest.fixture
def racks(world: Make) -> World:
    """A gang of two that has to stay in one rack, with places in rack a."""
    made = world([in_rack("a1", "a", "1"), in_rack("a2", "a", "1"), in_rack("b1", "b", "1")])
    made.connect(topology=Topology((TopologyLevel("rack", "rack"),)))
    made.plugin.on_pod_group(None, group(minimum=2, topology_required="rack"))
    made.create(pod("p0", "g"), pod("p1", "g"))
    made.filter(pod("p0", "g"))
    return made


@pytest.mark.parametrize(
    ("comes_to", "full", "told"),
    [
        pytest.param("own", True, "", id="its own, whatever is there: the plan knows of it"),
        pytest.param("sibling's", False, "", id="another of the rack"),
        pytest.param("b1", False, "the gang has been planned in another rack meanwhile", id="another rack's"),
        pytest.param("sibling's", True, "no room left: insufficient cpu", id="one that others have filled"),
    ],
)
def test_the_node_that_a_member_comes_to(comes_to: str, full: bool, told: str, racks: World) -> None:
    places = {place.pod.name: place.node_name for place in racks.plugin.manager.slots}
    node_name = {"own": places["p0"], "sibling's": places["p1"]}.get(comes_to, comes_to)
    arriving = pod("p0", "g")
    racks.on_nodes["p0"] = on_node(arriving, node_name)
    if full:
        racks.on_nodes["other"] = pod("other", node_name=node_name)
    status, seconds = racks.plugin.gang_permit.permit(arriving, node_name, 60.0)
    assert status.message == (f'node "{node_name}" has {told}' if full and told else told)
    assert (status.wait, seconds) == ((False, 0) if told else (True, 60))


def test_a_member_is_held_on_a_cordoned_node_that_is_not_its_own(racks: World) -> None:
    """Only at the start it is decided whether the node will do: it may be one again by then."""
    places = {place.pod.name: place.node_name for place in racks.plugin.manager.slots}
    other = places["p1"]
    racks.nodes[other] = structs.replace(racks.nodes[other], spec=corev1.NodeSpec(unschedulable=True))
    assert racks.plugin.gang_permit.permit(pod("p0", "g"), other, 60.0)[0] == wait()


def test_a_gang_of_one_may_come_to_any_rack_whatever_its_plan_was(racks: World) -> None:
    """Its own place binds no other member, and so not itself."""
    racks.plugin.on_pod_group(None, group("alone", 1, topology_required="rack"))
    racks.create(only := pod("only", "alone", cpu="0"))
    planned = racks.filter(only)
    elsewhere = "b1" if planned[0] == "a" else "a1"
    racks.on_nodes["only"] = on_node(only, elsewhere)
    assert racks.plugin.gang_permit.permit(only, elsewhere, 60.0) == (SUCCESS, 0)


@pytest.mark.parametrize("in_vain", [False, True], ids=["at once", "after an early start in vain"])
@pytest.mark.parametrize("policy", ["once-satisfied", "only-waiting"])
def test_a_member_of_a_start_that_comes_late_goes_on_though_its_place_is_lost_and_another_group_missing(
    policy: str, in_vain: bool, world: Make
) -> None:
    w = world([node("n1", "8")])
    w.plugin.on_pod_group(None, before := group(minimum=2, match_policy=policy))
    pods = [pod(f"p{number}", "g") for number in range(3)]
    w.create(*pods)
    gang = w.plugin.manager.groups["default/g"]
    gang.gathered = gang.gathered_in_vain = in_vain
    for each in pods:
        assert w.filter(each) == "n1"
    w.bind(pods[0], "n1")
    assert w.bind(pods[1], "n1") == "starts"
    for each in pods[:2]:
        w.plugin.gang_permit.bound(each, "n1")
    w.plugin.on_pod_group(before, group(minimum=2, match_policy=policy, groups="h"))
    w.plugin.manager.slots.release("p2")
    assert w.plugin.gang_permit.permit(pods[2], "n1", 60.0) == (SUCCESS, 0)
