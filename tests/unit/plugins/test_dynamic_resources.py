"""DynamicResources: silent for pods without claims, and says by name what it does not model."""

from __future__ import annotations

from typing import Any

import pytest

from extender.framework.cycle_state import CycleState
from extender.framework.interface import NodeScore, NodeToStatus
from extender.framework.status import SKIP, SUCCESS, Code, error, unresolvable, unschedulable
from extender.plugins.dynamic_resources import DynamicResources
from tests.objects import PodBuilder, make_node, make_pod

NODE = make_node().name("n").info()
NO_STATUSES = NodeToStatus({}, unschedulable())
HANDLE: Any = None


def _plugin() -> DynamicResources:
    return DynamicResources.create(None, HANDLE)


def test_a_pod_without_claims() -> None:
    plugin, pod, state = _plugin(), make_pod().name("p").req(cpu=1).obj(), CycleState()
    assert plugin.pre_enqueue(pod) == SUCCESS
    assert plugin.pre_filter(state, pod, [NODE]) == (None, SKIP)
    assert plugin.score(state, pod, NODE) == (0, SUCCESS)
    scores = [NodeScore("n", 0)]
    assert plugin.normalize_score(state, pod, scores) == SUCCESS
    assert scores[0].score == 0
    assert plugin.post_filter(state, pod, NO_STATUSES) == (None, unschedulable("no new claims to deallocate"))
    assert plugin.reserve(state, pod, "n") == SUCCESS
    assert plugin.pre_bind_pre_flight(state, pod, "n") == SKIP
    plugin.unreserve(state, pod, "n")


@pytest.mark.parametrize(
    ("pod", "refusal"),
    [
        pytest.param(
            make_pod().name("p")._append("spec", "resourceClaims", {"name": "gpu", "resourceClaimName": "x"}),
            "DynamicResources: resource claims are not modelled: gpu",
            id="a resource claim",
        ),
        pytest.param(
            make_pod().name("p").req({"deviceclass.resource.kubernetes.io/gpu": 1}),
            "DynamicResources: resources that devices satisfy are not modelled: deviceclass.resource.kubernetes.io/gpu",
            id="an extended resource that is a device class",
        ),
    ],
)
def test_claims_are_refused_by_name(pod: PodBuilder, refusal: str) -> None:
    plugin, state = _plugin(), CycleState()
    assert plugin.pre_filter(state, pod.obj(), [NODE]) == (None, unresolvable(refusal))
    assert plugin.filter(state, pod.obj(), NODE) == unresolvable(refusal)
    assert plugin.score(state, pod.obj(), NODE)[1] == unresolvable(refusal)
    assert plugin.reserve(state, pod.obj(), "n") == unresolvable(refusal)
    assert plugin.pre_bind_pre_flight(state, pod.obj(), "n") == error(refusal)
    assert plugin.pre_bind(state, pod.obj(), "n") == unresolvable(refusal)
    result, status = plugin.post_filter(state, pod.obj(), NO_STATUSES)
    assert result is None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "no other plugin may preempt for it"


def test_none_of_a_resource_is_no_claim() -> None:
    pod = make_pod().name("p").req({"deviceclass.resource.kubernetes.io/gpu": 0}).obj()
    assert _plugin().pre_filter(CycleState(), pod, [NODE]) == (None, SKIP)


def test_where_pre_filter_never_ran_post_filter_fails() -> None:
    assert _plugin().post_filter(CycleState(), make_pod().name("p").obj(), NO_STATUSES) == (None, error("not found"))
