"""Which members are one slice: by rank, or beside those that have a place already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from extender.framework.hypothetical import HypotheticalSnapshot
from extender.plugins.coscheduling.planner import Request, Sliced
from extender.plugins.coscheduling.planner.domains import Scope
from extender.plugins.coscheduling.planner.slicing.parts import CHOICES, Part, choices_of
from tests.unit.plugins.coscheduling.planning import gang, member, node, topology

NODES = [
    node(f"{rack}{i}", zone=zone, rack=rack).info()
    for rack, zone in (("a", "x"), ("b", "x"), ("c", "y"))
    for i in range(2)
]
RACKS = (("rack", 2),)
NESTED = (("zone", 4), ("rack", 2))


def parts(count: int, sliced: Sliced, reach: Mapping[str, tuple[int, ...]] | None = None) -> list[list[Part]]:
    request = Request(gang(count, member()), count, topology=topology(), sliced=[sliced])
    known = reach or {}
    return choices_of(request, scope(request), lambda uid: known.get(uid, (0, 1, 2)))


def scope(request: Request) -> Scope:
    return Scope(HypotheticalSnapshot(NODES), request)


def of(count: int, sizes: tuple[tuple[str, int], ...], ranks: Sequence[int] = (), **placed: str) -> Sliced:
    numbers = {f"m{i}": rank for i, rank in enumerate(ranks)}
    return Sliced(frozenset(f"m{i}" for i in range(count)), sizes, numbers, list(placed.items()))


def shown(found: Sequence[Part]) -> list[tuple[str, list[int]]]:
    return [("".join(uid.lstrip("m") for uid in part.uids), sorted(part.pinned)) for part in found]


@pytest.mark.parametrize(
    ("sliced", "expected"),
    [
        pytest.param(of(4, RACKS, [3, 0, 2, 1]), [("13", []), ("20", [])], id="runs of ranks"),
        pytest.param(of(3, RACKS, [0, 3, 2]), [("0", []), ("21", [])], id="whichever of them exist"),
        pytest.param(of(2, RACKS, [0, 2, 1], m2="b0"), [("0", [1]), ("1", [])], id="where the others of the slice are"),
        pytest.param(of(2, RACKS, [0, 2, 4], m2="b0"), [("0", []), ("1", [])], id="others are elsewhere"),
        pytest.param(of(5, RACKS), [("01", []), ("23", []), ("4", [])], id="without ranks: in order"),
        pytest.param(
            of(3, (("rack", 3),), (), m7="a0", m8="c0", m9="c1"), [("0", [2]), ("12", [0])], id="the fullest first"
        ),
        pytest.param(of(2, RACKS, (), m8="c0", m9="c1"), [("01", [])], id="full ones take no more"),
        pytest.param(of(2, (("rack", 0),), (), m9="c1"), [("01", [2])], id="all of them are one"),
        pytest.param(of(2, RACKS, [0, 1], m9="gone"), [("01", [])], id="a node that is gone"),
    ],
)
def test_which_members_are_a_slice(sliced: Sliced, expected: list[tuple[str, list[int]]]) -> None:
    (found,) = parts(len(sliced.uids), sliced)
    assert shown(found) == expected


def test_slices_in_slices() -> None:
    (found,) = parts(6, of(6, NESTED, range(6)))
    assert [(shown([part]), shown(part.inside)) for part in found] == [
        ([("0123", [])], [("01", []), ("23", [])]),
        ([("45", [])], [("45", [])]),
    ]
    (found,) = parts(3, of(3, NESTED, (), m9="a0"))
    assert [(shown([part]), shown(part.inside)) for part in found] == [([("012", [0])], [("0", [0]), ("12", [])])]


def test_members_that_are_promised_a_place_count_as_placed() -> None:
    (info,) = gang(1, member(), "p")
    sliced = Sliced(frozenset({"m0", "p0"}), RACKS, {"m0": 0, "p0": 1})
    request = Request(gang(1, member()), 1, topology=topology(), sliced=[sliced], promised=[("c0", info)])
    (found,) = choices_of(request, scope(request), lambda uid: ())
    assert shown(found) == [("0", [2])]


def test_members_that_may_go_to_few_domains_are_together_with_some_that_may_go_anywhere() -> None:
    """Of the choices one leaves them for the slice that is not full."""
    found = parts(5, of(5, RACKS), {"m4": (1,)})
    assert [[uids for uids, _ in shown(each)] for each in found] == [["01", "23", "4"], ["40", "12", "3"]]


def test_so_many_choices_and_no_more() -> None:
    assert len(parts(40, of(40, RACKS), {f"m{i}": (i,) for i in range(40)})) == CHOICES
