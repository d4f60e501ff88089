"""Room for members that are still to be made: found with the members' places or not at all, in as few pieces as fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from extender.framework.hypothetical import with_pods
from extender.framework.resource import Resource
from extender.plugins.coscheduling.planner import Cause, Foreseen, NoPlacement, Placement, Request
from extender.plugins.coscheduling.planner.foreseen import (
    MOST_PIECES,
    NATIVE,
    NUMBERS_OF_PIECES,
    asking_for,
    plan_foreseen,
)
from extender.plugins.coscheduling.planner.room import Room
from tests.objects import make_pod
from tests.unit.plugins.coscheduling.planning import gang, member, node, plan


def room_of(*cpus: int) -> Room:
    """What nodes of so many CPUs have left."""
    nodes = [node(f"n{number}", cpu=cpu).info() for number, cpu in enumerate(cpus)]
    return Room.of(with_pods(nodes, ()), NATIVE)


LIKE = make_pod().name("later").uid("later").info()


def room(cpu: int, pieces: int = 0, **scalar: int) -> Foreseen:
    return Foreseen(LIKE, Resource(milli_cpu=cpu * 1000, scalar={f"a/{name}": n for name, n in scalar.items()}), pieces)


def found(cpus: Sequence[int], members: int, needed: int, foreseen: Foreseen) -> Placement | NoPlacement:
    """On nodes of so many CPUs; each member asks for one."""
    nodes = [node(f"n{number}", cpu=cpu).info() for number, cpu in enumerate(cpus)]
    answer = plan(nodes, gang(members, member()), needed, foreseen=foreseen)
    assert isinstance(answer, Placement | NoPlacement)
    return answer


def placed(cpus: Sequence[int], members: int, needed: int, foreseen: Foreseen) -> Placement:
    answer = found(cpus, members, needed, foreseen)
    assert isinstance(answer, Placement)
    return answer


def refused(cpus: Sequence[int], members: int, needed: int, foreseen: Foreseen) -> NoPlacement:
    answer = found(cpus, members, needed, foreseen)
    assert isinstance(answer, NoPlacement)
    return answer


def nodes_of(result: Placement) -> list[str]:
    return sorted(name for name, _ in result.kept)


def test_members_and_the_room_for_others_are_found_together() -> None:
    result = placed([2, 2], 2, 2, room(2, 2))
    assert len(result.nodes) == 2
    assert len(result.kept) == 2
    assert {info.requests.milli_cpu for _, info in result.kept} == {1000}
    assert all(uids <= result.nodes.keys() for uids in result.waves)


def test_without_room_for_the_others_no_member_has_a_place() -> None:
    verdict = refused([2, 1], 2, 2, room(2, 2))
    assert (verdict.cause, verdict.resource) == (Cause.ROOM, "cpu")


def test_where_the_number_is_not_known_the_fewest_pieces_that_fit_are_kept() -> None:
    nodes = [3, 3, 3, 3]
    assert len(placed(nodes, 1, 1, room(2)).kept) == 1
    assert len(placed(nodes, 1, 1, room(6)).kept) == 2
    assert len(placed(nodes, 1, 1, room(10)).kept) > 4
    assert refused(nodes, 1, 1, room(12)).cause is Cause.ROOM


def test_the_room_is_kept_though_more_members_would_fit_than_have_to() -> None:
    result = placed([3], 3, 1, room(2, 2))
    assert (len(result.nodes), len(result.kept)) == (1, 2)


def test_a_request_of_room_alone() -> None:
    result = placed([3], 0, 0, room(3, 3))
    assert nodes_of(result) == ["n0"] * 3


@pytest.mark.parametrize(("pieces", "numbers"), [(2_000_000_000, [MOST_PIECES]), (0, [NUMBERS_OF_PIECES[-1]])])
def test_what_is_asked_for_without_measure_costs_no_more(pieces: int, numbers: list[int]) -> None:
    asked: list[int] = []

    def no_room(request: Request) -> NoPlacement:
        asked.append(len(request.members))
        return NoPlacement("Insufficient cpu", 0, request.needed, Cause.ROOM)

    plan_foreseen(Request((), 0), replace(room(10**27), pieces=pieces), no_room, room_of(0))
    assert asked == numbers


def test_no_smaller_pieces_are_tried_where_room_is_not_what_is_missing() -> None:
    asked: list[int] = []

    def no_node(request: Request) -> NoPlacement:
        asked.append(len(request.members))
        return NoPlacement("node(s) had taints", 0, request.needed, Cause.NODES)

    plan_foreseen(Request((), 0), room(8), no_node, room_of(8))
    assert asked == [1]


def test_only_numbers_of_pieces_are_tried_for_which_there_may_be_room() -> None:
    asked: list[int] = []

    def no_room(request: Request) -> NoPlacement:
        asked.append(len(request.members))
        return NoPlacement("Insufficient cpu", 0, request.needed, Cause.ROOM)

    plan_foreseen(Request((), 0), room(11), no_room, room_of(3, 3, 3, 3))
    assert asked == [4, 8, 16, 32, 64], "each of four nodes takes none of 11 or 5.5 CPUs"


def test_a_piece_tolerates_what_is_named_after_what_it_asks_for() -> None:
    like = member().name("a").toleration("mine", operator="Exists").obj()
    made = asking_for(like, "uid", {"cpu": 1500, "memory": 0, "nvidia.com/gpu": 2})
    assert (made.requests.milli_cpu, made.requests.memory, made.requests.scalar) == (1500, 0, {"nvidia.com/gpu": 2})
    assert [each.key for each in made.pod.spec.tolerations] == ["mine", "nvidia.com/gpu"]
    assert made.pod.uid == "uid"
