"""The line of gangs that wait: at which priority and age each stands in it, alone and with the groups that it starts with."""

from __future__ import annotations

from datetime import UTC, datetime
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.unit.plugins.coscheduling.conftest import pod, pod_group
from tests.unit.plugins.coscheduling.managing import KEY, POD, cut_short, naming


def test_of_groups_that_start_together_the_lowest_priority_and_the_last_quorum_count(manager: PodGroupManager) -> None:
    for name, priority, day in (("g", 5, 1), ("h", 3, 2)):
        manager.objects.pod_group_changed(naming(name, "h" if name == "g" else "g"))
        made = pod(f"{name}0", name, priority=priority)
        manager.pod_changed(
            replace(made, metadata=replace(made.metadata, creation_timestamp=datetime(2026, 1, day, tzinfo=UTC)))
        )
    standing = manager.line.standing(manager.groups[KEY])
    assert (standing.priority, standing.since) == (3, datetime(2026, 1, 2, tzinfo=UTC))
    assert manager.line.priority_of(manager.groups[KEY]) == 3
    manager.gang_set_index.mark_whole(manager.gang_set_index.gang_set(KEY))
    assert manager.line.priority_of(manager.groups[KEY]) == 5, "once they were whole each is on its own"


@pytest.mark.parametrize(
    ("others", "since"),
    [
        pytest.param(0, datetime(2026, 1, 1, tzinfo=UTC), id="a group that is not there has no age"),
        pytest.param(1, datetime.max.replace(tzinfo=UTC), id="one without its quorum is younger than any"),
    ],
)
def test_the_age_of_a_set_that_is_not_complete(manager: PodGroupManager, others: int, since: datetime) -> None:
    group = manager.objects.pod_group_changed(naming("g", "h"))
    manager.pod_changed(pod("p", "g", priority=5))
    for _ in range(others):
        manager.objects.pod_group_changed(naming("h", "g", min_member=2))
        manager.pod_changed(pod("q", "h", priority=9))
    standing = manager.line.standing(group)
    assert (standing.priority, standing.since) == (5, since)


def test_a_standing_is_kept_until_a_member_changes(manager: PodGroupManager) -> None:
    group = manager.objects.pod_group_changed(pod_group("g", 1))
    manager.pod_changed(POD)
    standing = manager.line.standing(group)
    assert manager.line.standing(group) is standing
    manager.pod_changed(pod("p", "g", priority=7))
    assert manager.line.standing(group).priority == 7
    manager.pod_changed(pod("q", "g", priority=9))
    assert manager.line.standing(group).priority == 9, "of a quorum of one the most important"
    manager.objects.pod_group_changed(pod_group("g", 2))
    assert manager.line.standing(group).priority == 7, "and of two the other"


def gang(manager: PodGroupManager, name: str, priority: int = 0, day: int = 1) -> Group:
    group = manager.objects.pod_group_changed(pod_group(name, 1))
    made = pod(f"{name}-0", name, priority=priority)
    stamp = datetime(2026, 1, day, tzinfo=UTC)
    manager.pod_changed(replace(made, metadata=replace(made.metadata, creation_timestamp=stamp)))
    return group


def test_what_has_begun_comes_first_then_priority_then_age_then_the_name(manager: PodGroupManager) -> None:
    groups = [
        gang(manager, "a-young", day=5),
        gang(manager, "b"),
        gang(manager, "a"),
        gang(manager, "high", priority=9, day=7),
        cut_short(manager, "begun"),
    ]
    first = [each.key.partition("/")[2] for each in manager.line.in_order(groups)]
    assert first == ["begun", "high", "a", "b", "a-young"]


@pytest.mark.faults
def test_a_gang_at_which_the_order_raises_is_set_aside_and_the_others_go_on(
    manager: PodGroupManager, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = gang(manager, "good"), gang(manager, "bad")
    bad.standing, bad.members = None, Mock(values=Mock(side_effect=KeyError("a fault of ours")))
    assert manager.line.in_order([bad, good]) == [good]
    assert list(manager.quarantine) == ["default/bad"]
    assert "unexpected error where=order group=default/bad" in caplog.text
