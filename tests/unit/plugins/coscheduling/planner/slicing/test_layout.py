"""Which domain each slice goes to; compared with every way that there is, on clusters that are small enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.planner import Cause, Sliced
from tests.objects import HOSTNAME
from tests.unit.plugins.coscheduling.planning import GANG, RACK, gang, member, node, placed, plan, refused, topology

ZONE_OF = {"a": "x", "b": "x", "c": "y", "d": "y"}


def racks(**rooms: Sequence[int]) -> list[NodeInfo]:
    """The CPUs of each node, by rack. Racks a and b are in one zone, c and d in another."""
    return [
        node(f"{rack}{i}", cpu=cpu, zone=ZONE_OF[rack], rack=rack).info()
        for rack, cpus in rooms.items()
        for i, cpu in enumerate(cpus)
    ]


def sliced(members: Sequence[PodInfo], *sizes: tuple[str, int], ranked: bool = True, balanced: bool = False) -> Sliced:
    uids = [info.pod.uid for info in members]
    ranks = {uid: rank for rank, uid in enumerate(uids)} if ranked else {}
    return Sliced(frozenset(uids), sizes, ranks, balanced=balanced)


def where(nodes: Mapping[str, str]) -> str:
    """The rack of each member, in the order of their names."""
    return "".join(nodes[name][0] for name in sorted(nodes, key=lambda name: int(name.lstrip("m"))))


@pytest.mark.parametrize(
    ("rooms", "count", "sizes", "expected"),
    [
        pytest.param({"a": [2], "b": [2], "c": [4]}, 4, [("rack", 2)], "cccc", id="one rack that holds all slices"),
        pytest.param(
            {"a": [3], "b": [1], "c": [3]}, 4, [("rack", 2)], "aacc", id="each whole, though two and one are left"
        ),
        pytest.param({"a": [2], "b": [2], "c": [3]}, 4, [("rack", 2)], "aabb", id="one zone before two"),
        pytest.param({"a": [2], "b": [2], "c": [3]}, 5, [("rack", 2)], "aabbc", id="the last one has what is over"),
        pytest.param(
            {"a": [3], "b": [2], "c": [9]}, 6, [("zone", 6), ("rack", 3)], "cccccc", id="a zone takes two of three"
        ),
        pytest.param({"a": [2], "b": [2], "c": [2], "d": [2]}, 8, [("zone", 4), ("rack", 2)], "aabbccdd", id="nested"),
        pytest.param({"a": [1], "b": [5]}, 5, [("rack", 0)], "bbbbb", id="no size: all of them in one rack"),
        pytest.param({"a": [1] * 4, "b": [1] * 4}, 8, [("zone", 8), ("rack", 4)], "aaaabbbb", id="one member a node"),
    ],
)
def test_each_slice_is_in_one_domain_and_ranks_are_contiguous(
    rooms: dict[str, list[int]], count: int, sizes: list[tuple[str, int]], expected: str
) -> None:
    members = gang(count, member())
    found = plan(racks(**rooms), members, topology=topology(), sliced=[sliced(members, *sizes)])
    assert where(placed(found)) == expected


@pytest.mark.parametrize(
    ("rooms", "balanced", "expected"),
    [
        pytest.param({"a": [8], "b": [8]}, False, [8, 2], id="as few as can be, the first one full"),
        pytest.param({"a": [8], "b": [8]}, True, [6, 4], id="over as many, evenly"),
        pytest.param({"a": [8], "b": [2], "c": [8]}, True, [8, 2], id="not over another zone to be even"),
        pytest.param({"a": [12], "b": [12]}, True, [10], id="one that holds all"),
    ],
)
def test_slices_are_spread_evenly_over_as_few_domains_as_can_be(
    rooms: dict[str, list[int]], balanced: bool, expected: list[int]
) -> None:
    members = gang(10, member())
    found = plan(racks(**rooms), members, topology=topology(), sliced=[sliced(members, ("rack", 2), balanced=balanced)])
    assert sorted(Counter(where(placed(found))).values(), reverse=True) == expected


def test_members_that_mind_each_other_are_placed_by_the_filters_inside_of_their_slice_s_rack() -> None:
    members = gang(4, member().pod_anti_affinity(HOSTNAME, GANG))
    nodes = racks(a=[8], b=[8, 8, 8], c=[8, 8])
    assert where(placed(plan(nodes, members, topology=topology(), sliced=[sliced(members, ("rack", 2))]))) == "bbcc"


def test_a_slice_that_finds_no_rack_is_named_with_the_racks_that_have_room() -> None:
    members = gang(6, member())
    verdict = refused(
        plan(racks(a=[2], b=[1, 1], c=[1], d=[1]), members, topology=topology(), sliced=[sliced(members, ("rack", 2))])
    )
    assert verdict.reason == "no single rack takes a slice of 2: Insufficient cpu"
    assert verdict.slices == "slice 2 (ranks 4 to 5) finds no rack; racks have room for 2 of 3 slices of 2"
    assert (verdict.cause, verdict.level, verdict.fits_at, verdict.placed) == (Cause.TOPOLOGY, "rack", "cluster", 5)
    assert [(fit.name, fit.holds) for fit in verdict.domains] == [("x/a", 2), ("x/b", 2)]


def test_the_rest_of_a_slice_goes_where_the_others_are_or_nowhere() -> None:
    """Without ranks it completes the fullest of those that have begun."""
    members = gang(4, member())
    at = [("m2", "b0"), ("m3", "c0")]
    ranked = Sliced(frozenset({"m0", "m1"}), (("rack", 2),), {f"m{i}": i for i in (0, 2, 1, 3)}, at)
    assert where(placed(plan(racks(a=[4], b=[1], c=[1]), members[:2], topology=topology(), sliced=[ranked]))) == "aa"
    ranked = Sliced(frozenset({"m0", "m1"}), (("rack", 2),), {"m0": 0, "m2": 1, "m1": 2, "m3": 3}, at)
    assert where(placed(plan(racks(a=[4], b=[1], c=[1]), members[:2], topology=topology(), sliced=[ranked]))) == "bc"
    verdict = refused(plan(racks(a=[4], b=[1], c=[0]), members[:2], topology=topology(), sliced=[ranked]))
    assert verdict.reason == "the rack that a slice of 2 is in has no room for the rest of it: Insufficient cpu"
    unranked = Sliced(frozenset({"m0"}), (("rack", 3),), {}, [("m1", "c0"), ("m2", "b0"), ("m3", "b0")])
    assert where(placed(plan(racks(a=[4], b=[1], c=[1]), members[:1], topology=topology(), sliced=[unranked]))) == "b"


def test_roles_have_levels_of_their_own() -> None:
    workers, servers = gang(4, member()), gang(2, member(2), "s")
    nodes = racks(a=[2, 2], b=[2, 2], c=[2], d=[2])
    own = [sliced(workers, ("rack", 0)), sliced(servers, ("zone", 0))]
    found = placed(plan(nodes, [*workers, *servers], topology=topology(), sliced=own))
    assert len({found[f"m{i}"][0] for i in range(4)}) == 1
    assert len({ZONE_OF[found[f"s{i}"][0]] for i in range(2)}) == 1


def test_slices_that_differ_are_placed_otherwise_where_the_first_way_leads_nowhere() -> None:
    """Three and three would fill the first rack but for one, and leave four slices of two for seven places."""
    threes, twos = gang(6, member(), "t"), gang(8, member())
    found = placed(
        plan(
            racks(a=[7], b=[7]),
            [*threes, *twos],
            topology=topology(),
            sliced=[sliced(threes, ("rack", 3)), sliced(twos, ("rack", 2))],
        )
    )
    assert Counter(name[0] for name in found.values()) == {"a": 7, "b": 7}


def test_a_level_that_is_not_configured_or_not_inside_of_the_other_is_refused_by_its_name() -> None:
    members = gang(4, member())
    for sizes, told in (
        ((("rak", 2),), 'topology level "rak" is not configured: the key `topology` has the levels zone, rack'),
        ((("rack", 4), ("zone", 2)), 'topology level "zone" is not inside of "rack"'),
    ):
        verdict = refused(plan(racks(a=[4]), members, topology=topology(), sliced=[sliced(members, *sizes)]))
        assert (verdict.reason, verdict.cause) == (told, Cause.TOPOLOGY)


# In comparison with every way


@st.composite
def clusters(draw: st.DrawFn) -> dict[str, list[int]]:
    return {
        rack: draw(st.lists(st.integers(0, 3), min_size=1, max_size=2)) for rack in "abcd"[: draw(st.integers(1, 4))]
    }


Chosen = Sequence[str]
"""The rack of each of the narrowest slices, in order."""


def ways(count: int, sizes: Sequence[tuple[str, int]], rooms: Mapping[str, object]) -> Iterator[Chosen]:
    inner = sizes[-1][1]
    for chosen in product(sorted(rooms), repeat=-(-count // inner)):
        outer: dict[int, set[str]] = {}
        for number, rack in enumerate(chosen):
            outer.setdefault(number * inner // sizes[0][1], set()).add(ZONE_OF[rack])
        if len(sizes) == 1 or all(len(zones) == 1 for zones in outer.values()):
            yield chosen


def most(count: int, sizes: Sequence[tuple[str, int]], rooms: Mapping[str, Sequence[int]], may: Sequence[str]) -> int:
    """How many members the best way places. may: the racks that each may go to."""
    best = 0
    for chosen in ways(count, sizes, rooms):
        there = Counter(rack for rank in range(count) if (rack := chosen[rank // sizes[-1][1]]) in may[rank])
        best = max(best, sum(min(number, sum(rooms[rack])) for rack, number in there.items()))
    return best


SIZES = st.sampled_from(
    [(("rack", 2),), (("rack", 3),), (("zone", 4), ("rack", 2)), (("zone", 6), ("rack", 3)), (("rack", 1),)]
)


@settings(deadline=None, max_examples=150)
@given(clusters(), st.integers(1, 6), SIZES, st.booleans())
def test_no_gang_is_refused_for_which_there_is_a_way(
    rooms: dict[str, list[int]], count: int, sizes: tuple[tuple[str, int], ...], ranked: bool
) -> None:
    members = gang(count, member())
    fits = most(count, sizes, rooms, ["abcd"] * count)
    found = plan(racks(**rooms), members, topology=topology(), sliced=[sliced(members, *sizes, ranked=ranked)])
    if fits < count:
        assert refused(found).placed <= fits
        return
    check(placed(found), sizes)


def check(nodes: Mapping[str, str], sizes: Sequence[tuple[str, int]]) -> None:
    for level, size in sizes:
        slices: dict[int, set[str]] = {}
        for name, node_name in nodes.items():
            domain = node_name[0] if level == "rack" else ZONE_OF[node_name[0]]
            slices.setdefault(int(name.lstrip("m")) // size, set()).add(domain)
        assert all(len(domains) == 1 for domains in slices.values()), nodes


@settings(deadline=None, max_examples=100)
@given(clusters(), st.integers(1, 6), SIZES, st.data())
def test_as_many_as_there_is_a_way_for_where_fewer_are_needed(
    rooms: dict[str, list[int]], count: int, sizes: tuple[tuple[str, int], ...], data: st.DataObject
) -> None:
    members = gang(count, member())
    needed = data.draw(st.integers(0, count))
    fits = most(count, sizes, rooms, ["abcd"] * count)
    found = plan(racks(**rooms), members, needed, topology=topology(), sliced=[sliced(members, *sizes)])
    if fits < needed:
        assert refused(found).placed <= fits
        return
    check(placed(found), sizes)
    assert len(placed(found)) >= needed


@settings(deadline=None, max_examples=100)
@given(
    clusters(),
    st.lists(st.sampled_from(["", "a", "b"]), min_size=1, max_size=6),
    st.sampled_from([2, 3]),
    st.booleans(),
)
def test_where_node_selectors_differ(rooms: dict[str, list[int]], selected: list[str], size: int, ranked: bool) -> None:
    """Without ranks any members may be a slice."""
    members = [
        (member().node_selector({RACK: rack}) if rack else member()).name(f"m{i}").info()
        for i, rack in enumerate(selected)
    ]
    may = [rack or "abcd" for rack in selected]
    found = plan(racks(**rooms), members, topology=topology(), sliced=[sliced(members, ("rack", size), ranked=ranked)])
    if ranked:
        fits = most(len(members), (("rack", size),), rooms, may) == len(members)
    else:
        fits = any(in_slices(chosen, size, rooms) for chosen in product(*([r for r in m if r in rooms] for m in may)))
    if not fits:
        refused(found)
    elif ranked:
        check(placed(found), (("rack", size),))
    else:
        assert in_slices([name[0] for name in placed(found).values()], size, rooms)


def in_slices(chosen: Sequence[str], size: int, rooms: Mapping[str, Sequence[int]]) -> bool:
    """Of which one at most is not full."""
    there = Counter(chosen)
    partly = sum(number % size > 0 for number in there.values())
    return partly <= 1 and all(number <= sum(rooms[rack]) for rack, number in there.items())


@settings(deadline=None, max_examples=60)
@given(clusters(), st.integers(1, 5), st.sampled_from([2, 3]))
def test_members_that_mind_each_other_find_the_way_too(rooms: dict[str, list[int]], count: int, size: int) -> None:
    """One a node: as if each node had room for one."""
    members = gang(count, member().pod_anti_affinity(HOSTNAME, GANG))
    ones = {rack: [min(1, cpu) for cpu in cpus] for rack, cpus in rooms.items()}
    found = plan(racks(**rooms), members, topology=topology(), sliced=[sliced(members, ("rack", size))])
    if most(count, (("rack", size),), ones, ["abcd"] * count) < count:
        refused(found)
    else:
        check(placed(found), (("rack", size),))
