"""What is noted and told of a start, and of one that is called off."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from extender import failpoints, metrics
from extender.api import corev1
from extender.client.interface import OwnPodGroup
from extender.framework.cycle_state import CycleState
from extender.framework.status import SUCCESS, unschedulable
from extender.plugins.coscheduling.dependencies import Verdict
from extender.plugins.coscheduling.state.member import MemberState
from extender.plugins.coscheduling.state.refutations import How
from tests.unit.plugins.coscheduling.conftest import Waiting, World, node, pod, pod_group
from tests.unit.plugins.coscheduling.kube_scheduler import group

Make = Callable[..., World]
LEFT = "the PodGroup fell below its minMember while waiting"


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, "extender")
    return lambda: [text for each in caplog.records if (text := each.getMessage()).startswith("gang starts")]


def planned(w: World, size: int, minimum: int) -> list[Waiting]:
    """All have places, and all but the last that is needed are held."""
    w.plugin.on_pod_group(None, pod_group("g", minimum))
    pods = [pod(f"p{number}", "g") for number in range(size)]
    w.create(*pods)
    held = [w.bind(each, w.filter(each)) for each in pods[: minimum - 1]]
    return [each for each in held if isinstance(each, Waiting)]


def test_a_start_is_told_once_in_the_log_and_on_the_pod_group(world: Make, said: Callable[[], list[str]]) -> None:
    w = world([node("n1")])
    planned(w, 3, 3)
    w.told.clear()
    assert w.bind(pod("p2", "g"), "n1") == "starts"
    assert said() == ["gang starts group=default/g members=3"]
    [(key, verdict)] = w.told
    assert (key, verdict.scheduled, verdict.reason, verdict.message) == (
        "default/g",
        True,
        "GangScheduled",
        "minMember of 3 is complete: the gang starts",
    )


def test_groups_that_start_together_start_in_one_and_are_told_each(world: Make, said: Callable[[], list[str]]) -> None:
    w = world([node("n1", "8")])
    for each in (group("h", 1, groups="g"), group("g", 2, groups="h")):
        w.plugin.on_pod_group(None, each)
    pods = {name: pod(name, name[0]) for name in ("g0", "g1", "h0")}
    w.create(*pods.values())
    held = [w.bind(pods[name], "n1") for name in ("h0", "g0")]
    assert w.bind(pods["g1"], "n1") == "starts"
    assert [each.decision for each in held if isinstance(each, Waiting)] == ["allowed", "allowed"]
    assert said() == ["gang starts group=default/g default/h members=3"]
    assert sorted(each for each in w.verdicts if "GangScheduled" in each) == [
        "default/g GangScheduled: minMember of 2 is complete: the gang starts",
        "default/h GangScheduled: minMember of 1 is complete: the gang starts",
    ]
    records = {name: w.plugin.manager.groups[f"default/{name}"].start for name in ("g", "h")}
    assert {name: each.members for name, each in records.items() if each is not None} == {
        "g": {"g0", "g1"},
        "h": {"h0"},
    }


def test_members_that_were_planned_with_those_that_start_have_started_too(world: Make) -> None:
    """They come later, to their own places, and wait for no other."""
    w = world([node("n1")])
    planned(w, 4, 2)
    gang = w.plugin.manager.groups["default/g"]
    w.create(pod("late", "g"))  # after the plan
    assert w.bind(pod("p1", "g"), "n1") == "starts"
    assert gang.early == 0
    assert gang.started == {"p0", "p1", "p2", "p3"}
    assert gang.start is not None
    assert gang.start.members == {"p0", "p1"}
    assert gang.start.record.quorum == 2
    assert {uid: each.state for uid, each in gang.members.items() if each.state is MemberState.STARTING}.keys() == {
        "p0",
        "p1",
    }


def test_what_kube_scheduler_has_refused_before_is_forgotten_with_the_start(world: Make) -> None:
    w = world([node("n1")])
    planned(w, 2, 2)
    gang = w.plugin.manager.groups["default/g"]
    gang.refuted.add("p1", "n2", How.DID_NOT_COME, w.clock.now)
    assert list(gang.refuted.uids()) == ["p1"]
    assert w.bind(pod("p1", "g"), "n1") == "starts"
    assert list(gang.refuted.uids()) == []


def test_a_start_that_is_called_off_leaves_all_members_as_they_were(world: Make, said: Callable[[], list[str]]) -> None:
    w = world([node("n1")])
    held = planned(w, 3, 3)
    held[0].reject("", "the caller has hung up")
    w.told.clear()
    assert w.plugin.gang_permit.permit(pod("p2", "g"), "n1", 60.0) == (unschedulable(LEFT), 0)
    gang = w.plugin.manager.groups["default/g"]
    assert {each.state for each in gang.members.values()} == {MemberState.WAITING}
    assert (gang.start, gang.started, w.told, said()) == (None, set(), [], [])
    for name in ("p0", "p1", "p2"):
        assert w.plugin.gang_permit.check_commit(CycleState(), pod(name, "g"), "n1") == unschedulable(LEFT)


def test_members_that_are_still_held_when_a_start_is_called_off_are_let_go_with_the_cause(world: Make) -> None:
    w = world([node("n1")])
    held = planned(w, 3, 3)
    held[0].reject("", "the caller has hung up")
    held[1].allow = lambda plugin: False  # type: ignore[method-assign]
    assert w.bind(pod("p2", "g"), "n1") == LEFT
    assert held[1].decision == f"rejected: {LEFT}"


@pytest.mark.parametrize(
    ("cordoned", "full", "told"),
    [
        pytest.param("n2", "", 'node "n2" is unschedulable', id="of the one that arrives"),
        pytest.param("n1", "", 'node "n1" is unschedulable', id="of one that is held"),
        pytest.param("", "n1", 'node "n1" has no room left: insufficient cpu', id="which has no room left"),
    ],
)
def test_one_node_that_will_not_do_keeps_all_from_starting(cordoned: str, full: str, told: str, world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(pod("p0", "g"), pod("p1", "g"))
    held = w.bind(pod("p0", "g"), "n1")
    assert isinstance(held, Waiting)
    if cordoned:
        w.nodes[cordoned] = node(cordoned, "1", unschedulable=True)
    if full:
        w.on_nodes["other"] = pod("other", node_name=full)
    assert w.bind(pod("p1", "g"), "n2") == told
    assert held.decision == f"rejected: {told}"
    assert w.plugin.manager.groups["default/g"].start is None


def test_without_the_lease_all_stay_as_they_are(world: Make) -> None:
    w = world([node("n1")])
    [held] = planned(w, 2, 2)
    w.leading = False
    told = unschedulable("not the leader: nothing is committed")
    assert w.plugin.gang_permit.permit(pod("p1", "g"), "n1", 60.0) == (told, 0)
    assert held.decision == "", "the replica that leads now ends it"


@pytest.mark.faults
def test_a_fault_in_what_is_told_of_a_start_keeps_no_member_back(world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """All holds are lifted by then. The gang is set aside, and its members keep their places."""
    w = world([node("n1")])
    [held] = planned(w, 3, 2)

    def broken(*args: object) -> object:
        raise KeyError("a fault of ours")

    monkeypatch.setattr(w, "decided", broken)
    before = metrics.unexpected_errors.labels("permit")._value.get()
    assert w.plugin.gang_permit.permit(pod("p1", "g"), "n1", 60.0) == (SUCCESS, 0)
    assert held.decision == "allowed"
    assert list(w.plugin.manager.quarantine) == ["default/g"]
    assert metrics.unexpected_errors.labels("permit")._value.get() == before + 1
    assert {each.uid for each in w.plugin.manager.slots} == {"p0", "p1", "p2"}
    for name in ("p0", "p1"):
        assert w.plugin.gang_permit.check_commit(CycleState(), pod(name, "g"), "n1").success


@pytest.mark.faults
def test_a_fault_between_the_lifting_of_holds_and_the_decision_calls_the_start_off(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members that were let go ask for the decision, and would wait for it for ever."""
    w = world([node("n1")])
    [held] = planned(w, 2, 2)
    monkeypatch.setattr(failpoints, "_asked", {"holds-lifted": "raise"})
    with pytest.raises(failpoints.FailpointError):
        w.plugin.gang_permit.permit(pod("p1", "g"), "n1", 60.0)
    assert held.decision == "allowed"
    for name in ("p0", "p1"):
        assert w.plugin.gang_permit.check_commit(CycleState(), pod(name, "g"), "n1") == unschedulable(LEFT)


