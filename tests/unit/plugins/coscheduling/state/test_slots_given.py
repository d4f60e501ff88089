"""A slot that is given to another member than it was for, and what that one leaves of the room for members to come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.state.slots import Slot, Slots, holds, is_for_shape_of
from tests.objects import make_pod

G = "default/g"
GPU = "example.com/gpu"


def info(name: str, labels: Mapping[str, str] | None = None, **requests: Any) -> PodInfo:
    asked = {key.replace("_", "-"): amount for key, amount in requests.items()}
    gpus = {GPU: asked.pop("gpu")} if "gpu" in asked else {}
    return make_pod().name(name).uid(name).labels(labels or {}).req({**asked, **gpus}).info()


def slot(made: PodInfo, node_name: str = "n1", **more: Any) -> Slot:
    return Slot(made, G, node_name, more.pop("expires", 100.0), **more)


def kept(slots: Slots, uid: str) -> Slot:
    found = slots.get(uid)
    assert found is not None
    return found


def test_two_members_change_places_and_what_goes_with_each_goes_with_it() -> None:
    slots = Slots()
    slots.reserve(slot(info("a"), "n1", expires=10.0, firm=True, wave=1))
    slots.reserve(slot(info("b"), "n2", expires=20.0, wave=2))
    numbers = kept(slots, "a").id, kept(slots, "b").id
    slots.given_up()
    slots.give(kept(slots, "a"), info("b"))
    a, b = kept(slots, "a"), kept(slots, "b")
    assert (b.node_name, b.expires, b.firm, b.wave, b.id) == ("n1", 20.0, False, 1, numbers[0])
    assert (a.node_name, a.expires, a.firm, a.wave, a.id) == ("n2", 10.0, True, 2, numbers[1])
    assert len(slots) == 2
    assert not slots.given_up(), "no room has come free"


def test_a_member_without_a_slot_has_the_other_s_whole() -> None:
    slots = Slots()
    slots.reserve(slot(info("a", cpu="2"), firm=True, wave=3))
    before = kept(slots, "a")
    slots.give(before, info("b", cpu="1"))
    found = kept(slots, "b")
    assert (found.node_name, found.firm, found.wave, found.id) == ("n1", True, 3, before.id)
    assert found.pod_info.requests.milli_cpu == 1000, "what is counted is the member itself"
    assert (len(slots), slots.given_up()) == (1, False)


def test_one_to_come_gets_the_slot_of_the_member_that_takes_its_own() -> None:
    slots = Slots()
    slots.reserve(slot(info("like"), "n1", to_come=True))
    slots.reserve(slot(info("b"), "n2"))
    slots.give(kept(slots, "like"), info("b"))
    assert (kept(slots, "b").node_name, kept(slots, "b").to_come) == ("n1", False)
    assert (kept(slots, "like").node_name, [each.uid for each in slots.to_come(G)]) == ("n2", ["like"])


@pytest.mark.parametrize(
    ("room", "comes", "left"),
    [
        pytest.param({"cpu": "4"}, {"cpu": "1"}, {"milli_cpu": 3000}, id="room for three more like it"),
        pytest.param({"cpu": "2"}, {"cpu": "1"}, {"milli_cpu": 1000}, id="room for exactly one more"),
        pytest.param({"cpu": "3"}, {"cpu": "2"}, None, id="too little for another like it"),
        pytest.param({"cpu": "1"}, {"cpu": "1"}, None, id="nothing"),
        pytest.param({"cpu": "4"}, {}, {"milli_cpu": 4000}, id="all, by a member that asks for nothing"),
        pytest.param({}, {}, None, id="nothing, of room for nothing"),
        pytest.param(
            {"cpu": "4", "memory": "4Gi"},
            {"cpu": "1", "memory": "1Gi"},
            {"milli_cpu": 3000, "memory": 3 * 2**30},
            id="cpu and memory",
        ),
        pytest.param({"cpu": "4", "memory": "4Gi"}, {"cpu": "1", "memory": "3Gi"}, None, id="too little memory"),
        pytest.param(
            {"cpu": "4"}, {"cpu": "1", "memory": "3Gi"}, {"milli_cpu": 3000}, id="memory that the room does not count"
        ),
        pytest.param(
            {"cpu": "4", "gpu": 2}, {"cpu": "1", "gpu": 1}, {"milli_cpu": 3000, "gpu": 1}, id="cpu and a device"
        ),
        pytest.param({"cpu": "4", "gpu": 3}, {"cpu": "1", "gpu": 2}, None, id="too few devices"),
    ],
)
def test_what_a_member_leaves_of_the_room_is_kept_for_the_next(
    room: dict[str, Any], comes: dict[str, Any], left: dict[str, int] | None
) -> None:
    slots = Slots()
    slots.reserve(slot(info("like", {"a": "b"}, **room), to_come=True, wave=2))
    before = kept(slots, "like")
    slots.give(before, info("p", **comes))
    found = kept(slots, "p")
    assert (found.to_come, found.id) == (False, before.id)
    if left is None:
        assert (len(slots), list(slots.to_come(G))) == (1, [])
        return
    [rest] = slots.to_come(G)
    asked = rest.pod_info.requests
    amounts = {"milli_cpu": asked.milli_cpu, "memory": asked.memory, "gpu": asked.amount(GPU)}
    assert {name: amount for name, amount in amounts.items() if amount} == left
    assert (rest.node_name, rest.expires, rest.wave, rest.pod.labels) == ("n1", 100.0, 2, {"a": "b"})
    assert rest.uid not in ("like", "p"), "no pod has its UID"
    assert rest.id not in (0, before.id), "it is another slot"


def test_rests_of_rests_have_uids_of_their_own() -> None:
    slots = Slots()
    slots.reserve(slot(info("like", cpu="4"), to_come=True))
    seen = {"like"}
    for name in "pqr":
        [room] = slots.to_come(G)
        slots.give(room, info(name, cpu="1"))
        seen |= {each.uid for each in slots}
    assert len(seen) == 7, "four pieces of room, and three members"


def test_what_a_member_of_its_slot_leaves_is_not_kept_where_no_other_is_to_come() -> None:
    slots = Slots()
    slots.reserve(slot(info("a", cpu="4")))
    slots.give(kept(slots, "a"), info("b", cpu="1"))
    assert [each.uid for each in slots] == ["b"]


ROOM = {"cpu": "2", "memory": "2Gi", "ephemeral_storage": "2Gi"}


@pytest.mark.parametrize(
    ("room", "member", "whole", "in_part"),
    [
        pytest.param(ROOM, ROOM, True, True, id="as large"),
        pytest.param(ROOM, {"cpu": "1"}, True, True, id="smaller"),
        pytest.param(ROOM, {}, True, True, id="asks for nothing"),
        pytest.param(ROOM, {"cpu": "2001m"}, False, False, id="too much cpu"),
        pytest.param(ROOM, {"memory": "3Gi"}, False, False, id="too much memory"),
        pytest.param(ROOM, {"ephemeral_storage": "3Gi"}, False, False, id="too much storage"),
        pytest.param({"cpu": "2"}, {"cpu": "1", "memory": "1Gi"}, False, True, id="memory of which it says nothing"),
        pytest.param({"cpu": "2"}, {"cpu": "1", "gpu": 1}, False, False, id="a device of which it says nothing"),
        pytest.param({"cpu": "2", "gpu": 1}, {"cpu": "1", "gpu": 1}, True, True, id="with a device"),
        pytest.param({"cpu": "2", "gpu": 1}, {"cpu": "1", "gpu": 2}, False, False, id="with two"),
        pytest.param({}, {}, True, False, id="room for nothing is no part of any room"),
        pytest.param({"gpu": 1}, {"cpu": "1"}, False, False, id="room of which it counts nothing"),
    ],
)
def test_for_which_member_room_of_unknown_shape_is_enough(
    room: dict[str, Any], member: dict[str, Any], whole: bool, in_part: bool
) -> None:
    of = slot(info("like", **room), to_come=True)
    assert holds(of, info("p", **member)) is whole
    assert holds(of, info("p", **member), in_part=True) is in_part


def test_a_member_of_another_shape_is_not_what_a_slot_was_planned_for() -> None:
    of = slot(info("a", cpu="1"))
    assert is_for_shape_of(of, info("b", {"other": "label"}, cpu="1"))
    assert not is_for_shape_of(of, info("b", cpu="2"))
