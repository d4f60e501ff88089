"""Each field of another system's PodGroup is honoured, refused by its name, or named as not honoured."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import koordinatorv1alpha1, volcanov1beta1
from extender.client.unreadable import convert
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.sources.foreign import spec_of_foreign
from extender.plugins.coscheduling.spec.topology import AskedTopology

HARD, SOFT = {"mode": "hard"}, {"mode": "soft"}


def metadata(**annotations: str) -> dict[str, Any]:
    """annotations: by their names below our prefix, with _ for -."""
    found = {f"gang-extender.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {"name": "g", "namespace": "default", "annotations": found}


def volcano(spec: Any, **annotations: str) -> GroupSpec:
    return spec_of_foreign(convert({"metadata": metadata(**annotations), "spec": spec}, volcanov1beta1.PodGroup))


def koordinator(spec: Any, annotations: dict[str, str] | None = None) -> GroupSpec:
    made = {"metadata": {**metadata(), "annotations": annotations or {}}, "spec": spec}
    return spec_of_foreign(convert(made, koordinatorv1alpha1.PodGroup))


@pytest.mark.parametrize(
    ("spec", "minimum"),
    [
        pytest.param({"minMember": 3}, 3, id="minMember"),
        pytest.param({}, 1, id="none is no constraint"),
        pytest.param({"minMember": 0}, 1, id="nor is 0"),
        pytest.param({"minMember": 3, "minTaskMember": {"ps": 1, "worker": 4}}, 3, id="of an elastic job"),
    ],
)
def test_volcano_s_min_member(spec: Any, minimum: int) -> None:
    found = volcano(spec)
    assert (found.min_member, found.invalid) == (minimum, "")


def test_tasks_are_roles_by_volcano_s_own_key() -> None:
    found = volcano({"minMember": 3, "minTaskMember": {"ps": 1, "worker": 2}})
    assert (found.roles.minima, found.roles.label) == ((("ps", 1), ("worker", 2)), "volcano.sh/task-spec")


@pytest.mark.parametrize(
    ("minimum", "minima"),
    [
        pytest.param(6, (("ps", 1), ("worker", 4)), id="more is needed than the tasks' minima"),
        pytest.param(5, (("ps", 1), ("worker", 4)), id="as much"),
        pytest.param(3, (), id="less: any three, since a task's minimum is its replicas unless the job says otherwise"),
    ],
)
def test_tasks_minima_count_where_the_job_s_own_is_no_less(minimum: int, minima: Any) -> None:
    found = volcano({"minMember": minimum, "minTaskMember": {"ps": 1, "worker": 4}})
    assert (found.min_member, found.roles.minima) == (minimum, minima)


def test_resources_that_only_a_quota_has_are_not_asked_of_nodes() -> None:
    """Volcano's controller writes what a ResourceQuota would count; its jobs waited for ever: resource gap: count/pods."""
    quota = {
        "count/pods": "3",
        "pods": "3",
        "cpu": "6",
        "requests.cpu": "6",
        "limits.cpu": "6",
        "requests.nvidia.com/gpu": "3",
    }
    found = volcano({"minMember": 3, "minResources": {**quota, "nvidia.com/gpu": "3"}})
    assert found.min_resources is not None
    assert (found.min_resources.milli_cpu, found.min_resources.scalar) == (6000, {"nvidia.com/gpu": 3})


@pytest.mark.parametrize(
    ("topology", "asked"),
    [
        pytest.param({**HARD, "highestTierAllowed": 2}, AskedTopology(required="tier 2"), id="hard is required"),
        pytest.param({"highestTierAllowed": 1}, AskedTopology(required="tier 1"), id="hard is the default"),
        pytest.param({**HARD, "highestTierName": "rack"}, AskedTopology(required="rack"), id="a tier by its name"),
        pytest.param({**SOFT, "highestTierAllowed": 2}, AskedTopology(preferred="tier 2"), id="soft is preferred"),
        pytest.param(SOFT, AskedTopology(preferred="tier 1"), id="soft without a tier prefers the narrowest"),
    ],
)
def test_network_topology(topology: Any, asked: AskedTopology) -> None:
    assert volcano({"minMember": 2, "networkTopology": topology}).topology == asked


