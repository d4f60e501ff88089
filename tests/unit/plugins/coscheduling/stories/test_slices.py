"""Stories of gangs in slices, through the plugin: what is asked for, where members go by rank, and where those that come later go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from extender.api import corev1
from extender.api.codec import convert
from extender.api.metav1 import OwnerReference
from extender.api.schedulingv1alpha1 import PodGroup
from extender.cli import explain_text
from extender.config.types import TopologyLevel
from extender.framework.cycle_state import CycleState
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.spec.counts import MAX_MEMBERS
from extender.plugins.coscheduling.spec.keys import (
    GROUPS,
    INDICES,
    JOBSET_INDEX,
    KUEUE_REQUIRED,
    KUEUE_SLICE,
    KUEUE_SLICE_SIZE,
    ROLES,
    TOPOLOGY_SLICE,
    TOPOLOGY_SPREAD,
)
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason
from tests.unit.plugins.coscheduling.conftest import LABEL, World, pod

LEVELS = (TopologyLevel("block", "block"), TopologyLevel("rack", "example.com/rack"))
NewWorld = Callable[..., World]
BLOCK_OF = {"a": "x", "b": "x", "c": "y", "d": "y"}


def node(name: str, cpu: int) -> corev1.Node:
    labels = {"block": BLOCK_OF[name[0]], "example.com/rack": name[0]}
    status = {"allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": "110"}}
    return convert({"metadata": {"name": name, "labels": labels}, "status": status}, corev1.Node)


def racks(**cpus: int) -> list[corev1.Node]:
    """Two nodes a rack, each with so many CPUs."""
    return [node(f"{rack}{i}", cpu) for rack, cpu in cpus.items() for i in range(2)]


def started(new: NewWorld, nodes: Sequence[corev1.Node], annotations: Mapping[str, str], minimum: int = 4) -> World:
    world = new(nodes)
    world.connect(topology=planner.Topology(LEVELS))
    metadata = {"name": "g", "namespace": "default", "annotations": dict(annotations)}
    world.plugin.on_pod_group(None, convert({"metadata": metadata, "spec": {"minMember": minimum}}, PodGroup))
    return world


def member(
    number: int, labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None, **more: Any
) -> corev1.Pod:
    """Of that rank; labels: in place of its index."""
    made = pod(f"m{number}", "g", **more)
    index = {str(INDICES[0]): str(number)} if labels is None else labels
    metadata = replace(made.metadata, labels={LABEL: "g", **index}, annotations=dict(annotations or {}))
    return replace(made, metadata=metadata)


def ask(world: World, *members: corev1.Pod) -> str:
    """The rack that each is sent to; the whole answer where one is refused."""
    world.create(*members)
    told = [world.filter(each) for each in members]
    return "".join(name[0] for name in told) if all(len(name) == 2 for name in told) else told[0]


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({TOPOLOGY_SLICE: "rack=2"}, "aabb", id="by the level's name"),
        pytest.param({TOPOLOGY_SLICE: "example.com/rack=2"}, "aabb", id="by its label"),
        pytest.param({TOPOLOGY_SLICE: "block=4,rack=2"}, "aabb", id="nested"),
        pytest.param({KUEUE_SLICE: "example.com/rack", KUEUE_SLICE_SIZE: "2"}, "aabb", id="Kueue's slices"),
        pytest.param(
            {KUEUE_REQUIRED: "block", KUEUE_SLICE: "example.com/rack", KUEUE_SLICE_SIZE: "2"}, "aabb", id="in a block"
        ),
        pytest.param({TOPOLOGY_SLICE: "rack"}, "dddd", id="all members in one"),
        pytest.param({KUEUE_REQUIRED: "example.com/rack"}, "dddd", id="Kueue's required level"),
        pytest.param(
            {TOPOLOGY_SLICE: "rack=2", KUEUE_REQUIRED: "example.com/rack"}, "aabb", id="our own key comes first"
        ),
    ],
)
def test_what_is_asked_for(world: NewWorld, annotations: dict[str, str], expected: str) -> None:
    made = started(world, racks(a=1, b=1, c=0, d=2 if expected == "dddd" else 0), annotations)
    assert ask(made, *map(member, (3, 1, 0, 2))) == "".join(sorted(expected)[i] for i in (3, 1, 0, 2))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param([{INDICES[1]: str(i)} for i in (3, 0, 2, 1)], "baba", id="LeaderWorkerSet"),
        pytest.param([{INDICES[2]: str(i)} for i in (3, 0, 2, 1)], "baba", id="StatefulSet"),
        pytest.param(
            [{JOBSET_INDEX: str(job), INDICES[0]: str(i)} for job, i in ((1, 0), (0, 0), (1, 1), (0, 1))],
            "baba",
            id="JobSet",
        ),
        pytest.param([{}] * 4, "aabb", id="none: in any order"),
        pytest.param([{INDICES[0]: "one"}, {INDICES[0]: "-1"}, {}, {}], "aabb", id="what is no number is none"),
    ],
)
def test_where_the_rank_is_found(world: NewWorld, labels: list[dict[str, str]], expected: str) -> None:
    made = started(world, racks(a=1, b=1), {TOPOLOGY_SLICE: "rack=2"})
    assert ask(made, *(member(number, own) for number, own in enumerate(labels))) == expected


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        pytest.param({KUEUE_SLICE: "example.com/rack"}, KUEUE_SLICE_SIZE, id="a level without a size"),
        pytest.param({KUEUE_SLICE_SIZE: "2"}, KUEUE_SLICE, id="a size without a level"),
    ],
)
@pytest.mark.parametrize("on_pods", [False, True])
def test_what_asks_for_nothing_without_another_key_is_named(
    world: NewWorld, there: dict[Any, str], missing: object, on_pods: bool
) -> None:
    made = started(world, racks(a=1, b=1), {} if on_pods else there)
    members = [member(number, annotations=there if on_pods else None) for number in range(4)]
    assert ask(made, *members) == "aabb"
    status = made.plugin.report.status("default/g")
    assert status is not None
    assert status.not_honoured == (f"annotation {next(iter(there))} (it counts with {missing} alone)",)


def owned(number: int, by: str, **more: Any) -> corev1.Pod:
    """A member that a StatefulSet of that name has given its number."""
    made = member(number, **more)
    owner = OwnerReference("StatefulSet", by, f"uid-{by}", controller=True)
    metadata = replace(made.metadata, name=f"{by}-{number}", uid=f"{by}-{number}", owner_references=(owner,))
    return replace(made, metadata=metadata)


PAIR = [owned(number, by) for number in range(4) for by in ("left", "right")]


def test_two_controllers_that_both_count_from_0_have_slices_of_their_own(world: NewWorld) -> None:
    """They were in one slice of eight, which no rack took, and the message said a slice of four."""
    made = started(world, racks(a=2, b=2), {TOPOLOGY_SLICE: "rack=4"}, 8)
    assert ask(made, *PAIR) == "abababab"


def test_controllers_that_go_on_counting_share_their_slices(world: NewWorld) -> None:
    """As those of a LeaderWorkerSet, where the leader is of another StatefulSet than its workers."""
    members = [owned(number, "set" if number < 2 else "set-0") for number in range(4)]
    for cpus, answer in ((2, "aaaa"), (1, "pod with pgName")):
        made = started(world, racks(a=cpus, b=cpus), {TOPOLOGY_SLICE: "rack=4"}, 4)
        assert ask(made, *members).startswith(answer), "one slice of four, or none"


def test_members_of_one_rank_do_not_exchange_their_slots(world: NewWorld) -> None:
    made = started(world, racks(a=2, b=2), {TOPOLOGY_SLICE: "rack=4"}, 8)
    made.create(*PAIR)
    made.filter(PAIR[0])
    slots = made.plugin.manager.slots
    of = {each.name: slots.get(each.uid) for each in PAIR}
    assert {each.kind for each in of.values() if each is not None} == {("", "uid-left"), ("", "uid-right")}
    of_right = of["right-1"]
    assert of_right is not None
    with made.plugin.manager.lock:
        gang = made.plugin.manager.groups["default/g"]
        late = replace(PAIR[2], metadata=replace(PAIR[2].metadata, name="late", uid="late"))
        assert not made.plugin.manager.places.may_take(gang, of_right, PodInfo(late)), "of left, though of that rank"
    assert made.filter(PAIR[2], offered=["b0", "b1"])[0] == "b", "all of its slice has moved with it"
    racks_of = {(each.kind, each.node_name[0]) for each in slots if each.kind is not None}
    assert racks_of == {(("", "uid-left"), "b"), (("", "uid-right"), "a")}


def test_a_gang_without_slices_has_its_ranks_in_order_too(world: NewWorld) -> None:
    made = started(world, racks(a=1, b=1), {})
    assert ask(made, *map(member, (3, 1, 0, 2))) == "baab"


def test_slices_are_spread_evenly(world: NewWorld) -> None:
    for spread, expected in ((None, "aaaabb"), ("balanced", "aaaabb"), ("packed", "aaaabb")):
        annotations: dict[str, str] = {TOPOLOGY_SLICE: "rack=2"}
        if spread:
            annotations[TOPOLOGY_SPREAD] = spread
        assert ask(started(world, racks(a=2, b=1), annotations, 6), *map(member, range(6))) == expected
    annotations = {TOPOLOGY_SLICE: "rack=1"}
    assert ask(started(world, racks(a=2, b=2), annotations, 6), *map(member, range(6))) == "aaaabb"
    annotations[TOPOLOGY_SPREAD] = "balanced"
    assert ask(started(world, racks(a=2, b=2), annotations, 6), *map(member, range(6))) == "aaabbb"


def test_what_has_no_room_names_the_slice_and_the_racks(world: NewWorld) -> None:
    made = started(world, racks(a=1, b=0, c=0, d=0), {TOPOLOGY_SLICE: "rack=2"})
    reason = "minMember of 4 does not fit: no single rack takes a slice of 2: Insufficient cpu"
    assert ask(made, *map(member, range(4))) == f"pod with pgName: default/g last failed in 3s, deny: {reason}"
    status = made.plugin.report.status("default/g")
    assert status is not None
    assert status.shortfall is not None
    assert status.gang.reason == UnschedulableReason.INSUFFICIENT_RESOURCES
    assert status.shortfall.slices == "slice 1 (ranks 2 to 3) finds no rack; racks have room for 1 of 2 slices of 2"
    assert [(each.name, each.holds) for each in status.shortfall.domains] == [("x/a", 2)]
    page = "\n".join(explain_text.page(status, datetime.now(UTC)))
    assert status.shortfall.slices in page
    assert "2 more nodes with cpu 1 in rack x/a, like a0" in page


def test_what_would_fit_without_slices_is_said(world: NewWorld) -> None:
    made = started(world, [node(f"{rack}0", 1) for rack in "abcd"], {TOPOLOGY_SLICE: "rack=2"})
    ask(made, *map(member, range(4)))
    status = made.plugin.report.status("default/g")
    assert status is not None
    assert status.gang.reason == UnschedulableReason.TOPOLOGY_UNSATISFIABLE
    assert "its members in any rack, without slices" in [each.text for each in status.relaxations]


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        pytest.param({TOPOLOGY_SLICE: "rak=2"}, 'topology level "rak" is not configured', id="no such level"),
        pytest.param({TOPOLOGY_SLICE: "rack=0"}, "must be level=members, such as rack=8, or a level", id="no members"),
        pytest.param({TOPOLOGY_SLICE: "block=3,rack=2"}, "must be a multiple of those of rack", id="no multiple"),
        pytest.param(
            {TOPOLOGY_SLICE: "rack=4,block=2"}, 'level "block" is not inside of "rack"', id="the other way about"
        ),
        pytest.param({TOPOLOGY_SLICE: "rack=2", TOPOLOGY_SPREAD: "even"}, '"packed", "balanced"', id="no such spread"),
        pytest.param({KUEUE_SLICE: "rack", KUEUE_SLICE_SIZE: "x"}, "must be a number", id="Kueue's size"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_name(world: NewWorld, annotations: dict[str, str], message: str) -> None:
    assert message in ask(started(world, racks(a=4), annotations), *map(member, range(4)))


def test_what_a_pod_says_is_of_those_that_say_the_same(world: NewWorld) -> None:
    """Two podsets of one gang, as Kueue's annotations on pod templates have them: each has a level of its own."""
    made = started(world, racks(a=2, b=1, c=1), {})
    rack: dict[str, str] = {KUEUE_REQUIRED: "example.com/rack"}
    block: dict[str, str] = {TOPOLOGY_SLICE: "block"}
    together, near = [member(i, {}, rack) for i in range(4)], [member(i, {}, block) for i in (4, 5)]
    found = ask(made, *together, *near)
    assert found[:4] == "aaaa"
    assert len({BLOCK_OF[name] for name in found[4:]}) == 1


