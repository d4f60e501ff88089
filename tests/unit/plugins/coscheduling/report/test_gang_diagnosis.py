"""Why a gang waits, in which order the reasons count; and why kube-scheduler asks about no member of one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import pytest

from extender.plugins.coscheduling.report.gang_diagnosis import GangDiagnosis, diagnose, not_asked, would_open
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.group import Preempting
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members

Make = Callable[..., World]


def of(kube: KubeScheduler, place: int = 1) -> GangDiagnosis:
    manager = kube.plugin.manager
    with manager.lock:
        return diagnose(manager, kube.plugin.observer, manager.groups["default/g"], place, 3.0)


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    made = KubeScheduler(world([node("n1", "4")]))
    made.apply(group(minimum=3))
    return made


def test_a_gate_that_is_shut_is_the_reason_and_what_pods_are_told_has_their_number(kube: KubeScheduler) -> None:
    kube.create(*members(2))
    kube.run()
    found = of(kube)
    assert (found.reason, found.message) == (UnschedulableReason.QUORUM_MISSING, "fewer pods exist than minMember of 3")
    assert "current pods number: 2, minMember of group: 3" in found.told


def test_a_gang_without_room_says_what_the_plan_lacked(kube: KubeScheduler) -> None:
    kube.create(*members(3, cpu=2))
    kube.run()
    found = of(kube)
    assert found.reason == UnschedulableReason.INSUFFICIENT_RESOURCES
    assert found.verdict is not None
    assert found.told.endswith(f"deny: {found.message}"), "while the denial is fresh"


def test_while_it_preempts_that_is_the_reason(kube: KubeScheduler) -> None:
    kube.create(*members(3, cpu=2))
    kube.run()
    manager = kube.plugin.manager
    with manager.lock:
        gang = manager.groups["default/g"]
        gang.stop(Diagnosis(UnschedulableReason.PREEMPTING, "victims are going"))
        gang.preempting = Preempting(set(), (), 1000.0)
    assert of(kube).message == "victims are going"
    gang.preempting = None


def test_a_gang_that_runs_has_no_reason(kube: KubeScheduler) -> None:
    kube.create(*members(3))
    kube.run()
    assert (of(kube).reason, of(kube).message) == ("", "")


@pytest.mark.parametrize(
    ("running", "elsewhere", "text"),
    [
        pytest.param(0, [], "", id="not known"),
        pytest.param(2, [], "2 of minMember 3 run, and no other pod is to come to this scheduler", id="a part runs"),
        pytest.param(0, ["b", "a"], "pods name another scheduler: a, b", id="other schedulers, by name"),
        pytest.param(0, list("dcba"), "pods name another scheduler: a, b, c and 1 more", id="three at most"),
        pytest.param(0, ["x" * 90], f"pods name another scheduler: {'x' * 63}", id="a long name is cut"),
    ],
)
def test_why_none_is_asked_about(running: int, elsewhere: Collection[str], text: str) -> None:
    assert not_asked(running, 3, elsewhere) == text


@pytest.mark.parametrize(
    ("minimum", "there", "expected"),
    [
        pytest.param(5, {"": 1}, "1 pod more of role m and 2 pods more of role w and 1 pod more of any role", id="all"),
        pytest.param(5, {"m": 1, "w": 2}, "2 pods more of the group", id="of no role"),
        pytest.param(3, {"m": 1}, "2 pods more of role w", id="of one role"),
    ],
)
def test_what_would_open_a_gang_that_lacks_members_of_roles(
    minimum: int, there: Mapping[str, int], expected: str, world: Make
) -> None:
    kube = KubeScheduler(world([node("n1", "4")]))
    kube.apply(group(minimum=minimum, roles="m=1,w=2"))
    kube.create(*(member(f"{role}{n}", role=role) for role, count in there.items() for n in range(count)))
    manager = kube.plugin.manager
    with manager.lock:
        found = would_open(manager, manager.groups["default/g"], UnschedulableReason.QUORUM_MISSING)
    assert [each.text for each in found] == [expected]
