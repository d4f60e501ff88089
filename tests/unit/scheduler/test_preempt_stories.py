"""What preemption may not do to gangs, through the preempt verb."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.conftest import SECONDS, Bench


def test_no_gang_is_left_in_fractions_the_whole_of_it_goes_from_one_node(bench: Bench) -> None:
    bench.node("n1", cpu="3")
    bench.pod_group("running", 3)
    running = [bench.pod(f"r{i}", "running", node="n1") for i in range(3)]
    vip = bench.pod("vip", priority=100)
    assert bench.preempt(vip, {"n1": running[:1]}) == {"n1": {"r0", "r1", "r2"}}


def test_a_gang_that_runs_on_other_nodes_too_is_left_alone(bench: Bench) -> None:
    bench.node("n1", cpu="1")
    bench.node("n2", cpu="1")
    bench.node("n3", cpu="1")
    bench.pod_group("running", 2)
    here, _there = bench.pod("r0", "running", node="n1"), bench.pod("r1", "running", node="n2")
    lone = bench.pod("lone", node="n3")
    vip = bench.pod("vip", priority=100)
    assert bench.preempt(vip, {"n1": [here]}) == {}
    assert bench.preempt(vip, {"n1": [here], "n3": [lone]}) == {"n3": {"lone"}}


def test_what_a_gang_has_above_its_quorum_may_go(bench: Bench) -> None:
    bench.node("n1", cpu="3")
    bench.pod_group("running", 2)
    running = [bench.pod(f"r{i}", "running", node="n1") for i in range(3)]
    vip = bench.pod("vip", priority=100)
    assert bench.preempt(vip, {"n1": running[:1]}) == {"n1": {"r0"}}


def test_held_members_are_let_go_and_never_evicted(bench: Bench) -> None:
    bench.node("n1", cpu="2")
    bench.pod_group("waiting", 3)
    members = [bench.pod(f"w{i}", "waiting") for i in range(3)]
    answers = [bench.bind(pod, "n1") for pod in members[:2]]
    bench.held(*members[:2])
    vip = bench.pod("vip", priority=100)
    assert bench.preempt(vip, {"n1": members[:1]}) == {}
    assert all("preempting to accommodate a higher priority pod" in answer.result(SECONDS) for answer in answers)


@pytest.mark.parametrize(
    ("members", "cpu", "evicts"),
    [
        pytest.param(1, "1", False, id="a gang without its quorum evicts nobody"),
        pytest.param(2, "3", False, id="a gang that does not fit even then evicts nobody"),
        pytest.param(2, "1", True, id="a gang that fits once the victims are gone may evict"),
    ],
)
def test_a_gang_evicts_only_if_it_can_start(bench: Bench, members: int, cpu: str, evicts: bool) -> None:
    bench.node("n1", cpu="2")
    victim = bench.pod("low", node="n1", cpu="2")
    bench.pod_group("high", 2)
    gang = [bench.pod(f"h{i}", "high", cpu, priority=100) for i in range(members)]
    assert bench.preempt(gang[0], {"n1": [victim]}) == ({"n1": {"low"}} if evicts else {})


def test_a_victim_that_is_unknown_takes_its_candidate_out(bench: Bench) -> None:
    bench.node("n1")
    vip, stranger = bench.pod("vip", priority=100), bench.pod("elsewhere")
    assert bench.preempt(vip, {"n1": [stranger], "gone": [stranger]}) == {}


def test_victims_come_in_descending_priority(bench: Bench) -> None:
    from extender.api.extenderv1 import ExtenderPreemptionArgs, MetaPod, MetaVictims

    bench.node("n1")
    low, high = bench.pod("low", node="n1", priority=1), bench.pod("high", node="n1", priority=5)
    vip = bench.pod("vip", priority=100)
    offered = {"n1": MetaVictims(pods=(MetaPod(uid=low.uid), MetaPod(uid=high.uid)))}
    answer = bench.scheduler.preempt(ExtenderPreemptionArgs(pod=vip, node_name_to_meta_victims=offered))
    assert [victim.uid for victim in answer.node_name_to_meta_victims["n1"].pods] == [high.uid, low.uid]
