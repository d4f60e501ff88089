"""A gang that needs the room of others gets it whole, or no pod goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from extender import metrics
from extender.api import corev1
from extender.api.schedulingv1alpha1 import GANG_GATE
from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ForbiddenError
from extender.client.interface import (
    NODES,
    POD_DISRUPTION_BUDGETS,
    POD_GROUPS,
    PODS,
    Preconditions,
    ResourceType,
)
from extender.client.status_patch import now_text
from extender.config.types import ExtenderConfiguration
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.preemption import waiting_preemptors as preemption_queue
from extender.plugins.coscheduling.report.gang_status import PreemptionView
from extender.plugins.coscheduling.state.group import Group
from extender.retry import Retry
from tests.unit.plugins.coscheduling.starting import cut_short
from tests.unit.scheduler.conftest import Bench, running

KEY = "default/high"
VIP = 100


class SlowAPI(EmbeddedAPI):
    """Pods that are deleted take their time, as where there is a kubelet: `finish` ends it."""

    def delete(
        self,
        resource: ResourceType[Any],
        name: str,
        namespace: str = "",
        *,
        preconditions: Preconditions | None = None,
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        super().delete(resource, name, namespace, preconditions=preconditions, dry_run=True)
        if not dry_run:
            self.patch(PODS, name, {"metadata": {"deletionTimestamp": now_text()}}, namespace=namespace)

    def finish(self, pod: corev1.Pod) -> None:
        super().delete(PODS, pod.name, pod.namespace)


class Firm(EmbeddedAPI):
    """One pod may not be deleted."""

    def delete(self, resource: ResourceType[Any], name: str, namespace: str = "", **options: Any) -> None:
        if name == "low1":
            raise ForbiddenError("not this one", reason="Forbidden")
        super().delete(resource, name, namespace, **options)


def full(bench: Bench, *priorities: int, **spec: Any) -> list[corev1.Pod]:
    """A node for each, with one pod that fills it."""
    for i in range(len(priorities)):
        bench.node(f"n{i}", cpu="1")
    return [bench.pod(f"low{i}", node=f"n{i}", priority=p, **spec) for i, p in enumerate(priorities)]


def gang(bench: Bench, count: int, **spec: Any) -> list[corev1.Pod]:
    bench.pod_group("high", count)
    return [bench.pod(f"h{i}", "high", priority=VIP, **spec) for i in range(count)]


def refused(bench: Bench, pod: corev1.Pod) -> str:
    """What filter tells it, offered what is left of the nodes by kube-scheduler's own filters."""
    answer = bench.filter(pod, "n0")
    assert not answer.node_names
    return answer.failed_and_unresolvable_nodes["n0"]


def group(bench: Bench) -> Group:
    return bench.scheduler._dependencies.coscheduling.manager.groups[KEY]


def reserved(bench: Bench) -> dict[str, str]:
    """Member -> node."""
    slots = bench.scheduler._dependencies.coscheduling.manager.slots
    return {place.pod.name: place.node_name for place in slots}


def gone(bench: Bench, *pods: corev1.Pod) -> None:
    for pod in pods:
        bench.until(lambda pod=pod: not bench.there(pod), f"{pod.name} goes")  # type: ignore[misc]


def nominated(bench: Bench, *pods: corev1.Pod) -> set[str]:
    names = {pod.name: bench.api.get(PODS, pod.name, pod.namespace).status.nominated_node_name for pod in pods}
    return set(names.values())


def searched_in_vain() -> float:
    return float(metrics.gang_preemption_attempts.labels("none")._value.get())


def looked_for_victims(bench: Bench) -> None:
    """For every gang that wants it."""
    bench.scheduler._dependencies.background.submit(
        "preempt", bench.scheduler._dependencies.coscheduling.preemption.gangs.search_waiting
    )
    bench.flush()


def condition(bench: Bench) -> tuple[str, str]:
    conditions = bench.api.get(POD_GROUPS, "high", "default").status.conditions
    return next(((each.reason, each.message) for each in conditions if each.type == "Scheduled"), ("", ""))


