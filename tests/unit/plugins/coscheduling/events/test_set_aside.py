"""What becomes of a gang that is set aside, and what it and its owner hear."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from extender.api.metav1 import Condition
from extender.api.schedulingv1alpha1 import PodGroup
from extender.framework.cycle_state import CycleState
from extender.plugins.coscheduling import messages
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node

pytestmark = pytest.mark.faults

TOLD = f"default/g GangQuarantined: {messages.INTERNAL_ERROR}"


class Story(KubeScheduler):
    """leads: whether we do."""

    def __init__(self, *nodes: str) -> None:
        super().__init__(World([node(name, "4") for name in nodes or ("n1", "n2")]))
        self.leads = True
        self.world.connect(may_plan=lambda: self.leads)
        self.manager = self.plugin.manager
        self.plugin.tick()

    def fault(self, key: str = "default/g") -> None:
        def raises() -> None:
            raise KeyError("a fault of ours")

        self.manager.quarantine.for_gang(key, "test", raises, None)

    def after(self, seconds: float) -> None:
        self.world.clock.now += seconds
        self.plugin.tick()
        self.run()

    def hold(self, *names: str) -> None:
        for name in names:
            self.attempt(f"default/{name}")
        assert self.held() == set(names)


@pytest.fixture
def kube() -> Story:
    return Story()


def says(each: PodGroup, status: str, reason: str) -> PodGroup:
    condition = Condition(type="Scheduled", status=status, reason=reason)
    return structs.replace(each, status=structs.replace(each.status, conditions=(condition,)))


def test_its_holds_end_and_those_of_a_gang_that_was_to_start_with_it(kube: Story) -> None:
    kube.apply(group("g", 2), group("h", 2, groups="g"))
    kube.create(*members(2), *members(2, "h"))
    kube.plugin.rounds.plan_waiting()
    kube.hold("g0", "h0")
    kube.fault()
    assert {each.decision for each in kube.world.waiting.values()} == {f"rejected: {messages.INTERNAL_ERROR}"}


def test_a_start_that_has_begun_goes_on_and_its_members_keep_their_places(kube: Story) -> None:
    """An extra member that was planned with it too."""
    kube.apply(group("g", 2))
    kube.create(*members(3, gated=True))
    kube.world.run_tasks()
    kube.wake()
    kube.hold("g0")
    kube.world.on_nodes["default/g1"] = on_node(kube.pods["default/g1"], "n1")
    place = kube.manager.slots.get("default/g1")
    assert place is not None
    kube.plugin.permit(CycleState(), kube.pods["default/g1"], place.node_name)
    kube.fault()
    assert [each.decision for each in kube.world.waiting.values()] == ["allowed"]
    assert kube.plugin.pre_bind(CycleState(), kube.pods["default/g0"], "n1").success
    assert {each.uid for each in kube.manager.slots.of_group("default/g")} == {f"default/g{n}" for n in range(3)}


def test_firm_places_are_kept_until_they_expire(kube: Story) -> None:
    kube.apply(group("g", 2))
    kube.create(*members(2, gated=True))
    kube.world.run_tasks()
    slots = kube.manager.slots
    first, _ = slots.of_group("default/g")
    slots.reserve(replace(first, firm=True))
    kube.fault()
    assert [each.uid for each in slots.of_group("default/g")] == [first.uid]
    kube.world.clock.now = first.expires - 0.1
    kube.fault()
    kube.world.clock.now = first.expires
    kube.plugin.set_aside.tick()
    assert not slots.of_group("default/g")


def test_what_events_would_have_noted_meanwhile_is_made_up_for(kube: Story) -> None:
    """Both come to nodes while nothing is looked at: once satisfied, a member that comes later is on its own."""
    kube.apply(group("g", 2, match_policy="once-satisfied"))
    kube.fault()
    kube.create(*(on_node(pod, "n1") for pod in members(2)))
    assert not kube.manager.groups["default/g"].once_whole
    kube.after(1.0)
    assert kube.manager.groups["default/g"].once_whole


def test_a_member_that_kube_scheduler_refused_meanwhile_is_noted(kube: Story) -> None:
    """Without us: its gang has its verdict all the same."""
    kube.apply(group("g", 2))
    kube.fault()
    kube.create(*(pods := members(2, cpu=9)))
    kube.run()
    assert kube.told == dict.fromkeys((pod.name for pod in pods), "Insufficient cpu")
    kube.after(1.0)
    assert kube.reason() == "InsufficientResources"


def test_why_it_waits_is_told_again_afterwards(kube: Story) -> None:
    kube.apply(group("g", 2))
    kube.create(member("g0", gated=True))
    for _ in range(3):
        kube.after(1.0)
    waits = [told for told in kube.world.verdicts if "fewer pods exist" in told]
    kube.fault()
    for _ in range(4):
        kube.after(1.0)
    assert kube.world.verdicts == [*waits, TOLD, *waits]


def test_of_one_that_runs_the_condition_stays_true_and_is_put_right_afterwards(kube: Story) -> None:
    runs = group("g", 2)
    kube.apply(runs)
    kube.create(*(on_node(pod, "n1") for pod in members(2)))
    verdicts = []
    kube.world.connect(verdicts=kube.world)
    kube.apply(says(runs, "True", "GangScheduled"))
    kube.plugin.tick()
    kube.world.decided = lambda pod_group, key, verdict, member=None: verdicts.append((verdict.scheduled, verdict.why))  # type: ignore[method-assign]
    kube.fault()
    assert verdicts == [(True, "InternalError")]
    kube.apply(says(runs, "True", "InternalError"))
    kube.after(1.0)
    assert verdicts == [(True, "InternalError"), (True, "")]


def test_a_new_leader_tells_of_those_that_it_has_set_aside_before(kube: Story) -> None:
    kube.leads = False
    kube.apply(group("g", 2))
    kube.fault()
    kube.world.verdicts.clear()  # they went nowhere
    kube.plugin.tick()
    assert kube.world.verdicts == []
    kube.leads = True
    kube.plugin.set_aside.tick()
    kube.plugin.set_aside.tick()
    assert kube.world.verdicts == [TOLD]


def test_a_further_member_that_needs_no_plan_is_tried_again_afterwards(kube: Story) -> None:
    """Nothing else would wake it: no plan is made for it."""
    kube.apply(group("g", 1))
    kube.create(on_node(member("g0"), "n1"))
    kube.fault()
    kube.create(member("g1"))
    kube.run()
    assert kube.told == {"g1": messages.INTERNAL_ERROR}
    for _ in range(5):
        kube.after(1.0)
    assert "g1" in kube.running()


def test_a_gang_that_asks_for_something_else_is_tried_at_once(kube: Story) -> None:
    kube.apply(group("g", 3))
    kube.create(*members(2, gated=True))
    kube.fault()
    kube.apply(group("g", 2))
    kube.run()
    assert kube.running() == {"g0", "g1"}


def test_a_gang_that_comes_while_its_name_is_set_aside_is_looked_at_when_that_is_over(kube: Story) -> None:
    """The event that made it raised before there was a group."""
    kube.fault()
    kube.apply(group("g", 2))
    kube.fault()
    kube.world.tasks.clear()
    kube.create(*members(2, gated=True))
    for _ in range(2):
        kube.after(1.0)
    assert kube.running() == {"g0", "g1"}


def test_nothing_is_left_of_one_that_goes(kube: Story) -> None:
    kube.apply(group("g", 2))
    kube.create(*(pods := members(2)))
    kube.fault()
    kube.delete(*pods)
    kube.remove(kube.groups["default/g"])
    kube.plugin.tick()
    assert (len(kube.manager.quarantine), kube.plugin.set_aside._aside, kube.plugin.set_aside._told) == (
        0,
        set(),
        set(),
    )
