"""Free room: for one node and for all, what lacks where, and which of many refusals is told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from extender.framework.hypothetical import HypotheticalSnapshot
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins import names
from extender.plugins.coscheduling.planner import Cause, Request
from extender.plugins.coscheduling.planner.room import (
    Counting,
    Refusals,
    Room,
    asked_of,
    capacity_for,
    free,
)
from tests.objects import make_node, make_pod
from tests.unit.plugins.coscheduling.planning import existing, gang, member, node

NODES = [node("n1", cpu=4, pods=3).info(existing("r", "n1", cpu=1).obj()), node("n2", cpu=8).info()]
GPU = "example.com/gpu"


@pytest.mark.parametrize(
    ("name", "amount"),
    [
        pytest.param("cpu", 3000, id="milliCPU"),
        pytest.param("memory", 64 << 30, id="bytes"),
        pytest.param("pods", 2, id="pods"),
        pytest.param(GPU, 0, id="a resource that the node does not have"),
    ],
)
def test_what_is_free_on_a_node(name: str, amount: int) -> None:
    assert free(NODES[0], name) == amount


def test_one_node_and_all_nodes_say_the_same() -> None:
    requests = member(cpu=2).info().requests
    asked = asked_of(requests)
    room = Room.of(HypotheticalSnapshot(NODES), asked)
    assert room.capacity(asked).tolist() == [capacity_for(info, requests) for info in NODES] == [1, 4]
    assert [room.capacity_at(i, asked) for i in range(2)] == [1, 4]


def test_places_lessen_the_room_and_what_is_given_back_is_free_again() -> None:
    asked = {"cpu": 1000}
    room = Room.of(HypotheticalSnapshot(NODES), asked)
    kept = room.copy()
    room.take(0, asked, 2)
    assert room.capacity(asked).tolist() == [0, 8]
    assert room.short_of({"cpu": 2000}, np.array([True, True])) == {"pods": 1, "cpu": 1}
    room.give(np.array([0, 0]), {"cpu": np.array([1000, 1000]), "pods": np.array([1, 1])})
    assert room.capacity(asked).tolist() == kept.capacity(asked).tolist() == [2, 8]


def test_amounts_beyond_64_bits_count_as_very_much() -> None:
    huge = make_node().name("n").capacity({GPU: str(2**63)}, cpu=1, pods=9).info()
    asked = asked_of(make_pod().req({GPU: "1"}).info().requests)
    assert Room.of(HypotheticalSnapshot([huge]), asked).capacity(asked).tolist() == [9]


@pytest.mark.parametrize(
    ("resource", "needed", "sure"),
    [
        pytest.param("cpu", 11, False, id="eleven of a CPU each fit"),
        pytest.param("cpu", 12, False, id="fewer members than are needed: nothing is sure"),
        pytest.param(GPU, 11, False, id="no member asks for it"),
        pytest.param("", 11, False, id="nothing is known to be short"),
    ],
)
def test_what_counting_alone_cannot_rule_out(resource: str, needed: int, sure: bool) -> None:
    request = Request(gang(11, member()), needed)
    roomy = HypotheticalSnapshot([node("n1", cpu=4).info(), node("n2", cpu=7).info()])
    assert Counting().too_little(roomy, request, resource) is sure


def test_too_little_is_sure_where_even_all_nodes_together_hold_too_few_and_is_counted_once_a_snapshot() -> None:
    counting, request = Counting(), Request(gang(11, member()), 11)
    small = HypotheticalSnapshot([node("n1", cpu=4).info(), node("n2", cpu=6).info()])
    assert counting.too_little(small, request, "cpu")
    assert counting.too_little(HypotheticalSnapshot([node("n1", pods=10).info()]), request, "pods")
    assert not counting.too_little(HypotheticalSnapshot([node("n1", cpu=11).info()]), request, "cpu")


TAINT = unresolvable("node(s) had untolerated taint {gpu: true}", plugin=names.TAINT_TOLERATION)
SPREAD = unresolvable("node(s) didn't match pod topology spread constraints", plugin=names.POD_TOPOLOGY_SPREAD)
FULL = unresolvable("Insufficient cpu", plugin=names.NODE_RESOURCES_FIT)


@pytest.mark.parametrize(
    ("statuses", "short", "reason", "cause"),
    [
        pytest.param([], {}, "no node takes it", Cause.NODES, id="no node at all"),
        pytest.param([TAINT, TAINT, SPREAD], {}, TAINT.reasons[0], Cause.NODES, id="the most frequent reason"),
        pytest.param([SPREAD], {}, SPREAD.reasons[0], Cause.AFFINITY, id="a spread is affinity"),
        pytest.param([TAINT] * 9, {"cpu": 1}, "Insufficient cpu", Cause.ROOM, id="room comes before all others"),
        pytest.param(
            [], {"memory": 2, "cpu": 2}, "Insufficient cpu", Cause.ROOM, id="of equals the first in the alphabet"
        ),
        pytest.param([], {"pods": 3, "cpu": 2}, "Too many pods", Cause.ROOM, id="in NodeResourcesFit's words"),
        pytest.param([FULL], {}, "no node takes it", Cause.NODES, id="of room only what is left afterwards counts"),
        pytest.param(
            [SUCCESS] * 3 + [TAINT], {}, TAINT.reasons[0], Cause.NODES, id="nodes that take it refuse nothing"
        ),
    ],
)
def test_which_refusal_is_told(statuses: Sequence[Status], short: Mapping[str, int], reason: str, cause: Cause) -> None:
    refusals = Refusals()
    refusals.count(Counter(statuses))
    refusals.short(short)
    assert (refusals.reason, refusals.cause) == (reason, cause)
