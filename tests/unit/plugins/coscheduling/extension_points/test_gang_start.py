"""A gang starts whole: with its last member all holds are lifted, or none."""

from __future__ import annotations

from collections.abc import Callable

from extender.framework.cycle_state import CycleState
from tests.unit.plugins.coscheduling.conftest import Waiting, World, node, pod, pod_group

Make = Callable[..., World]


def gang(w: World, size: int, minimum: int, **spec: object) -> list[Waiting]:
    """All but the last member are held."""
    w.plugin.on_pod_group(None, pod_group("g", minimum, **spec))  # type: ignore[arg-type]
    members = [pod(f"p{i}", "g") for i in range(size)]
    w.create(*members)
    held = [w.bind(m, "n1") for m in members[:-1]]
    assert all(isinstance(h, Waiting) for h in held)
    return held  # type: ignore[return-value]


def test_the_last_member_lifts_every_hold(world: Make) -> None:
    w = world([node("n1")])
    held = gang(w, 3, 3)
    assert w.bind(pod("p2", "g"), "n1") == "starts"
    assert [h.decision for h in held] == ["allowed", "allowed"]
    assert all(w.plugin.gang_permit.check_commit(CycleState(), pod(f"p{i}", "g"), "n1").success for i in range(3))


def test_a_hold_that_was_decided_otherwise_calls_the_start_off(world: Make) -> None:
    w = world([node("n1")])
    held = gang(w, 3, 3)
    held[0].reject("", "the caller has hung up")
    assert "fell below its minMember" in str(w.bind(pod("p2", "g"), "n1"))
    assert held[1].decision == "allowed"
    status = w.plugin.gang_permit.check_commit(CycleState(), pod("p1", "g"), "n1")
    assert not status.success, "a member that was let go meanwhile does not bind alone"


def test_without_the_lease_nothing_starts(world: Make) -> None:
    w = world([node("n1")])
    gang(w, 2, 2)
    w.leading = False
    assert "not the leader" in str(w.bind(pod("p1", "g"), "n1"))


def test_a_node_that_is_gone_by_then_stops_the_whole_gang(world: Make) -> None:
    w = world([node("n1"), node("n2")])
    held = gang(w, 2, 2)
    w.nodes["n1"] = node("n1", unschedulable=True)
    assert w.bind(pod("p1", "g"), "n2") == 'node "n1" is unschedulable'
    assert held[0].decision == 'rejected: node "n1" is unschedulable'
