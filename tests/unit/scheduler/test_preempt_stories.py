"""What preemption may not do to gangs, through the preempt verb."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from extender.client.embedded import EmbeddedAPI
from extender.client.interface import POD_DISRUPTION_BUDGETS, PODS, ResourceType
from extender.client.status_patch import patch_pod_status
from extender.config.types import ExtenderConfiguration
from tests.unit.plugins.coscheduling.starting import cut_short
from tests.unit.scheduler.conftest import SECONDS, Bench, running


def test_no_gang_is_left_in_fractions_the_whole_of_it_goes_from_one_node(bench: Bench) -> None:
    bench.node("n1", cpu="3")
    bench.pod_group("running", 3)
    running = [bench.pod(f"r{i}", "running", node="n1") for i in range(3)]
    vip = bench.pod("vip", priority=100)
    assert bench.preempt(vip, {"n1": running[:1]}) == {"n1": {"r0", "r1", "r2"}}


def test_a_gang_that_runs_on_other_nodes_too_goes_last_and_whole(bench: Bench) -> None:
    for name in ("n1", "n2", "n3"):
        bench.node(name, cpu="1")
    bench.pod_group("running", 2)
    here, there = bench.pod("r0", "running", node="n1"), bench.pod("r1", "running", node="n2")
    lone = bench.pod("lone", node="n3")
    vip = bench.pod("vip", priority=100)
    assert bench.preempt(vip, {"n1": [here], "n3": [lone]}) == {"n3": {"lone"}}
    assert bench.preempt(vip, {"n1": [here]}) == {"n1": {"r0"}}
    assert bench.there(there), "kube-scheduler has not chosen it yet"
    bench.preempted(here)
    bench.until(lambda: not bench.there(there), "the rest of the gang goes too")


def test_a_gang_of_priority_0_goes_before_a_lone_pod_of_priority_900(bench: Bench) -> None:
    """Before, a PodGroup kept whatever was in it until every lone pod of lower priority than the preemptor's had gone."""
    for name in ("n1", "n2", "n3"):
        bench.node(name, cpu="1")
    bench.pod_group("running", 2)
    here, _ = bench.pod("r0", "running", node="n1"), bench.pod("r1", "running", node="n2")
    lone = bench.pod("lone", node="n3", priority=900)
    assert bench.preempt(bench.pod("vip", priority=1000), {"n1": [here], "n3": [lone]}) == {"n1": {"r0"}}


def test_on_one_node_a_gang_of_priority_0_is_not_replaced_by_a_lone_pod_of_priority_900(bench: Bench) -> None:
    bench.node("n1", cpu="3")
    bench.pod_group("running", 2)
    here = [bench.pod(f"r{i}", "running", node="n1") for i in range(2)]
    bench.pod("lone", node="n1", priority=900)
    assert bench.preempt(bench.pod("vip", priority=1000), {"n1": here[:1]}) == {"n1": {"r0", "r1"}}


def test_a_group_with_a_min_member_of_1_is_a_lone_pod(bench: Bench) -> None:
    """kube-scheduler's own choice stands, as if there were no group."""
    for name in ("n1", "n2"):
        bench.node(name, cpu="1")
    bench.pod_group("shield", 1)
    shielded, lone = bench.pod("s0", "shield", node="n1"), bench.pod("lone", node="n2")
    vip = bench.pod("vip", priority=1000)
    assert bench.preempt(vip, {"n1": [shielded], "n2": [lone]}) == {"n1": {"s0"}, "n2": {"lone"}}


def test_one_important_member_shields_no_gang(bench: Bench) -> None:
    """The gang is planned at the priority of its quorum, and goes at it: else it could be preempted by none, for ever."""
    bench.node("n1", cpu="1")
    bench.node("n2", cpu="1")
    bench.pod_group("mixed", 2)
    here, important = bench.pod("m0", "mixed", node="n1"), bench.pod("m1", "mixed", node="n2", priority=2000)
    assert bench.preempt(bench.pod("vip", priority=1000), {"n1": [here]}) == {"n1": {"m0"}}
    bench.preempted(here)
    bench.until(lambda: not bench.there(important), "the rest of the gang goes too")


def test_a_budget_does_not_make_a_gang_immune_to_what_kube_scheduler_would_evict() -> None:
    """evictThrough: eviction is for the victims of gangs: kube-scheduler preempts despite budgets, where nothing else will do."""
    with running(ExtenderConfiguration(evict_through="eviction")) as bench:
        bench.until(bench.may_evict, "evictions are allowed")
        bench.node("n1", cpu="1")
        bench.node("n2", cpu="1")
        bench.pod_group("running", 2)
        labels = {"app": "web"}
        here, there = (bench.pod(f"r{i}", "running", node=f"n{i + 1}", labels=labels) for i in range(2))
        budget = {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"matchLabels": labels}},
            "status": {"disruptionsAllowed": 0},
        }
        bench.api.create(POD_DISRUPTION_BUDGETS, budget)
        bench.until(lambda: bench.store(POD_DISRUPTION_BUDGETS).get("default/web") is not None, "the budget is seen")
        vip = bench.pod("vip", priority=2_000_001_000)
        assert bench.preempt(vip, {"n1": [here]}) == {"n1": {"r0"}}
        bench.preempted(here)
        bench.until(lambda: not bench.there(there), "the rest of the gang goes too")


