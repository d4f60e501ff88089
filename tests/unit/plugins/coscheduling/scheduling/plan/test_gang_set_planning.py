"""One plan of one gang set: what is asked before it, what is noted and told after it, and what happens where it comes to nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from msgspec import structs

from extender import metrics
from extender.api import corev1
from extender.framework.status import Status
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.scheduling.plan.gang_set_planning import GangSetPlanning
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason as Why
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.slots import Slot
from extender.plugins.coscheduling.waits_for import ANYTHING
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members

Make = Callable[..., World]
NAME = member("x").spec.scheduler_name
DENIED = "pod with pgName: default/g last failed in 3s, deny: "
NO_CPU = "minMember of 2 does not fit: "


class Planning(KubeScheduler):
    """A gang of two that our gate holds; it is planned when a test says so. meanwhile: what happens while a plan is made."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        world.connect(offload=self._offload)
        self.plans: list[planner.Request] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self.answer: planner.NoPlacement | planner.Placement | None = None
        self.short: list[tuple[str, str]] = []
        self.gang_sets: GangSetPlanning = self.plugin.rounds._gang_sets
        self.gang_sets.on_no_room = lambda group, name: self.short.append((group.key, name))
        self.apply(group())
        self.create(*members(2, gated=True))
        world.tasks.clear()

    def _offload(self, function: Callable[..., object], *args: Any) -> object:
        self.plans.append(args[1])
        found = self.answer or function(*args)
        self.meanwhile()
        return found

    @property
    def group(self) -> Group:
        return self.plugin.manager.groups["default/g"]

    def plan(self, caller: str = "", key: str = "default/g", **allowed: Sequence[str]) -> Status:
        nodes = {f"default/{name}": frozenset(names) for name, names in allowed.items()}
        with self.plugin.rounds.planning:
            return self.gang_sets.plan(self.plugin.manager.groups[key], NAME, nodes, caller=caller)

    def places(self) -> Mapping[str, str]:
        return {slot.pod.name: slot.node_name for slot in self.plugin.manager.slots}

    def to_plan(self) -> set[str]:
        return set(self.plugin.manager.queue.active)


def placement(*names: str) -> planner.Placement:
    """All on n1, one after the other."""
    uids = [f"default/{name}" for name in names]
    return planner.Placement(dict.fromkeys(uids, "n1"), tuple(frozenset((uid,)) for uid in uids))


def counted(result: str) -> float:
    return float(metrics.podgroup_schedule_attempts.labels(result)._value.get())


@pytest.fixture
def kube(world: Make) -> Planning:
    """A node of four CPUs, and one of two."""
    return Planning(world([node("n1", "4"), node("n2", "2")]))


@pytest.fixture
def full(world: Make) -> Planning:
    return Planning(world([node("n1", "1")]))


def another_waits(kube: Planning) -> None:
    """A gang of one that waits for room that comes free; kube-scheduler has heard of nothing yet."""
    kube.apply(group("o", 1))
    kube.create(member("o0", "o", gated=True))
    with kube.plugin.manager.lock:
        kube.plugin.manager.queue.active.clear()
        kube.plugin.manager.queue.add_unschedulable("default/o", ANYTHING)
    kube.world.tasks.clear()


# Places


def test_a_gang_that_fits_has_its_places_and_its_members_are_sent(
    kube: Planning, caplog: pytest.LogCaptureFixture
) -> None:
    before = counted("planned")
    kube.group.last_diagnosis = None
    with caplog.at_level(logging.INFO):
        assert kube.plan().success
    assert kube.places() == {"g0": "n2", "g1": "n2"}
    assert kube.plugin.manager.permitted["default/g"]
    assert sorted(kube.world.ungated) == ["g0", "g1"] or sorted(kube.world.steered) == [("g0", "n2"), ("g1", "n2")]
    assert [record.message for record in caplog.records] == ["gang planned group=default/g members=2"]
    assert counted("planned") == before + 1


def test_its_places_are_kept_for_as_long_as_members_may_take(kube: Planning) -> None:
    kube.plan()
    lease = kube.gang_sets._lease_seconds
    assert {slot.expires for slot in kube.plugin.manager.slots} == {kube.world.clock.now + lease}


def test_a_refusal_is_forgotten_with_the_plan(full: Planning) -> None:
    full.plan()
    assert full.group.last_diagnosis is not None
    full.world.nodes["n2"] = node("n2", "1")
    full.plugin.manager.denied.clear()
    assert full.plan().success
    assert full.group.last_diagnosis is None


def test_a_group_without_an_object_is_planned_for_nothing(kube: Planning) -> None:
    kube.remove(kube.groups["default/g"])
    status = kube.plan()
    assert (status.success, status.message, kube.plans) == (False, messages.POD_GROUP_NOT_FOUND, [])


def test_the_member_that_asks_is_placed_first_and_where_kube_scheduler_lets_it(kube: Planning) -> None:
    """Its place is taken with the plan."""
    assert kube.plan("default/g1", g1=["n1"]).success
    assert [info.pod.name for info in kube.plans[0].members] == ["g1", "g0"]
    assert kube.places()["g1"] == "n1"
    assert kube.plans[0].allowed == {"default/g1": {"n1"}}


def test_the_member_that_asks_takes_a_place_whose_turn_it_is(kube: Planning) -> None:
    """The one that it was for comes in its turn."""
    kube.answer = placement("g0", "g1")
    assert kube.plan("default/g1", g1=["n1"]).success
    assert {slot.pod.name: slot.wave for slot in kube.plugin.manager.slots} == {"g1": 0, "g0": 1}


