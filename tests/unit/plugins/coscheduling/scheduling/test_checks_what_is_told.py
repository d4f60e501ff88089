"""What each check says, whole: to users of the gang, to the member that asks, and what of it may become untrue while it fails still."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from extender.api import corev1
from extender.config.group_sources import PRESETS
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.scheduling.checks import failed_check
from extender.plugins.coscheduling.state.diagnosis import SET_ASIDE, FailedCheck
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason as Why
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members

Make = Callable[..., World]
Act = Callable[[KubeScheduler], None]
NAME = member("x").spec.scheduler_name
RECENTLY = FailedCheck(
    Why.BACKING_OFF, "podGroup default/g failed recently", "podGroup default/g failed recently", told=""
)
WITHOUT_B = "PodGroup default/b, which it is to start together with, is not found or does not name it"
CANNOT_START = "PodGroup default/b, which it is to start together with, cannot start: "


def of_another(pod: corev1.Pod) -> corev1.Pod:
    """It names another scheduler."""
    return structs.replace(pod, spec=structs.replace(pod.spec, scheduler_name="another"))


def held_back(pod: corev1.Pod) -> corev1.Pod:
    """By a scheduling gate that is not ours."""
    return structs.replace(pod, spec=structs.replace(pod.spec, scheduling_gates=(corev1.PodSchedulingGate("other"),)))


def companion(text: str) -> FailedCheck:
    return FailedCheck(Why.COMPANION_NOT_READY, text, text, told=text)


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    made = world([node("n1", "8")], group_sources=(PRESETS["lws"],))
    made.plugin.manager.max_held_binds = 6
    return KubeScheduler(made)


def check(kube: KubeScheduler, name: str = "g0", key: str = "default/g") -> FailedCheck | None:
    manager = kube.plugin.manager
    with manager.lock:
        return failed_check(manager, manager.groups[key], NAME, name, f"default/{name}")


def _one_missing(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3))
    kube.create(*members(2))


def _strangers(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4))
    kube.create(*members(1), *(of_another(pod) for pod in members(2, prefix="s")))


def _role_missing(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4, roles="master=2,worker=1"))
    kube.create(member("g0", role="master"), *members(3, prefix="w", role="worker"))


def _role_of_strangers(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3, roles="master=2,worker=1"))
    kube.create(member("g0", role="master"), of_another(member("s0", role="master")))
    kube.create(*members(2, prefix="w", role="worker"))


def _roles_and_more(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=5, roles="master=1,worker=1"))
    kube.create(*members(2, role="worker"))


def _one_of_each_role_is_missing_and_no_more(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4, roles="master=1,worker=3"))
    kube.create(*members(2, role="worker"))


def _gates(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2))
    kube.create(member("g0"), held_back(member("g1")))


def _backs_off(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2))
    kube.create(*members(2))
    kube.plugin.manager.queue.back_off("default/g", 5)


def _another_backs_off(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2), group("b", 2))
    kube.create(*members(2), *members(2, "b"))
    kube.plugin.manager.queue.back_off("default/b", 5)


def _in_error_back_off(kube: KubeScheduler, count: int = 2) -> None:
    kube.apply(group(minimum=2))
    kube.create(*members(count))
    manager = kube.plugin.manager
    manager.groups["default/g"].errors.failed("default/g0", manager.clock())


def _too_large(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=7))
    kube.create(*members(7))


def _names_none_that_is_there(kube: KubeScheduler) -> None:
    kube.apply(group(groups="b"))
    kube.create(*members(2))


def _starts_with_one_that_is_set_aside(kube: KubeScheduler) -> None:
    kube.apply(group(groups="b"), group("b", 2))
    kube.create(*members(2), *members(2, "b"))
    kube.plugin.manager.quarantine.set_aside("default/b")


def _starts_with_one_that_is_held_back(kube: KubeScheduler) -> None:
    kube.apply(group(groups="b"), group("b", 2))
    kube.create(*members(2), member("b0", "b"), held_back(member("b1", "b")))


def _starts_with_two_of_which_the_last_lacks_members(kube: KubeScheduler) -> None:
    kube.apply(group(groups="a,b"), group("a", 2), group("b", 2))
    kube.create(*members(2), *members(2, "a"), *members(1, "b"))


@pytest.mark.parametrize(
    ("happened", "failed"),
    [
        pytest.param(
            _one_missing,
            FailedCheck(
                Why.QUORUM_MISSING,
                "fewer pods exist than minMember of 3",
                "pre-filter pod g0 cannot find enough sibling pods, current pods number: 2, minMember of group: 3",
                told="2",
            ),
            id="one is missing",
        ),
        pytest.param(
            _strangers,
            FailedCheck(
                Why.QUORUM_MISSING,
                "fewer pods exist than minMember of 4; not counted: 2 with another schedulerName",
                "pre-filter pod g0 cannot find enough sibling pods, current pods number: 1, minMember of group: 4",
                told="1",
            ),
            id="two name another scheduler",
        ),
        pytest.param(
            _role_missing,
            FailedCheck(
                Why.QUORUM_MISSING,
                "fewer pods of role master exist than its minimum of 2",
                "pre-filter pod g0 cannot find enough sibling pods of role master, "
                "current pods number: 1, minimum of role: 2",
                told="master 1",
            ),
            id="the group is large enough, one of a role is missing",
        ),
        pytest.param(
            _role_of_strangers,
            FailedCheck(
                Why.QUORUM_MISSING,
                "fewer pods of role master exist than its minimum of 2; not counted: 1 with another schedulerName",
                "pre-filter pod g0 cannot find enough sibling pods of role master, "
                "current pods number: 1, minimum of role: 2",
                told="master 1",
            ),
            id="one of the role names another scheduler",
        ),
        pytest.param(
            _roles_and_more,
            FailedCheck(
                Why.QUORUM_MISSING,
                "fewer pods exist than minMember of 5",
                "pre-filter pod g0 cannot find enough sibling pods, current pods number: 2, minMember of group: 5",
                told="2",
            ),
            id="more are missing than the role that is short",
        ),
        pytest.param(
            _one_of_each_role_is_missing_and_no_more,
            FailedCheck(
                Why.QUORUM_MISSING,
                "fewer pods of role master exist than its minimum of 1",
                "pre-filter pod g0 cannot find enough sibling pods of role master, "
                "current pods number: 0, minimum of role: 1",
                told="master 0",
            ),
            id="as many are missing as the roles are short: the first of these is told",
        ),
        pytest.param(
            _gates,
            FailedCheck(
                Why.GATED,
                "scheduling gates of others leave fewer pods than minMember of 2",
                "pre-filter pod g0 cannot proceed due to gated pods in the same PodGroup",
            ),
            id="another's gate holds one back",
        ),
        pytest.param(_backs_off, RECENTLY, id="it backs off"),
        pytest.param(_another_backs_off, None, id="another gang backs off"),
        pytest.param(_in_error_back_off, RECENTLY, id="kube-scheduler has one in error back-off"),
        pytest.param(lambda kube: _in_error_back_off(kube, 3), None, id="and there are enough without it"),
        pytest.param(
            _too_large,
            FailedCheck(
                Why.EXCEEDS_HELD_BINDS,
                messages.EXCEEDS_HELD_BINDS,
                messages.EXCEEDS_HELD_BINDS,
                told=messages.EXCEEDS_HELD_BINDS,
            ),
            id="it could never be held whole",
        ),
        pytest.param(_names_none_that_is_there, companion(WITHOUT_B), id="a group that it starts with is not there"),
        pytest.param(
            _starts_with_one_that_is_set_aside,
            companion(f"{CANNOT_START}{messages.INTERNAL_ERROR}"),
            id="one that it starts with is set aside",
        ),
        pytest.param(
            _starts_with_one_that_is_held_back,
            companion(f"{CANNOT_START}scheduling gates of others leave fewer pods than minMember of 2"),
            id="one that it starts with is held back by another's gate",
        ),
        pytest.param(
            _starts_with_two_of_which_the_last_lacks_members,
            companion(f"{CANNOT_START}fewer pods exist than minMember of 2"),
            id="the second that it starts with lacks a member",
        ),
    ],
)
def test_what_a_check_says(happened: Act, failed: FailedCheck | None, kube: KubeScheduler) -> None:
    happened(kube)
    assert check(kube) == failed


def test_a_gang_that_is_set_aside_is_told_of_that_alone(kube: KubeScheduler) -> None:
    _one_missing(kube)
    kube.plugin.manager.quarantine.set_aside("default/g")
    assert check(kube) == SET_ASIDE


def test_a_group_that_asks_for_nonsense_is_told_its_error_as_cause_and_as_refusal(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=0))
    kube.create(*members(2))
    manager = kube.plugin.manager
    with manager.lock:
        spec = manager.specs.of(manager.groups["default/g"])
    assert spec is not None
    assert check(kube) == FailedCheck(Why.INVALID_POD_GROUP, spec.invalid, spec.invalid)


@pytest.mark.parametrize(
    ("count", "remark"),
    [
        pytest.param(1, messages.LEADER_ALONE, id="the leader alone"),
        pytest.param(2, "", id="the leader and a worker"),
    ],
)
def test_of_a_leader_worker_set_it_is_said_that_the_leader_alone_is_there(
    count: int, remark: str, kube: KubeScheduler
) -> None:
    prefix = "leaderworkerset.sigs.k8s.io"
    for number in range(count):
        bare = member(f"l{number}", "", annotations={f"{prefix}/size": "3"})
        labels = {f"{prefix}/group-key": "h", f"{prefix}/worker-index": str(number), f"{prefix}/name": "l"}
        kube.create(structs.replace(bare, metadata=structs.replace(bare.metadata, labels=labels)))
    key = next(iter(kube.plugin.manager.groups))
    assert check(kube, "l0", key) == FailedCheck(
        Why.QUORUM_MISSING,
        f"fewer pods exist than minMember of 3{remark}",
        f"pre-filter pod l0 cannot find enough sibling pods, current pods number: {count}, minMember of group: 3{remark}",
        told=str(count),
    )


def test_of_another_gang_of_which_one_is_there_no_leader_is_spoken_of(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3))
    kube.create(member("g0"))
    failed = check(kube)
    assert failed is not None
    assert failed.cause == "fewer pods exist than minMember of 3"
