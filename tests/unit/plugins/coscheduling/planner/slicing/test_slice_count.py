"""Whether a gang in slices finds room, by counting: what the planner says of the same, on clusters that are small enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.framework.hypothetical import HypotheticalSnapshot
from extender.plugins.coscheduling.planner import Placement, Request, Sliced
from extender.plugins.coscheduling.planner.slicing.slice_count import SliceCount
from tests.unit.plugins.coscheduling.planner.slicing.test_layout import racks, sliced
from tests.unit.plugins.coscheduling.planning import gang, member, node, plan, topology

NESTED = (("zone", 4), ("rack", 2))


def asking(count: int, *sizes: tuple[str, int], ranked: bool = True) -> Request:
    members = gang(count, member())
    return Request(members, count, topology=topology(), sliced=[sliced(members, *sizes, ranked=ranked)])


@pytest.mark.parametrize("sizes", [(("rack", 2),), (("rack", 4),), (("zone", 4),), NESTED, (("zone", 4), ("rack", 1))])
@settings(max_examples=25, deadline=None)
@given(
    rooms=st.fixed_dictionaries({rack: st.lists(st.integers(0, 3), max_size=3) for rack in "abcd"}),
    slices=st.integers(1, 3),
)
def test_it_is_as_the_planner_says(sizes: Sequence[tuple[str, int]], rooms: dict[str, list[int]], slices: int) -> None:
    request = asking(4 * slices, *sizes)
    nodes = [*racks(**rooms), node("x", cpu=9).info()]
    assert SliceCount.applies(request)
    count = SliceCount.of(request, HypotheticalSnapshot(nodes))
    assert count is not None
    holds = np.array([*(cpu for cpus in rooms.values() for cpu in cpus), 9])
    answer = plan(nodes, request.members, topology=request.topology, sliced=request.sliced)
    assert (count.members(holds) >= request.needed) == isinstance(answer, Placement)


WHOLE = asking(4, ("rack", 2))


def with_slices(**change: object) -> Request:
    return replace(WHOLE, sliced=[replace(WHOLE.sliced[0], **change)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("request_", "applies"),
    [
        pytest.param(WHOLE, True, id="full slices by rank"),
        pytest.param(asking(4, ("rack", 2), ranked=False), True, id="without ranks"),
        pytest.param(asking(4, ("rack", 0)), True, id="all in one rack"),
        pytest.param(replace(WHOLE, sliced=[]), True, id="no slices"),
        pytest.param(asking(5, ("rack", 2)), False, id="a slice that is not full"),
        pytest.param(asking(8, ("zone", 4), ("rack", 3)), False, id="slices that do not make up a wider one"),
        pytest.param(asking(4, ("cage", 2)), False, id="a level that is not configured"),
        pytest.param(asking(4, ("rack", 4), ("zone", 2)), False, id="levels in the wrong order"),
        pytest.param(replace(WHOLE, needed=3), False, id="fewer members would do"),
        pytest.param(replace(WHOLE, placed=["a0"]), False, id="a member has its place"),
        pytest.param(with_slices(placed=[("m9", "a0")]), False, id="a slice has begun"),
        pytest.param(with_slices(ranks={f"m{i}": 2 * i for i in range(4)}), False, id="ranks that are missing"),
        pytest.param(with_slices(uids=frozenset(("m0", "m1"))), False, id="members that are in no slice"),
        pytest.param(replace(WHOLE, sliced=[*WHOLE.sliced, Sliced(frozenset("z"), (("rack", 1),))]), False, id="roles"),
        pytest.param(replace(WHOLE, promised=[("a0", WHOLE.members[0])]), False, id="an own place that stays"),
    ],
)
def test_of_which_gangs_counting_says_all(request_: Request, applies: bool) -> None:
    assert SliceCount.applies(request_) is applies