def test_how_long_a_start_takes_is_measured_from_the_quorum_until_all_are_bound_once(world: Make) -> None:
    """A member that comes later, beyond minMember, begins no further start."""
    w = world([node("n1")])
    manager = w.plugin.manager
    w.plugin.on_pod_group(None, group(minimum=2))
    w.create(*(pod(f"p{number}", "g") for number in range(3)))
    w.bind(pod("p0", "g"), "n1")
    assert w.bind(pod("p1", "g"), "n1") == "starts"
    assert list(manager.starts._since) == ["default/g"]
    for name in ("p0", "p1"):
        w.plugin.gang_permit.bound(pod(name, "g"), "n1")
    assert list(manager.starts._since) == []
    assert w.bind(pod("p2", "g"), "n1") == "starts"
    assert list(manager.starts._since) == []


class Told:
    """The PodGroups that something is told on."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def decided(
        self, pod_group: OwnPodGroup | None, key: str, verdict: Verdict, member: corev1.Pod | None = None
    ) -> None:
        self.names.append(pod_group.key if pod_group is not None else "none")

    def forget(self, key: str) -> None:
        """Nothing of it is kept here."""


def test_a_start_is_told_on_its_pod_group(world: Make) -> None:
    w, told = world([node("n1")]), Told()
    w.connect(verdicts=told)
    planned(w, 2, 2)
    told.names.clear()
    assert w.bind(pod("p1", "g"), "n1") == "starts"
    assert told.names == ["default/g"]
