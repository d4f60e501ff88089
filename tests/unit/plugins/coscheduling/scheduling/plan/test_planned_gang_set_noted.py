"""What is noted of a plan: whose place is where, until when, in which wave, and what the gang set waits for from then on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.scheduling.plan.planned_gang_set import PlannedGangSet, is_there, note_places
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.waits_for import ANYTHING, OWN_EVENTS
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node
from tests.unit.plugins.coscheduling.scheduling.test_tree_request import Trees, composite, part, trees
from tests.unit.plugins.coscheduling.starting import cut_short

__all__ = ["trees"]
NAME = member("x").spec.scheduler_name
Waves = Sequence[frozenset[str]]


class Planned(KubeScheduler):
    @property
    def group(self) -> Group:
        return self.plugin.manager.groups["default/g"]

    def request(self, key: str = "default/g") -> planner.Request:
        manager = self.plugin.manager
        with manager.lock:
            gang_set = gang_set_of(manager, manager.groups[key])
            return self.plugin.rounds.requests.question(gang_set, NAME, self.world.snapshot()).request

    def note(
        self,
        nodes: Mapping[str, str],
        waves: Sequence[Sequence[str]] = (),
        request: planner.Request | None = None,
        kept: Sequence[tuple[str, PodInfo]] = (),
        *,
        gathers: bool = False,
    ) -> None:
        """nodes and waves: by the names of members."""
        manager, asked = self.plugin.manager, request or self.request()
        placement = planner.Placement({_uid(name): where for name, where in nodes.items()}, kept=tuple(kept))
        with manager.lock:
            gang_set = gang_set_of(manager, self.group)
            of_names = [frozenset(map(_uid, wave)) for wave in waves]
            note_places(manager, gang_set, asked, placement, of_names, 500.0, gathers=gathers)

    def places(self) -> dict[str, str]:
        return {slot.pod.name: slot.node_name for slot in self.plugin.manager.slots if not slot.to_come}

    def waves(self) -> dict[str, int]:
        return {slot.pod.name: slot.wave for slot in self.plugin.manager.slots}


def _uid(name: str) -> str:
    return f"default/{name}"


@pytest.fixture
def kube(world: Callable[..., World]) -> Planned:
    made = Planned(world([node("n1", "8"), node("n2", "8")]))
    made.apply(group())
    made.create(*members(2, gated=True))
    return made


def test_each_member_has_its_place_until_the_time_that_is_said(kube: Planned) -> None:
    kube.note({"g0": "n1", "g1": "n2"})
    assert kube.places() == {"g0": "n1", "g1": "n2"}
    slots = list(kube.plugin.manager.slots)
    assert {(slot.group, slot.expires, slot.firm, slot.gang_priority) for slot in slots} == {
        ("default/g", 500.0, False, 0)
    }
    assert {(slot.ranks, slot.kind, slot.wave) for slot in slots} == {(None, None, 0)}
    assert kube.group.planned


def test_a_member_that_has_gone_meanwhile_and_one_that_runs_by_now_have_none(kube: Planned) -> None:
    kube.create(member("g2", gated=True), member("g3", gated=True))
    request = kube.request()
    kube.delete(kube.pods["default/g0"])
    kube.plugin.on_pod(kube.pods["default/g1"], on_node(kube.pods["default/g1"], "n2"))
    kube.note({"g0": "n1", "g1": "n1", "g2": "n2"}, request=request)
    assert kube.places() == {"g2": "n2"}, "nor has one that the plan has no node for"


def test_a_refusal_is_over_once_there_are_places(kube: Planned) -> None:
    manager = kube.plugin.manager
    manager.denied["default/g"] = "no room"
    kube.group.members["default/g0"].renominated = True
    kube.note({"g0": "n1", "g1": "n2"})
    assert manager.denied.get("default/g") is None
    assert not kube.group.members["default/g0"].renominated


@pytest.mark.parametrize(
    ("gated", "anything"),
    [
        pytest.param(True, True, id="one that has no place: anything may help it"),
        pytest.param(False, False, id="none without a place: its own events alone count"),
    ],
)
def test_what_a_gang_with_places_waits_for_where_it_has(gated: bool, anything: bool, kube: Planned) -> None:
    if gated:
        kube.create(member("g2", gated=True))
    with kube.plugin.manager.lock:
        kube.plugin.manager.queue.begin_planning("default/g")
    kube.note({"g0": "n1", "g1": "n2"})
    expected = ANYTHING if anything else OWN_EVENTS
    assert kube.plugin.manager.queue.unschedulable["default/g"].waits_for is expected


def test_what_finishes_a_start_is_firm_and_nothing_else(kube: Planned) -> None:
    kube.delete(kube.pods["default/g0"])
    kube.create(on_node(member("r0"), "n1"))
    cut_short(kube.plugin.manager, "default/g")
    kube.create(member("g2", gated=True))
    kube.note({"g1": "n1", "g2": "n2"})
    assert {slot.pod.name: slot.firm for slot in kube.plugin.manager.slots} == {"g1": True, "g2": False}


@pytest.mark.parametrize(
    ("gathers", "until"), [(True, 500.0), (False, 700.0)], ids=["is being made", "comes in phases"]
)
def test_room_for_members_to_come_is_kept_where_the_gang(gathers: bool, until: float, kube: Planned) -> None:
    manager = kube.plugin.manager
    manager.to_come_seconds = 600.0
    likeness = PodInfo(member("likeness", ""))
    kube.note({"g0": "n1", "g1": "n2"}, kept=[("n2", likeness)], gathers=gathers)
    kept = manager.slots.to_come("default/g")
    assert [(slot.node_name, slot.pod.name, slot.expires) for slot in kept] == [("n2", "likeness", until)]


def test_without_room_for_members_to_come_none_is_kept(kube: Planned) -> None:
    kube.note({"g0": "n1", "g1": "n2"})
    assert list(kube.plugin.manager.slots.to_come("default/g")) == []


@pytest.mark.parametrize(
    ("sliced", "found"),
    [
        pytest.param(
            planner.Sliced(
                frozenset(("default/g0",)), (("rack", 2),), {"default/g0": 3, "default/g1": 4}, kind=("worker", "")
            ),
            (range(2, 4), ("worker", "")),
            id="a slice: its ranks and its kind",
        ),
        pytest.param(
            planner.Sliced(frozenset(("default/g0",)), (), {"default/g0": 3}, kind=("worker", "")),
            (None, None),
            id="an order alone: neither",
        ),
    ],
)
def test_the_place_of_a_member_is_for(
    sliced: planner.Sliced, found: tuple[range | None, object], kube: Planned
) -> None:
    kube.note({"g0": "n1", "g1": "n2"}, request=replace(kube.request(), sliced=[sliced]))
    known = {slot.pod.name: (slot.ranks, slot.kind) for slot in kube.plugin.manager.slots}
    assert known == {"g0": found, "g1": (None, None)}


# Waves


@pytest.fixture
def four(kube: Planned) -> Planned:
    """Three of four have places, each in a wave of its own."""
    kube.apply(group(minimum=3))
    kube.create(member("g2", gated=True), member("g3", gated=True))
    kube.note({"g0": "n1", "g1": "n1", "g2": "n2"}, [["g0"], ["g1"], ["g2"]])
    return kube


def _loses(kube: Planned, *names: str) -> None:
    with kube.plugin.manager.lock:
        kube.plugin.manager.places.release(kube.group, map(_uid, names))


def test_members_come_in_the_waves_of_the_plan(four: Planned) -> None:
    assert four.waves() == {"g0": 0, "g1": 1, "g2": 2}


def test_the_waves_of_a_later_plan_come_before_those_that_there_are(four: Planned) -> None:
    _loses(four, "g0")
    four.note({"g0": "n1", "g3": "n2"}, [["g0"], ["g3"]])
    assert four.waves() == {"g0": -1, "g3": 0, "g1": 1, "g2": 2}


def test_a_member_that_is_planned_again_alone_keeps_its_turn_and_one_that_had_none_comes_last(four: Planned) -> None:
    _loses(four, "g1")
    assert four.group.members["default/g1"].turn == 1
    four.note({"g1": "n1", "g3": "n2"})
    assert four.waves() == {"g0": 0, "g1": 1, "g2": 2, "g3": 3}
    assert four.group.members["default/g1"].turn is None, "it has its place"


def test_a_gang_without_waves_is_planned_without(kube: Planned) -> None:
    kube.create(member("g2", gated=True))
    kube.note({"g0": "n1", "g1": "n1"})
    kube.note({"g2": "n2"})
    assert kube.waves() == {"g0": 0, "g1": 0, "g2": 0}


def test_a_gang_that_was_planned_without_waves_has_them_from_its_later_plan(kube: Planned) -> None:
    kube.create(member("g2", gated=True))
    kube.note({"g0": "n1"})
    kube.note({"g1": "n1", "g2": "n2"}, [["g1"], ["g2"]])
    assert kube.waves() == {"g0": 0, "g1": 0, "g2": 1}


# Whether a plan still holds


def test_a_group_that_was_made_anew_or_is_set_aside_is_not_the_one_that_was_planned(kube: Planned) -> None:
    manager = kube.plugin.manager
    assert is_there(manager, kube.group)
    assert not is_there(manager, Group("default/g"))
    manager.quarantine.set_aside("default/g")
    assert not is_there(manager, kube.group)


def _none(kube: Planned) -> None:
    """Nothing happens."""


def _set_aside(kube: Planned) -> None:
    kube.plugin.manager.quarantine.set_aside("default/b")


def _without_object(kube: Planned) -> None:
    kube.remove(kube.groups["default/b"])


def _asks_for_nonsense(kube: Planned) -> None:
    kube.apply(group("b", 0))


@pytest.mark.parametrize(
    ("happened", "same"),
    [
        pytest.param(_none, True, id="both are as they were"),
        pytest.param(_set_aside, False, id="the other is set aside"),
        pytest.param(_without_object, False, id="the other has no object any more"),
        pytest.param(_asks_for_nonsense, False, id="the other asks for nonsense"),
    ],
)
def test_a_plan_of_two_groups_is_for_the_same_where(
    happened: Callable[[Planned], None], same: bool, kube: Planned
) -> None:
    kube.apply(group(groups="b"), group("b", 2))
    kube.create(*members(2, "b", gated=True))
    manager = kube.plugin.manager
    with manager.lock:
        gang_set = gang_set_of(manager, kube.group)
        planned = PlannedGangSet.of(manager, gang_set)
    assert planned.keys == {"default/g", "default/b"}
    happened(kube)
    with manager.lock:
        assert planned.asks_for_the_same(manager) is same
        assert planned.may_start_with(manager, {_uid(name) for name in ("g0", "g1", "b0", "b1")}) is same


def test_a_plan_of_groups_that_asked_for_nonsense_holds_for_none(kube: Planned) -> None:
    kube.apply(group(minimum=0))
    manager = kube.plugin.manager
    with manager.lock:
        assert not PlannedGangSet.of(manager, (kube.group,)).asks_for_the_same(manager)
        assert not PlannedGangSet(frozenset(), ()).asks_for_the_same(manager)


def test_members_with_places_count_beside_those_of_the_plan(kube: Planned) -> None:
    manager = kube.plugin.manager
    kube.note({"g0": "n1"})
    with manager.lock:
        planned = PlannedGangSet.of(manager, (kube.group,))
        assert planned.may_start_with(manager, {"default/g1"})
        assert not planned.may_start_with(manager, {"default/gone"})
    kube.note({"g1": "n1"})


def test_of_a_plan_of_a_tree_the_chosen_groups_alone_have_to_be_enough(trees: Callable[[int], Trees]) -> None:
    kube = trees(8)
    kube.composite(composite("top", 1))
    kube.parts(part("a", "top"), part("b", "top"))
    kube.members("a")
    kube.members("b", count=1)
    manager = kube.plugin.manager
    uids = {"default/a-0", "default/a-1", "default/b-0"}
    with manager.lock:
        gang_set = gang_set_of(manager, manager.groups["default/a"])
        planned = PlannedGangSet.of(manager, gang_set)
        assert not planned.may_start_with(manager, uids)
        only = planned.only(gang_set[:1])
        assert (only.keys, [group.key for group, _ in only.groups]) == (planned.keys, ["default/a"])
        assert only.may_start_with(manager, uids)
