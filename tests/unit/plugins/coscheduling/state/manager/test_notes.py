"""What is noted of groups that wait: what room that comes free, and volumes that change, make void."""

from __future__ import annotations

import pytest

from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.state.gang_queue import Unschedulable
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.waits_for import WaitsFor, kinds_of
from tests.unit.plugins.coscheduling.conftest import FakeClock, pod
from tests.unit.plugins.coscheduling.managing import KEY


def refuse(manager: PodGroupManager, *names: str) -> None:
    for name in names:
        group = manager.pod_changed(pod(f"{name}-0", name))
        assert group is not None
        group.happened(f"{name}-0", MemberEvent.REFUSED)
        manager.denied[group.key] = "no room"


def test_room_that_comes_free_is_for_all_that_wait_but_those_that_gave_it_up(manager: PodGroupManager) -> None:
    refuse(manager, "g", "h")
    manager.pod_changed(pod("i-0", "i"))
    lack = WaitsFor((), room_anywhere=True)
    for key in (KEY, "default/h"):
        manager.queue.add_unschedulable(key, lack)
    manager.notes.on_capacity_freed(but=["default/h", "default/other"])
    assert manager.queue.unschedulable == {"default/h": Unschedulable(lack)}
    assert (list(manager.denied), manager.queue.active, manager.notes.epoch) == (["default/h"], {KEY}, 1)
    manager.notes.on_capacity_freed()
    assert (list(manager.denied), manager.queue.active, manager.notes.epoch) == ([], {KEY, "default/h"}, 2)


def changed(manager: PodGroupManager, *claims: str) -> bool:
    return manager.notes.volumes_changed(manager.queue.index.bringing_volumes(), claims or None)


def test_volumes_help_those_that_bring_volumes_and_wait(manager: PodGroupManager) -> None:
    refuse(manager, "without")
    assert not changed(manager)
    assert manager.notes.epoch == 0
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    manager.pod_changed(pod("with-0", "with", volumes=volumes))
    assert not changed(manager), "it does not wait: it was not refused"
    manager.groups["default/with"].happened("with-0", MemberEvent.REFUSED)
    manager.pod_changed(pod("gated-0", "gated", volumes=volumes, schedulingGates=[{"name": "gate"}]))
    manager.denied["default/with"] = "no volume"
    for key in ("default/with", "default/without"):
        members = [each.info for each in manager.groups[key].members.values()]
        manager.queue.add_unschedulable(key, WaitsFor(kinds_of(members)))
    assert changed(manager)
    assert (list(manager.denied), manager.notes.epoch) == (["default/without"], 1)
    assert list(manager.queue.unschedulable) == ["default/without"]
    assert manager.queue.active == {"default/with", "default/gated"}
    manager.queue.begin_planning("default/with")
    assert changed(manager)
    assert manager.notes.epoch == 2


def test_notes_of_one_group_are_forgotten_alone(manager: PodGroupManager) -> None:
    lack = WaitsFor((), room_anywhere=True)
    for key in (KEY, "default/h"):
        manager.denied[key], manager.permitted[key] = "no room", True
        manager.queue.add_unschedulable(key, lack)
    manager.notes.forget(KEY)
    assert list(manager.queue.unschedulable) == ["default/h"]
    assert (list(manager.denied), list(manager.permitted)) == (["default/h"], ["default/h"])


def test_groups_that_may_be_helped_are_planned_again_and_no_others(manager: PodGroupManager) -> None:
    refuse(manager, "g", "h", "i")
    manager.notes.wake(["default/g", "default/h"])
    assert list(manager.denied) == ["default/i"]
    assert (manager.queue.active, manager.notes.epoch) == ({"default/g", "default/h"}, 1)
    manager.notes.wake([])
    assert (manager.queue.active, manager.notes.epoch) == ({"default/g", "default/h"}, 1), "nothing has happened"
    assert manager.notes.cluster_epoch == 0


CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
EPHEMERAL = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}


@pytest.mark.parametrize(
    ("claim", "helps"),
    [
        pytest.param("default/data", True, id="a member's"),
        pytest.param("default/q-scratch", True, id="one that is made for a member"),
        pytest.param("default/other", False, id="one that no member has"),
        pytest.param("other/data", False, id="one of another namespace"),
    ],
)
def test_a_claim_that_changes_helps_the_groups_whose_members_use_it(
    claim: str, helps: bool, manager: PodGroupManager
) -> None:
    refuse(manager, "g")
    manager.pod_changed(pod("p", "g", volumes=[CLAIM]))
    manager.pod_changed(pod("q", "g", volumes=[EPHEMERAL]))
    assert changed(manager, claim) is helps
    assert (KEY in manager.denied, manager.notes.epoch) == (not helps, int(helps))


def test_how_long_groups_are_denied_and_permitted(clock: FakeClock) -> None:
    manager = PodGroupManager(GroupLabels(), denied_seconds=3.0, permitted_seconds=5.0, clock=clock)
    manager.denied[KEY], manager.permitted[KEY] = "no room", True
    seen = []
    for _ in range(4):
        seen.append((KEY in manager.denied, KEY in manager.permitted))
        clock.now += 2.0
    assert seen == [(True, True), (True, True), (False, True), (False, False)]
    assert manager.notes.epoch == manager.notes.cluster_epoch == 0


def test_what_was_never_noted_is_forgotten_too(manager: PodGroupManager) -> None:
    manager.notes.forget("default/unknown")
    assert list(manager.denied) == []
