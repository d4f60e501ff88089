"""What a group's annotations ask for: which key comes first, what is read, and which changes count."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from extender.api.metav1 import ObjectMeta
from extender.plugins.coscheduling.spec import keys
from extender.plugins.coscheduling.spec.group_annotations import NOTHING, asked_by, asks_for, names_groups, relevant
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.spec.sources.source import KOORDINATOR
from tests.objects import make_pod_group


def annotated(**annotations: str) -> ObjectMeta:
    return ObjectMeta(
        name="g", namespace="default", annotations={getattr(keys, key): text for key, text in annotations.items()}
    )


@pytest.mark.parametrize(
    ("annotations", "field", "value"),
    [
        pytest.param({"MATCH_POLICY": "only-waiting"}, "match_policy", MatchPolicy.ONLY_WAITING, id="a policy"),
        pytest.param(
            {"MATCH_POLICY": "only-waiting", "KOORDINATOR_MATCH_POLICY": "once-satisfied"},
            "match_policy",
            MatchPolicy.ONLY_WAITING,
            id="our own key comes before Koordinator's",
        ),
        pytest.param(
            {"GROUPS": "b, other/c"}, "groups", ("default/b", "other/c"), id="bare names are of its own namespace"
        ),
        pytest.param({"GROUPS": "g"}, "groups", (), id="itself is no other group"),
        pytest.param({"GROUPS": "b"}, "groups_key", keys.GROUPS, id="the key that names them"),
        pytest.param({"KOORDINATOR_GROUPS": '["b"]'}, "groups_key", keys.KOORDINATOR_GROUPS, id="Koordinator's key"),
        pytest.param(
            {"KOORDINATOR_WAITING_TIME": "90s"}, "schedule_timeout_seconds", 90, id="Koordinator's waiting time"
        ),
        pytest.param({"ROLES": "a=1"}, "match_policy", MatchPolicy.WAITING_AND_RUNNING, id="the default policy"),
    ],
)
def test_what_is_read(annotations: dict[str, str], field: str, value: Any) -> None:
    assert getattr(asked_by(annotated(**annotations), "default/g"), field) == value


def test_roles_are_counted_by_their_label_and_a_label_without_roles_means_nothing() -> None:
    roles = asked_by(annotated(ROLES="a=1,b=2", ROLE_LABEL="example.com/kind"), "default/g").roles
    assert (roles.minima, roles.label, roles.total) == ((("a", 1), ("b", 2)), "example.com/kind", 3)
    assert asked_by(annotated(ROLE_LABEL="example.com/kind"), "default/g").roles == NOTHING.roles


def test_one_wrong_value_and_nothing_else_counts() -> None:
    asked = asked_by(annotated(ROLES="a", TOPOLOGY_REQUIRED="rack", GROUPS="b"), "default/g")
    assert asked.invalid.startswith(f"annotation {keys.ROLES}: ")
    assert (asked.groups, asked.topology) == (NOTHING.groups, NOTHING.topology)


def test_a_source_says_which_policy_holds_where_none_is_asked_for() -> None:
    assert asked_by(annotated(), "default/g", KOORDINATOR).match_policy is KOORDINATOR.match_policy
    asked = asked_by(annotated(KOORDINATOR_MATCH_POLICY="only-waiting"), "default/g", KOORDINATOR)
    assert asked.match_policy is MatchPolicy.ONLY_WAITING


def test_annotations_that_ask_for_nothing_are_no_change() -> None:
    plain, other = annotated(), ObjectMeta(name="g", annotations={"example.com/owner": "x"})
    assert relevant(plain) == relevant(other)
    assert relevant(plain) != relevant(annotated(ROLES="a=1"))
    group = make_pod_group().name("g").min_member(2).obj()
    same = replace(group, metadata=replace(group.metadata, resource_version="9"))
    assert asks_for(group) == asks_for(same)
    assert asks_for(group) != asks_for(replace(group, metadata=replace(group.metadata, uid="another")))


@pytest.mark.parametrize(
    ("annotations", "names"),
    [({}, False), ({"GROUPS": "b"}, True), ({"KOORDINATOR_GROUPS": '["b"]'}, True), ({"ROLES": "a=1"}, False)],
)
def test_whether_a_group_names_others(annotations: dict[str, str], names: bool) -> None:
    assert names_groups(annotated(**annotations)) == names