def test_a_gang_that_ends_for_another_reason_takes_no_pod_along(bench: Bench) -> None:
    bench.node("n1", cpu="1")
    bench.node("n2", cpu="1")
    bench.pod_group("running", 2)
    here, there = bench.pod("r0", "running", node="n1"), bench.pod("r1", "running", node="n2")
    vip = bench.pod("vip", priority=100)
    assert bench.preempt(vip, {"n1": [here]}) == {"n1": {"r0"}}
    bench.api.delete(PODS, here.name, here.namespace)
    marker = bench.pod("marker")
    assert bench.there(marker)
    assert bench.there(there)


@pytest.mark.parametrize(
    ("gang_victims", "victims"),
    [
        pytest.param("surplusOnly", {}, id="surplus only: the gang is left alone"),
        pytest.param("any", {"n1": {"r0"}}, id="any: as kube-scheduler would have it"),
    ],
)
def test_what_may_go_of_a_gang_is_configured(gang_victims: str, victims: dict[str, set[str]]) -> None:
    with running(ExtenderConfiguration(gang_victims=gang_victims)) as bench:
        bench.node("n1", cpu="1")
        bench.node("n2", cpu="1")
        bench.pod_group("running", 2)
        here, _ = bench.pod("r0", "running", node="n1"), bench.pod("r1", "running", node="n2")
        assert bench.preempt(bench.pod("vip", priority=100), {"n1": [here]}) == victims


def test_without_permission_to_evict_a_gang_that_runs_elsewhere_too_is_left_alone() -> None:
    class Unpermitted(EmbeddedAPI):
        def may(self, verb: str, resource: ResourceType[Any], subresource: str = "", **of: str) -> bool:
            return False

    with running(api=Unpermitted()) as bench:
        bench.node("n1", cpu="1")
        bench.node("n2", cpu="1")
        bench.pod_group("wide", 2)
        bench.pod_group("narrow", 1)
        here, _ = bench.pod("w0", "wide", node="n1"), bench.pod("w1", "wide", node="n2")
        vip = bench.pod("vip", priority=100)
        assert bench.preempt(vip, {"n1": [here]}) == {}
        bench.node("n3", cpu="1")
        narrow = bench.pod("x0", "narrow", node="n3")
        assert bench.preempt(vip, {"n1": [here], "n3": [narrow]}) == {"n3": {"x0"}}


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
    "members", [pytest.param(1, id="without its quorum"), pytest.param(2, id="that would fit once the victim is gone")]
)
def test_kube_scheduler_evicts_no_pod_for_single_members_of_a_gang(bench: Bench, members: int) -> None:
    bench.node("n1", cpu="2")
    victim = bench.pod("low", node="n1", cpu="2")
    bench.pod_group("high", 2)
    gang = [bench.pod(f"h{i}", "high", priority=100) for i in range(members)]
    assert bench.preempt(gang[0], {"n1": [victim]}) == {}


def test_nor_for_an_extra_member_of_a_gang_that_has_its_plan_and_has_not_started(bench: Bench) -> None:
    bench.node("n1", cpu="1")
    bench.node("n2", cpu="1")
    bench.node("n3", cpu="1")
    victim = bench.pod("low", node="n3")
    bench.pod_group("high", 2)
    gang = [bench.pod(f"h{i}", "high", priority=100) for i in range(3)]
    assert bench.filter(gang[0], "n1", "n2").node_names
    assert bench.preempt(gang[2], {"n3": [victim]}) == {}


def test_a_preemptor_that_was_allowed_no_victims_for_that_is_tried_again_when_its_gang_has_started(
    bench: Bench,
) -> None:
    """kube-scheduler's own filters have parked it, and nothing else that happens to its gang wakes it."""
    bench.node("n1", cpu="1")
    bench.node("n2", cpu="1")
    victim = bench.pod("low", node="n2")
    bench.pod_group("high", 1)
    gang = [bench.pod(f"h{i}", "high", priority=100) for i in range(2)]
    roused = _roused(bench)
    assert bench.preempt(gang[1], {"n2": [victim]}) == {}
    assert bench.filter(gang[0], "n1").node_names == ["n1"]
    assert bench.bind(gang[0], "n1").result(SECONDS) == ""
    bench.until(lambda: roused == ["h1"], "it is roused")
    assert bench.preempt(gang[1], {"n2": [victim]}) == {"n2": {"low"}}


