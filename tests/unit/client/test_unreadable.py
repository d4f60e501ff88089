"""A PodGroup of which a field is not what the type asks for is kept, with the field and the reason; all other kinds are not."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import codec, corev1, schedulingv1alpha1, schedulingv1alpha2
from extender.client.interface import IN_TREE_GROUPS, POD_GROUPS, ResourceType, pod_group_reference, resource_of
from extender.client.unreadable import convert, decode

Kinds = schedulingv1alpha1.PodGroup | schedulingv1alpha2.PodGroup
OURS, IN_TREE = schedulingv1alpha1.PodGroup, schedulingv1alpha2.PodGroup
NAMED = {"name": "g", "namespace": "default", "uid": "u"}


@pytest.mark.parametrize(
    ("type_", "spec", "why"),
    [
        pytest.param(OURS, {"minMember": "3"}, "spec.minMember: Invalid value: Expected `int", id="a text"),
        pytest.param(OURS, {"minMember": 2**63}, "spec.minMember: Invalid value: Expected `int`", id="2^63"),
        pytest.param(OURS, {"minMember": 1.5}, "spec.minMember: Invalid value: Expected `int`", id="a fraction"),
        pytest.param(OURS, {"minMember": 10**400}, "spec.minMember: Invalid value: ", id="400 digits"),
        pytest.param(OURS, {"minMember": []}, "spec.minMember: Invalid value: ", id="a list"),
        pytest.param(OURS, {"minResources": {"cpu": "1e999999999"}}, "spec.minResources[...]: ", id="an exponent"),
        pytest.param(OURS, {"minResources": {"cpu": "9" * 100_000}}, "spec.minResources[...]: ", id="100,000 digits"),
        pytest.param(OURS, {"minResources": ["cpu"]}, "spec.minResources: ", id="a list for a map"),
        pytest.param(OURS, "spec", "spec: Invalid value: Expected `object`, got `str`", id="a text for the spec"),
        pytest.param(
            IN_TREE, {"schedulingPolicy": {"gang": {"minCount": None, "x": 1}, "y": None}}, "", id="null is absent"
        ),
        pytest.param(
            IN_TREE, {"schedulingPolicy": {"gang": {"minCount": "x"}}}, "spec.schedulingPolicy.gang.minCount: ", id="in"
        ),
    ],
)
def test_what_is_wrong_with_a_spec_is_said(type_: type[Kinds], spec: Any, why: str) -> None:
    written = {"metadata": NAMED, "spec": spec}
    for group in (decode(codec.encode(written), type_), convert(written, type_)):
        assert isinstance(group, type_)
        assert group.metadata.uid == "u"
        assert group.unreadable.startswith(why)
        assert bool(group.unreadable) == bool(why)
        assert len(group.unreadable) < 700


def test_a_status_that_cannot_be_read_is_not_the_owner_s_matter() -> None:
    managed = {"manager": "controller-manager", "fieldsV1": {"f:status": {"f:phase": {}}}}
    metadata = {**NAMED, "managedFields": [managed]}
    written = {"metadata": metadata, "spec": {"minMember": 3}, "status": {"conditions": "none"}}
    group = decode(codec.encode(written), OURS)
    assert (group.unreadable, group.spec.min_member, group.status.conditions) == ("", 3, ())
    assert group.phase_managers == {"controller-manager"}


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        pytest.param(OURS, {"spec": {}}, id="no metadata"),
        pytest.param(OURS, {"metadata": {"name": 5}, "spec": {"minMember": "3"}}, id="metadata that cannot be read"),
        pytest.param(OURS, {"metadata": {**NAMED, "creationTimestamp": "soon"}}, id="a time that is none"),
        pytest.param(OURS, {"metadata": {**NAMED, "creationTimestamp": "2026-01-01T00:00:00"}}, id="a time of nowhere"),
        pytest.param(OURS, {"metadata": {**NAMED, "creationTimestamp": "0000-01-01T00:00:00Z"}}, id="the year 0"),
        pytest.param(corev1.Pod, {"metadata": NAMED, "spec": {"priority": 2**63}}, id="a pod"),
    ],
)
def test_anything_else_is_a_mistake(type_: type[Any], written: dict[str, Any]) -> None:
    with pytest.raises(codec.DecodeError):
        decode(codec.encode(written), type_)
    with pytest.raises(codec.DecodeError):
        convert(written, type_)


@pytest.mark.parametrize("resource", [POD_GROUPS, *IN_TREE_GROUPS], ids=str)
@pytest.mark.parametrize("spec", [pytest.param({}, id="readable"), pytest.param("spec", id="unreadable")])
def test_what_is_told_of_it_goes_to_the_object_that_it_is(resource: ResourceType[Any], spec: Any) -> None:
    group = convert({"metadata": NAMED, "spec": spec}, resource.type)
    assert (resource_of(group), pod_group_reference(group).api_version) == (resource, resource.api_version)
