"""Contiguous ranks have contiguous places, whichever the search found first."""

from __future__ import annotations

import numpy as np

from extender.framework.hypothetical import HypotheticalSnapshot
from extender.plugins.coscheduling.planner import Sliced
from extender.plugins.coscheduling.planner.domains import Domains
from extender.plugins.coscheduling.planner.slicing.ranks import network_order
from tests.objects import HOSTNAME
from tests.unit.plugins.coscheduling.planning import GANG, LEVELS, gang, member, node, placed, plan, topology

NODES = [
    node(f"{rack}{i}", cpu=1, zone=zone, rack=rack).info()
    for i in range(2)
    for rack, zone in (("c", "y"), ("a", "x"), ("b", "x"))
]
"""Not in the order of their racks."""


def test_nodes_in_the_order_of_their_domains() -> None:
    order = network_order(Domains(HypotheticalSnapshot(NODES), LEVELS))
    assert [NODES[i].name for i in np.argsort(order)] == ["a0", "a1", "b0", "b1", "c0", "c1"]
    assert network_order(Domains(HypotheticalSnapshot(NODES), ())).tolist() == []


def by_rank(found: dict[str, str], ranks: dict[str, int]) -> list[str]:
    return [found[uid] for uid in sorted(found, key=lambda uid: ranks[uid])]


def test_members_by_rank_without_slices() -> None:
    """By counting, and by the filters."""
    for kind in (member(), member().pod_anti_affinity(HOSTNAME, GANG)):
        members = gang(6, kind)
        ranks = {f"m{i}": (i * 5) % 6 for i in range(6)}
        sliced = Sliced(frozenset(ranks), (), ranks)
        found = placed(plan(NODES, members, topology=topology(), sliced=[sliced]))
        assert by_rank(found, ranks) == ["a0", "a1", "b0", "b1", "c0", "c1"]


def test_alike_slices_are_in_the_order_of_their_racks_and_those_that_have_begun_stay() -> None:
    members = gang(5, member())
    ranks = {"m0": 5, "m1": 4, "m2": 3, "m3": 2, "m4": 1, "m5": 0}
    sliced = Sliced(frozenset(ranks.keys() - {"m5"}), (("rack", 2),), ranks, [("m5", "c0")])
    nodes = [each for each in NODES if each.name != "c0"]
    nodes.append(node("c0", cpu=0, zone="y", rack="c").info())
    found = placed(plan(nodes, members, topology=topology(), sliced=[sliced]))
    assert by_rank(found, ranks) == ["c1", "a0", "a1", "b0", "b1"]


def test_ranks_of_one_set_come_before_those_of_the_next() -> None:
    one, other = gang(3, member()), gang(3, member(), "o")
    sets = [Sliced(frozenset(f"{p}{i}" for i in range(3)), (), {f"{p}{i}": i for i in range(3)}) for p in "om"]
    found = placed(plan(NODES, [*one, *other], topology=topology(), sliced=sets))
    assert [found[name] for name in ("o0", "o1", "o2", "m0", "m1", "m2")] == ["a0", "a1", "b0", "b1", "c0", "c1"]
