"""Until what has begun is planned, other pods wait: for how long, which are woken, and when it is looked for again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.plugins.coscheduling.plan_call import WaitingTime
from extender.plugins.coscheduling.scheduling import begun_gangs
from extender.plugins.coscheduling.scheduling.begun_gangs import AGAIN_SECONDS, BEGUN_SECONDS, BegunGangs
from extender.plugins.coscheduling.state.group import Group
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, member, on_node
from tests.unit.plugins.coscheduling.starting import bound_by


class Begun:
    """Rounds that note what they are asked. Fulfils Rounds."""

    def __init__(self, world: World) -> None:
        self.w = world
        self.planned: list[str] = []
        self.scheduled = 0
        self.rooms = 0
        self.takes = 0.0  # seconds for each plan
        world.connect(may_plan=lambda: world.leading)
        manager = world.plugin.manager
        waits = WaitingTime(manager.clock)
        self.gangs = BegunGangs(manager, world.plugin.dependencies, self, self._keep_rooms, waits)

    def _keep_rooms(self) -> None:
        self.rooms += 1

    def schedule_planning(self) -> None:
        self.scheduled += 1

    def plan_one(self, group: Group) -> None:
        self.planned.append(group.key.removeprefix("default/"))
        self.w.clock.now += self.takes

    def begun(self, *names: str) -> None:
        """Of two members of each one runs: a restart has cut its start short."""
        for name in names:
            self.w.plugin.on_pod_group(None, group(name))
            uids = [f"default/{name}{number}" for number in range(2)]
            there = bound_by(on_node(member(f"{name}0", name), "n1"), 2, uids)
            self.w.create(there, member(f"{name}1", name))


@pytest.fixture
def begun(world: Callable[..., World]) -> Begun:
    return Begun(world([node("n1", "8")]))


def test_pods_are_answered_once_what_has_begun_is_planned(begun: Begun) -> None:
    begun.begun("a")
    begun.w.plugin.on_pod_group(None, group("whole", 1))
    begun.w.create(member("w0", "whole"))
    assert not begun.gangs.is_planned()
    call = begun.gangs.call(member("single", ""))
    assert begun.scheduled == 1
    assert not call.done.is_set()
    begun.gangs.finish()
    assert begun.gangs.is_planned()
    assert call.done.is_set()
    assert (begun.planned, begun.rooms, begun.w.woken) == (["a"], 1, ["single"])


def test_it_is_done_once(begun: Begun) -> None:
    begun.begun("a")
    begun.gangs.call(member("single", ""))
    begun.gangs.finish()
    begun.gangs.call(member("later", ""))
    begun.gangs.finish()
    assert (begun.planned, begun.rooms, begun.w.woken) == (["a"], 1, ["single"])


def test_where_no_gang_may_be_planned_pods_are_answered(begun: Begun) -> None:
    begun.begun("a")
    begun.w.leading = False
    assert begun.gangs.is_planned()
    begun.gangs.finish()
    assert begun.planned == []
    begun.w.leading = True
    assert not begun.gangs.is_planned(), "it leads from now on, and nothing is planned yet"


def test_what_others_begin_while_they_lead_is_planned_when_we_do_again(begun: Begun) -> None:
    begun.gangs.finish()
    begun.begun("a")
    begun.gangs.look_again()
    assert not begun.gangs.is_planned()
    begun.gangs.finish()
    assert begun.planned == ["a"]


@pytest.mark.parametrize(
    ("takes", "planned", "scheduled"),
    [
        pytest.param(BEGUN_SECONDS / 4, ["a", "b", "c"], 0, id="there is time for all"),
        pytest.param(BEGUN_SECONDS / 2, ["a", "b"], 1, id="the rest is planned beside what calls do"),
        pytest.param(BEGUN_SECONDS, ["a"], 1, id="the first takes all the time"),
    ],
)
def test_pods_do_not_wait_for_ever(takes: float, planned: list[str], scheduled: int, begun: Begun) -> None:
    begun.begun("a", "b", "c")
    begun.takes = takes
    begun.gangs.finish()
    assert (begun.planned, begun.scheduled, begun.rooms) == (planned, scheduled, 1)
    assert begun.gangs.is_planned()
    rest = {f"default/{name}" for name in "abc"} - {f"default/{name}" for name in planned}
    assert begun.w.plugin.manager.queue.active == rest


def test_so_many_pods_are_kept_waiting_at_most(begun: Begun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begun_gangs, "MOST_KEPT_WAITING", 2)
    for number in range(3):
        begun.gangs.call(member(f"s{number}", ""))
    begun.gangs.finish()
    assert begun.w.woken == ["s0", "s1"], "kube-scheduler tries the third by itself some minutes later"


@pytest.mark.faults
def test_where_looking_for_them_raises_pods_are_answered_and_it_is_tried_again_a_second_later(
    begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(manager: object) -> None:
        raise KeyError("a fault of ours")

    begun.begun("a")
    begun.gangs.call(member("single", ""))
    with monkeypatch.context() as patched:
        patched.setattr(begun_gangs, "mark_rejections_current", fails)
        begun.gangs.finish()
    assert begun.gangs.is_planned(), "every call would run into it"
    assert (begun.planned, begun.w.woken) == ([], ["single"])
    begun.w.clock.now += AGAIN_SECONDS - 0.1
    begun.gangs.finish()
    assert begun.planned == []
    begun.w.clock.now += 0.1
    begun.gangs.finish()
    assert begun.planned == ["a"]


@pytest.mark.faults
def test_after_a_fault_another_lead_begins_anew(begun: Begun, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(manager: object) -> None:
        raise KeyError("a fault of ours")

    begun.begun("a")
    with monkeypatch.context() as patched:
        patched.setattr(begun_gangs, "mark_rejections_current", fails)
        begun.gangs.finish()
    begun.gangs.look_again()
    assert not begun.gangs.is_planned()
    begun.gangs.finish()
    assert begun.planned == ["a"]


def test_a_gang_that_is_set_aside_is_not_planned_first(begun: Begun) -> None:
    begun.begun("a", "b")
    begun.w.plugin.manager.quarantine.set_aside("default/a")
    begun.gangs.finish()
    assert begun.planned == ["b"]


@pytest.mark.faults
def test_a_gang_of_which_it_cannot_be_found_out_is_set_aside_alone(
    begun: Begun, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun.begun("a", "b")
    known = begun.w.plugin.manager.begun
    recall = known.recall

    def fails(found: Group) -> bool:
        if found.key == "default/a":
            raise KeyError("a fault of ours")
        return recall(found)

    with monkeypatch.context() as patched:
        patched.setattr(known, "recall", fails)
        begun.gangs.finish()
    assert begun.planned == ["b"]
    assert list(begun.w.plugin.manager.quarantine) == ["default/a"]
