"""The checks that need no plan: which is the first to fail, and what a member is told by it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.scheduling.checks import failed_check, missing_peer_gang
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node

Make = Callable[..., World]
Act = Callable[[KubeScheduler], None]
NAME = member("x").spec.scheduler_name


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    made = world([node("n1", "8")])
    made.plugin.manager.max_held_binds = 6
    return KubeScheduler(made)


def check(kube: KubeScheduler, name: str = "g0") -> tuple[str, str]:
    """(the reason, what the member is told)."""
    manager = kube.plugin.manager
    with manager.lock:
        failed = failed_check(manager, manager.groups["default/g"], NAME, name, f"default/{name}")
    return (failed.reason.value, failed.refusal) if failed is not None else ("", "")


def gang(minimum: int, count: int, **asked: str) -> Act:
    def act(kube: KubeScheduler) -> None:
        kube.apply(group(minimum=minimum, **asked))
        kube.create(*members(count, role="worker" if asked.get("roles") else ""))

    return act


def with_peer(kube: KubeScheduler) -> None:
    kube.apply(group(groups="b"), group("b", 2, groups="g"))
    kube.create(*members(2), *members(1, "b"))


def runs_with_one_more(kube: KubeScheduler) -> None:
    kube.apply(group(match_policy="once-satisfied"))
    kube.create(*(on_node(each, "n1") for each in members(2, prefix="r")), member("g0"))


@pytest.mark.parametrize(
    ("happened", "reason", "told"),
    [
        pytest.param(gang(2, 2), "", "", id="all pass"),
        pytest.param(
            lambda kube: kube.create(member("g0")), "PodGroupNotFound", messages.POD_GROUP_NOT_FOUND, id="no object"
        ),
        pytest.param(gang(3, 2), "QuorumMissing", messages.not_enough_siblings("g0", 2, 3), id="one is missing"),
        pytest.param(
            gang(2, 2, roles="master=1,worker=1"),
            "QuorumMissing",
            messages.not_enough_of_role("g0", "master", 0, 1),
            id="the group is large enough, a role is missing",
        ),
        pytest.param(gang(7, 7), "ExceedsMaxHeldBinds", messages.EXCEEDS_HELD_BINDS, id="it could never be held whole"),
        pytest.param(
            with_peer,
            "CompanionNotReady",
            messages.companion_waits("default/b", messages.waiting_for_members(2)),
            id="a group that it starts with lacks a member",
        ),
        pytest.param(runs_with_one_more, "", "", id="a member that schedules alone finds none"),
    ],
)
def test_the_first_check_that_fails(happened: Act, reason: str, told: str, kube: KubeScheduler) -> None:
    happened(kube)
    assert check(kube) == (reason, told)


def test_a_group_that_cannot_be_read_is_told_its_error(kube: KubeScheduler) -> None:
    gang(2, 2, roles="nonsense")(kube)
    reason, told = check(kube)
    assert reason == UnschedulableReason.INVALID_POD_GROUP
    assert "must be role=minimum" in told


def test_a_gang_that_is_set_aside_fails_before_all_else(kube: KubeScheduler) -> None:
    gang(3, 2)(kube)
    kube.plugin.manager.quarantine.set_aside("default/g")
    assert check(kube)[0] == UnschedulableReason.INTERNAL_ERROR


@pytest.mark.parametrize(
    ("others", "text"),
    [
        pytest.param([], messages.waiting_for_group("default/b"), id="it is not there"),
        pytest.param([group("b", 2)], "", id="it is there: that one names the other is enough"),
        pytest.param([group("b", 2, groups="g")], "", id="it lacks members, which may come"),
    ],
)
def test_whether_no_member_can_start_whichever_come(others: list[object], text: str, kube: KubeScheduler) -> None:
    kube.apply(group(groups="b"), *others)  # type: ignore[arg-type]
    manager = kube.plugin.manager
    with manager.lock:
        assert missing_peer_gang(manager, manager.groups["default/g"]) == text


def test_what_is_noted_of_a_role_is_its_name_and_how_many_there_are(kube: KubeScheduler) -> None:
    """Another member that comes is told anew by it."""
    gang(4, 4, roles="master=1,worker=2")(kube)
    manager = kube.plugin.manager
    with manager.lock:
        failed = failed_check(manager, manager.groups["default/g"], NAME, "g0", "default/g0")
    assert failed is not None
    assert failed.told == "master 0"
