"""What the manager's lock guards is read and written under it alone, whatever happens to gangs and whichever caller asks about them.

tests/unit/scheduler/test_locking.py walks through the verbs, pages, scrapes and ticks of a whole scheduler likewise.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from extender.plugins.coscheduling.state.group import Group
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, members
from tests.unit.plugins.coscheduling.locking import EXEMPT, OURS, guarded_fields, watched
from tests.unit.plugins.coscheduling.machines.test_gang_machine import FaultyMachine, GangMachine
from tests.unit.plugins.coscheduling.machines.test_lifetimes_machine import LifetimesMachine
from tests.unit.plugins.coscheduling.machines.test_preempting_machine import PreemptingMachine

Make = Callable[..., World]
A_FEW = settings(
    max_examples=8,
    stateful_step_count=20,
    phases=[Phase.generate],  # what the machines find by themselves is theirs to shrink
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.faults
@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(GangMachine, id="gangs come, start and go"),
        pytest.param(FaultyMachine, id="gangs at which something raises"),
        pytest.param(LifetimesMachine, id="groups of every kind"),
        pytest.param(PreemptingMachine, id="gangs that preempt"),
    ],
)
def test_whatever_happens_to_gangs_their_state_is_touched_under_its_lock(machine: type[RuleBasedStateMachine]) -> None:
    with watched() as watch:
        run_state_machine_as_test(machine, settings=A_FEW)
    assert dict(watch.unlocked) == {}


def test_so_it_is_where_a_gang_is_shown(world: Make) -> None:
    """The list, each gang with what would make it fit, and what is told once a second."""
    with watched() as watch:
        kube = KubeScheduler(world([node("n1", "3")], pod_group_backoff_seconds=1))
        kube.apply(group("runs", 2), group("waits", 4), group("short", 9))
        kube.create(*members(2, "runs"), *members(4, "waits", gated=True), *members(3, "short"))
        kube.run()
        report = kube.plugin.report
        for _ in range(3):
            kube.plugin.tick()
            kube.world.clock.now += 3.0
            assert {each.name for each in report.summaries()} == {"runs", "waits", "short"}
            assert all(report.status(f"default/{name}") is not None for name in ("runs", "waits", "short"))
    assert dict(watch.unlocked) == {}


PLANTED = """
def peek(manager):
    return manager.slots._given_up
def members_of(group):
    return list(group)
"""


def test_what_is_read_without_the_lock_is_seen(world: Make) -> None:
    """A field of the manager's; and a dict of a group that was taken out under the lock, and is read after it."""
    planted: dict[str, Callable[..., object]] = {}
    exec(compile(PLANTED, str(OURS / "planted.py"), "exec"), planted)  # as if it were ours
    with watched() as watch:
        made = world([node("n1")])
        manager = made.plugin.manager
        with manager.lock:
            planted["peek"](manager)
            known = Group("default/g").members
            planted["members_of"](known)
        assert not watch.unlocked
        planted["peek"](manager)
        planted["members_of"](known)
    assert [seen.partition(" at ")[0] for seen in watch.unlocked] == ["Slots._given_up", "a dict of Group"]


def test_what_stands_in_no_table_is_guarded() -> None:
    """A field that is new is looked at, and an exemption of what is no more is an error."""
    guarded = {kind.__name__: names for kind, names in guarded_fields().items()}
    assert {"held", "last_diagnosis", "start"} <= guarded["Group"]
    assert guarded["WaitingPreemptors"] == {"_noted"}
    assert {"groups", "terminating"} <= guarded["PodGroupManager"]
    assert {"epoch", "cluster_epoch"} <= guarded["Notes"]
    every = {kind.__name__ for kind in guarded_fields(exempt=False)}
    assert {name.partition(".")[0] for name in EXEMPT} <= every
