"""What the guard says of room that is kept for a gang."""

from __future__ import annotations

import math
from unittest.mock import Mock

import pytest

from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.collaborators import NoSteering
from extender.plugins.coscheduling.preemption.guard import OfferedCandidate, PreemptionGuard, Veto
from extender.plugins.coscheduling.preemption.rest_of_gangs import RestOfGangs
from extender.plugins.coscheduling.preemption.vetoed import VetoedPreemptors
from extender.plugins.coscheduling.scheduling.steering_in_order import SteeringInOrder
from extender.plugins.coscheduling.state.ledger import Reservation
from tests.objects import make_node, make_pod
from tests.unit.plugins.coscheduling.conftest import World, node, pod
from tests.unit.plugins.coscheduling.preemption.test_reselection import Guarded


@pytest.mark.parametrize(
    ("priority", "nodes", "veto"),
    [
        pytest.param(10, ["n2"], None, id="of equal priority it preempts where nothing is kept"),
        pytest.param(20, ["n1", "n2"], None, id="of higher priority anywhere"),
    ],
)
def test_nobody_dies_for_room_that_the_preemptor_may_not_have(
    priority: int, nodes: list[str], veto: Veto | None
) -> None:
    assert _look(priority, ["n1", "n2"]) == (nodes, veto)


def test_where_all_room_is_kept_nobody_is_nominated() -> None:
    """kube-scheduler would count the nomination against those who come for their places."""
    assert _look(10, ["n1"]) == ([], Veto.GANG_FRACTION)


def _look(priority: int, offered: list[str]) -> tuple[list[str], Veto | None]:
    """A place is kept on n1, of two nodes that are full with a pod each."""
    low = [make_pod().name(f"low-{name}").node(name).req(cpu="1") for name in ("n1", "n2")]
    cluster = Guarded([make_node().name(name).capacity(cpu=1) for name in ("n1", "n2")], low)
    world = World([node("n1"), node("n2")])
    manager = world.plugin.manager
    member = pod("p0", "g", priority=10)
    world.create(member)
    manager.ledger.reserve(Reservation(PodInfo(member), "default/g", "n1", math.inf))
    guard = PreemptionGuard(
        manager,
        world.plugin.barrier,
        Mock(spec_set=RestOfGangs),
        Mock(spec_set=VetoedPreemptors),
        cluster.framework,
        newest_snapshot=cluster.cache.snapshot,
        pdbs=lambda: (),
        assumed=lambda: (),
        steering=SteeringInOrder(NoSteering(), manager.quarantine),
    )
    victims = {builder.obj().node_name: builder.obj() for builder in low}
    candidates = [OfferedCandidate(name, (victims[name],)) for name in offered]
    review = guard.look(make_pod().name("vip").priority(priority).req(cpu="1").obj(), candidates)
    return sorted(candidate.node_name for candidate in review.usable), review.veto
