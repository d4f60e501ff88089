"""Each field of kube-scheduler's own PodGroup: what it means for the gang, or why it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import schedulingv1alpha2, schedulingv1beta1
from extender.api.codec import convert
from extender.plugins.coscheduling.spec.in_tree import spec_of_in_tree
from extender.plugins.coscheduling.spec.pod_group import GroupSpec

Json = dict[str, Any]
OLD, NEW = schedulingv1alpha2.PodGroup, schedulingv1beta1.PodGroup
RACK = "example.com/rack"


def read(type_: type[schedulingv1alpha2.PodGroup], spec: Json, **annotations: str) -> GroupSpec:
    named = {f"gang-extender.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    metadata = {"name": "g", "namespace": "default", "annotations": named}
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, **spec}
    return spec_of_in_tree(convert({"metadata": metadata, "spec": spec}, type_))


@pytest.mark.parametrize("type_", [pytest.param(OLD, id="v1alpha2"), pytest.param(NEW, id="v1beta1")])
@pytest.mark.parametrize(
    ("spec", "attribute", "means"),
    [
        pytest.param({}, "min_member", 2, id="a gang of minCount"),
        pytest.param({"schedulingPolicy": {"basic": {}}}, "min_member", 1, id="basic: each pod is on its own"),
        pytest.param({"priority": 7, "priorityClassName": "high"}, "priority", 7, id="a priority of its own"),
        pytest.param({"priority": 0}, "priority", 0, id="a priority of 0 is one"),
        pytest.param({}, "priority", None, id="without one: its members'"),
        pytest.param({}, "preempts", True, id="it preempts"),
        pytest.param({}, "disrupted_whole", False, id="its members go one by one"),
        pytest.param({"schedulingConstraints": {}}, "invalid", "", id="no constraint"),
        pytest.param({"resourceClaims": []}, "invalid", "", id="no claim"),
    ],
)
def test_what_a_field_means(
    type_: type[schedulingv1alpha2.PodGroup], spec: Json, attribute: str, means: object
) -> None:
    found = read(type_, spec)
    assert (found.invalid, getattr(found, attribute)) == ("", means)


@pytest.mark.parametrize(
    ("type_", "spec", "attribute", "means"),
    [
        pytest.param(OLD, {"disruptionMode": "Pod"}, "disrupted_whole", False, id="v1alpha2: Pod"),
        pytest.param(OLD, {"disruptionMode": "PodGroup"}, "disrupted_whole", True, id="v1alpha2: PodGroup"),
        pytest.param(NEW, {"disruptionMode": {"single": {}}}, "disrupted_whole", False, id="v1beta1: single"),
        pytest.param(NEW, {"disruptionMode": {"all": {}}}, "disrupted_whole", True, id="v1beta1: all"),
        pytest.param(NEW, {"preemptionPolicy": "Never"}, "preempts", False, id="Never"),
        pytest.param(NEW, {"preemptionPolicy": "PreemptLowerPriority"}, "preempts", True, id="PreemptLowerPriority"),
    ],
)
def test_what_a_field_of_one_version_means(
    type_: type[schedulingv1alpha2.PodGroup], spec: Json, attribute: str, means: object
) -> None:
    found = read(type_, spec)
    assert (found.invalid, getattr(found, attribute)) == ("", means)


def test_a_topology_constraint_is_a_required_level_beside_what_annotations_ask_for() -> None:
    found = read(NEW, {"schedulingConstraints": {"topology": [{"key": RACK}]}}, topology_preferred="board")
    assert (found.invalid, found.topology.node_label, found.topology.preferred) == ("", RACK, "board")


LONG = "x" * 400


@pytest.mark.parametrize(
    ("type_", "spec", "why"),
    [
        pytest.param(
            NEW,
            {"schedulingPolicy": {"later": {}}},
            "spec.schedulingPolicy: Invalid value: must specify exactly one of: `basic`, `gang`",
            id="a policy of a later Kubernetes",
        ),
        pytest.param(
            OLD,
            {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 2}}},
            "spec.schedulingPolicy: Invalid value: must specify exactly one of: `basic`, `gang`",
            id="two policies",
        ),
        pytest.param(
            NEW,
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            "spec.schedulingPolicy.gang.minCount: Invalid value: 0: must be greater than or equal to 1",
            id="no member",
        ),
        pytest.param(
            NEW,
            {"schedulingConstraints": {"topology": [{"key": RACK}, {"key": "zone"}]}},
            "spec.schedulingConstraints.topology: Too many: 2: must have at most 1 items",
            id="two levels",
        ),
        pytest.param(
            OLD,
            {"schedulingConstraints": {"topology": [{"key": LONG}]}},
            "spec.schedulingConstraints.topology: Invalid value: ",
            id="a level that is no label's key",
        ),
        pytest.param(
            NEW,
            {"priorityClassName": "high"},
            "spec.priorityClassName: Invalid value: 'high': spec.priority is not set",
            id="a class that no admission has resolved",
        ),
        pytest.param(
            OLD,
            {"priority": 2_000_000_000},
            "spec.priority: Invalid value: 2000000000: must be less than or equal to 1000000000",
            id="a priority of the system",
        ),
        pytest.param(
            NEW,
            {"preemptionPolicy": LONG},
            "spec.preemptionPolicy: Unsupported value: 'xxx",
            id="a policy that is none",
        ),
        pytest.param(
            OLD,
            {"disruptionMode": "Node"},
            'spec.disruptionMode: Unsupported value: \'Node\': supported values: "Pod", "PodGroup"',
            id="a mode that is none",
        ),
        pytest.param(
            NEW,
            {"disruptionMode": {}},
            "spec.disruptionMode: Invalid value: must specify exactly one of: `single`, `all`",
            id="no mode",
        ),
        pytest.param(
            NEW,
            {"disruptionMode": {"single": {}, "all": {}}},
            "spec.disruptionMode: Invalid value: must specify exactly one of: `single`, `all`",
            id="both modes",
        ),
        pytest.param(
            NEW,
            {"resourceClaims": [{"name": "gpus"}]},
            "spec.resourceClaims: Forbidden: claims that the pods of a group share are not supported",
            id="claims of the group",
        ),
    ],
)
def test_a_field_that_cannot_be_honoured_is_refused_by_its_name(
    type_: type[schedulingv1alpha2.PodGroup], spec: Json, why: str
) -> None:
    found = read(type_, spec).invalid
    assert found.startswith(f"PodGroup default/g is invalid: {why}")
    assert len(found) < 300


def test_an_annotation_that_requires_another_level_is_refused() -> None:
    constraint = {"schedulingConstraints": {"topology": [{"key": RACK}]}}
    assert read(NEW, constraint, topology_required=RACK).invalid == ""
    assert read(NEW, constraint, topology_required="zone").invalid == (
        "PodGroup default/g is invalid: annotation gang-extender.dev/topology-required: Invalid value: 'zone': "
        f"spec.schedulingConstraints.topology requires {RACK}"
    )