def test_a_preemptor_that_wants_what_a_gang_needs_is_tried_again_when_the_gang_has_grown() -> None:
    with running(ExtenderConfiguration(gang_victims="surplusOnly")) as bench:
        for name in ("n1", "n2", "n3"):
            bench.node(name, cpu="1")
        bench.pod_group("running", 2)
        here, _ = bench.pod("r0", "running", node="n1"), bench.pod("r1", "running", node="n2")
        roused = _roused(bench)
        vip = bench.pod("vip", priority=100)
        assert bench.preempt(vip, {"n1": [here]}) == {}
        bench.pod("r2", "running", node="n3")
        bench.until(lambda: roused == ["vip"], "it is roused")


def _roused(bench: Bench) -> list[str]:
    """The names of those, as they come."""
    names: list[str] = []
    preemption = bench.scheduler._dependencies.coscheduling.preemption
    preemption._waiting.steering = Mock(
        activate_by_nomination=lambda key, places: names.extend(pod.name for pod, _ in places)
    )
    return names


def test_an_extra_member_of_a_gang_that_runs_evicts_as_a_single_pod(bench: Bench) -> None:
    bench.node("n1", cpu="2")
    bench.pod_group("high", 1)
    bench.pod("h0", "high", node="n1", priority=100)
    victim = bench.pod("low", node="n1")
    assert bench.preempt(bench.pod("h1", "high", priority=100), {"n1": [victim]}) == {"n1": {"low"}}


def test_held_members_of_a_gang_that_has_begun_to_run_stay(bench: Bench) -> None:
    bench.node("n1", cpu="2")
    bench.node("n2", cpu="1")
    bench.pod_group("begun", 3)
    bench.pod("b0", "begun", node="n2")
    members = [bench.pod(f"b{i}", "begun") for i in (1, 2)]
    coscheduling = bench.scheduler._dependencies.coscheduling
    coscheduling.rounds.begun.finish()
    cut_short(coscheduling.manager, "default/begun")
    answer = bench.bind(members[0], "n1")
    bench.held(members[0])
    vip = bench.pod("vip", cpu="2", priority=100)
    assert bench.preempt(vip, {"n1": members[:1]}) == {}
    assert coscheduling.manager.slots.get(vip.uid) is None, "no room is kept for it"
    assert not answer.done()


def test_a_preemptor_whose_victim_our_watch_still_shows_is_bound_once_it_shows_it_no_more(bench: Bench) -> None:
    """kube-scheduler heard of the victim's end first: to refuse the binding would cost the pod a back-off of a second."""
    bench.node("n1", cpu="1")
    victim = bench.pod("low", node="n1")
    answer = bench.bind(bench.pod("vip", priority=100), "n1")
    bench.api.delete(PODS, victim.name, victim.namespace)
    assert answer.result(SECONDS) == ""


def test_a_victim_that_is_unknown_takes_its_candidate_out(bench: Bench) -> None:
    bench.node("n1")
    vip, stranger = bench.pod("vip", priority=100), bench.pod("elsewhere")
    assert bench.preempt(vip, {"n1": [stranger], "gone": [stranger]}) == {}


def test_a_preemptor_that_gets_no_candidate_loses_a_nomination_from_before() -> None:
    """kube-scheduler clears it where it finds none itself, and keeps it where we leave none: others could not have that room."""
    with running(ExtenderConfiguration(gang_victims="surplusOnly")) as bench:
        for name in ("n1", "n2", "n3"):
            bench.node(name, cpu="1")
        bench.pod_group("running", 2)
        here, _ = bench.pod("r0", "running", node="n1"), bench.pod("r1", "running", node="n3")
        vip = bench.pod("vip", priority=100)
        nominated = patch_pod_status(bench.api, vip, nominated_node_name="n2")
        assert bench.preempt(nominated, {"n1": [here]}) == {}
        bench.until(lambda: not bench.nomination_of(vip), "its nomination is taken back")


def test_a_planned_member_keeps_its_nomination(bench: Bench) -> None:
    for name in ("n1", "n2", "n3"):
        bench.node(name, cpu="1")
    victim = bench.pod("low", node="n3")
    bench.pod_group("high", 2)
    gang = [bench.pod(f"h{i}", "high", priority=100) for i in range(2)]
    (planned,) = bench.filter(gang[0], "n1", "n2").node_names
    nominated = patch_pod_status(bench.api, gang[0], nominated_node_name=planned)
    assert bench.preempt(nominated, {"n3": [victim]}) == {}
    bench.scheduler._dependencies.steering.stop()  # what was asked of it has been done
    assert bench.nomination_of(nominated) == planned


def test_victims_come_in_descending_priority(bench: Bench) -> None:
    from extender.api.extenderv1 import ExtenderPreemptionArgs, MetaPod, MetaVictims

    bench.node("n1")
    low, high = bench.pod("low", node="n1", priority=1), bench.pod("high", node="n1", priority=5)
    vip = bench.pod("vip", priority=100)
    offered = {"n1": MetaVictims(pods=(MetaPod(uid=low.uid), MetaPod(uid=high.uid)))}
    answer = bench.scheduler.preempt(ExtenderPreemptionArgs(pod=vip, node_name_to_meta_victims=offered))
    assert [victim.uid for victim in answer.node_name_to_meta_victims["n1"].pods] == [high.uid, low.uid]
