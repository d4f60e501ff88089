"""Roles inside one group: each minimum is met first, by the plan and by the barrier, and a verdict names the role."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.api import corev1
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, broken, group, member, members

Make = Callable[..., World]


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "4")]))


def workers(count: int) -> list[corev1.Pod]:
    return members(count, prefix="w", role="worker")


def test_workers_wait_for_their_master(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2, roles="master=1,worker=2"))
    kube.create(*workers(3))
    kube.run()
    assert (kube.running(), kube.held(), kube.reason()) == (set(), set(), "QuorumMissing")
    assert kube.told["w0"] == (
        "pre-filter pod w0 cannot find enough sibling pods of role master, current pods number: 0, minimum of role: 1"
    )
    kube.create(member("m", role="master"))
    kube.run()
    assert {"m"} <= kube.starts[0]
    assert len(kube.starts[0]) >= 3
    assert len(kube.running()) == 4


def test_the_barrier_waits_for_roles_and_not_for_numbers(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2, roles="master=1,worker=1"))
    kube.create(member("m", role="master"), *workers(3))
    for uid in [f"default/w{number}" for number in range(3)]:
        kube.attempt(uid)
    assert kube.held() == {"w0", "w1", "w2"}, "three of minMember 2 are here, and no master"
    kube.attempt("default/m")
    assert kube.starts == [{"m", "w0", "w1", "w2"}]


def test_room_goes_to_the_minima_before_further_members(kube: KubeScheduler) -> None:
    """Names come in the order of preference, and the master is last."""
    kube.apply(group(minimum=3, roles="worker=2,zz-master=1"))
    kube.create(*workers(6), member("z", role="zz-master", cpu=2))
    kube.run()
    assert "z" in kube.starts[0]
    assert len(kube.starts[0]) == 3


@pytest.mark.parametrize(
    ("roles", "text"),
    [
        pytest.param("master=1,worker=2", "minMember of 3 does not fit: role master: Insufficient cpu", id="one role"),
        pytest.param("master=1", "minMember of 3 does not fit: role master: Insufficient cpu", id="beside the number"),
    ],
)
def test_a_verdict_names_the_role_that_does_not_fit(roles: str, text: str, kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3, roles=roles))
    kube.create(member("m", role="master", cpu=5), *workers(2))
    kube.run()
    assert kube.running() == set()
    assert kube.told["w0"] == f"pod with pgName: default/g last failed in 3s, deny: {text}"


def test_min_member_is_at_least_the_sum_of_the_minima(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=1, roles="master=1,worker=3"))
    kube.create(member("m", role="master"), *workers(2))
    kube.run()
    assert kube.running() == set()
    assert kube.told["m"].endswith("of role worker, current pods number: 2, minimum of role: 3")
    kube.create(member("w2", role="worker"))
    kube.run()
    assert kube.starts == [{"m", "w0", "w1", "w2"}]


def test_a_master_that_is_replaced_starts_at_once(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3, roles="master=1,worker=2"))
    kube.create(member("m", role="master"), *workers(2))
    kube.run()
    kube.delete(member("m"))
    kube.create(member("again", role="master"))
    kube.run()
    assert kube.starts[1:] == [{"again"}]


def test_a_gang_without_its_master_does_not_count_as_running(kube: KubeScheduler) -> None:
    """A fourth worker may not take the master's part."""
    kube.apply(group(minimum=3, roles="master=1,worker=2"))
    kube.create(member("m", role="master"), *workers(2))
    kube.run()
    assert kube.phase() == "Bound"
    kube.delete(member("m"))
    kube.create(member("x", role="worker"))
    kube.run()
    assert (kube.phase(), kube.reason()) == ("Gathering", "QuorumMissing")
    assert "of role master" in kube.told["x"]


def test_a_role_of_groups_that_start_together_is_named_with_its_group(kube: KubeScheduler) -> None:
    kube.apply(group("a", 1, groups="b"), group("b", 1, roles="master=1"))
    kube.create(member("a0", "a"), member("m", "b", role="master", cpu=5))
    kube.run()
    assert "role master of default/b: Insufficient cpu" in kube.told["a0"]


def test_roles_by_a_label_that_is_there_already(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2, roles="master=1", role_label="scheduling.x-k8s.io/pod-group"))
    kube.create(*members(2))
    kube.run()
    assert "of role master" in kube.told["g0"], "the label says g, not master"


@pytest.mark.parametrize(
    ("roles", "wrong"),
    [
        pytest.param("master", "Invalid value: 'master': must be role=minimum", id="no minimum"),
        pytest.param("master=-1", "Invalid value: 'master=-1'", id="a negative one"),
        pytest.param("a=1,a=2", "Duplicate value: 'a'", id="a role twice"),
    ],
)
def test_nonsense_is_refused_by_its_key(roles: str, wrong: str, kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2, roles=roles))
    kube.create(*members(2))
    kube.run()
    assert f"annotation gang-extender.dev/roles: {wrong}" in kube.told["g0"]
    assert list(broken(kube)) == []
