"""A gang that waits at a gate says so once, and again when something else was decided of it in between."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from extender.api.metav1 import Condition
from extender.api.schedulingv1alpha1 import PodGroupStatus
from extender.cli import explain_text
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.events import scheduler_feedback
from extender.plugins.coscheduling.report import gang_observer
from extender.plugins.coscheduling.scheduling.checks import failed_check
from extender.plugins.coscheduling.state.diagnosis import FailedCheck
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group
from tests.unit.plugins.coscheduling.kube_scheduler import group
from tests.unit.plugins.coscheduling.managing import set_wall

Make = Callable[..., World]
TOO_FEW = "default/g GangWaiting: fewer pods exist than minMember of 2"


def looked(w: World) -> list[str]:
    """What is told once a second and more has passed."""
    w.verdicts.clear()
    for _ in range(2):
        w.plugin.tick()
        w.clock.now += 2.0
    w.plugin.tick()
    return w.verdicts


def start(w: World) -> None:
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(pod("a", "g"))
    w.filter(pod("a", "g"))


def test_a_gate_is_told_of_once(world: Make) -> None:
    w = world([node("n1", cpu="1")])
    start(w)
    assert looked(w) == [TOO_FEW]
    assert looked(w) == []


def test_after_another_decision_the_same_gate_is_news(world: Make) -> None:
    """It may all have happened between two looks."""
    w = world([node("n1", cpu="1")])
    start(w)
    assert looked(w) == [TOO_FEW]
    second = pod("b", "g")
    w.create(second)
    w.filter(second)
    w.plugin.on_pod(second, None)
    assert looked(w) == [TOO_FEW]


def test_a_group_of_the_same_name_that_is_made_anew_speaks_for_itself(world: Make) -> None:
    w = world([node("n1", cpu="1")])
    start(w)
    assert looked(w) == [TOO_FEW]
    w.plugin.on_pod(pod("a", "g"), None)
    w.plugin.on_pod_group(pod_group("g", 2), None)
    w.plugin.on_pod_group(None, pod_group("g", 2))
    other = pod("a", "g", uid="another")
    w.create(other)
    w.filter(other)
    assert looked(w) == [TOO_FEW]


def test_a_gang_that_runs_and_is_said_not_to_is_put_right(world: Make) -> None:
    """The leader that started it was gone before it could say so, and no other event decides of a gang that runs."""
    w = world([node("n1")])
    said = Condition(type="Scheduled", status="False", reason="QuorumMissing")
    w.plugin.on_pod_group(None, replace(pod_group("g", 2), status=PodGroupStatus(conditions=(said,))))
    w.create(pod("a", "g", node_name="n1"))
    w.plugin.tick()
    assert not any("complete" in verdict for verdict in w.verdicts)
    w.create(pod("b", "g", node_name="n1"))
    w.plugin.tick()
    assert w.verdicts[-1] == "default/g GangScheduled: minMember of 2 is complete: the gang starts"
    w.verdicts.clear()
    w.plugin.on_pod_group(None, replace(pod_group("g", 2), status=PodGroupStatus(conditions=())))
    assert looked(w) == []


def test_a_new_leader_tells_what_has_stood_since_before(world: Make) -> None:
    """Its own telling was not heard, and it was done with it."""
    w = world([node("n1")])
    w.leading = False
    w.connect(may_plan=lambda: w.leading)
    start(w)
    looked(w)
    w.leading = True
    assert looked(w) == [TOO_FEW]
    assert looked(w) == []


INVALID = (
    "default/g GangWaiting: PodGroup default/g is invalid: spec.minMember: Invalid value: 0: "
    "must be greater than or equal to 1"
)


def test_a_pod_group_without_pods_says_that_it_is_invalid_and_when_it_is_so_no_longer(world: Make) -> None:
    w = world([node("n1")])
    valid, invalid = pod_group("g", 2), pod_group("g", 0)
    w.plugin.on_pod_group(None, valid)
    assert looked(w) == []
    w.plugin.on_pod_group(valid, invalid)
    assert looked(w) == [INVALID]
    said = Condition(type="Scheduled", status="False", reason="InvalidPodGroup")
    told = replace(invalid, status=PodGroupStatus(conditions=(said,)))
    w.plugin.on_pod_group(invalid, told)
    assert looked(w) == []
    put_right = replace(valid, status=told.status)
    w.plugin.on_pod_group(told, put_right)
    assert looked(w) == [TOO_FEW]
    assert looked(w) == []


def test_an_invalid_pod_group_whose_pods_are_of_another_scheduler_is_left_alone(world: Make) -> None:
    w = world([node("n1")])
    w.connect(ours=lambda pod: pod.spec.scheduler_name == "default-scheduler")
    w.plugin.on_pod_group(None, pod_group("g", 0))
    w.create(pod("a", "g", schedulerName="another"))
    assert looked(w) == []


def test_a_tick_asks_nothing_of_a_gang_that_nothing_has_happened_to(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gangs that wait are many, and ticks come once a second."""
    asked: list[str] = []

    def ask(manager: PodGroupManager, group: Group, *rest: str) -> FailedCheck | None:
        asked.append(group.key)
        return failed_check(manager, group, *rest)

    for module in (gang_observer, scheduler_feedback):
        monkeypatch.setattr(module, "failed_check", ask)
    w = world([node("n1", cpu="1")])
    start(w)
    looked(w)
    asked.clear()
    looked(w)
    assert asked == []
    w.create(pod("b", "g"))
    looked(w)
    assert "default/g" in asked


def test_a_gang_that_has_waited_for_too_long_says_so_once_and_stands_behind_others(world: Make) -> None:
    w = world([node("n1", cpu="1")])
    now = datetime(2026, 3, 2, 10, tzinfo=UTC)
    set_wall(w.plugin.manager, lambda: now)
    patient = group("p", 2, give_up_after="1h")
    w.plugin.on_pod_group(None, patient)
    w.plugin.on_pod_group(None, group("young", 2))
    for number, each in enumerate(("p", "p", "young", "young")):
        made = pod(f"{each}{number}", each)
        created = now - timedelta(minutes=59 if each == "p" else 1)
        w.create(replace(made, metadata=replace(made.metadata, creation_timestamp=created)))
        w.filter(w.plugin.manager.groups[f"default/{each}"].members[made.uid].pod)
    manager = w.plugin.manager

    def line() -> list[str]:
        return [each.key for each in manager.line.in_order(manager.groups.values())]

    assert line() == ["default/p", "default/young"]
    assert not any("GangGaveUp" in verdict for verdict in looked(w))
    now += timedelta(minutes=2)
    assert line() == ["default/young", "default/p"]
    (told,) = [verdict for verdict in looked(w) if "GangGaveUp" in verdict]
    assert told.startswith("default/p GangGaveUp: minMember of 2 does not fit: ")
    assert told.endswith(f"; {messages.GAVE_UP}")
    assert not any("GangGaveUp" in verdict for verdict in looked(w))
    found, young = (w.plugin.report.status(f"default/{name}") for name in ("p", "young"))
    assert found is not None
    assert young is not None
    assert (found.gave_up, found.gang.place, young.gave_up, young.gang.place) == (messages.GAVE_UP, 2, "", 1)
    pages = ["\n".join(explain_text.page(each, now)) for each in (found, young)]
    assert [messages.GAVE_UP in page.partition("in line")[2] for page in pages] == [True, False]
    with manager.lock:
        w.plugin.observer.tell_anew()
    assert any("GangGaveUp" in verdict for verdict in looked(w)), "a new leader says it once more"