def test_three_victims_for_three_members_and_no_more(slow: Bench) -> None:
    victims = full(slow, 0, 0, 0, 5)
    members = gang(slow, 3)
    for member in members:
        refused(slow, member)
    going(slow, *victims[:3])
    finish(slow, *victims[:3])
    slow.until(lambda: nominated(slow, *members) == {"n0", "n1", "n2"}, "the members are sent to their places")
    assert slow.there(victims[3]), "more important than the others, and not needed"
    answers = [slow.bind(member, node) for member, node in zip(members, ("n0", "n1", "n2"), strict=True)]
    assert [answer.result(5) for answer in answers] == ["", "", ""]


@pytest.mark.parametrize(
    ("priorities", "members", "spec", "configuration", "why"),
    [
        pytest.param((0, 0, VIP), 3, {}, {}, "", id="one node is held by an equal"),
        pytest.param((0,), 2, {}, {}, "", id="there are too few nodes"),
        pytest.param((0, 0), 2, {"preemptionPolicy": "Never"}, {}, messages.PREEMPTION_NEVER, id="policy Never"),
        pytest.param((0, 0), 2, {}, {"gang_preemption": False}, messages.PREEMPTION_OFF, id="it is switched off"),
        pytest.param((0, 0), 2, {}, {"preemption_delay_seconds": 3600.0}, "", id="an autoscaler has its time first"),
        pytest.param((0, 0), 2, {}, {"victim_minimum_run_seconds": 3600.0}, "", id="they have only just begun"),
    ],
)
def test_no_pod_goes_where_not_all_members_would_fit_or_may_preempt(
    priorities: tuple[int, ...], members: int, spec: dict[str, Any], configuration: dict[str, Any], why: str
) -> None:
    with running(ExtenderConfiguration(**configuration)) as bench:
        bench.until(bench.may_evict, "evictions are allowed")
        pods = full(bench, *priorities)
        refused(bench, gang(bench, members, **spec)[0])
        looked_for_victims(bench)
        assert all(bench.there(pod) for pod in pods)
        assert reserved(bench) == {}
        if why:
            looked = bench.scheduler._dependencies.coscheduling.preemption.gangs
            with looked._manager.lock:
                assert looked.search.barred([group(bench)]) == why


def test_victims_are_looked_for_below_that_one_priority_though_others_count_lower_still(bench: Bench) -> None:
    """A pod of priority 50 stays, though the member that waits has 100: the gang counts at 20."""
    middle, low = full(bench, 50, 0)
    bench.node("n2", cpu="1")
    bench.pod_group("high", 2)
    bench.pod("h0", "high", node="n2", priority=20)
    here = {"kubernetes.io/hostname": "n0"}
    bench.api.patch(NODES, "n0", {"metadata": {"labels": here}})
    bench.until(lambda: bool(bench.store(NODES).get("n0").labels), "the label is seen")
    refused(bench, bench.pod("h1", "high", priority=VIP, nodeSelector=here))
    looked_for_victims(bench)
    assert reserved(bench) == {}
    assert bench.there(middle)
    assert bench.there(low)


def test_a_gang_with_a_member_of_its_own_priority_is_a_victim_where_it_counts_lower(bench: Bench) -> None:
    """All pods that run are as important as the preemptor; the gang is not, since one that it needs is still to come."""
    bench.node("n0", cpu="1")
    bench.pod_group("low", 2)
    running = bench.pod("l0", "low", node="n0", priority=VIP)
    bench.pod("l1", "low", priority=0)
    for member in gang(bench, 1):
        refused(bench, member)
    gone(bench, running)


def test_a_gang_preempts_at_its_one_priority_whichever_of_its_members_waits(bench: Bench) -> None:
    full(bench, 50)
    bench.node("n1", cpu="1")
    bench.pod_group("high", 2)
    bench.pod("h0", "high", node="n1")
    before = searched_in_vain()
    refused(bench, bench.pod("h1", "high", priority=VIP))
    looked_for_victims(bench)
    assert (reserved(bench), searched_in_vain()) == ({}, before), "no pod counts lower: no victims are looked for"


