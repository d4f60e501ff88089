"""The verdict on a gang that does not fit, whichever way it was tried: what is missing, where, and what would do."""

from __future__ import annotations

import gc

import pytest

from extender.plugins.coscheduling.planner import Cause, DomainFit
from tests.objects import HOSTNAME, PodBuilder
from tests.unit.plugins.coscheduling.planning import GANG, gang, member, node, plan, refused, topology

BOTH_WAYS = pytest.mark.parametrize(
    "of",
    [
        pytest.param(member(cpu=4), id="counted"),
        pytest.param(member(cpu=4).pod_anti_affinity(HOSTNAME, GANG), id="one by one"),
    ],
)


@BOTH_WAYS
def test_the_domains_are_shown_best_first_and_the_narrowest_wider_level_that_would_do(of: PodBuilder) -> None:
    racks = {"r1": 2, "r2": 3}
    nodes = [node(f"{rack}-{i}", zone="a", rack=rack).info() for rack, count in racks.items() for i in range(count)]
    nodes.append(node("b", zone="b", rack="r3").info())
    verdict = refused(plan(nodes, gang(5, of), topology=topology(required="rack")))
    assert verdict.domains == (DomainFit("a/r2", 3), DomainFit("a/r1", 2), DomainFit("b/r3", 1))
    assert (verdict.level, verdict.fits_at, verdict.cause) == ("rack", "zone", Cause.TOPOLOGY)
    assert verdict.reason.startswith("no single rack takes it: ")


@BOTH_WAYS
def test_without_a_required_level_the_verdict_names_no_domain(of: PodBuilder) -> None:
    verdict = refused(plan([node("n1").info(), node("n2", cpu=2).info()], gang(3, of)))
    assert (verdict.resource, verdict.level, verdict.fits_at, verdict.domains) == ("cpu", "", "", ())


def test_a_gang_that_fits_nowhere_is_short_of_what_the_members_without_a_place_ask_for() -> None:
    verdict = refused(plan([node("n1").info(), node("n2", cpu=2).info()], gang(3, member(cpu=4))))
    assert (verdict.placed, verdict.needed, verdict.missing) == (1, 3, 8000)


@BOTH_WAYS
@pytest.mark.parametrize("nodes", [pytest.param(3, id="that fits"), pytest.param(1, id="that does not")])
def test_what_a_plan_has_made_goes_with_it(nodes: int, of: PodBuilder) -> None:
    """What is left in cycles is looked for by Python's collector, while no call is answered."""
    cluster = [node(f"n{number}", zone="a", rack="r1").info() for number in range(nodes)]
    members = gang(3, of)
    wanted = topology(required="rack")
    plan(cluster, members, topology=wanted)  # what is kept for later plans is made
    gc.collect()
    gc.disable()
    try:
        plan(cluster, members, topology=wanted)
        left = gc.collect()
    finally:
        gc.enable()
    assert left == 0
