"""A slot that no sample of the nodes holds is moved to an offered node, without a plan, where a plan could have put it too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling.backfill.vain_turns import AskedRoom
from extender.plugins.coscheduling.messages import PLACE_NOT_OFFERED
from extender.plugins.coscheduling.planner.request import Topology
from extender.plugins.coscheduling.scheduling.backfill_reservation import BackfillReservation
from extender.plugins.coscheduling.state.refutations import How
from extender.plugins.coscheduling.state.slots import Slot
from tests.objects import PodBuilder, make_node, make_pod
from tests.unit.plugins.coscheduling.conftest import World
from tests.unit.plugins.coscheduling.planning import LEVELS
from tests.unit.plugins.coscheduling.sampling import (
    SAMPLE,
    SPREAD,
    Make,
    apply,
    cluster,
    member,
    planned,
    slot,
)


def keep(w: World, node_name: str, name: str, priority: int = 0, *, firm: bool = False, info: Any = None) -> None:
    """A slot of another gang."""
    info = info or member(name, "other").priority(priority).info()
    w.plugin.manager.slots.reserve(Slot(info, "default/other", node_name, 1e9, firm, priority))


def test_it_is_moved_without_a_plan_and_its_old_room_is_free(world: Make) -> None:
    w = cluster(world)
    apply(w)
    members = planned(w)
    before = slot(w, "p1")
    assert before.node_name not in SAMPLE
    assert w.filter(members[1], SAMPLE) == slot(w, "p1").node_name == SAMPLE[0]
    assert w.plans == 1
    assert slot(w, "p1").id == before.id
    assert slot(w, "p1").expires == before.expires
    assert list(w.plugin.manager.slots.on_node(before.node_name)) == []
    assert w.filter(members[0]) == slot(w, "p0").node_name
    assert w.plugin.manager.groups["default/g"].refuted.times == 0, "kube-scheduler has not looked at its node"
    apply(w, "next")
    w.create(*(member(name, "next").obj() for name in ("q0", "q1")))
    assert w.filter(member("q0", "next").obj()) == before.node_name


def test_one_that_is_in_the_sample_stays(world: Make) -> None:
    w = cluster(world)
    apply(w)
    members = planned(w)
    known = slot(w, "p1").node_name
    assert w.filter(members[1], [*SAMPLE, known]) == known


def test_a_sibling_s_free_slot_in_the_sample_comes_first(world: Make) -> None:
    w = cluster(world)
    apply(w, minimum=3)
    members = planned(w, *(member(f"p{number}") for number in range(3)))
    free = slot(w, "p2").node_name
    assert w.filter(members[1], [*SAMPLE, free]) == free


def test_fewer_nodes_than_a_sample_has_are_all_that_pass_and_its_own_is_refuted(world: Make) -> None:
    w = cluster(world)
    apply(w)
    members = planned(w)
    assert w.filter(members[1], SAMPLE[:99]) == SAMPLE[0]
    assert w.plans == 2
    assert w.plugin.manager.groups["default/g"].refuted.times == 1


def full(w: World, *but: str) -> None:
    """A gang of this priority has a slot on each node of the sample but for these."""
    for name in SAMPLE:
        if name not in but:
            keep(w, name, f"x-{name}")


def lower(w: World) -> None:
    for name in SAMPLE[:-1]:
        keep(w, name, f"x-{name}", priority=-1)


def firm(w: World) -> None:
    for name in SAMPLE[:-1]:
        keep(w, name, f"x-{name}", priority=-1, firm=True)


def bound(w: World) -> None:
    for name in SAMPLE[:-1]:
        w.on_nodes[name] = make_pod().name(f"x-{name}").node(name).req(cpu="500m").obj()


def to_come(w: World) -> None:
    """Room that is kept for members of another gang that are still to be made."""
    w.plugin.on_pod(None, member("x", "other").obj())
    other = w.plugin.manager.groups["default/other"]
    likes = ((name, member(f"to-come/{name}", "other").info()) for name in SAMPLE[:-1])
    w.plugin.manager.places.keep_for_members_to_come(other, likes, 1e9)


def reserved(w: World) -> None:
    keys = frozenset({"default/other"})
    w.plugin.rounds.reservations.current = BackfillReservation(
        "default/other", keys, 0, "", frozenset(SAMPLE[:-1]), 0.0, 1e9, AskedRoom()
    )


def refuted(w: World) -> None:
    group = w.plugin.manager.groups["default/g"]
    for name in SAMPLE[:-1]:
        group.refuted.add("p1", name, How.NOT_OFFERED, w.clock())


def confined(w: World) -> None:
    group, epoch = w.plugin.manager.groups["default/g"], w.plugin.manager.notes.cluster_epoch
    group.refuted.add("p1", "n001", How.NOT_OFFERED, w.clock())
    group.refuted.confine("p1", "n001", frozenset(SAMPLE[-1:]), epoch)


def nominated(w: World) -> None:
    pod = make_pod().name("x").req(cpu=1).obj()
    w.nominated_pods_but = lambda uids: [(name, pod) for name in SAMPLE[:-1]]  # type: ignore[method-assign]


def cordoned(w: World) -> None:
    for name in SAMPLE[:-1]:
        w.nodes[name] = make_node().name(name).capacity(cpu=1, memory="64Gi").unschedulable().obj()


def tainted(w: World) -> None:
    for name in SAMPLE[:-1]:
        w.nodes[name] = make_node().name(name).capacity(cpu=1, memory="64Gi").taint("x").obj()


def small(w: World) -> None:
    for name in SAMPLE[:-1]:
        w.nodes[name] = make_node().name(name).capacity(cpu="900m", memory="64Gi").obj()


def crowded(w: World) -> None:
    for name in SAMPLE[:-1]:
        w.nodes[name] = make_node().name(name).capacity(cpu=1, pods=0).obj()


@pytest.mark.parametrize(
    "arrange",
    [
        pytest.param(lambda w: full(w, SAMPLE[-1]), id="slots of another gang keep theirs"),
        pytest.param(lower, id="slots of lower priority do not have to give way"),
        pytest.param(firm, id="slots that finish a start keep theirs"),
        pytest.param(to_come, id="room for members to come is kept"),
        pytest.param(bound, id="pods that are bound there count"),
        pytest.param(reserved, id="a gang that waits longest has nodes kept free"),
        pytest.param(refuted, id="kube-scheduler has refused the member on the others"),
        pytest.param(confined, id="kube-scheduler has let no other node pass for it"),
        pytest.param(nominated, id="pods of others are nominated there"),
        pytest.param(cordoned, id="cordoned nodes take none"),
        pytest.param(tainted, id="tainted nodes take none"),
        pytest.param(small, id="smaller nodes take none"),
        pytest.param(crowded, id="nodes with as many pods as they may have take none"),
    ],
)
def test_it_is_moved_to_the_one_node_that_a_plan_could_choose(world: Make, arrange: Callable[[World], None]) -> None:
    w = cluster(world)
    apply(w)
    members = planned(w)
    arrange(w)
    World.made.remove(w)  # the others' slots are in no other book
    assert w.filter(members[1], SAMPLE) == SAMPLE[-1]
    assert w.plans == 1


def planned_beside_full_samples(world: Make) -> tuple[World, list[corev1.Pod]]:
    """With the members of the gang g, and slots of another gang on all of SAMPLE, which are in no other book."""
    w = cluster(world)
    apply(w)
    members = planned(w)
    full(w)
    World.made.remove(w)
    return w, members


def test_where_no_offered_node_will_do_it_stays_and_its_member_is_nominated_there(world: Make) -> None:
    """The plan is good, and it would be given up for a sample in which other gangs have all the room."""
    w, members = planned_beside_full_samples(world)
    known = slot(w, "p1")
    assert w.filter(members[1], SAMPLE) == PLACE_NOT_OFFERED
    assert slot(w, "p1") is known
    assert (w.plans, w.steered) == (1, [("p1", known.node_name)])
    assert w.filter(members[1], [known.node_name]) == known.node_name


def nominated_to(member: corev1.Pod, node_name: str) -> corev1.Pod:
    """As kube-scheduler knows it once it has heard of the nomination."""
    return structs.replace(member, status=structs.replace(member.status, nominated_node_name=node_name))


def test_one_that_is_nominated_and_asked_about_elsewhere_is_refuted(world: Make) -> None:
    """kube-scheduler has tried the node by itself."""
    w, members = planned_beside_full_samples(world)
    known = slot(w, "p1").node_name
    w.filter(members[1], SAMPLE)
    w.filter(nominated_to(members[1], known), SAMPLE)
    assert w.plans > 1
    assert ("p1", known) in w.plugin.manager.groups["default/g"].refuted.left_out(w.clock())


def test_one_that_is_asked_about_by_a_kube_scheduler_that_has_not_heard_of_the_nomination_keeps_its_slot(
    world: Make,
) -> None:
    w, members = planned_beside_full_samples(world)
    known = slot(w, "p1")
    for _ in range(2):
        assert w.filter(members[1], SAMPLE) == PLACE_NOT_OFFERED
    assert (slot(w, "p1"), w.plans) == (known, 1)
    assert w.steered == [("p1", known.node_name)] * 2
    assert w.filter(nominated_to(members[1], known.node_name), [known.node_name]) == known.node_name


def test_a_nomination_that_our_own_refusal_has_ended_excuses_no_other_offer(world: Make) -> None:
    w, members = planned_beside_full_samples(world)
    known = slot(w, "p1").node_name
    w.filter(members[1], SAMPLE)
    w.plugin.manager.denied["default/g"] = "no room"
    assert "no room" in w.filter(nominated_to(members[1], known), [known])
    w.plugin.manager.denied.clear()
    w.filter(nominated_to(members[1], known), SAMPLE)
    assert ("p1", known) in w.plugin.manager.groups["default/g"].refuted.left_out(w.clock())


@pytest.mark.parametrize(
    ("annotations", "change"),
    [
        pytest.param({"topology_required": "rack"}, lambda pod: pod, id="a rack for all"),
        pytest.param({"topology_slice": "rack"}, lambda pod: pod, id="a rack for each slice"),
        pytest.param({}, lambda pod: pod.host_port(80), id="host ports"),
    ],
)
def test_what_is_promised_of_where_it_is_has_it_planned_anew(
    world: Make, annotations: dict[str, str], change: Callable[[PodBuilder], PodBuilder]
) -> None:
    w = cluster(world, topology=Topology(LEVELS[1:]))
    apply(w, "g", 2, **annotations)
    members = planned(w, change(member("p0")), change(member("p1")))
    before = w.plans
    w.filter(members[1], SAMPLE)
    assert w.plans > before


def kept_off(w: World) -> None:
    """A member of another gang, which kube-scheduler has not assumed yet, keeps others out of its zone."""
    info = make_pod().name("x").uid("x").req(cpu=1).pod_anti_affinity("zone", SPREAD).info()
    keep(w, "n010", "x", info=info)


def sent(w: World) -> None:
    w.plugin.manager.groups["default/g"].members["p1"].nomination = slot(w, "p1").node_name


def firm_itself(w: World) -> None:
    w.plugin.manager.slots.reserve(replace(slot(w, "p1"), firm=True))


@pytest.mark.parametrize(
    "arrange",
    [
        pytest.param(kept_off, id="a slot for a pod that keeps members off"),
        pytest.param(sent, id="a member that is nominated"),
        pytest.param(firm_itself, id="a slot that is not free to move"),
    ],
)
def test_a_slot_stays_where_more_than_room_counts(world: Make, arrange: Callable[[World], None]) -> None:
    w = cluster(world)
    apply(w)
    planned(w)
    arrange(w)
    World.made.remove(w)
    group = w.plugin.manager.groups["default/g"]
    assert w.plugin.admission._moved_slots.move(group, "p1", frozenset(SAMPLE)) is None


def test_a_freed_member_that_is_not_nominated_is_told_where_its_slot_is_now(world: Make) -> None:
    w = cluster(world)
    apply(w)
    members = planned(w)
    group = w.plugin.manager.groups["default/g"]
    group.members["p1"].nomination, group.members["p1"].ungated_without_nomination = slot(w, "p1").node_name, True
    assert w.filter(members[1], SAMPLE) == SAMPLE[0] == group.members["p1"].nomination


def test_gangs_that_start_together_are_planned_together(world: Make) -> None:
    w = cluster(world)
    apply(w, "g", groups="g,h")
    apply(w, "h", groups="g,h")
    members = [member(f"{name}{at}", name).obj() for name in "gh" for at in range(2)]
    w.create(*members)
    assert w.filter(members[0]) in w.nodes
    before = w.plans
    assert w.filter(members[1], SAMPLE) in SAMPLE
    assert w.plans > before
