"""What a pod's conditions say of its way: tried and refused, sent by us, told to go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from extender.api import corev1
from extender.api.codec import convert
from extender.plugins.coscheduling import pod_conditions
from extender.plugins.coscheduling.pod_conditions import (
    no_candidate_was_left,
    preempt_call_failed,
    refused_in_tree,
    same_refusal,
    taken_back,
    was_gated,
    was_preempted,
    was_refused,
    was_sent,
)
from tests.objects import make_pod


def condition(type_: str, status: str, reason: str = "", message: str = "") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def pod(*conditions: dict[str, Any]) -> corev1.Pod:
    made = make_pod().name("p").obj()
    return replace(made, status=convert({"conditions": list(conditions)}, corev1.PodStatus))


REFUSED = condition("PodScheduled", "False", "Unschedulable", "0/2 nodes are available: 2 Insufficient cpu.")
GATED = condition("PodScheduled", "False", "SchedulingGated")
SENT = condition("scheduling.x-k8s.io/GangReady", "True")
TAKEN_BACK = condition("scheduling.x-k8s.io/GangReady", "False")
NO_CANDIDATE = condition("PodScheduled", "False", "Unschedulable", "x. no candidate node for preemption")
CALL_FAILED = condition(
    "PodScheduled", "False", "SchedulerError", 'preemption: Post "http://127.0.0.1:8888/preempt": refused'
)
PREEMPTED = condition("DisruptionTarget", "True", "PreemptionByScheduler")


@pytest.mark.parametrize(
    ("asked", "conditions"),
    [
        pytest.param(was_sent, [SENT], id="sent by us"),
        pytest.param(was_refused, [REFUSED, NO_CANDIDATE, CALL_FAILED], id="refused: tried, and parked"),
        pytest.param(was_gated, [GATED], id="gated: not tried yet"),
        pytest.param(no_candidate_was_left, [NO_CANDIDATE], id="preempting in vain: our verb left no candidate"),
        pytest.param(preempt_call_failed, [CALL_FAILED], id="preempting in vain: the call met no extender"),
        pytest.param(was_preempted, [PREEMPTED], id="a victim"),
    ],
)
def test_what_holds_of_which_condition(asked: Callable[[corev1.Pod], bool], conditions: list[dict[str, Any]]) -> None:
    known = [REFUSED, GATED, SENT, TAKEN_BACK, NO_CANDIDATE, CALL_FAILED, PREEMPTED]
    assert [each for each in known if asked(pod(each))] == conditions
    assert not asked(pod())


def test_a_victim_of_another_disruption_was_not_preempted() -> None:
    assert not was_preempted(pod(condition("DisruptionTarget", "True", "EvictionByEvictionAPI")))


@pytest.mark.parametrize(
    ("new", "same"),
    [
        pytest.param(REFUSED, True, id="the same"),
        pytest.param({**REFUSED, "message": "0/3 nodes are available."}, False, id="another text: tried again"),
        pytest.param(SENT, False, id="none any more"),
    ],
)
def test_whether_two_versions_tell_of_one_refusal(new: dict[str, Any], same: bool) -> None:
    assert same_refusal(pod(REFUSED), pod(new)) == same


def test_our_own_patch_that_takes_a_nomination_back_is_known_by_its_condition_and_counts_once() -> None:
    assert taken_back(pod(SENT), pod(TAKEN_BACK))
    assert not taken_back(pod(TAKEN_BACK), pod(TAKEN_BACK, REFUSED))


@pytest.mark.parametrize(
    ("old", "new", "said", "in_tree"),
    [
        pytest.param(None, REFUSED, "", True, id="a new refusal that we had no part in"),
        pytest.param(REFUSED, REFUSED, "", False, id="an old one"),
        pytest.param(None, REFUSED, "2 Insufficient cpu", False, id="in our own words"),
        pytest.param(None, GATED, "", False, id="gated"),
        pytest.param(None, CALL_FAILED, "", False, id="an error is no refusal by filters"),
    ],
)
def test_refusals_of_kube_scheduler_s_own_filters(
    old: dict[str, Any] | None, new: dict[str, Any], said: str, in_tree: bool
) -> None:
    assert refused_in_tree(pod(*[old] if old else []), pod(new), said) == in_tree


def test_each_text_is_of_the_attempt_to_schedule_and_of_no_other_condition() -> None:
    told = condition("Ready", "False", message="no candidate node for preemption")
    assert not pod_conditions.refusal_says(pod(told), "no candidate")