def test_what_has_no_meaning_here_is_named() -> None:
    found = volcano({"minMember": 2, "queue": "research", "priorityClassName": "high"})
    assert (found.ignored, found.invalid) == (("spec.queue", "spec.priorityClassName (the pods' priority counts)"), "")
    assert volcano({"minMember": 2, "queue": "default"}).ignored == ()


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        pytest.param({"minMember": -1}, "spec.minMember: Invalid value: -1: must be greater", id="fewer than none"),
        pytest.param({"minMember": "3"}, "spec.minMember: Invalid value: Expected `int", id="a text"),
        pytest.param(
            {"minTaskMember": {"a b": 1}}, "spec.minTaskMember: Invalid value: 'a b': ", id="no label's value"
        ),
        pytest.param({"minTaskMember": {"a": -1}}, "spec.minTaskMember: Invalid value: -1: a must be", id="below 0"),
        pytest.param(
            {"minTaskMember": {"a": 2**31 - 1, "b": 1}}, "spec.minTaskMember: Invalid value: the sum", id="too many"
        ),
        pytest.param(
            {"minTaskMember": {f"t{i}": 1 for i in range(65)}}, "spec.minTaskMember: Too many: must have", id="65 tasks"
        ),
        pytest.param(
            {"minResources": {"cpu": "-1"}}, "spec.minResources: Invalid value: '-1': cpu must be", id="less than none"
        ),
        pytest.param({"networkTopology": HARD}, "spec.networkTopology: Required value: highestTier", id="no tier"),
        pytest.param(
            {"networkTopology": {"highestTierAllowed": 0}}, "spec.networkTopology: Invalid value: 0: ", id="tier 0"
        ),
        pytest.param(
            {"networkTopology": {"highestTierAllowed": 1, "highestTierName": "rack"}},
            "spec.networkTopology: Forbidden: highestTierAllowed and highestTierName",
            id="two tiers",
        ),
        pytest.param(
            {"networkTopology": {"mode": "firm", "highestTierAllowed": 1}},
            'spec.networkTopology: Unsupported value: \'firm\': supported values: "hard", "soft"',
            id="a mode that there is not",
        ),
        pytest.param(
            {"subGroupPolicy": [{"name": "a", "subGroupSize": 2}]}, "spec.subGroupPolicy: Forbidden: ", id="sub-groups"
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_its_field(spec: Any, wrong: str) -> None:
    found = volcano({"minMember": 2, **spec} if "minMember" not in spec else spec)
    assert found.invalid.startswith(f"PodGroup default/g is invalid: {wrong}")
    assert len(found.invalid) < 800
    assert found.invalid.isprintable()


def test_our_annotations_on_it_come_before_its_fields() -> None:
    asked = {"minMember": 2, "minTaskMember": {"a": 1}, "networkTopology": {"highestTierAllowed": 1}}
    found = volcano(asked, roles="b=2", topology_required="zone")
    assert (found.roles.minima, found.topology) == ((("b", 2),), AskedTopology(required="zone"))


def test_koordinator_s_has_scheduler_plugins_fields_and_its_own_default_policy() -> None:
    found = koordinator({"minMember": 3, "scheduleTimeoutSeconds": 60})
    assert (found.min_member, found.schedule_timeout_seconds) == (3, 60)
    assert found.match_policy == MatchPolicy.ONCE_SATISFIED


@pytest.mark.parametrize(
    "key", ["gang.scheduling.koordinator.sh/match-policy", "pod-group.scheduling.sigs.k8s.io/match-policy"]
)
def test_koordinator_s_policy_has_two_names(key: str) -> None:
    assert koordinator({"minMember": 3}, {key: "only-waiting"}).match_policy == MatchPolicy.ONLY_WAITING


def test_a_koordinator_group_that_makes_no_sense_is_refused_by_its_field() -> None:
    assert "spec.minMember: Invalid value: 0" in koordinator({"minMember": 0}).invalid
