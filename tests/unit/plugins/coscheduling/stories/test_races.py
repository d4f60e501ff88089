"""Two things that happen at nearly the same time, in the unlikely order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.framework.cycle_state import CycleState
from extender.plugins.coscheduling import messages
from tests.unit.plugins.coscheduling.conftest import Snapshot, World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, broken, group, member, members, on_node

Make = Callable[..., World]


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "4"), node("n2", "4")]))


def test_a_member_that_was_deleted_on_its_way_to_permit_starts_no_member(kube: KubeScheduler) -> None:
    """It was held, and counted: its sibling started alone."""
    kube.apply(group(minimum=2))
    first, second = members(2, gated=True)
    kube.create(first, second)
    kube.world.run_tasks()
    kube.wake()
    kube.attempt(first.uid)
    assert kube.held() == {"g0"}
    late = kube.pods[second.uid]
    kube.delete(late)
    status, _ = kube.plugin.permit(CycleState(), late, "n1")
    assert not status.success
    assert not status.wait
    assert kube.starts == []


def test_a_gang_of_which_no_member_was_bound_has_not_started(kube: KubeScheduler) -> None:
    """With only-waiting each was on its own from then on: one ran without the other."""
    kube.apply(group(minimum=2, match_policy="only-waiting"))
    pods = members(2)
    kube.create(*pods)
    for pod in pods:
        kube.world.arrive(pod)
    assert {each.decision for each in kube.world.waiting.values()} == {"allowed"}
    kube.world.waiting.clear()
    for pod in pods:  # its node is gone, say
        kube.plugin.unreserve(CycleState(), pod, "n1")
    kube.delete(pods[1])
    assert "cannot find enough sibling pods" in kube.world.filter(pods[0])
    status, _ = kube.plugin.permit(CycleState(), pods[0], "n1")
    assert not status.success


def test_a_gang_whose_plan_ran_out_is_looked_at_again_though_time_goes_on_between_two_notes(
    kube: KubeScheduler,
) -> None:
    """It was due a moment before its denial was over, found to be denied, and forgotten."""
    kube.apply(group(minimum=2))
    kube.create(*members(2, gated=True))
    kube.world.run_tasks()
    clock = kube.world.clock
    clock.now += 60.0

    class Running:
        """A clock that never says the same twice."""

        def __call__(self) -> float:
            clock.now += 1e-6
            return clock.now

    manager = kube.plugin.manager
    manager.clock = manager.denied._clock = Running()
    kube.plugin.expired_slots.tick()
    kube.world.run_tasks()
    assert manager.queue.unschedulable["default/g"].retry_at >= manager.denied.until("default/g")


@pytest.mark.faults
def test_a_gang_is_looked_at_again_when_the_look_itself_raised(
    kube: KubeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a plan that raised was tried again: the gang waited for the next event."""
    kube.plugin.tick()
    kube.apply(group(minimum=2))
    kube.create(*members(2, gated=True))
    rounds, faults = kube.plugin.rounds, iter([True])
    waits = rounds._waits

    def once_broken(of: object) -> object:
        if next(faults, False):
            raise KeyError("a fault of ours")
        return waits(of)  # type: ignore[arg-type]

    monkeypatch.setattr(rounds, "_waits", once_broken)
    kube.run()
    assert kube.running() == set()
    kube.world.clock.now += 1.0
    kube.plugin.tick()
    kube.run()
    assert kube.running() == {"g0", "g1"}


@pytest.mark.faults
def test_a_start_that_raises_in_the_middle_is_called_off(kube: KubeScheduler) -> None:
    """Members that were allowed by then waited for ever for the decision on the start, and their gang with them."""
    kube.apply(group(minimum=3))
    kube.create(*members(3, gated=True))
    kube.world.run_tasks()
    kube.wake()
    for uid in ("default/g0", "default/g1"):
        kube.attempt(uid)

    def broken(plugin: str) -> bool:
        raise KeyError("a fault of ours")

    first, second = kube.world.waiting.values()
    second.allow = broken  # type: ignore[method-assign]
    status, _ = kube.plugin.permit(CycleState(), kube.pods["default/g2"], "n1")
    assert status.message == messages.INTERNAL_ERROR
    assert not kube.plugin.pre_bind(CycleState(), first.pod, first.node_name).success
    assert kube.plugin.manager.groups["default/g"].starting == set()
    assert second.decision.startswith("rejected")


