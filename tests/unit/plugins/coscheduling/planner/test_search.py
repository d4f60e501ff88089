"""In which orders, and in which domains, members that look at each other are tried."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from extender.plugins.coscheduling.planner import Cause
from extender.plugins.coscheduling.planner.members import MemberClass, Shape, may_be_first
from extender.plugins.coscheduling.planner.search import bound_together, orders
from tests.objects import HOSTNAME, ZONE, PodBuilder
from tests.unit.plugins.coscheduling.planning import GANG, JUDGE, gang, member, node, placed, plan, refused, topology

NODES = [node("n1").info(), node("n2").info()]
LEADER = {"matchLabels": {"role": "leader"}}


def shape(builder: PodBuilder, name: str) -> Shape:
    info = builder.name(name).info()
    everywhere = np.ones(2, dtype=np.bool_)
    return Shape(MemberClass((info,), name), JUDGE.begin(info.pod, NODES), everywhere, everywhere, everywhere)


FOLLOWS = shape(member(cpu=2).pod_affinity(ZONE, LEADER), "follower")
LEADS = shape(member().label("role", "leader"), "leader")
TOGETHER = shape(member().pod_affinity(ZONE, GANG), "together")


def test_the_first_order_has_those_first_that_others_need() -> None:
    names = [[info.pod.name for _, info in order] for order in orders([FOLLOWS, LEADS], [np.array([1, 1])] * 2)]
    assert names[0] == ["leader", "follower"]
    assert ["follower", "leader"] in names, "the largest first is tried too"
    assert len(names) == len({tuple(order) for order in names}), "each order once"


def test_members_in_a_circle_have_an_order_all_the_same() -> None:
    one = shape(member().label("role", "leader").pod_affinity(ZONE, {"matchLabels": {"role": "worker"}}), "one")
    other = shape(member().label("role", "worker").pod_affinity(ZONE, LEADER), "other")
    assert len(orders([one, other], [np.array([1, 1])] * 2)[0]) == 2


@pytest.mark.parametrize(
    ("shapes", "bound"),
    [
        pytest.param([FOLLOWS, LEADS], {ZONE: {0, 1}}, id="asker and asked"),
        pytest.param([TOGETHER], {ZONE: {0}}, id="its own like"),
        pytest.param([LEADS], {}, id="no affinity"),
        pytest.param([FOLLOWS], {}, id="what it asks for is no member"),
    ],
)
def test_which_members_affinity_keeps_in_one_domain(shapes: Sequence[Shape], bound: dict[str, set[int]]) -> None:
    assert bound_together(shapes) == bound


@pytest.mark.parametrize(
    ("of", "may"),
    [
        pytest.param(TOGETHER, True, id="it asks for its like: the first of its kind"),
        pytest.param(FOLLOWS, False, id="it asks for another"),
        pytest.param(LEADS, False, id="it asks for none, and needs no exception"),
    ],
)
def test_which_members_may_be_the_first_of_their_kind(of: Shape, may: bool) -> None:
    assert may_be_first(of) == may


def test_members_that_belong_together_go_to_the_smallest_domain_that_holds_them() -> None:
    nodes = [
        node(f"{zone}{i}", cpu=1, zone=zone).info() for zone, count in (("big", 4), ("small", 2)) for i in range(count)
    ]
    nodes += [node(f"c{i}", cpu=1, zone="c").info() for i in range(1)]
    found = placed(plan(nodes, gang(2, member().pod_affinity(ZONE, GANG).pod_anti_affinity(HOSTNAME, GANG))))
    assert {name[:5] for name in found.values()} == {"small"}


def test_a_domain_that_is_required_holds_all_or_the_verdict_says_how_many_it_could() -> None:
    nodes = [node(f"{zone}{i}", zone=zone).info() for zone, count in (("a", 2), ("b", 1)) for i in range(count)]
    of = gang(3, member().pod_anti_affinity(HOSTNAME, GANG))
    verdict = refused(plan(nodes, of, topology=topology(required="zone")))
    assert (verdict.cause, verdict.placed, verdict.fits_at) == (Cause.TOPOLOGY, 2, "cluster")


def test_a_search_that_runs_out_of_time_says_so() -> None:
    ticks = iter(range(10_000))
    of = gang(3, member().pod_anti_affinity(HOSTNAME, GANG))
    verdict = refused(plan([*NODES, node("n3").info()], of, clock=lambda: float(next(ticks)), budget_seconds=3.0))
    assert verdict.cause is Cause.BUDGET
