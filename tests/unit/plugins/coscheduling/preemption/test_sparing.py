"""Which pods a placement can do without evicting; and the sum that stands for a plan where members mind nothing but room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from extender.framework.hypothetical import HypotheticalSnapshot
from extender.plugins.coscheduling.planner import Placement, Request, Sliced
from extender.plugins.coscheduling.planner.request import Minimum
from extender.plugins.coscheduling.preemption.evictable import Evictable, Kind
from extender.plugins.coscheduling.preemption.sparing import RoomEstimate, Sparing
from tests.objects import HOSTNAME, PodBuilder
from tests.unit.plugins.coscheduling.planning import GANG, JUDGE, existing, gang, member, node, topology


def victim(builder: PodBuilder) -> Evictable:
    return Evictable(builder.info(), builder.obj().node_name, Kind.LONE)


A, B = existing("a", "n1", cpu=2), existing("b", "n2", cpu=1)


@pytest.mark.parametrize(
    ("gone", "needed", "fits"),
    [
        pytest.param([], 2, True, id="no pod goes: one on each node"),
        pytest.param([], 3, False, id="no pod goes, and one more"),
        pytest.param([A], 3, True, id="the two CPUs of one are a place more"),
        pytest.param([B], 3, True, id="the one CPU of the other completes a place"),
        pytest.param([A, B], 4, True, id="both go"),
        pytest.param([A, B], 5, False, id="more than there is room for"),
    ],
)
def test_the_sum_of_what_is_free_and_what_victims_give(gone: Sequence[PodBuilder], needed: int, fits: bool) -> None:
    nodes = [node("n1", cpu=4).info(A.obj()), node("n2", cpu=4).info(B.obj())]
    all_evictable = {"a": victim(A), "b": victim(B)}
    request = Request(gang(needed, member(cpu=2)), needed)
    estimate = RoomEstimate(HypotheticalSnapshot(nodes), request, JUDGE, list(all_evictable.values()))
    assert estimate.fits([all_evictable[each.obj().name] for each in gone]) == fits


@pytest.mark.parametrize(
    ("of", "asked", "applies"),
    [
        pytest.param(member(), {}, True, id="alike, and anywhere"),
        pytest.param(member().pod_anti_affinity(HOSTNAME, GANG), {}, False, id="members that look at each other"),
        pytest.param(member(), {"topology": topology(required="rack")}, False, id="one rack"),
        pytest.param(member(), {"excluded": frozenset({("m0", "n1")})}, False, id="a node is left out"),
        pytest.param(member(), {"minima": [Minimum(frozenset({"m0"}), 1)]}, False, id="a role's minimum"),
        pytest.param(member(), {"sliced": [Sliced(frozenset({"m0"}), (("rack", 1),))]}, False, id="in slices"),
        pytest.param(member(), {"sliced": [Sliced(frozenset({"m0"}), (), {"m0": 0})]}, True, id="by rank alone"),
    ],
)
def test_where_a_sum_is_enough(of: PodBuilder, asked: dict[str, Any], applies: bool) -> None:
    assert RoomEstimate.applies(Request(gang(2, of), 2, **asked)) == applies


def test_members_of_two_sizes_are_planned_and_not_added_up() -> None:
    assert not RoomEstimate.applies(Request([*gang(1, member()), *gang(1, member(cpu=2), "large")], 2))
    assert not RoomEstimate.applies(Request([], 0))


def sparing(of: PodBuilder, cpu: int = 4) -> Sparing:
    members = gang(1, of)
    return Sparing([node("n1", cpu=cpu).info(), node("n2").info()], Request(members, 1), JUDGE, Placement({"m0": "n1"}))


def test_pods_are_spared_one_by_one_as_long_as_the_gang_fits_beside_them() -> None:
    left = sparing(member(cpu=2))
    assert [left.spare(victim(existing(name, "n1", cpu=1))) for name in ("a", "b", "c")] == [True, True, False]
    assert left.spare(victim(existing("d", "n2", cpu=4))), "another node has room of its own"


def test_a_pod_that_minds_the_gang_is_spared_only_where_it_does_not_stand_in_its_way() -> None:
    shy = existing("shy", "n1").pod_anti_affinity(HOSTNAME, GANG)
    assert not sparing(member()).spare(victim(shy))
    assert sparing(member()).spare(victim(existing("shy", "n2").pod_anti_affinity(HOSTNAME, GANG)))
