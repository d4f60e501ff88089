"""Gangs that our gate holds: planned by what the watch says, sent wave after wave, told what they wait for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.dispatch.dispatcher import cannot_be_woken, waves_of
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group

Make = Callable[..., World]

GATE = {"name": "scheduling.x-k8s.io/gang"}
OTHER = {"name": "example.com/quota"}
NOT_ROOM = "default/g GangRejected: minMember of 2 does not fit: Insufficient cpu"


def gated(name: str, group: str = "g", *more: dict[str, str], **spec: Any) -> corev1.Pod:
    return pod(name, group, schedulingGates=[GATE, *more], **spec)


def changed(
    member: corev1.Pod, *, spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None
) -> corev1.Pod:
    return structs.replace(
        member,
        spec=structs.replace(member.spec, **(spec or {})),
        status=structs.replace(member.status, **(status or {})),
    )


def ungated(member: corev1.Pod) -> corev1.Pod:
    return changed(member, spec={"scheduling_gates": ()})


def refused(member: corev1.Pod, reason: str = "Unschedulable", **status: Any) -> corev1.Pod:
    condition = corev1.PodCondition(type="PodScheduled", status="False", reason=reason)
    return changed(member, status={"conditions": (condition,), **status})


def start(w: World, *members: corev1.Pod, minimum: int = 2, group: str = "g") -> None:
    w.plugin.on_pod_group(None, pod_group(group, minimum))
    w.create(*members)
    w.run_tasks()


# Planned by the watch alone


def test_a_gated_gang_is_planned_and_sent_when_its_last_member_is_created(world: Make) -> None:
    w = world([node("n1", "2")])
    start(w, gated("p0"))
    assert (w.plans, w.steered) == (0, [])
    w.create(gated("p1"))
    w.run_tasks()
    assert sorted(w.steered) == [("p0", "n1"), ("p1", "n1")]


def test_events_of_a_gang_that_is_on_its_way_cause_no_further_plan(world: Make) -> None:
    w = world([node("n1", "2")])
    members = [gated("p0"), gated("p1")]
    start(w, *members)
    for member in members:
        w.plugin.on_pod(member, ungated(member))
    w.run_tasks()
    assert (w.plans, len(w.steered)) == (1, 2)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(lambda w: w.plugin.on_node(None, w.nodes.setdefault("n2", node("n2", "1"))), id="a node is added"),
        pytest.param(lambda w: free(w), id="room comes free"),
        pytest.param(lambda w: w.plugin.on_pod_group(None, pod_group("g", 1)), id="minMember is lowered"),
    ],
)
def test_a_refused_gang_is_planned_again_by_what_can_help(event: Callable[[World], None], world: Make) -> None:
    w = world([node("n1", "2")])
    w.on_nodes["busy"] = pod("busy", node_name="n1")
    w.create(w.on_nodes["busy"])
    start(w, gated("p0"), gated("p1"))
    assert w.verdicts == [NOT_ROOM]
    w.run_tasks()
    assert w.plans == 1, "nothing has happened: it is not looked at again"
    event(w)
    w.run_tasks()
    assert w.steered


def free(w: World) -> None:
    w.plugin.on_pod(w.on_nodes.pop("busy"), None)


def test_a_plain_member_s_call_sends_its_gated_siblings(world: Make) -> None:
    w = world([node("n1", "2")])
    plain = pod("p1", "g")
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(gated("p0"), plain)
    assert w.filter(plain) == "n1"
    assert w.steered == [("p0", "n1")]


def test_gates_of_others_hold_the_quorum_back_until_they_go(world: Make) -> None:
    w = world([node("n1", "2")])
    both = gated("p1", "g", OTHER)
    start(w, gated("p0"), both)
    assert w.plans == 0
    w.plugin.on_pod(both, gated("p1"))
    w.run_tasks()
    assert len(w.steered) == 2


def test_pods_of_a_scheduler_that_we_do_not_serve_stay_as_they_are(world: Make) -> None:
    w = world([node("n1", "2")])
    w.connect(ours=lambda member: member.spec.scheduler_name == "ours")
    start(w, gated("p0"), gated("p1"))
    assert (w.plans, w.steered) == (0, [])


def test_extra_members_are_sent_as_far_as_they_fit(world: Make) -> None:
    w = world([node("n1", "3")])
    start(w, *(gated(f"p{i}") for i in range(4)))
    assert len(w.steered) == 3
    w.nodes["n2"] = node("n2", "1")
    w.plugin.on_node(None, w.nodes["n2"])
    w.run_tasks()
    assert len(w.steered) == 4
    assert w.verdicts == []


def test_a_replica_that_does_not_lead_plans_nothing_and_a_new_leader_plans_what_waits(world: Make) -> None:
    w = world([node("n1", "2")])
    leading = False
    w.connect(may_plan=lambda: leading)
    start(w, gated("p0"), gated("p1"))
    w.plugin.tick()
    w.run_tasks()
    assert (w.plans, w.steered) == (0, [])
    leading = True
    w.plugin.tick()
    w.run_tasks()
    assert len(w.steered) == 2
    leading = False
    w.plugin.tick()
    assert not len(w.plugin.manager.slots), "a replica that leads no more keeps no places"


# After a restart


def test_members_that_were_sent_before_a_restart_are_sent_again(world: Make) -> None:
    """One has lost its gate and was refused while we were away, one was nominated only, one was not reached."""
    w = world([node("n1", "3")])
    sent = (corev1.PodCondition(type="scheduling.x-k8s.io/GangReady", status="True"),)
    nominated = {"nominated_node_name": "n1"}
    lost = corev1.PodCondition(type="PodScheduled", status="False", reason="SchedulerError")
    members = [
        changed(pod("p0", "g"), status={"conditions": (*sent, lost), **nominated}),
        changed(gated("p1"), status={"conditions": sent, **nominated}),
        gated("p2"),
    ]
    start(w, *members, minimum=3)
    assert sorted(w.steered) == [("p0", "n1"), ("p1", "n1"), ("p2", "n1")]


def test_a_nomination_from_before_a_restart_is_taken_back_where_the_gang_fits_no_more(world: Make) -> None:
    w = world([node("n1", "1")])
    ready = corev1.PodCondition(type="scheduling.x-k8s.io/GangReady", status="True")
    before = changed(pod("p0", "g"), status={"conditions": (ready,), "nominated_node_name": "n1"})
    start(w, before, gated("p1"))
    assert (w.steered, w.released) == ([], ["p0"])


# Waves


def in_waves(monkeypatch: pytest.MonkeyPatch, *waves: set[str]) -> None:
    """The planner's own placement, with this order of arrival."""
    plan = planner.plan

    def planned(*args: Any) -> Any:
        placement: Any = plan(*args)
        return replace(placement, waves=tuple(frozenset(wave) for wave in waves))

    monkeypatch.setattr(planner, "plan", planned)