def test_roles_are_in_slices_of_their_own(world: NewWorld) -> None:
    made = started(world, racks(a=1, b=1), {TOPOLOGY_SLICE: "rack=2", ROLES: "one=2,other=2"})
    role = "gang-extender.dev/role"
    members = [member(i, {INDICES[0]: str(i // 2), role: ("one", "other")[i % 2]}) for i in range(4)]
    assert ask(made, *members) in ("abab", "baba")


@pytest.mark.parametrize("labels", [None, {}], ids=["by rank", "without ranks"])
def test_where_no_level_is_configured_that_is_said(world: NewWorld, labels: dict[str, str] | None) -> None:
    made = started(world, racks(a=4), {TOPOLOGY_SLICE: "rack=2"})
    made.connect(topology=planner.Topology(()))
    told = ask(made, *(member(number, labels) for number in range(4)))
    assert told.endswith(
        'minMember of 4 does not fit: topology level "rack" is not configured: the key `topology` has no levels'
    )


def test_a_slice_may_be_as_large_as_a_number_can_be(world: NewWorld) -> None:
    """Nothing is counted out."""
    made = started(world, racks(a=1, b=2), {TOPOLOGY_SLICE: f"rack={MAX_MEMBERS}"})
    assert ask(made, *map(member, range(4))) == "bbbb"
    manager, slot = made.plugin.manager, made.plugin.manager.slots.get("m1")
    assert slot is not None
    assert manager.places.may_take(manager.groups["default/g"], slot, PodInfo(member(MAX_MEMBERS - 1)))
    assert not manager.places.may_take(manager.groups["default/g"], slot, PodInfo(member(MAX_MEMBERS)))


# After the start


def running(made: World, node_name: str, each: corev1.Pod) -> None:
    there = replace(each, spec=replace(each.spec, node_name=node_name))
    made.on_nodes[there.name] = there
    made.create(there)


@pytest.mark.parametrize(
    ("places", "number", "expected"),
    [
        pytest.param({0: "a0", 2: "b0", 3: "b1"}, 1, "a", id="beside the rest of its slice"),
        pytest.param({0: "a0", 1: "a0", 3: "b0"}, 2, "b", id="though another rack has more members"),
    ],
)
def test_a_replaced_member_goes_back_to_the_rack_of_its_slice(
    world: NewWorld, places: dict[int, str], number: int, expected: str
) -> None:
    made = started(world, racks(a=4, b=4, c=1), {TOPOLOGY_SLICE: "rack=2"})
    for rank, node_name in places.items():
        running(made, node_name, member(rank))
    assert ask(made, member(number)) == expected


def test_where_that_rack_is_full_it_waits(world: NewWorld) -> None:
    made = started(world, racks(a=4, b=1, c=4), {TOPOLOGY_SLICE: "rack=2"})
    for rank, node_name in {0: "a0", 1: "a0", 3: "b0"}.items():
        running(made, node_name, member(rank))
    made.on_nodes["other"] = pod("other", node_name="b1")
    told = ask(made, member(2))
    assert told.endswith("the rack that a slice of 2 is in has no room for the rest of it: Insufficient cpu")


@pytest.mark.parametrize(
    ("ranked", "number", "allowed"),
    [
        pytest.param(True, 5, {"b0", "b1"}, id="the rack of its slice"),
        pytest.param(True, 8, {"a0", "a1", "b0", "b1", "c0", "c1"}, id="the first of a slice: any"),
        pytest.param(False, 5, {"b0", "b1"}, id="without ranks: where a slice is not full"),
    ],
)
def test_a_member_beyond_min_member_goes_where_its_slice_is(
    world: NewWorld, ranked: bool, number: int, allowed: set[str]
) -> None:
    made = started(world, racks(a=4, b=4, c=4), {TOPOLOGY_SLICE: "rack=2"})
    for rank, node_name in {0: "a0", 1: "a1", 2: "a0", 3: "a1", 4: "b0"}.items():
        running(made, node_name, member(rank, None if ranked else {}))
    extra = member(number, None if ranked else {})
    made.create(extra)
    found, _ = made.plugin.pre_filter(CycleState(), extra, made.snapshot().list())
    assert (found.node_names if found is not None else made.nodes.keys()) == allowed


def test_a_member_takes_no_slot_of_another_slice(world: NewWorld) -> None:
    """kube-scheduler offers it the nodes of the other rack alone: the slices are planned anew, and have changed their racks."""
    made = started(world, racks(a=1, b=1), {TOPOLOGY_SLICE: "rack=2"})
    members = [member(rank) for rank in range(4)]
    made.create(*members)
    assert made.filter(members[0])[0] == "a"
    assert made.filter(members[1], offered=["b0", "b1"])[0] == "b"
    slots = {slot.uid: slot for slot in made.plugin.manager.slots.of_group("default/g")}
    assert [slots[f"m{rank}"].node_name[0] for rank in range(4)] == ["b", "b", "a", "a"]
    assert [slots[f"m{rank}"].ranks for rank in range(4)] == [range(2), range(2), range(2, 4), range(2, 4)]


def test_a_member_without_a_slot_takes_none_of_another_slice(world: NewWorld) -> None:
    """A member that replaces the one of rank 1 takes its free slot; one of rank 3 finds no slot of its slice."""
    made = started(world, racks(a=1, b=1), {TOPOLOGY_SLICE: "rack=2"})
    made.create(*(member(rank) for rank in range(4)))
    made.filter(member(0))
    manager = made.plugin.manager
    group = manager.groups["default/g"]
    slot = manager.slots.get("m1")
    assert slot is not None
    for rank, may in ((0, True), (1, True), (2, False), (3, False)):
        assert manager.places.may_take(group, slot, PodInfo(member(rank))) is may, rank
    assert not manager.places.may_take(group, slot, PodInfo(member(1, {}))), "without a rank"


def test_a_node_that_comes_into_another_rack_may_help(world: NewWorld) -> None:
    made = started(world, [node("a0", 1), node("b0", 1)], {TOPOLOGY_SLICE: "rack=2"}, minimum=2)
    assert "no single rack takes a slice of 2" in ask(made, member(0), member(1))
    old = made.nodes["b0"]
    labels = {**old.metadata.labels, "example.com/rack": "a"}
    made.nodes["b0"] = new = replace(old, metadata=replace(old.metadata, labels=labels))
    made.plugin.on_node(old, new)
    made.run_tasks()
    assert made.plugin.manager.slots.uids_of("default/g") == {"m0", "m1"}


def test_groups_that_start_together_have_levels_of_their_own(world: NewWorld) -> None:
    """Each in one rack, which one rack would not hold."""
    made = started(world, racks(a=1, b=1), {TOPOLOGY_SLICE: "rack", GROUPS: "other"}, minimum=2)
    metadata = {"name": "other", "namespace": "default", "annotations": {TOPOLOGY_SLICE: "rack"}}
    made.plugin.on_pod_group(None, convert({"metadata": metadata, "spec": {"minMember": 2}}, PodGroup))
    others = [pod(f"o{number}", "other") for number in range(2)]
    found = ask(made, member(0), member(1), *others)
    assert found in ("aabb", "bbaa")


def test_of_groups_that_start_together_the_one_that_finds_no_rack_is_named(world: NewWorld) -> None:
    made = started(world, racks(a=1), {TOPOLOGY_SLICE: "rack", GROUPS: "other"}, minimum=2)
    metadata = {"name": "other", "namespace": "default", "annotations": {TOPOLOGY_SLICE: "rack=2"}}
    made.plugin.on_pod_group(None, convert({"metadata": metadata, "spec": {"minMember": 2}}, PodGroup))
    others = [pod(f"o{number}", "other") for number in range(2)]
    assert "no single rack takes" in ask(made, member(0), member(1), *others)
