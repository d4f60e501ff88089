"""Each key and field says what is wrong with a value; what an honest owner writes is read."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api.codec import convert
from extender.api.metadata_keys import Key, Source
from extender.api.metav1 import ObjectMeta
from extender.api.schedulingv1alpha1 import PodGroup
from extender.plugins.coscheduling.spec import keys
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.spec.pod_group import GroupSpec, spec_of_labels, spec_of_pod_group
from extender.plugins.coscheduling.spec.reading import Reading
from tests.objects import make_pod

NOT_A_GROUP_LIST = "must be a JSON list of namespace/name"
LONG = "x" * 300


def annotated(key: str, value: str) -> GroupSpec:
    group = {"metadata": {"name": "g", "namespace": "default", "annotations": {key: value}}, "spec": {"minMember": 2}}
    return spec_of_pod_group(convert(group, PodGroup))


def with_field(**spec: Any) -> GroupSpec:
    group = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 2, **spec}}
    return spec_of_pod_group(convert(group, PodGroup))


@pytest.mark.parametrize(
    ("key", "value", "wrong"),
    [
        pytest.param(keys.KOORDINATOR_WAITING_TIME, "9" * 310 + "s", "Too long", id="a duration beyond all floats"),
        pytest.param(keys.KOORDINATOR_WAITING_TIME, "9" * 60 + "s", "must be a duration", id="a duration of ages"),
        pytest.param(keys.KOORDINATOR_WAITING_TIME, "24h1s", "between 0s and 24h", id="more than a day"),
        pytest.param(keys.KOORDINATOR_WAITING_TIME, "-1s", "between 0s and 24h", id="a negative duration"),
        pytest.param(keys.KOORDINATOR_WAITING_TIME, "9" * 100_000, "Too long", id="100,000 digits"),
        pytest.param(keys.KOORDINATOR_WAITING_TIME, "\u0661s", "must be a duration", id="digits that are not ASCII"),
        pytest.param(keys.KOORDINATOR_WAITING_TIME, "nan", "must be a duration", id="not a number"),
        pytest.param(keys.KOORDINATOR_GROUPS, "[" * 2000, NOT_A_GROUP_LIST, id="2,000 brackets"),
        pytest.param(keys.KOORDINATOR_GROUPS, "[" * 100_000, "Too long", id="100,000 brackets"),
        pytest.param(keys.KOORDINATOR_GROUPS, '["a", 1]', NOT_A_GROUP_LIST, id="a list with a number"),
        pytest.param(keys.KOORDINATOR_GROUPS, '["\\ud800"]', NOT_A_GROUP_LIST, id="half a character"),
        pytest.param(keys.KOORDINATOR_GROUPS, '["a\\nb"]', "must be namespace/name", id="a name of two lines"),
        pytest.param(keys.KOORDINATOR_MODE, "strict", 'supported values: "Strict"', id="a mode in lower case"),
        pytest.param(keys.GROUPS, "../a", "must be namespace/name", id="a path for a name"),
        pytest.param(keys.GROUPS, "Upper/a", "must be namespace/name", id="a namespace in upper case"),
        pytest.param(keys.GROUPS, "a" * 64 + "/a", "must be namespace/name", id="a namespace that is too long"),
        pytest.param(keys.GROUPS, "a" * 254, "must be namespace/name", id="a name that is too long"),
        pytest.param(keys.GROUPS, ",".join(f"g{i}" for i in range(64)), "Too many", id="64 other groups"),
        pytest.param(keys.GROUPS, ",".join(f"g{i}" for i in range(1500)), "Too many", id="1,500 groups"),
        pytest.param(keys.ROLES, "worker", "must be role=minimum", id="a role without its minimum"),
        pytest.param(keys.ROLES, "a=1,a=2", "Duplicate value: 'a'", id="a role that is there twice"),
        pytest.param(keys.ROLES, "a=2147483648", "must be role=minimum", id="a minimum that is no int32"),
        pytest.param(keys.ROLES, "a=-1", "must be role=minimum", id="a minimum below 0"),
        pytest.param(keys.ROLES, "a=2147483647,b=1", "sum of the minima", id="a sum that is no int32"),
        pytest.param(keys.ROLES, "a b=1", "letters, digits", id="a role that no label can have"),
        pytest.param(keys.ROLES, ",".join(f"r{i}=1" for i in range(65)), "Too many", id="65 roles"),
        pytest.param(keys.ROLES, "," * 8000, "must be role=minimum", id="commas"),
        pytest.param(keys.ROLE_LABEL, "a/b/c", "a valid label key", id="a label with two slashes"),
        pytest.param(keys.TOPOLOGY_REQUIRED, LONG + "x" * 20, "Too long", id="a level that is too long"),
        pytest.param(keys.TOPOLOGY_PREFERRED, "ra\x00ck", "topology level", id="a level with a control character"),
        pytest.param(keys.MATCH_POLICY, "Only-Waiting", "Unsupported value", id="a policy in other letters"),
        pytest.param(keys.MATCH_POLICY, LONG, "Too long: 'xxx", id="a policy of 300 letters"),
    ],
)
def test_nonsense_is_refused_by_its_key_and_quoted_cut(key: Key[Any], value: str, wrong: str) -> None:
    spec = annotated(key, value)
    assert spec.invalid.startswith(f"PodGroup default/g is invalid: annotation {key}: ")
    assert wrong in spec.invalid
    assert len(spec.invalid) < 500
    assert spec.invalid.isprintable()


@pytest.mark.parametrize(
    ("field", "value", "wrong"),
    [
        pytest.param("minMember", 0, "Invalid value: 0: must be greater than or equal to 1", id="no member"),
        pytest.param("minMember", -(2**31), "must be greater than or equal to 1", id="fewer than none"),
        pytest.param("scheduleTimeoutSeconds", -1, "must be between 0 and 86400", id="a negative wait"),
        pytest.param("scheduleTimeoutSeconds", 2**31 - 1, "must be between 0 and 86400", id="a wait of 68 years"),
        pytest.param("minResources", {"cpu": "-1"}, "'-1': cpu must be greater than or equal to 0", id="negative"),
        pytest.param("minResources", {"a b": "1"}, "name part must be", id="a resource that there cannot be"),
        pytest.param("minResources", {f"r{i}": "1" for i in range(65)}, "Too many", id="65 resources"),
    ],
)
def test_a_field_that_makes_no_sense_is_refused_by_its_name(field: str, value: Any, wrong: str) -> None:
    spec = with_field(**{field: value})
    assert spec.invalid.startswith(f"PodGroup default/g is invalid: spec.{field}: ")
    assert wrong in spec.invalid


def test_a_minimum_that_cannot_be_read_makes_no_group_a_fraction() -> None:
    spec = with_field(minMember=-5)
    assert spec.min_member == 0


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(with_field(scheduleTimeoutSeconds=0), id="a wait of 0 is the scheduler's own"),
        pytest.param(with_field(scheduleTimeoutSeconds=86400), id="a day"),
        pytest.param(with_field(minMember=2**31 - 1), id="as many members as can be asked for"),
        pytest.param(with_field(minResources={"nvidia.com/gpu": "8", "requests.storage": "1Ti"}), id="resources"),
        pytest.param(annotated(keys.KOORDINATOR_WAITING_TIME, "0s"), id="no waiting time"),
        pytest.param(annotated(keys.GROUPS, " viewer, data/cache ,"), id="groups with blanks around them"),
        pytest.param(annotated(keys.GROUPS, "Job_A"), id="a name that only a label can have"),
        pytest.param(annotated(keys.KOORDINATOR_GROUPS, "[]"), id="no groups"),
        pytest.param(annotated(keys.ROLES, "ps.v1=0, Worker_2 = 3"), id="roles with blanks around them"),
        pytest.param(annotated(keys.MATCH_POLICY, "  "), id="an empty value is none"),
        pytest.param(annotated("gang-extender.dev/unknown", LONG), id="a key that nothing reads"),
    ],
)
def test_what_owners_write_is_read(spec: GroupSpec) -> None:
    assert spec.invalid == ""


def test_the_first_that_is_wrong_is_told_fields_before_annotations() -> None:
    metadata = {"name": "g", "namespace": "default", "annotations": {keys.ROLES: "x", keys.MATCH_POLICY: "x"}}
    group = convert({"metadata": metadata, "spec": {"minMember": 0, "scheduleTimeoutSeconds": -1}}, PodGroup)
    assert "spec.minMember" in spec_of_pod_group(group).invalid


@pytest.mark.parametrize(
    "name",
    ["a\nb", "a/b", "\x00", "x" * 254, "x" * 200_000, "../../etc", "é", "-a", " ", "a b", "'; --"],
    ids=lambda name: ascii(name[:12]),
)
def test_a_name_that_is_none_makes_an_invalid_group_of_its_own(name: str) -> None:
    labels = GroupLabels()
    pod = make_pod().namespace("default").name("p").annotation(keys.KOORDINATOR_NAME, name).obj()
    ref = labels.group_of(pod)
    assert ref is not None
    assert ref == labels.group_of(pod)
    assert len(ref.key) < 30
    assert ref.key.isprintable()
    spec = spec_of_labels(ref.key, [(pod, ref)])
    assert spec.invalid.startswith(f"annotation {keys.KOORDINATOR_NAME}: Invalid value: ")
    assert len(spec.invalid) < 400
    assert spec.invalid.isprintable()


def test_two_names_that_are_none_make_two_groups_in_each_namespace() -> None:
    pods = [
        make_pod().namespace(namespace).name("p").annotation(keys.KOORDINATOR_NAME, name).obj()
        for namespace in ("a", "b")
        for name in ("x y", "x z")
    ]
    refs = [GroupLabels().group_of(pod) for pod in pods]
    assert len({ref.key for ref in refs if ref is not None}) == 4


def test_pods_of_koordinator_without_a_minimum_are_told_so() -> None:
    pod = make_pod().namespace("default").name("p").annotation(keys.KOORDINATOR_NAME, "g").obj()
    ref = GroupLabels().group_of(pod)
    assert ref is not None
    wanted = f"group default/g is invalid: annotation {keys.KOORDINATOR_MIN_AVAILABLE}: Required value"
    assert spec_of_labels(ref.key, [(pod, ref)]).invalid == wanted


@pytest.mark.faults
def test_a_parser_that_was_not_prepared_makes_one_value_invalid() -> None:
    def broken(text: str) -> str:
        raise OverflowError(text)

    key = Key("example.com/broken", Source.ANNOTATION, ("PodGroup",), 10, broken)
    reading = Reading()
    assert reading.value(ObjectMeta(annotations={key: "1"}), key) is None
    assert reading.invalid == "annotation example.com/broken: Invalid value: it cannot be read"