def test_a_wave_is_sent_once_the_one_before_is_held(world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    in_waves(monkeypatch, {"p0", "p1"}, {"p2"}, {"p3"})
    w = world([node("n1", "4")])
    members = [gated(f"p{i}") for i in range(4)]
    start(w, *members, minimum=4)
    assert {name for name, _ in w.steered} == {"p0", "p1"}
    w.arrive(ungated(members[0]))
    assert len(w.steered) == 2
    w.arrive(ungated(members[1]))
    assert [name for name, _ in w.steered[2:]] == ["p2"]
    w.arrive(ungated(members[2]))
    assert [name for name, _ in w.steered[3:]] == ["p3"]


def test_a_wave_is_sent_once_the_one_before_is_bound(world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    in_waves(monkeypatch, {"p0"}, {"p1"})
    w = world([node("n1", "4")])
    members = [gated(f"p{i}") for i in range(2)]
    start(w, *members, minimum=1)
    w.plugin.on_pod(members[0], changed(ungated(members[0]), spec={"node_name": "n1"}))
    assert [name for name, _ in w.steered] == ["p0", "p1"]


def test_a_member_that_comes_before_its_turn_takes_the_turn_of_an_alike_sibling(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_waves(monkeypatch, {"p0"}, {"p1"})
    w = world([node("n1", "1"), node("n2", "1")])
    members = [gated("p0"), gated("p1")]
    start(w, *members)
    ((_, first),) = w.steered
    assert w.filter(ungated(members[1])) == first
    assert w.filter(ungated(members[0])) == ({"n1", "n2"} - {first}).pop(), (
        "the member that was answered is in place for the next"
    )


def test_a_member_that_comes_before_its_turn_and_has_no_alike_sibling_is_sent_when_its_turn_has_come(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_waves(monkeypatch, {"p0"}, {"p1"})
    w = world([node("n1", "3")])
    members = [gated("p0"), gated("p1", cpu="2")]
    start(w, *members)
    plain = ungated(members[1])
    w.plugin.on_pod(members[1], plain)
    assert w.filter(plain) == "planned members that are to come before it are not in place yet"
    assert [name for name, _ in w.steered] == ["p0"]
    w.arrive(ungated(members[0]))
    assert [name for name, _ in w.steered] == ["p0", "p1"]


def test_no_member_is_nominated_while_a_plain_member_may_come_at_any_time(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_waves(monkeypatch, {"p0", "p1", "p3"}, {"p2"})
    w = world([node("n1", "4")])
    w.plugin.on_pod_group(None, pod_group("g", 4))
    plain = [pod(f"p{i}", "g") for i in range(3)]
    w.create(plain[0])
    w.filter(plain[0])
    w.create(*plain[1:], gated("p3"))
    w.filter(plain[1])
    assert (w.steered, w.woken, w.ungated) == ([], ["p0"], ["p3"])


def needs(wanted: str, **labels: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"role": wanted}}, "topologyKey": "zone"}
    return {
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        "labels": {"scheduling.x-k8s.io/pod-group": "g", **labels},
    }


@pytest.mark.parametrize(
    ("worker", "caller", "stuck"),
    [
        pytest.param(pod("w", **needs("master")), "", True, id="a plain worker that needs its master"),
        pytest.param(pod("w", **needs("master")), "w", False, id="one that kube-scheduler has let through"),
        pytest.param(pod("w", **needs("master"), schedulingGates=[GATE]), "", False, id="a gated worker"),
        pytest.param(pod("w", **needs("worker", role="worker")), "", False, id="workers that need each other"),
        pytest.param(pod("w", "g"), "", False, id="a worker without affinity"),
    ],
)
def test_which_members_cannot_be_woken(worker: corev1.Pod, caller: str, stuck: bool, world: Make) -> None:
    w = world([node("n1")])
    start(w, pod("m", "g"), worker)
    group = w.plugin.manager.groups["default/g"]
    placement = planner.Placement({"m": "n1", "w": "n1"}, (frozenset({"m"}), frozenset({"w"})))
    assert cannot_be_woken([group], waves_of(placement), caller) is stuck


def test_a_gang_that_has_to_be_gated_is_told_so_and_nothing_is_kept_for_it(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_waves(monkeypatch, {"m"}, {"w"})
    w = world([node("n1")])
    master = pod("m", "g")
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(master, pod("w", **needs("master")))
    assert "have to be created with the scheduling gate scheduling.x-k8s.io/gang" in w.filter(master)
    assert not len(w.plugin.manager.slots)
    assert w.steered == []


# Slots, and what moved


def test_a_member_that_takes_a_sibling_s_place_has_the_sibling_sent_to_the_other(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1")])
    members = [gated("p0"), gated("p1")]
    start(w, *members)
    places = dict(w.steered)
    assert w.filter(ungated(members[0]), [places["p1"]]) == places["p1"]
    assert w.steered[2:] == [("p1", places["p0"])]


def test_only_the_member_whose_node_is_gone_is_sent_elsewhere(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1"), node("n3", "1")])
    start(w, gated("p0"), gated("p1"))
    places = dict(w.steered)
    gone = w.nodes.pop(places["p0"])
    (free_node,) = {"n1", "n2", "n3"} - set(places.values())
    w.plugin.on_node(gone, None)
    w.run_tasks()
    assert w.steered[2:] == [("p0", free_node)]
    assert w.released == []


def test_nominations_are_taken_back_where_the_gang_fits_no_more(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1")])
    start(w, gated("p0"), gated("p1"))
    w.plugin.on_node(w.nodes.pop("n2"), None)
    w.run_tasks()
    assert sorted(w.released) == ["p0", "p1"]
    assert not len(w.plugin.manager.slots)


# Nominations that kube-scheduler clears


def sent(w: World) -> tuple[corev1.Pod, str]:
    """The first member as the watch shows it after our patches."""
    member = gated("p0")
    start(w, member, gated("p1"))
    node_name = dict(w.steered)["p0"]
    seen = changed(ungated(member), status={"nominated_node_name": node_name})
    w.plugin.on_pod(member, seen)
    w.steered.clear()
    return seen, node_name


def test_a_nomination_that_was_cleared_without_a_refusal_is_made_once_more(world: Make) -> None:
    w = world([node("n1", "2")])
    seen, node_name = sent(w)
    for expected in ([("p0", node_name)], [("p0", node_name)]):
        w.plugin.on_pod(seen, changed(seen, status={"nominated_node_name": ""}))
        w.run_tasks()
        assert w.steered == expected


def test_a_place_that_kube_scheduler_refused_is_left_out_for_a_while(world: Make) -> None:
    w = world([node("n1", "2"), node("n2", "1")])
    seen, node_name = sent(w)
    w.plugin.on_pod(seen, refused(seen, nominated_node_name=""))
    w.run_tasks()
    assert (w.steered, sorted(w.released)) == ([], ["p1"])
    w.clock.now += 3
    assert w.filter(seen) == node_name


@pytest.mark.parametrize(
    ("reason", "message", "sent_to_it_again"),
    [
        pytest.param("SchedulerError", "binding failed", True, id="its binding failed"),
        pytest.param("Unschedulable", "1 our own words.", True, id="our own filter said no"),
        pytest.param("Unschedulable", "1 Insufficient cpu.", False, id="kube-scheduler's did"),
    ],
)
def test_only_kube_scheduler_s_own_filters_refute_a_place(
    reason: str, message: str, sent_to_it_again: bool, world: Make
) -> None:
    w = world([node("n1", "2"), node("n2", "1")])
    seen, node_name = sent(w)
    w.plugin.manager.groups["default/g"].members["p0"].last_rejection = "our own words"
    refusal = corev1.PodCondition(type="PodScheduled", status="False", reason=reason, message=message)
    w.plugin.on_pod(seen, changed(seen, status={"conditions": (refusal,), "nominated_node_name": ""}))
    w.run_tasks()
    assert (w.steered == [("p0", node_name)]) is sent_to_it_again


def test_a_nomination_that_we_took_back_before_the_place_was_promised_again_is_not_lost(world: Make) -> None:
    w = world([node("n1", "2")])
    seen, _ = sent(w)
    dropped = corev1.PodCondition(type="scheduling.x-k8s.io/GangReady", status="False", reason="PlanDropped")
    w.plugin.on_pod(seen, changed(seen, status={"conditions": (dropped,), "nominated_node_name": ""}))
    w.run_tasks()
    assert (w.steered, w.plans) == ([], 1)


def test_a_planned_member_that_kube_scheduler_refused_before_we_were_asked_is_sent(world: Make) -> None:
    w = world([node("n1", "2")])
    plain, caller = pod("p0", "g"), pod("p1", "g")
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(plain, caller)
    assert w.filter(caller) == "n1"
    assert w.steered == []
    w.plugin.on_pod(plain, refused(plain))
    assert w.steered == [("p0", "n1")]


# What they wait for


@pytest.mark.parametrize(
    ("members", "text"),
    [
        pytest.param([gated("p0")], "fewer pods exist than minMember of 2", id="members are missing"),
        pytest.param(
            [gated("p0"), gated("p1", "g", OTHER)],
            "scheduling gates of others leave fewer pods than minMember of 2",
            id="gates of others",
        ),
    ],
)
def test_a_gang_says_what_it_waits_for_once_it_has_waited_a_while(
    members: list[corev1.Pod], text: str, world: Make
) -> None:
    w = world([node("n1")])
    start(w, *members)
    w.plugin.tick()
    assert w.verdicts == [], "a gang that is being created says nothing"
    w.clock.now += 1
    w.plugin.tick()
    w.plugin.tick()
    assert w.verdicts == [f"default/g GangWaiting: {text}"]


def test_a_gang_that_is_planned_in_time_has_not_waited(world: Make) -> None:
    w = world([node("n1")])
    start(w, gated("p0"))
    w.create(gated("p1"))
    w.run_tasks()
    w.clock.now += 5
    w.plugin.tick()
    assert w.verdicts == []


def test_for_an_autoscaler_the_gates_of_a_gang_without_room_come_off(world: Make) -> None:
    w = world([node("n1", "1")])
    w.connect(ungate_refused=True)
    start(w, gated("p0"), gated("p1"))
    assert sorted(w.ungated) == ["p0", "p1"]


def test_a_plan_whose_members_do_not_come_gives_others_their_turn_and_then_is_made_again(world: Make) -> None:
    w = world([node("n1", "2")])
    start(w, gated("p0"), gated("p1"))
    w.clock.now += 61
    w.plugin.tick()
    w.run_tasks()
    assert sorted(w.released) == ["p0", "p1"]
    w.steered.clear()
    w.clock.now += 3
    w.plugin.tick()
    w.run_tasks()
    assert len(w.steered) == 2
