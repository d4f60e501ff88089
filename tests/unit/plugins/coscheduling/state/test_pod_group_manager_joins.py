"""What follows for its gang from a member that joins it, or does not; and in which group a pod is found."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from extender.api import corev1
from extender.api.schedulingv1alpha1 import GANG_GATE
from extender.metrics import REGISTRY
from extender.plugins.coscheduling.spec.keys import GIVE_UP_AFTER
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.state import pod_group_manager
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import AT_ONCE, PodGroupManager, by_turns
from tests.objects import make_pod, make_pod_group
from tests.unit.plugins.coscheduling.conftest import LABEL, FakeClock, pod, pod_group
from tests.unit.plugins.coscheduling.managing import KEY, POD, hold, members, place
from tests.unit.plugins.coscheduling.starting import bound_by

REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"


def keys(groups: list[Group]) -> list[str]:
    return [each.key for each in groups]


# Gangs that come in phases


@pytest.fixture
def quiet(clock: FakeClock) -> PodGroupManager:
    """An incomplete gang that no member joins for half a minute is taken for one that comes in phases."""
    return PodGroupManager(
        GroupLabels(),
        denied_seconds=1,
        permitted_seconds=1,
        clock=clock,
        to_come_seconds=60,
        in_part_after_seconds=30,
    )


def test_a_gang_that_no_member_joins_for_so_long_is_one_that_comes_in_phases(
    quiet: PodGroupManager, clock: FakeClock
) -> None:
    group = quiet.objects.pod_group_changed(pod_group("g", 3))
    quiet.pod_changed(POD)
    quiet.denied[KEY] = "members are missing"
    clock.now += 29
    assert (quiet.note_in_part(), group.in_part, quiet.notes.epoch) == ([], False, 0)
    clock.now += 1
    assert (quiet.note_in_part(), group.in_part, quiet.notes.epoch) == ([KEY], True, 1)
    assert (list(quiet.denied), quiet.queue.active) == ([], {KEY}), "it is planned for those that are there"
    assert quiet.note_in_part() == [], "noted once"


def test_each_member_that_joins_puts_that_off_and_one_that_changes_does_not(
    quiet: PodGroupManager, clock: FakeClock
) -> None:
    group = quiet.objects.pod_group_changed(pod_group("g", 5))
    for name in "pq":
        quiet.pod_changed(pod(name, "g"))
        clock.now += 20
    quiet.pod_changed(pod("p", "g", priority=1))
    assert quiet.note_in_part() == []
    clock.now += 10
    assert quiet.note_in_part() == [KEY]
    quiet.pod_changed(pod("r", "g"))
    assert not group.in_part, "one has come after all"


def test_a_gang_that_is_gone_is_noted_as_nothing(quiet: PodGroupManager, clock: FakeClock) -> None:
    quiet.pod_changed(POD)
    quiet.pod_changed(pod("q", "h"))
    quiet.pod_gone(POD)
    clock.now += 30
    assert quiet.note_in_part() == ["default/h"]


def test_where_no_time_is_configured_no_gang_is_taken_for_one_in_phases(
    manager: PodGroupManager, clock: FakeClock
) -> None:
    manager.pod_changed(POD)
    clock.now += 9999
    assert manager.note_in_part() == []


def test_one_more_member_of_a_job_in_steps_is_news_to_what_was_decided_of_it(manager: PodGroupManager) -> None:
    """A plan without it may refuse what fits with it."""
    manager.pod_changed(POD)
    assert manager.notes.epoch == 0
    step = pod("q", labels={LABEL: "g", REPLICATED_JOB: "dataset-initializer"})
    manager.pod_changed(step)
    manager.pod_changed(step)
    assert manager.notes.epoch == 1


def test_a_gang_that_was_whole_waits_for_those_that_exist(manager: PodGroupManager) -> None:
    group = manager.objects.pod_group_changed(pod_group("g", 3))
    manager.pod_changed(pod("a", "g", node_name="n1"))
    manager.pod_changed(POD)
    place(manager, POD)
    group.whole_of, group.planned = 3, True
    manager.places.follow(group)
    assert group.planned, "two of three are all that there are"
    manager.pod_changed(pod("q", "g"))
    assert not group.planned, "there is one more, without a place"


# Where a pod is found


def test_the_groups_of_some_pods_are_their_own_and_those_that_hold_them(manager: PodGroupManager) -> None:
    for name, group in (("p", "h"), ("q", "g"), ("r", "g"), ("s", "i")):
        manager.pod_changed(pod(name, group))
    hold(manager.groups["default/g"], "q")
    manager.pod_changed(pod("q", "k"))
    assert keys(manager.groups_with(["q", "p", "unknown"])) == ["default/g", "default/h", "default/k"]
    assert manager.groups_with([]) == []


def test_a_pod_is_in_the_group_that_it_was_shown_in_else_in_the_one_that_it_names(manager: PodGroupManager) -> None:
    group = manager.pod_changed(POD)
    assert manager.group_known_of(pod("p", "h")) is group, "whatever a call says of it"
    assert manager.group_known_of(pod("new", "g")) is group
    assert manager.group_known_of(pod("new", "h")) is None
    assert manager.group_known_of(pod("single")) is None


def test_a_member_that_counts_as_before_stays_where_it_is(manager: PodGroupManager) -> None:
    group = manager.pod_changed(POD)
    assert group is not None
    later = pod("p", "g", node_name="n1")
    manager.member_stays(group, later)
    assert (group.members["p"].pod, group.assigned, members(group)) == (later, {"p"}, ["p"])


@pytest.mark.parametrize(
    ("ended", "group"),
    [
        pytest.param(pod("p", "g", deleting=True), KEY, id="it is deleted"),
        pytest.param(pod("p", deleting=True), KEY, id="it is deleted, and has lost its label"),
        pytest.param(pod("new", "g", deleting=True), KEY, id="it was never a member, and names the group"),
        pytest.param(pod("new", "h", deleting=True), None, id="it names a group that is not there"),
        pytest.param(pod("new", deleting=True), None, id="it is of no group"),
    ],
)
def test_of_which_group_a_pod_was_that_ends(ended: corev1.Pod, group: str | None, manager: PodGroupManager) -> None:
    for name in "pq":
        manager.pod_changed(pod(name, "g"))
    found = manager.pod_changed(ended)
    assert (found.key if found is not None else None) == group
    assert not manager.is_member(ended.uid)
    assert manager.is_gone(ended)
    assert not manager.is_gone(pod("q", "g"))


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_whose_containers_have_ended_is_no_member_any_more(phase: str, manager: PodGroupManager) -> None:
    manager.pod_changed(pod("q", "g"))
    manager.pod_changed(POD)
    group = manager.pod_changed(replace(POD, status=replace(POD.status, phase=phase)))
    assert members(group) == ["q"]


def test_a_member_that_goes_while_it_is_held_is_its_group_s_until_its_call_ends(manager: PodGroupManager) -> None:
    group = manager.pod_changed(POD)
    assert group is not None
    hold(group, "p")
    manager.pod_gone(POD)
    assert manager.holder_of(POD) is group
    assert not manager.is_member("p")
    manager.hold_is_over(group, "p")
    assert keys(manager.groups_with(["p"])) == []


def test_both_gates_on_a_member_keep_it_from_any_plan(clock: FakeClock) -> None:
    manager = PodGroupManager(GroupLabels(), denied_seconds=1, permitted_seconds=1, clock=clock)
    assert manager.gate == GANG_GATE
    for name, gates in (("p", [GANG_GATE]), ("q", [GANG_GATE, "theirs"]), ("r", [])):
        manager.pod_changed(pod(name, "g", schedulerName="ours", schedulingGates=[{"name": gate} for gate in gates]))
    plannable = manager.plannable(manager.groups[KEY], "ours")
    assert [info.pod.name for info in plannable] == ["p", "r"]


def test_a_plan_falls_with_the_member_that_goes(manager: PodGroupManager) -> None:
    group = manager.objects.pod_group_changed(pod_group("g", 2))
    for name in "pq":
        manager.pod_changed(pod(name, "g"))
        group.happened(name, MemberEvent.REFUSED)
        place(manager, pod(name, "g"))
    group.planned = True
    manager.pod_gone(POD)
    assert (group.planned, manager.queue.active) == (False, {KEY})


# By whose clocks


def test_starts_and_patience_go_by_the_time_of_day_and_faults_by_the_clock(clock: FakeClock) -> None:
    began, now = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)
    manager = PodGroupManager(GroupLabels(), denied_seconds=1, permitted_seconds=1, clock=clock, wall=lambda: now)
    made = make_pod_group().namespace("default").name("g").min_member(2).annotation(str(GIVE_UP_AFTER), "30s")
    group = manager.objects.pod_group_changed(made.obj())
    manager.pod_changed(bound_by(pod("p", "g", node_name="n1"), 2, ["p", "q"], began))
    manager.pod_changed(make_pod().namespace("default").name("q").uid("q").pod_group("g").obj())
    assert manager.begun.recall(group), "it began half a minute ago"
    for name in "pq":
        member = group.members[name].pod
        manager.pod_changed(replace(member, metadata=replace(member.metadata, creation_timestamp=began)))
    assert manager.line.has_given_up(group)
    seconds = "gang_extender_gang_start_duration_seconds_sum"
    before = REGISTRY.get_sample_value(seconds, {"outcome": "bound"}) or 0.0
    manager.starts.begins(KEY, began)
    manager.starts.is_whole(KEY)
    assert REGISTRY.get_sample_value(seconds, {"outcome": "bound"}) == before + 30.0
    manager.quarantine.set_aside(KEY)
    assert manager.quarantine.since(KEY) == clock.now


def test_a_start_under_way_is_forgotten_with_its_group(manager: PodGroupManager) -> None:
    count = "gang_extender_gang_start_duration_seconds_count"
    before = REGISTRY.get_sample_value(count, {"outcome": "bound"})
    manager.pod_changed(POD)
    manager.starts.begins(KEY, datetime(2026, 1, 1, tzinfo=UTC))
    manager.pod_gone(POD)
    manager.starts.is_whole(KEY)
    assert REGISTRY.get_sample_value(count, {"outcome": "bound"}) == before


def test_what_is_kept_for_members_that_are_made_later_is_configured(clock: FakeClock) -> None:
    made = PodGroupManager(GroupLabels(), denied_seconds=1, permitted_seconds=1, clock=clock)
    assert (made.to_come_seconds, made.in_part_after_seconds) == (0.0, 0.0), "nothing, if it is not"
    made = PodGroupManager(
        GroupLabels(), denied_seconds=1, permitted_seconds=1, clock=clock, to_come_seconds=60, in_part_after_seconds=30
    )
    assert (made.to_come_seconds, made.in_part_after_seconds) == (60, 30)


def test_between_two_parts_of_all_groups_answers_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    monkeypatch.setattr(pod_group_manager, "pause", lambda: happened.append("pause"))
    monkeypatch.setattr(pod_group_manager, "PART_SECONDS", 3600.0)

    def walk() -> Iterator[int]:
        for part in by_turns(range(2 * AT_ONCE + 1)):
            found = list(part)
            happened.append(f"{len(found)}")
            yield from found

    assert list(walk()) == list(range(2 * AT_ONCE + 1))
    assert happened == [f"{AT_ONCE}", "pause", f"{AT_ONCE}", "pause", "1"]