@pytest.mark.faults
def test_what_follows_when_we_begin_to_lead_is_done_to_its_end(
    kube: KubeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was begun once: no member was planned by it that had been there before."""
    kube.apply(group(minimum=2))
    kube.create(*members(2, gated=True))
    kube.world.tasks.clear()
    for key in list(kube.plugin.manager.queue.active):
        kube.plugin.manager.queue.begin_planning(key)
    with monkeypatch.context() as patched:

        def broken() -> None:
            raise KeyError("a fault of ours")

        patched.setattr(kube.plugin.rounds.begun, "finish", broken)
        kube.plugin.tick()
    kube.plugin.tick()
    kube.run()
    assert kube.running() == {"g0", "g1"}


def while_planned(kube: KubeScheduler, happens: Callable[[], None]) -> None:
    """Once, in the middle of the next plan, when no lock is held."""
    plain, left = kube.world._offload, [happens]

    def offload(function: Callable[..., object], *args: object) -> object:
        found = plain(function, *args)
        if left:
            left.pop()()
        return found

    kube.world.connect(offload=offload)


Happens = Callable[[KubeScheduler], None]
MEANWHILE = [
    pytest.param(lambda kube: kube.delete(kube.pods["default/g1"]), id="a member is deleted"),
    pytest.param(lambda kube: kube.apply(group(minimum=3)), id="minMember is raised beyond its members"),
    pytest.param(lambda kube: kube.remove(kube.groups["default/g"]), id="its PodGroup is deleted"),
    pytest.param(lambda kube: kube.apply(group(minimum=2, groups="h")), id="it names a group that is not there"),
    pytest.param(lambda kube: kube.apply(group("h", 1, groups="g")), id="another group names it, and has no members"),
    pytest.param(lambda kube: kube.plugin.manager.quarantine.set_aside("default/g"), id="it is set aside"),
]


@pytest.mark.parametrize("happens", MEANWHILE)
def test_gates_stay_on_where_the_gang_cannot_start_any_more_when_its_plan_is_there(
    kube: KubeScheduler, happens: Happens
) -> None:
    """They came off, for good, for a gang without quorum."""
    while_planned(kube, lambda: happens(kube))
    kube.apply(group(minimum=2))
    kube.create(*members(2, gated=True))
    kube.world.run_tasks()
    assert (kube.world.ungated, kube.world.steered) == ([], [])
    assert len(kube.plugin.manager.slots) == 0
    assert list(broken(kube)) == []


@pytest.mark.parametrize("happens", MEANWHILE)
def test_nor_is_a_member_answered_that_would_be_held_in_vain(kube: KubeScheduler, happens: Happens) -> None:
    while_planned(kube, lambda: happens(kube))
    kube.apply(group(minimum=2))
    kube.create(*members(2))
    kube.run()
    assert (kube.running(), kube.held(), len(kube.plugin.manager.slots)) == (set(), set(), 0)
    assert list(broken(kube)) == []


def test_a_gang_that_asks_for_more_while_it_is_planned_is_planned_for_that(kube: KubeScheduler) -> None:
    """It had the places for two, and its gates came off."""
    while_planned(kube, lambda: kube.apply(group(minimum=3)))
    kube.apply(group(minimum=2))
    kube.create(*members(2, gated=True))
    kube.create(member("late", gated=True))
    kube.run()
    assert kube.starts == [{"g0", "g1", "late"}]


def test_nothing_is_noted_of_a_gang_that_is_gone_when_its_plan_has_failed(kube: KubeScheduler) -> None:
    pods = members(3, cpu=4)

    def all_goes() -> None:
        kube.delete(*pods)
        kube.remove(kube.groups["default/g"])

    while_planned(kube, all_goes)
    kube.apply(group(minimum=3))
    kube.create(*pods)
    kube.attempt(pods[0].uid)
    assert kube.plugin.manager.groups == {}
    assert list(broken(kube)) == []


def test_a_member_that_is_bound_elsewhere_while_its_gang_is_planned_gets_no_place(kube: KubeScheduler) -> None:
    pods = members(2)
    bound = on_node(pods[1], "n2")
    while_planned(kube, lambda: kube.plugin.on_pod(pods[1], bound))
    kube.apply(group(minimum=2))
    kube.create(*pods)
    kube.attempt(pods[0].uid)
    assert {place.uid for place in kube.plugin.manager.slots} <= {pods[0].uid}


def test_the_refusal_for_a_change_while_it_was_planned_has_one_text(kube: KubeScheduler) -> None:
    pods = members(2)
    while_planned(kube, lambda: kube.apply(group(minimum=3)))
    kube.apply(group(minimum=2))
    kube.create(*pods, member("late"))
    assert kube.world.filter(pods[0]) == messages.CHANGED_MEANWHILE


def test_room_that_comes_free_between_the_snapshot_and_the_refusal_is_not_overlooked(kube: KubeScheduler) -> None:
    """What changes after the snapshot was taken voids the refusal, so what it is compared with is read before."""
    kube.plugin.tick()
    world, coming = kube.world, iter([node("n3", "4")])

    def snapshot() -> Snapshot:
        taken = world.snapshot()
        for each in coming:
            world.nodes[each.name] = each
            kube.plugin.on_node(None, each)
        return taken

    kube.apply(group(minimum=3))
    kube.create(*members(3, cpu=4, gated=True))
    world.connect(newest_snapshot=snapshot)
    kube.plugin.manager.queue.move_to_active(["default/g"])
    kube.plugin.rounds.schedule_planning()
    kube.run()
    assert kube.running() == {"g0", "g1", "g2"}


def test_what_happens_to_a_gang_while_it_is_planned_has_it_planned_again(kube: KubeScheduler) -> None:
    """It counts as looked at from the beginning of the look, not from its end."""
    late = iter([member("g9", gated=True)])

    def offload(function: Callable[..., object], *args: object) -> object:
        for each in late:
            kube.create(each)
        return function(*args)

    kube.plugin.tick()
    kube.world.connect(offload=offload)
    kube.apply(group(minimum=2))
    kube.create(*members(2, gated=True))
    while kube.world.tasks:
        kube.world.run_tasks()
    assert {place.pod.name for place in kube.plugin.manager.slots} == {"g0", "g1", "g9"}