def test_victims_that_had_only_just_begun_go_once_they_have_run_for_long_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preemption_queue, "RETRY", Retry(0.0, 0.0))
    before = searched_in_vain()
    with running(ExtenderConfiguration(victim_minimum_run_seconds=3600.0)) as bench:
        bench.until(bench.may_evict, "evictions are allowed")
        pods = full(bench, 0, 0)
        for pod in pods:
            begun = {"status": {"startTime": now_text()}}
            bench.api.patch(PODS, pod.name, begun, namespace=pod.namespace, subresource="status")
        refused(bench, gang(bench, 2)[0])
        bench.until(lambda: searched_in_vain() >= before + 2, "nothing that has happened wants another look")
        looked_for_victims(bench)
        assert all(bench.there(pod) for pod in pods)
        search = bench.scheduler._dependencies.coscheduling.preemption.gangs.search
        search.dependencies = replace(
            search.dependencies, wall=lambda: time.time() + 3600.0
        )  # and nothing else happens
        looked_for_victims(bench)
        gone(bench, *pods)


def test_without_permission_it_is_off_and_says_so() -> None:
    class Unpermitted(EmbeddedAPI):
        def may(self, verb: str, resource: ResourceType[Any], subresource: str = "", **of: str) -> bool:
            return False

    with running(api=Unpermitted()) as bench:
        (victim,) = full(bench, 0)
        refused(bench, gang(bench, 1)[0])
        bench.flush()
        assert bench.there(victim)
        looked = bench.scheduler._dependencies.coscheduling.preemption.gangs
        with looked._manager.lock:
            assert looked.search.barred([group(bench)]) == messages.PREEMPTION_NOT_PERMITTED


@pytest.fixture
def slow() -> Iterator[Bench]:
    with running(api=SlowAPI()) as bench:
        bench.until(bench.may_evict, "evictions are allowed")
        yield bench


def finish(bench: Bench, *pods: corev1.Pod) -> None:
    assert isinstance(bench.api, SlowAPI)
    for pod in pods:
        bench.api.finish(pod)


def going(bench: Bench, *pods: corev1.Pod) -> None:
    for pod in pods:
        bench.until(lambda pod=pod: bench.api.get(PODS, pod.name, pod.namespace).deleting, f"{pod.name} is told")  # type: ignore[misc]


def test_the_places_are_kept_while_the_victims_take_their_time(slow: Bench) -> None:
    victims = full(slow, 0, 0)
    members = gang(slow, 2)
    refused(slow, members[0])
    going(slow, *victims)
    assert set(reserved(slow).values()) == {"n0", "n1"}
    slow.until(lambda: condition(slow)[0] == "Preempting", "the group says what it waits for")
    finish(slow, victims[0])
    slow.until(lambda: slow.store(PODS).get(victims[0].key) is None, "the first has gone")
    assert messages.PREEMPTING in refused(slow, members[0]), "half a gang's room is no room"
    third = slow.pod("third", priority=VIP)
    assert messages.ROOM_RESERVED in refused(slow, third), "the place is not lost to another"
    finish(slow, victims[1])
    slow.until(lambda: group(slow).preempting is None, "the second has gone as well")
    slow.until(lambda: nominated(slow, members[0]) == {reserved(slow)["h0"]}, "the parked member is sent")
    assert slow.filter(members[0], "n0", "n1").node_names == [reserved(slow)["h0"]]


def test_a_gang_that_is_deleted_meanwhile_leaves_nothing_reserved(slow: Bench) -> None:
    victims = full(slow, 0, 0)
    members = gang(slow, 2)
    refused(slow, members[0])
    going(slow, *victims)
    finish(slow, members[0])
    slow.until(lambda: reserved(slow) == {}, "nothing is kept")
    assert group(slow).preempting is None


