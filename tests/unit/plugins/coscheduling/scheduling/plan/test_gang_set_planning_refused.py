"""A gang set for which a plan finds no places: what is told of it, what may be done for it, and which of its places it keeps."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.api.quantity import parse_quantity
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.state.diagnosis import Diagnosis
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason as Why
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.slots import Slot
from tests.objects import make_pod, selector
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, member
from tests.unit.plugins.coscheduling.scheduling.plan.test_gang_set_planning import (
    NAME,
    Planning,
    another_waits,
    counted,
    full,
    kube,
    placement,
)

__all__ = ["full", "kube"]
Make = Callable[..., World]
DENIED = "pod with pgName: default/g last failed in 3s, deny: "
NO_CPU = "minMember of 2 does not fit: "


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        pytest.param(planner.Cause.ROOM, True, id="room"),
        pytest.param(planner.Cause.NODES, True, id="a node"),
        pytest.param(planner.Cause.AFFINITY, True, id="a pod to be near to, or far from"),
        pytest.param(planner.Cause.TOPOLOGY, True, id="room in one rack"),
        pytest.param(planner.Cause.MEMBERS, False, id="members"),
        pytest.param(planner.Cause.BUDGET, False, id="time"),
    ],
)
def test_pods_may_be_evicted_for_a_gang_that_lacks(cause: planner.Cause, told: bool, kube: Planning) -> None:
    kube.answer = planner.NoPlacement("no place", 0, 2, cause)
    assert kube.plan().message == f"{DENIED}{NO_CPU}no place"
    assert kube.short == ([("default/g", NAME)] if told else [])


def test_a_refusal_is_logged_once(full: Planning, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        full.plan()
        full.group.last_diagnosis = not_counted(full.group)
        full.plan()
    text = "minMember of 2 does not fit: Insufficient cpu"
    assert [record.message for record in caplog.records] == [
        f"gang refused group=default/g reason=InsufficientResources message={text!r}"
    ]


def not_counted(group: Group) -> Diagnosis:
    """The same stop, of which counting says nothing."""
    assert group.last_diagnosis is not None
    return replace(group.last_diagnosis, verdict=None)


def test_a_gang_that_was_refused_for_room_is_counted_before_it_is_planned_again(full: Planning) -> None:
    first = full.plan()
    plans, before = len(full.plans), counted("unschedulable")
    assert full.plan().message == first.message
    assert len(full.plans) == plans, "counting is enough"
    assert full.short == [("default/g", NAME)] * 2, "pods may be evicted for it each time"
    assert counted("unschedulable") == before + 1
    waits = full.plugin.manager.queue.unschedulable["default/g"].waits_for
    assert ([kind.first.pod.name for kind in waits.kinds], waits.anything, waits.room_anywhere) == (
        ["g0"],
        False,
        False,
    )


@pytest.fixture
def second_full(world: Make) -> Planning:
    """A node of four CPUs, and one of none."""
    return Planning(world([node("n1", "4"), node("n2", "0")]))


def waits(kube: Planning) -> tuple[bool, bool]:
    """(whether anything may help it, whether it is planned again by itself)."""
    found = kube.plugin.manager.queue.unschedulable["default/g"]
    assert found.retry_at in (math.inf, kube.plugin.manager.denied.until("default/g"))
    return found.waits_for.anything, found.retry_at < math.inf


@pytest.mark.parametrize("offered", [["n2"], []], ids=["a node without room", "none"])
def test_a_gang_that_fits_where_a_filter_call_did_not_offer_is_planned_again_by_itself(
    offered: list[str], second_full: Planning
) -> None:
    assert not second_full.plan("default/g0", g0=offered).success
    assert waits(second_full) == (True, True)


def test_a_gang_that_fits_nowhere_waits_for_an_event(full: Planning) -> None:
    assert not full.plan("default/g0", g0=["n1"]).success
    assert waits(full) == (False, False)


def test_anything_may_help_a_gang_of_which_kube_scheduler_keeps_a_member_from_nodes(full: Planning) -> None:
    full.group.refuted.stays_out("default/g1", full.plugin.manager.notes.cluster_epoch)
    assert not full.plan().success
    assert waits(full) == (True, False)


def asking(minimum: int, **resources: str) -> Any:
    made = group(minimum=minimum)
    amounts = {name: parse_quantity(text) for name, text in resources.items()}
    return structs.replace(made, spec=structs.replace(made.spec, min_resources=amounts))


def test_a_gang_that_asks_for_more_than_the_cluster_has_waits_for_room_anywhere(kube: Planning) -> None:
    kube.apply(asking(2, cpu="7", memory="100Gi"))
    assert kube.plan().message == f"{DENIED}resource gap: cpu memory"
    assert kube.plans == []
    assert kube.short == [("default/g", NAME)]
    assert kube.group.last_diagnosis is not None
    assert kube.group.last_diagnosis.reason == Why.MIN_RESOURCES
    waits = kube.plugin.manager.queue.unschedulable["default/g"].waits_for
    assert (waits.kinds, waits.room_anywhere, waits.anything) == ((), True, False)


def near_another(name: str, *, gated: bool) -> corev1.Pod:
    """It may only go where a pod of its database is."""
    made = make_pod().namespace("default").name(name).uid(f"default/{name}").req(cpu=1).pod_group("g")
    made = made.pod_affinity("kubernetes.io/hostname", selector({"app": "database"}))
    return (made.scheduling_gates("scheduling.x-k8s.io/gang") if gated else made).obj()


@pytest.mark.parametrize(
    ("gated", "caller", "told"),
    [
        pytest.param(False, "", True, id="without our gate it is refused"),
        pytest.param(True, "", False, id="with it it has its places"),
        pytest.param(False, "default/n1", False, id="and so where kube-scheduler asks about the later one"),
    ],
)
def test_of_a_gang_of_which_one_member_needs_another(gated: bool, caller: str, told: bool, kube: Planning) -> None:
    kube.delete(*list(kube.pods.values()))
    kube.create(near_another("n0", gated=gated), near_another("n1", gated=gated))
    kube.answer = placement("n0", "n1")
    status = kube.plan(caller)
    assert status.success is not told
    if told:
        assert status.message == f"{DENIED}{messages.needs_gate(kube.plugin.manager.gate)}"
        assert kube.places() == {}
        assert kube.group.last_diagnosis is not None
        assert kube.group.last_diagnosis.reason == Why.NEEDS_GATE


def has_a_place(kube: Planning, name: str, node_name: str) -> None:
    info = kube.group.members[f"default/{name}"].info
    kube.plugin.manager.slots.reserve(Slot(info, "default/g", node_name, math.inf))


def test_places_are_given_up_where_the_gang_fits_without_them_alone(kube: Planning) -> None:
    """The large member needs the node on which the small one has its place."""
    kube.delete(kube.pods["default/g1"])
    kube.create(member("large", cpu=4, gated=True))
    has_a_place(kube, "g0", "n1")
    kube.world.tasks.clear()
    assert kube.plan().success
    assert kube.places() == {"g0": "n2", "large": "n1"}
    assert "plan" not in kube.world.tasks, "no room has come free for others"


def test_room_that_a_gang_gives_up_in_vain_is_for_others(kube: Planning) -> None:
    kube.delete(kube.pods["default/g1"])
    kube.create(member("large", cpu=5, gated=True))
    has_a_place(kube, "g0", "n1")
    another_waits(kube)
    assert not kube.plan().success
    assert kube.places() == {}
    assert len(kube.plans) == 2
    assert kube.to_plan() == {"default/o"}
    assert "plan" in kube.world.tasks


def test_places_are_kept_where_there_was_no_time_for_a_plan(kube: Planning) -> None:
    has_a_place(kube, "g0", "n1")
    kube.answer = planner.NoPlacement("no time", 0, 2, planner.Cause.BUDGET)
    assert not kube.plan().success
    assert kube.places() == {"g0": "n1"}
    kube.answer = None
    assert kube.plan().success


def test_a_gang_that_is_made_anew_meanwhile_has_no_pods_evicted(full: Planning) -> None:
    def anew() -> None:
        pods = list(full.pods.values())
        full.delete(*pods)
        full.remove(full.groups["default/g"])
        full.apply(group())

    full.meanwhile = anew
    full.plan()
    assert full.short == []
