"""Unreserve: what the end of one hold means for the other members, for their room, and for what is told of the gang."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from extender import metrics
from extender.api import corev1
from extender.client.interface import OwnPodGroup
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import Verdict
from tests.unit.plugins.coscheduling.conftest import Waiting, World, node, pod, pod_group
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members

Make = Callable[..., World]
TIMEOUT = "rejected due to timeout after waiting 10s at plugin Coscheduling"


def planned(w: World, size: int, held: int, minimum: int | None = None) -> list[corev1.Pod]:
    """A gang of which all have places, and the first so many are held."""
    w.plugin.on_pod_group(None, pod_group("g", minimum or size))
    pods = [pod(f"p{number}", "g") for number in range(size)]
    w.create(*pods)
    for each in pods[:held]:
        assert isinstance(w.bind(each, w.filter(each)), Waiting)
    return pods


def partial_commits() -> float:
    return metrics.partial_commits._value.get()  # type: ignore[no-any-return]


def test_the_end_of_a_hold_voids_the_plan_and_is_told_in_the_log(world: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "extender")
    w = world([node("n1")])
    pods = planned(w, 3, 2)
    caplog.clear()
    assert w.plugin.gang_permit.unreserve(pods[0], TIMEOUT) is True
    assert [each.getMessage() for each in caplog.records] == [
        f"gang steps back group=default/g reason=HoldTimedOut message={TIMEOUT!r}"
    ]
    gang = w.plugin.manager.groups["default/g"]
    assert gang.last_diagnosis is not None
    assert (gang.last_diagnosis.text, gang.last_diagnosis.since) == (TIMEOUT, w.clock.now)
    assert (set(gang.held), gang.ending) == ({"p1"}, {"p1"})


def test_a_pod_of_no_gang_that_was_not_bound_concerns_no_gang(world: Make) -> None:
    assert world([node("n1")]).plugin.gang_permit.unreserve(pod("single"), "the binding failed") is False


def test_a_member_that_was_never_held_ends_no_hold(world: Make) -> None:
    """Its bind call failed before Permit, or Permit refused it."""
    w = world([node("n1")])
    pods = planned(w, 3, 1)
    assert w.plugin.gang_permit.unreserve(pods[1], TIMEOUT) is False
    assert w.waiting["p0"].decision == ""
    assert not w.verdicts


def test_a_member_in_place_of_which_others_are_there_leaves_the_plan_as_it_is(world: Make) -> None:
    w = world([node("n1")])
    pods = planned(w, 4, 2, minimum=3)
    w.plugin.on_pod(pods[0], None)
    assert w.plugin.gang_permit.unreserve(pods[0], "removed") is False
    assert set(w.plugin.manager.groups["default/g"].held) == {"p1"}
    assert not w.verdicts


def test_a_member_that_may_start_alone_ends_no_other_hold(world: Make) -> None:
    """With once-satisfied, and the gang has been whole."""
    kube = KubeScheduler(world([node("n1"), node("n2")]))
    kube.apply(group(minimum=2, match_policy="once-satisfied"))
    kube.create(*members(2))
    kube.run()
    kube.create(late := member("late"))
    gang = kube.plugin.manager.groups["default/g"]
    assert kube.plugin.gang_permit.permit(late, "n2", 60.0)[0].success
    assert kube.plugin.gang_permit.unreserve(late, "the binding failed") is False
    assert gang.last_diagnosis is None


def test_the_holds_of_the_groups_that_were_to_start_with_it_end_too(world: Make) -> None:
    w = world([node("n1", "8")])
    for each in (group("g", 2, groups="h"), group("h", 2, groups="g")):
        w.plugin.on_pod_group(None, each)
    pods = {name: pod(name, name[0]) for name in ("g0", "g1", "h0", "h1")}
    w.create(*pods.values())
    for name in ("g0", "h0", "h1"):
        assert isinstance(w.bind(pods[name], w.filter(pods[name])), Waiting)
    assert w.plugin.gang_permit.unreserve(pods["g0"], TIMEOUT)
    assert {name: each.decision for name, each in w.waiting.items() if name != "g0"} == {
        "h0": f"rejected: {TIMEOUT}",
        "h1": f"rejected: {TIMEOUT}",
    }


def test_a_single_hold_that_ends_is_told_though_no_other_member_is_held(world: Make) -> None:
    w = world([node("n1")])
    pods = planned(w, 3, 1)
    assert w.plugin.gang_permit.unreserve(pods[0], TIMEOUT)
    assert w.verdicts == [f"default/g GangTimeout: {TIMEOUT}"]


def test_a_hold_that_we_have_ended_for_what_is_denied_gives_up_its_own_place_alone(world: Make) -> None:
    """The plan was dropped with the denial."""
    w = world([node("n1", "8")])
    pods = planned(w, 3, 2)
    other = [pod(f"o{number}", "other") for number in range(2)]
    w.plugin.on_pod_group(None, pod_group("other", 2))
    w.create(*other)
    manager = w.plugin.manager
    gang = manager.groups["default/g"]
    w.plugin.rounds.drop_plan("default/g")
    manager.denied["default/g"] = messages.MEMBERS_DID_NOT_COME
    manager.denied["default/other"] = "no room"
    w.plugin.holds.reject_all(gang, messages.MEMBERS_DID_NOT_COME)
    w.verdicts.clear()
    epoch = manager.notes.epoch
    assert w.plugin.gang_permit.unreserve(pods[0], messages.MEMBERS_DID_NOT_COME) is False
    assert {place.uid for place in manager.slots} == {"p1"}
    assert w.verdicts == [], "it has been told"
    assert manager.notes.epoch > epoch, "its room may help others"
    assert "default/other" not in manager.denied
    assert "default/g" in manager.denied, "it is its own room"


def test_another_end_than_what_is_denied_is_told(world: Make) -> None:
    w = world([node("n1", "8")])
    pods = planned(w, 3, 2)
    w.plugin.manager.denied["default/g"] = messages.MEMBERS_DID_NOT_COME
    assert w.plugin.gang_permit.unreserve(pods[0], TIMEOUT) is True
    assert w.verdicts[-1] == f"default/g GangTimeout: {TIMEOUT}"


def test_the_end_of_an_early_start_is_told_by_the_check_of_siblings_alone(world: Make) -> None:
    kube = KubeScheduler(world([node("n1", "4"), node("n2", "4")], early_start=True))
    kube.apply(group(minimum=4))
    kube.create(*members(3))
    kube.run()
    assert len(kube.held()) == 3
    kube.world.verdicts.clear()
    kube.world.clock.now += 10.0
    kube.plugin.tick()
    held = [each.pod for each in kube.world.waiting.values()]
    told = {each.decision.removeprefix("rejected: ") for each in kube.world.waiting.values()}
    assert all(messages.ENOUGH_SIBLINGS in each for each in told)
    for each in held:
        assert kube.plugin.gang_permit.unreserve(each, next(iter(told))) is False
    kube.world.waiting.clear()
    assert kube.world.verdicts == []
    assert list(kube.plugin.manager.slots) == []


@pytest.mark.faults
def test_while_a_gang_is_set_aside_the_ends_of_its_holds_are_not_told_one_by_one(world: Make) -> None:
    w = world([node("n1")])
    pods = planned(w, 3, 2)
    w.plugin.manager.quarantine.set_aside("default/g")
    w.verdicts.clear()
    for each in pods[:2]:
        assert w.plugin.gang_permit.unreserve(each, messages.INTERNAL_ERROR) is False
    assert w.verdicts == []
    assert not w.plugin.manager.groups["default/g"].held


def test_a_member_that_is_not_bound_in_mid_commit_keeps_its_place_for_as_long_as_after_a_plan(
    world: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "extender")
    w = world([node("n1")], permit_waiting_time_seconds=30)
    pods = planned(w, 2, 1)
    assert w.bind(pods[1], "n1") == "starts"
    w.plugin.gang_permit.bound(pods[0], "n1")
    w.clock.now += 20.0
    before = partial_commits()
    assert w.plugin.gang_permit.unreserve(pods[1], "the binding failed") is False
    kept = w.plugin.manager.slots.get("p1")
    assert kept is not None
    assert (kept.node_name, kept.expires) == ("n1", w.clock.now + 30.0)
    assert kept.firm, "it finishes a start"
    assert not w.plugin.manager.groups["default/g"].held
    assert partial_commits() == before + 1
    assert [each.getMessage() for each in caplog.records] == [
        "member of a starting gang was not bound pod=default/p1 node=n1"
    ]
    [(_, verdict)] = [each for each in w.told if each[1].reason == "GangPartlyBound"]
    assert (verdict.scheduled, verdict.why, verdict.event_only) == (False, "PartlyBound", False)


def test_where_the_others_are_enough_it_is_an_event_alone_that_one_was_not_bound(world: Make) -> None:
    """The gang is whole without it: what its PodGroup says still holds."""
    w = world([node("n1")])
    pods = planned(w, 2, 1)
    assert w.bind(pods[1], "n1") == "starts"
    w.plugin.gang_permit.bound(pods[0], "n1")
    w.plugin.on_pod_group(pod_group("g", 2), pod_group("g", 1))
    w.told.clear()
    assert w.plugin.gang_permit.unreserve(pods[1], "the binding failed") is False
    [(key, verdict)] = w.told
    assert (key, verdict.reason, verdict.event_only) == ("default/g", "GangPartlyBound", True)


def test_a_gang_of_which_no_member_could_be_bound_has_not_started(world: Make) -> None:
    w = world([node("n1")])
    kube = KubeScheduler(w)
    kube.apply(group(minimum=2, match_policy="only-waiting"))
    pods = members(2)
    kube.create(*pods)
    for each in pods:
        w.arrive(each)
    w.waiting.clear()
    for each in pods:
        assert kube.plugin.gang_permit.unreserve(each, "the binding failed") is False
    gang = kube.plugin.manager.groups["default/g"]
    assert (gang.started, gang.held) == (set(), {})


def test_of_a_gang_that_was_deleted_nothing_is_left_when_its_last_hold_has_ended(world: Make) -> None:
    w = world([node("n1")])
    pods = planned(w, 2, 1)
    w.plugin.on_pod_group(pod_group("g", 2), None)
    for each in pods:
        w.plugin.on_pod(each, None)
    assert list(w.plugin.manager.groups) == ["default/g"], "while it is held"
    w.plugin.gang_permit.unreserve(pods[0], "removed")
    assert w.plugin.manager.groups == {}


class Told:
    """What users hear, with the objects that it is told on."""

    def __init__(self) -> None:
        self.decisions: list[tuple[object, str, str, str]] = []

    def decided(
        self, pod_group: OwnPodGroup | None, key: str, verdict: Verdict, member: corev1.Pod | None = None
    ) -> None:
        named = pod_group.key if pod_group is not None else ""
        self.decisions.append((named, key, verdict.reason, member.name if member is not None else ""))

    def forget(self, key: str) -> None:
        """Nothing of it is kept here."""


def test_the_end_of_holds_is_told_on_the_pod_group(world: Make) -> None:
    w, told = world([node("n1")]), Told()
    w.connect(verdicts=told)
    pods = planned(w, 3, 2)
    told.decisions.clear()
    w.plugin.gang_permit.unreserve(pods[0], TIMEOUT)
    assert told.decisions == [("default/g", "default/g", "GangTimeout", "")]


def test_that_a_member_was_not_bound_is_told_on_the_pod_group_and_names_the_member(world: Make) -> None:
    w, told = world([node("n1")]), Told()
    w.connect(verdicts=told)
    pods = planned(w, 2, 1)
    assert w.bind(pods[1], "n1") == "starts"
    w.plugin.gang_permit.bound(pods[0], "n1")
    told.decisions.clear()
    w.plugin.gang_permit.unreserve(pods[1], "the binding failed")
    assert told.decisions == [("default/g", "default/g", "GangPartlyBound", "p1")]


def test_a_hold_that_runs_out_once_more_is_told_once_more(world: Make) -> None:
    w = world([node("n1")])
    pods = planned(w, 3, 1)
    for _ in range(2):
        assert w.plugin.gang_permit.unreserve(pods[0], TIMEOUT)
        assert isinstance(w.bind(pods[0], "n1"), Waiting)
    assert w.verdicts == [f"default/g GangTimeout: {TIMEOUT}"] * 2


def test_holds_that_we_have_ended_are_told_with_the_first_of_them(world: Make) -> None:
    w = world([node("n1")])
    pods = planned(w, 3, 2)
    w.plugin.holds.reject_all(w.plugin.manager.groups["default/g"], "the caller has hung up")
    for each in pods[:2]:
        assert w.plugin.gang_permit.unreserve(each, "the caller has hung up")
    assert w.verdicts == ["default/g GangRejected: the caller has hung up"]


def test_a_member_that_is_held_when_its_gang_has_come_whole_without_it_concerns_no_other(world: Make) -> None:
    """With once-satisfied it waits for no other from then on. It was not started, since we do not lead."""
    w = world([node("n1", "8")])
    w.plugin.on_pod_group(None, group(minimum=2, match_policy="once-satisfied"))
    pods = [pod(f"p{number}", "g") for number in range(3)]
    w.create(*pods)
    assert isinstance(w.bind(pods[0], w.filter(pods[0])), Waiting)
    w.leading = False
    for each in pods[1:]:
        bound = pod(each.name, "g", node_name="n1")
        w.on_nodes[each.uid] = bound
        w.plugin.on_pod(each, bound)
    w.verdicts.clear()
    assert w.plugin.gang_permit.unreserve(pods[0], TIMEOUT) is False
    assert w.verdicts == []