def test_room_that_comes_free_anyway_is_waited_for_and_no_other_pod_goes(slow: Bench) -> None:
    terminating, staying = full(slow, 0, 0)
    slow.api.delete(PODS, terminating.name, terminating.namespace)
    going(slow, terminating)
    slow.until(lambda: slow.store(PODS).get(terminating.key).deleting, "it is seen")
    (member,) = gang(slow, 1)
    refused(slow, member)
    slow.until(lambda: reserved(slow) == {"h0": "n0"}, "its place is kept")
    finish(slow, terminating)
    slow.until(lambda: nominated(slow, member) == {"n0"}, "it is sent")
    assert not slow.api.get(PODS, staying.name, staying.namespace).deleting


def test_where_one_victim_may_not_go_none_does() -> None:
    with running(api=Firm()) as bench:
        bench.until(bench.may_evict, "evictions are allowed")
        pods = full(bench, 0, 0)
        refused(bench, gang(bench, 2)[0])
        bench.until(lambda: "not this one" in (group(bench).last_diagnosis or _NEVER).message, "it says why")
        assert all(bench.there(pod) for pod in pods)
        assert reserved(bench) == {}


@pytest.mark.parametrize(
    ("protected", "allowed"),
    [
        pytest.param([1], 0, id="it allows none"),
        pytest.param([0, 1], 1, id="it allows each by itself, and not both"),
    ],
)
def test_budgets_are_asked_for_all_before_any_pod_is_evicted_through_the_eviction_api(
    protected: list[int], allowed: int
) -> None:
    with running(ExtenderConfiguration(evict_through="eviction")) as bench:
        bench.until(bench.may_evict, "evictions are allowed")
        for i in range(2):
            bench.node(f"n{i}", cpu="1")
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        labels = [{"app": "web"} if number in protected else {} for number in range(2)]
        pods = [bench.pod(f"low{i}", node=f"n{i}", labels=labels[i]) for i in range(2)]
        for pod in pods:
            bench.api.patch(PODS, pod.name, {"status": ready}, namespace=pod.namespace, subresource="status")
        bench.until(lambda: all(bench.store(PODS).get(pod.key).status.conditions for pod in pods), "they are ready")
        budget = {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": allowed},
        }
        bench.api.create(POD_DISRUPTION_BUDGETS, budget)
        refused(bench, gang(bench, 2)[0])
        bench.until(
            lambda: "disruption budget" in (group(bench).last_diagnosis or _NEVER).message, "the budget says no"
        )
        assert all(bench.there(pod) for pod in pods)


def test_held_members_of_lower_priority_let_go_and_live(bench: Bench) -> None:
    bench.node("n0", cpu="2")
    bench.pod_group("low", 3)
    held = [bench.pod(f"l{i}", "low") for i in range(2)]
    answers = [bench.bind(pod, "n0") for pod in held]
    bench.held(*held)
    members = gang(bench, 2)
    refused(bench, members[0])
    assert all(messages.PREEMPTED in answer.result(5) for answer in answers)
    bench.until(lambda: nominated(bench, members[0]) == {"n0"}, "the parked member is sent")
    assert all(bench.there(pod) for pod in held)


def test_two_gangs_of_one_priority_never_evict_each_other(bench: Bench) -> None:
    bench.node("n0", cpu="2")
    bench.pod_group("first", 2)
    first = [bench.pod(f"f{i}", "first", node="n0", priority=VIP) for i in range(2)]
    refused(bench, gang(bench, 2)[0])
    bench.flush()
    assert all(bench.there(pod) for pod in first)


def test_a_gang_of_low_priority_goes_whole_for_one_of_high(bench: Bench) -> None:
    bench.node("n0", cpu="1")
    bench.node("n1", cpu="1")
    bench.pod_group("low", 2)
    low = [bench.pod(f"l{i}", "low", node=f"n{i}") for i in range(2)]
    (member,) = gang(bench, 1)
    refused(bench, member)
    gone(bench, *low)
    bench.until(lambda: nominated(bench, member) <= {"n0", "n1"}, "the member is sent")


