"""Places that kube-scheduler did not take: how long they are left out, and what is quoted of its reasons."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from extender.api import corev1
from extender.cli import explain_text
from extender.framework.cycle_state import CycleState
from extender.framework.permit_rejection import note_rejection
from extender.plugins.coscheduling.scheduling.rejected_in_tree import in_tree_reasons
from extender.plugins.coscheduling.state.group import Preempting
from extender.plugins.coscheduling.state.refutations import How, Refutations
from tests.unit.plugins.coscheduling.conftest import World, node, pod_group
from tests.unit.plugins.coscheduling.kube_scheduler import member
from tests.unit.plugins.coscheduling.stories.test_gated import changed, refused, ungated

Make = Callable[..., World]
DENIED = "pod with pgName: default/g last failed in 3s, deny: minMember of 2 does not fit: Insufficient cpu, 2 more"


def seconds_left_out(refutations: Refutations, now: float) -> float:
    return next(seconds for seconds in range(100) if not refutations.left_out(now + seconds))


def test_a_place_is_left_out_twice_as_long_each_time_and_no_longer_than_a_minute() -> None:
    refutations, now, seen = Refutations(), 100.0, []
    for _ in range(7):
        refutations.add("p0", "n1", How.REFUSED, now)
        seen.append(seconds_left_out(refutations, now))
        now += 1000
    assert seen == [2, 4, 8, 16, 32, 64, 64]


def test_each_pair_has_its_own_time() -> None:
    refutations = Refutations()
    refutations.add("p0", "n1", How.REFUSED, 100.0)
    refutations.add("p0", "n1", How.NOT_OFFERED, 101.0)
    refutations.add("p1", "n1", How.REFUSED, 101.0)
    assert refutations.left_out(102.0) == {("p0", "n1"), ("p1", "n1")}
    assert refutations.left_out(104.0) == {("p0", "n1")}
    assert refutations.left_out(105.0) == frozenset()
    assert refutations.times == 3, "what is over counts on"


def test_what_kube_scheduler_says_of_candidates_is_good_for_one_preemption() -> None:
    refuted = Refutations()
    refuted.sleeps("p0", 0)
    assert refuted.may_preempt("p0", frozenset({"n1"}))
    assert not refuted.may_preempt("p0", frozenset({"n1"})), "nothing new"
    refuted.has_preempted()
    assert refuted.confined(0.0, 0, evicting=True) == {"p0": frozenset()}
    assert refuted.may_preempt("p0", frozenset({"n1"}))


@pytest.mark.parametrize("kept", [pytest.param(False, id="before its refusal"), pytest.param(True, id="after")])
def test_candidates_are_noted(kept: bool) -> None:
    refuted = Refutations()
    if kept:
        refuted.sleeps("p0", 0)
    assert refuted.may_preempt("p0", frozenset({"n1"})) == kept
    refuted.sleeps("p0", 0)
    assert refuted.confined(0.0, 0, evicting=True) == {"p0": frozenset({"n1"})}
    assert refuted.confined(0.0, 0) == {"p0": frozenset()}, "in a plan that evicts no pod"
    refuted.came("p0", 0)
    refuted.sleeps("p0", 0)
    assert refuted.confined(0.0, 0, evicting=True) == {"p0": frozenset()}, "a call belongs to its attempt"


def test_candidates_open_nodes_beside_those_offered() -> None:
    refuted = Refutations()
    refuted.add("p0", "n1", How.NOT_OFFERED, 100.0)
    refuted.confine("p0", "n1", frozenset({"n2"}), 0)
    assert refuted.may_preempt("p0", frozenset({"n3"}))
    assert refuted.confined(101.0, 0, evicting=True) == {"p0": frozenset({"n2", "n3"})}


def test_what_is_of_a_pod_goes_with_it() -> None:
    refutations = Refutations()
    for uid in ("p0", "p1", "p0"):
        refutations.add(uid, "n1", How.REFUSED, 100.0)
    assert list(refutations.uids()) == ["p0", "p1"], "the latest first"
    refutations.forget("p0")
    assert (refutations.times, list(refutations.uids())) == (1, ["p1"])


@pytest.mark.parametrize(
    ("message", "said", "expected"),
    [
        pytest.param("0/3 nodes are available: 3 Insufficient cpu.", "", "Insufficient cpu", id="one reason"),
        pytest.param(
            "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) didn't match scheduler-enforced node affinity. "
            "preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.",
            "",
            "Insufficient cpu, node(s) didn't match scheduler-enforced node affinity",
            id="no numbers, and nothing about preemption",
        ),
        pytest.param(
            f"0/3 nodes are available: 1 {DENIED}, 2 node(s) had untolerated taint {{example.com/a: b}}. no new claims",
            DENIED,
            "node(s) had untolerated taint {example.com/a: b}",
            id="without our own words",
        ),
        pytest.param(f"0/3 nodes are available: 3 {DENIED}.", DENIED, "", id="our own words alone"),
        pytest.param("running Bind plugin: it broke", "", "", id="something else"),
    ],
)
def test_kube_scheduler_s_reasons(message: str, said: str, expected: str) -> None:
    condition = corev1.PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
    assert in_tree_reasons(changed(member("p0"), status={"conditions": (condition,)}), said) == expected


# The story: only n1 is allowed by a rule that we do not know


def parked(w: World, name: str, message: str) -> None:
    """kube-scheduler tries the member at its nomination, and no node passes."""
    seen = w.plugin.manager.groups["default/g"].members[f"default/{name}"].pod
    there = changed(seen, status={"nominated_node_name": dict(w.steered)[name]})
    w.plugin.on_pod(seen, there)
    w.steered.clear()
    condition = corev1.PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
    w.plugin.on_pod(there, changed(there, status={"conditions": (condition,), "nominated_node_name": ""}))
    w.run_tasks()


def nodes_tried(w: World, name: str, message: str) -> list[str]:
    tried = []
    while name in dict(w.steered):
        tried.append(dict(w.steered)[name])
        parked(w, name, f"0/3 nodes are available: {message}")
    return tried


@pytest.fixture
def refuted(world: Make) -> World:
    """p0 is held on n1, p1 was refused on every other node."""
    w = world([node("n1", "1"), node("n2", "1"), node("n3", "1")])
    members = [member("p0", gated=True), member("p1", gated=True)]
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(*members)
    w.run_tasks()
    for each in members:
        w.plugin.on_pod(each, ungated(each))
    w.arrive(ungated(members[0]))
    nodes_tried(w, "p1", "1 Insufficient cpu, 2 node(s) didn't match scheduler-enforced node affinity.")
    return w


def let_go(w: World) -> None:
    """Its bind call is answered, and what is undone then is undone."""
    for uid, waiting in list(w.waiting.items()):
        state = CycleState()
        note_rejection(state, waiting.decision.removeprefix("rejected: "))
        del w.waiting[uid]
        w.plugin.unreserve(state, waiting.pod, waiting.node_name)


def test_where_the_nodes_do_not_suffice_nothing_stays_held_and_the_pods_hear_a_constant_text(refuted: World) -> None:
    (held,) = refuted.waiting.values()
    text = "minMember of 2 does not fit on the nodes that kube-scheduler's own filters accept"
    assert held.decision == f"rejected: {text}"
    assert refuted.filter(member("p1")) == f"pod with pgName: default/g last failed in 3s, deny: {text}"
    let_go(refuted)
    assert len(refuted.plugin.manager.slots) == 0
    assert refuted.verdicts == [f"default/g GangRejected: {text}"], "two refusals may be chance"


def test_a_member_that_kube_scheduler_s_filters_refused_is_in_no_plan_until_it_is_asked_about(refuted: World) -> None:
    """No patch wakes it, so the others would be held for none."""
    let_go(refuted)
    refuted.clock.now += 3
    refuted.plugin.tick()
    refuted.run_tasks()
    assert (refuted.steered, len(refuted.plugin.manager.slots)) == ([], 0)
    refuted.clock.now += 6
    refuted.filter(member("p1"), ["n1"])
    assert refuted.plugin.manager.slots.get("default/p1") is not None


def test_one_that_room_has_woken_is_heard_at_once(refuted: World) -> None:
    """Whether we looked at the gang before kube-scheduler did, or after."""
    let_go(refuted)
    refuted.plugin.on_node(None, node("n1", "2"))
    refuted.nodes["n1"] = node("n1", "2")
    refuted.run_tasks()
    assert "default/g" in refuted.plugin.manager.denied
    assert refuted.filter(member("p1"), ["n1"]) == "n1"


def test_after_three_refusals_the_verdict_quotes_kube_scheduler(refuted: World) -> None:
    let_go(refuted)
    for count in (3, 4):
        refuted.clock.now += 60
        assert refuted.filter(member("p1"), ["n1"]) == "n1"
        refuted.arrive(member("p1"))
        nodes_tried(
            refuted, "p0", f"1 Insufficient cpu, {count} node(s) didn't match scheduler-enforced node affinity."
        )
        let_go(refuted)
        refuted.filter(member("p0"), ["n1"])
    status = refuted.plugin.report.status("default/g")
    assert status is not None
    quoted = (
        "minMember of 2 does not fit on the nodes that kube-scheduler's own filters accept; "
        "kube-scheduler says: Insufficient cpu, node(s) didn't match scheduler-enforced node affinity"
    )
    assert (status.gang.reason, status.gang.message) == ("RefutedByScheduler", quoted)
    assert quoted in "\n".join(explain_text.page(status, datetime.now(UTC)))
    assert refuted.verdicts[-1] == f"default/g GangRejected: {quoted}", "event and condition say what the page says"
    assert "kube-scheduler says" not in status.told, "a pod is tried again at once if what it hears changes"


def test_a_gang_that_starts_has_its_refusals_behind_it(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1")])
    w.plugin.on_pod_group(None, pod_group("g", 1))
    w.create(pod := member("p0"))
    place = w.filter(pod)
    w.plugin.on_pod(pod, refused(pod))
    group = w.plugin.manager.groups["default/g"]
    group.refuted.add(pod.uid, "n9", How.REFUSED, w.clock.now)
    assert w.bind(pod, place) == "starts"
    assert group.refuted.times == 0


def test_a_member_that_took_its_place_and_never_came_is_given_another(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1")])
    w.plugin.on_pod_group(None, pod_group("g", 1))
    w.create(pod := member("p0"))
    first = w.filter(pod)
    w.clock.now += 61
    w.plugin.tick()
    assert w.plugin.manager.groups["default/g"].refuted.left_out(w.clock.now) == {(pod.uid, first)}
    w.clock.now += 1.9
    w.plugin.manager.denied.clear()
    assert {w.filter(pod), first} == {"n1", "n2"}


def test_a_gang_is_not_led_through_the_whole_cluster(world: Make) -> None:
    """What was not offered beside the planned node is left out as well; a new node is another matter."""
    w = world([node(f"n{number:02}", "1") for number in range(50)])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(*(pods := [member("p0"), member("p1")]))
    assert w.filter(pods[0], ["n40"]) == "n40"
    w.bind(pods[0], "n40")
    assert w.filter(pods[1], ["n40"]).endswith("kube-scheduler's own filters accept"), "n40 is taken"
    confined = w.plugin.manager.groups["default/g"].refuted.confined(w.clock.now, w.plugin.manager.notes.cluster_epoch)
    assert confined == {"default/p1": {"n40"}}
    w.nodes["new"] = node("new", "1")
    w.plugin.on_node(None, w.nodes["new"])
    assert w.filter(pods[1], ["n40", "new"]) in ("n40", "new")


def test_a_member_that_came_from_our_gate_without_a_nomination_has_its_place_refuted_too(world: Make) -> None:
    w = world([node("n1", "2")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    gated = [member(f"p{number}", gated=True) for number in range(2)]
    waits = corev1.PodCondition(type="PodScheduled", status="False", reason="SchedulingGated")
    w.create(*(changed(each, status={"conditions": (waits,)}) for each in gated))
    w.run_tasks()
    free = changed(ungated(gated[0]), status={"conditions": (waits,)})
    w.plugin.on_pod(gated[0], free)
    w.plugin.on_pod(free, refused(free))
    w.run_tasks()
    assert w.plugin.manager.groups["default/g"].refuted.left_out(w.clock.now) == {("default/p0", "n1")}
    assert len(w.plugin.manager.slots) == 0


@pytest.mark.parametrize(
    ("preemption", "knew", "refuted"),
    [
        pytest.param("no candidate node for preemption", True, True, id="our preempt verb left no candidate"),
        pytest.param("no candidate node for preemption", False, False, id="its cycle had begun before the nomination"),
        pytest.param(
            "not eligible due to a terminating pod on the nominated node.", True, False, id="a pod is going from there"
        ),
    ],
)
def test_a_member_that_is_refused_and_keeps_its_nomination(
    preemption: str, knew: bool, refuted: bool, world: Make
) -> None:
    """knew: kube-scheduler had the nomination when it called our preempt verb."""
    w = world([node("n1", "1"), node("n2", "1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(*(pods := [member("p0"), member("p1")]))
    for each in pods:
        w.plugin.on_pod(each, refused(each))
    w.run_tasks()
    place = dict(w.steered)["p0"]
    there = changed(refused(pods[0]), status={"nominated_node_name": place})
    w.plugin.on_pod(refused(pods[0]), there)
    group = w.plugin.manager.groups["default/g"]
    group.members[pods[0].uid].no_candidate_with = place if knew else ""
    text = f"0/2 nodes are available: 2 Insufficient example.com/gpu. preemption: {preemption}"
    condition = corev1.PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=text)
    w.plugin.on_pod(there, changed(there, status={"conditions": (condition,)}))
    assert group.refuted.left_out(w.clock.now) == ({("default/p0", place)} if refuted else frozenset())


@pytest.mark.parametrize("nominated", [False, True], ids=["without a nomination", "with its nomination kept"])
def test_a_member_that_is_refused_before_the_victims_have_gone_has_a_place_all_the_same(
    nominated: bool, world: Make
) -> None:
    """It was sent at once, refused again, and its place refuted: with victims that stayed after all the gang waited for good."""
    w = world([node("n1", "1"), node("n2", "1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(*(pods := [refused(member("p0")), refused(member("p1"))]))
    w.run_tasks()
    place = dict(w.steered)["p0"]
    group = w.plugin.manager.groups["default/g"]
    group.preempting = Preempting({"victim"}, ("default/victim",), w.clock.now + 60)
    w.steered.clear()
    there = changed(pods[0], status={"nominated_node_name": place if nominated else ""})
    w.plugin.on_pod(pods[0], there)
    text = "0/2 nodes are available: 2 Insufficient cpu. preemption: no candidate node for preemption"
    condition = corev1.PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=text)
    w.plugin.on_pod(there, changed(there, status={"conditions": (condition,)}))
    assert group.refuted.left_out(w.clock.now) == frozenset()
    assert (w.steered, len(w.plugin.manager.slots)) == ([], 2)


def test_a_nomination_that_is_lost_before_the_victims_have_gone_says_nothing_about_the_place(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(*(pods := [refused(member("p0")), refused(member("p1"))]))
    w.run_tasks()
    there = changed(pods[0], status={"nominated_node_name": dict(w.steered)["p0"]})
    w.plugin.on_pod(pods[0], there)
    w.plugin.manager.groups["default/g"].preempting = Preempting({"victim"}, ("default/victim",), w.clock.now + 60)
    condition = corev1.PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="no room")
    w.plugin.on_pod(there, changed(there, status={"conditions": (condition,), "nominated_node_name": ""}))
    assert len(w.plugin.manager.slots) == 2
