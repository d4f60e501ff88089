"""The state of gangs as it is kept: what a dump shows at each step of a gang's way, also of one that is set aside."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.plugins.coscheduling.report.gang_dump import GangDump, all_gangs, one_gang
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, members

Make = Callable[..., World]


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "3")]))


def dump(kube: KubeScheduler, key: str = "default/g") -> GangDump:
    found = one_gang(kube.plugin.manager, key)
    assert found is not None
    return found


def test_a_gang_that_gathers_has_members_and_no_slots(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3))
    kube.create(*members(2))
    kube.run()
    found = dump(kube)
    assert (found.phase, found.planned, found.slots, found.held) == ("Gathering", False, (), 0)
    assert {each.state for each in found.members} == {"Unschedulable"}
    assert all(each.rejection for each in found.members)


def test_a_gang_that_has_started_is_on_its_nodes(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3))
    kube.create(*members(3))
    kube.run()
    found = dump(kube)
    assert (found.phase, found.slots) == ("Bound", ())
    assert {(each.state, each.node) for each in found.members} == {("Bound", "n1")}


def test_a_gang_that_is_set_aside_is_shown_without_what_may_raise(
    kube: KubeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube.apply(group(minimum=3))
    kube.create(*members(2))
    manager = kube.plugin.manager
    monkeypatch.setattr(manager.quarantine, "since", lambda key: 0.0)
    monkeypatch.setattr("extender.plugins.coscheduling.report.gang_dump.phase_of", None)
    found = dump(kube)
    assert (found.phase, found.quarantined, len(found.members)) == ("", True, 2)


def test_all_are_shown_by_name_and_none_for_one_that_is_not_there(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3))
    kube.create(*members(1))
    assert [each.group for each in all_gangs(kube.plugin.manager)] == ["default/g"]
    assert one_gang(kube.plugin.manager, "default/other") is None