class _NEVER:
    message = ""


def explained(bench: Bench) -> PreemptionView | None:
    status = bench.scheduler._dependencies.coscheduling.report.status(KEY)
    assert status is not None
    return status.preemption


def test_the_page_names_the_victims_and_why_they_are_not_taken() -> None:
    with running(ExtenderConfiguration(preemption_delay_seconds=3600.0)) as bench:
        bench.until(bench.may_evict, "evictions are allowed")
        full(bench, 0, 5)
        refused(bench, gang(bench, 2)[0])
        view = explained(bench)
        assert view is not None
        assert [(each.pod, each.node, each.priority) for each in view.victims] == [
            ("default/low1", "n1", 5),
            ("default/low0", "n0", 0),
        ]
        assert (view.under_way, view.why_not) == (False, messages.PREEMPTION_DELAYED)


def test_the_page_says_that_no_victims_would_do(bench: Bench) -> None:
    full(bench, 0, VIP)
    refused(bench, gang(bench, 2)[0])
    bench.flush()
    assert explained(bench) == PreemptionView(why_not=messages.NO_VICTIMS_HELP)


def test_no_pod_goes_for_a_gang_whose_min_resources_the_cluster_would_not_have_even_then(bench: Bench) -> None:
    victims = full(bench, 0, 0)
    bench.pod_group("high", 2, minResources={"cpu": "1000"})
    members = [bench.pod(f"h{i}", "high", priority=VIP) for i in range(2)]
    assert "resource gap: cpu" in refused(bench, members[0])
    bench.scheduler._dependencies.background.submit(
        "preempt", bench.scheduler._dependencies.coscheduling.preemption.gangs.search_waiting
    )
    bench.flush()
    assert all(bench.there(pod) for pod in victims)
    assert explained(bench) == PreemptionView(why_not="resource gap: cpu")


def test_the_page_names_those_that_are_waited_for(slow: Bench) -> None:
    victims = full(slow, 0)
    refused(slow, gang(slow, 1)[0])
    going(slow, *victims)
    view = explained(slow)
    assert view is not None
    assert ([each.pod for each in view.victims], view.under_way) == (["default/low0"], True)


def _begun(bench: Bench, node: str) -> corev1.Pod:
    """The missing member of a gang whose start was cut short; of the lowest priority."""
    bench.pod_group("begun", 2)
    bench.pod("b0", "begun", node=node)
    member = bench.pod("b1", "begun")
    rounds, manager = (
        bench.scheduler._dependencies.coscheduling.rounds,
        bench.scheduler._dependencies.coscheduling.manager,
    )
    rounds.begun.finish()  # else what it finds on the pods takes the place of this
    cut_short(manager, "default/begun")
    return member


def test_what_is_freed_for_a_gang_that_has_begun_is_kept_from_all_others_whatever_its_priority(slow: Bench) -> None:
    slow.node("n0", cpu="1")
    (victim,) = [slow.pod("low", node="n0", priority=-1)]
    slow.node("n1", cpu="1")
    member = _begun(slow, "n1")
    refused(slow, member)
    going(slow, victim)
    assert reserved(slow) == {"b1": "n0"}
    assert messages.ROOM_RESERVED in refused(slow, slow.pod("vip", priority=VIP))
    finish(slow, victim)
    slow.until(lambda: nominated(slow, member) == {"n0"}, "the member is sent")
    assert messages.ROOM_RESERVED in refused(slow, slow.pod("other", priority=VIP))


def test_a_gang_that_preempts_leaves_the_places_of_one_that_has_begun(slow: Bench) -> None:
    slow.node("n1", cpu="1")
    slow.node("n0", cpu="2")
    victim = slow.pod("low", node="n0", priority=-1)
    member = _begun(slow, "n1")
    assert slow.filter(member, "n0").node_names == ["n0"]
    slots = slow.scheduler._dependencies.coscheduling.manager.slots
    place = slots.get(member.uid)
    refused(slow, gang(slow, 1)[0])
    going(slow, victim)
    assert reserved(slow) == {"b1": "n0", "h0": "n0"}
    assert slots.get(member.uid) is place, "and not taken back for a moment"


