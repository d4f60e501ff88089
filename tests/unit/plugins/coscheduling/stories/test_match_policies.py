"""minMember that changes, members that are replaced, and which members count: stories of gangs that wait and that run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, broken, group, member, members, on_node

Make = Callable[..., World]


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "4"), node("n2", "4")]))


def running(kube: KubeScheduler, count: int, minimum: int, **annotations: str) -> None:
    kube.apply(group(minimum=minimum, **annotations))
    kube.create(*members(count))
    kube.run()
    assert len(kube.running()) == count


# minMember changes


def test_a_lower_min_member_starts_those_that_are_there(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3))
    kube.create(*members(2))
    kube.run()
    assert (kube.running(), kube.reason()) == (set(), "QuorumMissing")
    kube.apply(group(minimum=2))
    kube.run()
    assert kube.starts == [{"g0", "g1"}]


def test_a_lower_min_member_makes_a_gang_fit(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=9))
    kube.create(*members(9))
    kube.run()
    assert (kube.running(), kube.reason()) == (set(), "InsufficientResources")
    kube.apply(group(minimum=8))
    kube.run()
    assert len(kube.running()) == 8


def test_a_higher_min_member_voids_the_plan_of_a_gang_that_has_not_started(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2))
    kube.create(*members(2, gated=True))
    kube.world.run_tasks()
    assert kube.phase() == "Planned"
    kube.apply(group(minimum=3))
    assert not len(kube.plugin.manager.slots), "its places are free for others"
    kube.run()
    assert (kube.running(), kube.phase(), kube.reason()) == (set(), "Gathering", "QuorumMissing")
    kube.create(member("g2"))
    kube.run()
    assert kube.starts == [{"g0", "g1", "g2"}]


def test_a_higher_min_member_keeps_those_that_are_held_waiting_for_the_rest(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2))
    kube.create(*members(2))
    kube.attempt("default/g0")
    assert kube.held() == {"g0"}
    kube.apply(group(minimum=3))
    kube.run()
    assert (kube.held(), kube.running()) == ({"g0"}, set())
    kube.create(member("g2"))
    kube.run()
    assert kube.starts == [{"g0", "g1", "g2"}]


def test_a_higher_min_member_leaves_a_running_gang_alone_and_asks_newcomers_for_it(kube: KubeScheduler) -> None:
    running(kube, 2, 2)
    kube.apply(group(minimum=4))
    kube.create(member("g2"))
    kube.run()
    assert kube.running() == {"g0", "g1"}
    assert kube.told["g2"].endswith("current pods number: 3, minMember of group: 4")
    kube.create(member("g3"))
    kube.run()
    assert kube.starts == [{"g0", "g1"}, {"g2", "g3"}]


# Replaced members


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param("waiting-and-running", id="the others run"),
        pytest.param("once-satisfied", id="it has been whole"),
        pytest.param("only-waiting", id="a fraction is completed first"),
    ],
)
def test_a_replaced_member_of_a_running_gang_starts_at_once(policy: str, kube: KubeScheduler) -> None:
    running(kube, 3, 3, match_policy=policy)
    kube.delete(member("g0"))
    kube.create(member("again"))
    kube.run()
    assert kube.starts[1:] == [{"again"}]
    assert kube.phase() == "Bound"


# Match policies


def test_only_waiting_starts_further_members_in_batches_of_min_member(kube: KubeScheduler) -> None:
    running(kube, 2, 2, match_policy="only-waiting")
    kube.create(member("a"))
    kube.run()
    assert (kube.held(), kube.phase(), kube.reason()) == (set(), "Gathering", "QuorumMissing")
    assert "current pods number: 1, minMember of group: 2" in kube.told["a"]
    kube.create(member("b"))
    kube.run()
    assert kube.starts == [{"g0", "g1"}, {"a", "b"}]
    assert kube.phase() == "Bound"


def test_waiting_and_running_lets_further_members_pass_singly(kube: KubeScheduler) -> None:
    running(kube, 2, 2)
    kube.create(member("a"))
    kube.run()
    assert kube.starts[1:] == [{"a"}]


def test_once_satisfied_asks_for_the_quorum_once(kube: KubeScheduler) -> None:
    running(kube, 3, 3, match_policy="once-satisfied")
    kube.delete(*members(2))
    kube.create(member("again"))
    kube.run()
    assert kube.starts[1:] == [{"again"}], "two of three run, and that is enough"


def test_once_satisfied_begins_anew_when_none_runs_any_more(kube: KubeScheduler) -> None:
    running(kube, 2, 2, match_policy="once-satisfied")
    kube.delete(*members(2))
    kube.create(member("a"))
    kube.run()
    assert (kube.running(), kube.reason()) == (set(), "QuorumMissing")
    kube.create(member("b"))
    kube.run()
    assert kube.starts[1:] == [{"a", "b"}]


def test_that_a_gang_has_been_whole_is_learnt_from_the_watch_after_a_restart(kube: KubeScheduler) -> None:
    placed = members(3)
    kube.apply(group(minimum=3, match_policy="once-satisfied"))
    kube.create(*(on_node(pod, "n1") for pod in placed))
    kube.delete(placed[0], placed[1])
    kube.create(member("again"))
    kube.run()
    assert kube.starts == [{"again"}]


def test_a_policy_that_changes_counts_at_once(kube: KubeScheduler) -> None:
    running(kube, 2, 2, match_policy="only-waiting")
    kube.create(member("a"))
    kube.run()
    assert kube.running() == {"g0", "g1"}
    kube.apply(group(minimum=2, match_policy="waiting-and-running"))
    kube.run()
    assert kube.running() == {"g0", "g1", "a"}


def test_a_policy_that_there_is_not_is_refused_by_its_key(kube: KubeScheduler) -> None:
    kube.apply(group(match_policy="sometimes"))
    kube.create(*members(2))
    kube.run()
    text = (
        "annotation gang-extender.dev/match-policy: Unsupported value: 'sometimes': supported values: \"only-waiting\""
    )
    assert text in kube.told["g0"]
    assert (kube.running(), kube.reason()) == (set(), "InvalidPodGroup")
    assert list(broken(kube)) == []


# Members that kube-scheduler refuses before it asks


def test_a_gang_that_kube_scheduler_s_own_filters_refuse_has_its_verdict_too(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=2))
    kube.create(*members(2, cpu=9))
    kube.run()
    assert kube.told == {"g0": "Insufficient cpu", "g1": "Insufficient cpu"}
    assert kube.world.plans == 1, "once for all its members"
    assert kube.reason() == "InsufficientResources"
    assert kube.world.verdicts == ["default/g GangRejected: minMember of 2 does not fit: Insufficient cpu"]