def test_a_member_that_does_not_ask_takes_none(kube: Planning) -> None:
    kube.answer = placement("g0", "g1")
    assert kube.plan(g1=["n1"]).success
    assert {slot.pod.name: slot.wave for slot in kube.plugin.manager.slots} == {"g0": 0, "g1": 1}


def test_it_is_planned_again_where_the_gang_set_has_changed_meanwhile(
    kube: Planning, caplog: pytest.LogCaptureFixture
) -> None:
    kube.meanwhile = lambda: kube.apply(group(minimum=3))
    with caplog.at_level(logging.INFO):
        status = kube.plan()
    assert (status.success, status.message) == (False, messages.CHANGED_MEANWHILE)
    assert "plan void group=default/g" in [record.message for record in caplog.records]
    assert kube.places() == {}
    assert kube.to_plan() == {"default/g"}
    assert "plan" in kube.world.tasks


def test_of_groups_that_are_gone_meanwhile_none_is_planned_again(kube: Planning) -> None:
    def gone() -> None:
        kube.delete(*list(kube.pods.values()))
        kube.remove(kube.groups["default/g"])

    kube.meanwhile = gone
    assert kube.plan().message == messages.CHANGED_MEANWHILE
    assert kube.to_plan() == set()


def test_extra_members_without_room_are_told_to_preemption_once_the_gang_has_its_places(world: Make) -> None:
    kube = Planning(world([node("n1", "2")]))
    kube.create(member("g2", gated=True))
    assert kube.plan().success
    assert kube.short == [("default/g", NAME)]
    assert kube.group.last_diagnosis is not None
    assert kube.group.last_diagnosis.reason == Why.EXTRA_MEMBERS_WAIT


def test_extra_members_that_found_no_time_are_not_told_to_preemption(world: Make) -> None:
    kube = Planning(world([node("n1", "2")]))
    kube.create(member("g2", gated=True))

    def busy() -> None:
        kube.answer = planner.NoPlacement("no time", 0, 1, planner.Cause.BUDGET)

    kube.meanwhile = busy
    assert kube.plan().success
    assert kube.short == []


def with_priority(pod: corev1.Pod, priority: int) -> corev1.Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, priority=priority))


def test_places_of_lower_priority_on_the_nodes_of_a_new_plan_are_looked_at_again(kube: Planning) -> None:
    """A gang of higher priority plans as if they were not there."""
    kube.plan()
    kube.apply(group("high", 2))
    kube.create(*(with_priority(pod, 9) for pod in members(2, "high", cpu=2, gated=True)))
    kube.world.nodes = {"n1": node("n1", "3"), "n2": node("n2", "2")}
    kube.world.tasks.clear()
    assert kube.plan(key="default/high") is not None
    kube.world.nodes["n1"] = node("n1", "2")
    kube.meanwhile = lambda: None
    with kube.plugin.manager.lock:
        kube.plugin.manager.places.give_up(kube.plugin.manager.groups["default/high"])
    assert kube.plan(key="default/high").success
    assert {name for name in kube.places() if name.startswith("g")} == set()
    assert "default/g" in kube.to_plan()
    assert "plan" in kube.world.tasks


@pytest.mark.parametrize("has_some", [True, False], ids=["had places before", "had none"])
def test_a_node_with_places_of_the_gang_alone_is_looked_at_again_where_it(has_some: bool, kube: Planning) -> None:
    """Those that it has by now were found at different times; a plan that was found at once needs no second look."""
    info = kube.group.members["default/g0"].info
    if has_some:
        kube.plugin.manager.slots.reserve(Slot(info, "default/g", "n2", 1000.0))
    kube.world.nodes = {"n2": node("n2", "1")}
    kube.answer = planner.Placement({f"default/{name}": "n2" for name in ("g0", "g1")[has_some:]})
    kube.world.tasks.clear()
    assert kube.plan().success
    assert len(kube.places()) == (1 if has_some else 2)
    assert ("plan" in kube.world.tasks) is has_some


# Giving places back


def test_a_plan_that_is_dropped_leaves_room_for_others_and_the_gang_is_planned_anew(kube: Planning) -> None:
    kube.plan()
    kube.world.tasks.clear()
    kube.plugin.manager.permitted["default/g"] = True
    kube.gang_sets.drop("default/g")
    assert kube.places() == {}
    assert kube.to_plan() == {"default/g"}
    assert "plan" in kube.world.tasks


def test_dropping_the_plan_of_one_group_drops_that_of_those_that_it_starts_with(kube: Planning) -> None:
    kube.apply(group(groups="b"), group("b", 2))
    kube.create(*members(2, "b", gated=True))
    assert kube.plan().success
    assert len(kube.places()) == 4
    kube.gang_sets.drop("default/b")
    assert kube.places() == {}
    assert kube.to_plan() == {"default/b", "default/g"}


def test_there_is_nothing_to_drop_of_a_group_that_is_gone(kube: Planning) -> None:
    kube.gang_sets.drop("default/none")
    assert kube.world.tasks == {}


def test_room_that_is_given_back_is_heard_of_by_gangs_that_wait(kube: Planning) -> None:
    kube.plan()
    another_waits(kube)
    kube.gang_sets.drop("default/g")
    assert kube.to_plan() == {"default/g", "default/o"}


def test_a_plan_that_has_no_places_gives_none_back(kube: Planning) -> None:
    another_waits(kube)
    kube.gang_sets.drop("default/g")
    assert kube.to_plan() == {"default/g"}
    assert "plan" in kube.world.tasks


def test_the_nominations_of_a_gang_that_backs_off_are_withdrawn_with_its_places(kube: Planning) -> None:
    kube.plan()
    kube.wake()
    kube.world.released.clear()
    kube.plugin.manager.queue.back_off("default/g", 5)
    kube.gang_sets.drop("default/g")
    assert sorted(kube.world.released) == ["g0", "g1"]