def test_no_pod_is_evicted_for_room_that_a_gang_that_has_begun_would_have(bench: Bench) -> None:
    """The preemptor's filter would keep it off, and its victim would have gone for nothing."""
    bench.node("n1", cpu="1")
    bench.node("n0", cpu="2")
    bench.pod_group("running", 1)
    surplus = [bench.pod(f"r{i}", "running", node="n0", cpu="500m") for i in range(2)]
    member = _begun(bench, "n1")
    assert bench.filter(member, "n0").node_names == ["n0"]
    vip = bench.pod("vip", priority=VIP, cpu="1500m")
    assert bench.preempt(vip, {"n0": surplus[:1]}) == {}


def test_extra_members_behind_our_gate_are_freed_where_kube_scheduler_may_preempt_for_them(bench: Bench) -> None:
    full(bench, 0)
    bench.node("n1", cpu="1")
    bench.pod_group("high", 1)
    bench.pod("h0", "high", node="n1", priority=VIP)
    extra = bench.pod("h1", "high", priority=VIP, schedulingGates=[{"name": GANG_GATE}])
    bench.until(lambda: not bench.api.get(PODS, extra.name, extra.namespace).gated, "the gate goes")


def test_extra_members_of_the_same_priority_stay_behind_our_gate(bench: Bench) -> None:
    full(bench, VIP)
    bench.node("n1", cpu="1")
    bench.pod_group("high", 1)
    bench.pod("h0", "high", node="n1", priority=VIP)
    extra = bench.pod("h1", "high", priority=VIP, schedulingGates=[{"name": GANG_GATE}])
    bench.until(lambda: group(bench).last_diagnosis is not None, "it is said why it waits")
    looked_for_victims(bench)
    assert bench.api.get(PODS, extra.name, extra.namespace).gated


def two_behind_our_gate(bench: Bench) -> list[corev1.Pod]:
    """Of a gang that starts with one of them."""
    bench.pod_group("high", 1)
    gated = [{"name": GANG_GATE}]
    return [bench.pod(f"h{number}", "high", priority=VIP, schedulingGates=gated) for number in range(2)]


def started_with_one(bench: Bench, pods: list[corev1.Pod]) -> None:
    """And the gate of the other goes, too."""

    def held_back() -> list[corev1.Pod]:
        return [pod for pod in pods if bench.api.get(PODS, pod.name, pod.namespace).gated]

    bench.until(lambda: len(held_back()) == 1, "one has its place")
    (extra,) = held_back()
    (first,) = (pod for pod in pods if pod is not extra)
    assert bench.bind(first, reserved(bench)[first.name]).result(5) == ""
    bench.until(lambda: not held_back(), "the gate of the other goes")


def test_extra_members_are_freed_after_their_gang_has_started_too(bench: Bench) -> None:
    full(bench, 0)
    bench.node("n1", cpu="1")
    started_with_one(bench, two_behind_our_gate(bench))


def test_extra_members_that_ask_while_their_gang_starts_are_not_forgotten(bench: Bench) -> None:
    full(bench, 0)
    bench.node("n1", cpu="1")
    pods = two_behind_our_gate(bench)
    bench.until(lambda: len(reserved(bench)) == 1, "one has its place")
    gangs = bench.scheduler._dependencies.coscheduling.preemption.gangs
    gangs.refused(group(bench), pods[0].spec.scheduler_name)
    looked_for_victims(bench)
    with gangs._manager.lock:
        assert KEY in gangs._queue._wanted


def test_extra_members_of_a_gang_that_has_preempted_are_freed_too(bench: Bench) -> None:
    full(bench, 0, 0)
    started_with_one(bench, two_behind_our_gate(bench))
