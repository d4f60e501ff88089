"""To which members a refusal is told, until when it stands, and what is given up with it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from extender.api import corev1
from extender.client.interface import OwnPodGroup
from extender.plugins.coscheduling.dependencies import Verdict
from extender.plugins.coscheduling.scheduling.plan.gang_set_refusals import GangSetRefusals
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.gang_queue import Unschedulable
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.waits_for import ANYTHING, WaitsFor
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group
from tests.unit.plugins.coscheduling.managing import LIGHT
from tests.unit.plugins.coscheduling.short_of_room import RULES

KEY = "default/g"
NO_ROOM = Diagnosis(UnschedulableReason.INSUFFICIENT_RESOURCES, "no room")
BUDGET = Diagnosis(UnschedulableReason.BUDGET_EXCEEDED, "no time")
WAITS = WaitsFor((), priority=3)
GATE: dict[str, Any] = {"schedulingGates": [{"name": "scheduling.x-k8s.io/gang"}]}
SPREAD: dict[str, Any] = {
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    ]
}


class Refused(World):
    """Members that our gate holds, of a group of two; heard: what was decided, of which object, and which member hears of it."""

    def __init__(self, **connected: Any) -> None:
        super().__init__([node("n1")])
        self.heard: list[tuple[bool, str, Verdict, str]] = []
        self.connect(**connected)
        refusals = self.plugin.rounds._gang_sets._refusals
        assert isinstance(refusals, GangSetRefusals)
        self.refusals = refusals

    def decided(
        self, pod_group: OwnPodGroup | None, key: str, verdict: Verdict, member: corev1.Pod | None = None
    ) -> None:
        self.heard.append((pod_group is not None, key, verdict, member.name if member is not None else ""))

    def with_object(self) -> None:
        self.plugin.on_pod_group(None, pod_group("g", 2))
        self.create(*(pod(name, "g", **GATE) for name in ("b", "a")))
        self.tasks.clear()

    @property
    def group(self) -> Group:
        return self.plugin.manager.groups[KEY]

    def deny(
        self, stop: Diagnosis = NO_ROOM, waits: WaitsFor = WAITS, *, epochs_ago: int = 0, passes: bool = False
    ) -> str:
        epoch = self.plugin.manager.notes.epoch - epochs_ago
        return self.refusals.deny([self.group], stop, epoch, waits, passes=passes).message


@pytest.fixture
def refused() -> Refused:
    made = Refused()
    made.with_object()
    return made


def test_a_member_hears_the_cause_and_its_users_what_kube_scheduler_says_of_it_too(refused: Refused) -> None:
    stop = replace(NO_ROOM, quote="0/3 nodes are available")
    assert refused.deny(stop) == "pod with pgName: default/g last failed in 3s, deny: no room"
    text = "no room; kube-scheduler says: 0/3 nodes are available"
    assert refused.heard == [(True, KEY, Verdict(False, "GangRejected", text, "InsufficientResources"), "")]


def test_of_a_gang_without_an_object_the_first_member_that_our_gate_holds_hears_of_it() -> None:
    refused = Refused()
    refused.create(*(pod(name, labels=LIGHT, **GATE) for name in ("b", "a", "c")))
    refused.deny()
    assert [(own, key, name) for own, key, _, name in refused.heard] == [(False, KEY, "a")]


def test_of_one_whose_members_need_each_other_none_hears_of_it() -> None:
    """Those are never sent one by one."""
    refused = Refused(ungate_refused=True)
    refused.create(*(pod(name, labels=LIGHT, **GATE, **SPREAD) for name in ("b", "a")))
    refused.deny()
    assert [name for _, _, _, name in refused.heard] == [""]
    assert refused.ungated == []


@pytest.mark.parametrize("ungates", [True, False])
def test_the_gates_of_a_refused_gang_come_off_where_it_is_configured(ungates: bool) -> None:
    """An autoscaler sees its pods then."""
    refused = Refused(ungate_refused=ungates)
    refused.with_object()
    refused.deny()
    assert sorted(refused.ungated) == (["a", "b"] if ungates else [])


# Until when


def test_it_waits_for_what_may_help_it(refused: Refused) -> None:
    refused.deny()
    assert refused.plugin.manager.queue.unschedulable[KEY] == Unschedulable(WAITS, math.inf)
    assert refused.tasks == {}, "it is not planned again at once"


def test_what_passes_with_a_filter_call_is_planned_again_when_the_refusal_is_over(refused: Refused) -> None:
    refused.deny(passes=True)
    assert refused.plugin.manager.queue.unschedulable[KEY] == Unschedulable(WAITS, refused.clock.now + 3)


@pytest.mark.parametrize(
    ("stop", "seconds"),
    [
        pytest.param(NO_ROOM, [3, 6, 12], id="the same end comes again: for twice as long each time"),
        pytest.param(BUDGET, [3, 3, 3], id="the planner's time ran out: it may be less busy"),
    ],
)
def test_for_how_long_a_refusal_stands(stop: Diagnosis, seconds: list[int], refused: Refused) -> None:
    found = []
    for _ in seconds:
        refused.deny(stop)
        found.append(refused.plugin.manager.denied.until(KEY) - refused.clock.now)
    assert found == seconds
    assert refused.plugin.manager.denied.get(KEY) == stop.message


def test_the_same_refusal_is_as_old_as_the_first(refused: Refused) -> None:
    refused.deny()
    since, refused.clock.now = refused.clock.now, 500.0
    refused.deny()
    assert refused.group.last_diagnosis == replace(NO_ROOM, since=since)
    refused.deny(BUDGET)
    assert refused.group.last_diagnosis == replace(BUDGET, since=500.0)


def test_what_came_free_meanwhile_has_it_planned_again_at_once(refused: Refused) -> None:
    refused.plugin.manager.notes.epoch += 1
    refused.deny(epochs_ago=1)
    assert KEY in refused.plugin.manager.queue.active
    assert "plan" in refused.tasks
    assert len(refused.heard) == 1, "it is told nevertheless"


def test_a_gang_that_is_refused_has_to_have_its_min_resources_again(refused: Refused) -> None:
    refused.plugin.manager.permitted[KEY] = True
    refused.deny()
    assert KEY not in refused.plugin.manager.permitted


def test_of_groups_that_start_together_those_that_are_there_still_are_refused(refused: Refused) -> None:
    gone = Group("default/gone")
    found = refused.refusals.deny([gone, refused.group], NO_ROOM, refused.plugin.manager.notes.epoch, WAITS)
    assert found.message == "pod with pgName: default/gone last failed in 3s, deny: no room"
    assert [key for _, key, _, _ in refused.heard] == [KEY]
    assert refused.plugin.manager.denied.get("default/gone") is None


def test_its_time_until_nodes_are_kept_free_for_it_begins() -> None:
    refused = Refused(backfill=RULES)
    refused.with_object()
    refused.deny()
    refused.clock.now += RULES.after_seconds
    manager = refused.plugin.manager
    with manager.lock:
        assert refused.plugin.rounds.reservations.turns.next() is refused.group


def test_a_member_that_was_sent_to_a_place_is_called_back(refused: Refused) -> None:
    refused.run_tasks()
    manager = refused.plugin.manager
    with manager.lock:
        manager.queue.move_to_active((KEY,))
    refused.plugin.rounds.plan_waiting()
    assert sorted(name for name, _ in refused.steered) == ["a", "b"]
    with manager.lock:
        manager.places.give_up(refused.group)
    refused.released.clear()
    refused.deny(waits=ANYTHING)
    assert sorted(refused.released) == ["a", "b"]
