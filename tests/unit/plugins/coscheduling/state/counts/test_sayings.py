"""A group without an object asks for what its pods say, and is read anew only where one says something else."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from extender.api import corev1
from extender.plugins.coscheduling.spec.membership import GroupRef
from extender.plugins.coscheduling.state import group_members
from extender.plugins.coscheduling.state.manager.specs import spec_of
from tests.unit.plugins.coscheduling.conftest import pod
from tests.unit.plugins.coscheduling.state.test_group_members import BY_LABELS, annotated, group_with, put


def at(second: int, made: corev1.Pod) -> corev1.Pod:
    """It was created then."""
    stamp = datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)
    return replace(made, metadata=replace(made.metadata, creation_timestamp=stamp))


MORE = GroupRef("default/g", lightweight=True, min_available="3")
ROLES = {"gang-extender.dev/roles": "a=1"}


@pytest.mark.parametrize(
    ("comes", "ref", "anew"),
    [
        pytest.param(at(5, pod("new")), BY_LABELS, False, id="says the same"),
        pytest.param(at(9, pod("new")), BY_LABELS, False, id="says the same, and is younger"),
        pytest.param(at(4, pod("new")), BY_LABELS, True, id="is older than all others"),
        pytest.param(at(5, pod("new")), MORE, True, id="another minimum"),
        pytest.param(at(5, annotated("new", **ROLES)), BY_LABELS, True, id="another wish"),
    ],
)
def test_a_gang_of_labels_asks_anew_for_a_pod_that_says_something_else(
    comes: corev1.Pod, ref: GroupRef, anew: bool
) -> None:
    """All that are there are read for it, under the manager's lock."""
    group = group_with()
    for name in "pq":
        put(group, at(5, pod(name)), BY_LABELS)
    spec = group.spec = spec_of(group, None)
    put(group, comes, ref)
    assert (group.spec is None) is anew
    group.asks_anew()
    assert (spec_of(group, None) == spec) is not anew


def test_what_a_gang_of_labels_asks_for_is_what_its_members_say_whatever_came_and_went() -> None:
    chance = random.Random(11)
    group, created = group_with(), dict[str, int]()
    for _ in range(3000):
        name = f"p{chance.randrange(5)}"
        if name in group.members and chance.random() < 0.5:
            group_members.forget(group, name)
        else:
            if name not in group.members:
                created[name] = chance.randrange(5)
            made = annotated(name, **ROLES) if chance.random() < 0.2 else pod(name)
            put(group, at(created[name], made), MORE if chance.random() < 0.2 else BY_LABELS)
        if group.spec is None:
            group.spec = spec_of(group, None)
        assert group.spec == spec_of(group, None)
        assert sum(group.sayings.said.values()) == len(group.members)
    for name in list(group.members):
        group_members.forget(group, name)
    assert group.sayings.said == {}
