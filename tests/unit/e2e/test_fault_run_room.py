"""Whether pods fit beside each other, tried against every way of placing them one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.e2e.fault_run.room import Demand, fit


@pytest.mark.parametrize(
    ("demands", "free", "fits"),
    [
        pytest.param([Demand(3, 2), Demand(2, 1)], {"a": 5, "b": 3}, True, id="the two sizes share a node"),
        pytest.param([Demand(3, 2), Demand(2, 2)], {"a": 5, "b": 3}, False, id="one pod too many"),
        pytest.param([Demand(1, 2, "g")], {"a": 9}, False, id="apart, on one node"),
        pytest.param([Demand(1, 1, "g", frozenset("a"))], {"a": 9}, False, id="apart from the pod that runs there"),
        pytest.param([Demand(1, 1, "g"), Demand(2, 1, "g")], {"a": 9}, False, id="two sizes that are apart"),
        pytest.param([Demand(1, 1, "g"), Demand(2, 1, "h")], {"a": 9}, True, id="of two gangs"),
        pytest.param([Demand(1, 1)], {"a": -3}, False, id="a node that is over-full"),
        pytest.param([Demand(0, 2)], {"a": 0}, True, id="pods that ask for nothing"),
        pytest.param([Demand(1, 1, only=frozenset("b"))], {"a": 9, "b": 0}, False, id="tied to a node that is full"),
        pytest.param([Demand(1, 1, only=frozenset("b")), Demand(1, 1)], {"a": 1, "b": 1}, True, id="tied, and not"),
        pytest.param([], {}, True, id="nothing to place"),
    ],
)
def test_fit(demands: list[Demand], free: dict[str, int], fits: bool) -> None:
    assert fit(demands, free) is fits


def one_by_one(sizes: Sequence[int], free: Mapping[str, int]) -> bool:
    if not sizes:
        return True
    return any(
        one_by_one(sizes[1:], {**free, node: room - sizes[0]}) for node, room in free.items() if room >= sizes[0]
    )


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), max_size=2),
    st.lists(st.integers(0, 6), max_size=3),
)
def test_every_way_of_placing_them(sizes: list[tuple[int, int]], rooms: list[int]) -> None:
    free = {str(number): room for number, room in enumerate(rooms)}
    pods = [cpu for cpu, count in sizes for _ in range(count)]
    assert fit([Demand(cpu, count) for cpu, count in sizes], free) is one_by_one(pods, free)
