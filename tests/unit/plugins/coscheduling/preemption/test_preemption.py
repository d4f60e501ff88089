"""Which events of pods preemption hears of: each for what is noted of preemptors and victims, ends and arrivals for what is counted on
nodes and for the room that is kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import member, on_node
from tests.unit.plugins.coscheduling.preempting import Preempting

Make = Callable[..., World]
PREEMPTOR = member("preemptor", "")
ENDED = structs.replace(PREEMPTOR, status=corev1.PodStatus(phase="Failed"))
NOMINATED = structs.replace(PREEMPTOR, status=corev1.PodStatus(nominated_node_name="n1"))


@pytest.mark.parametrize(
    ("new", "kept"),
    [
        pytest.param(None, False, id="it is deleted"),
        pytest.param(ENDED, False, id="it has ended"),
        pytest.param(on_node(PREEMPTOR, "n1"), False, id="it has come to its node"),
        pytest.param(NOMINATED, True, id="its status has changed"),
    ],
)
def test_the_room_that_is_kept_for_a_preemptor_ends_with_its_way(
    new: corev1.Pod | None, kept: bool, world: Make
) -> None:
    kube = Preempting(world([node("n1")]))
    kube.create(PREEMPTOR)
    kube.plugin.manager.slots.reserve(Slot(PodInfo(PREEMPTOR), "", "n1", kube.world.clock.now + 60))
    kube.plugin.on_pod(PREEMPTOR, new)
    assert (kube.plugin.manager.slots.get(PREEMPTOR.uid) is not None) is kept


@pytest.mark.parametrize(
    ("old", "new", "any_below"),
    [
        pytest.param(None, on_node(PREEMPTOR, "n1"), True, id="seen first on its node"),
        pytest.param(PREEMPTOR, on_node(PREEMPTOR, "n1"), True, id="it comes there"),
        pytest.param(on_node(PREEMPTOR, "n1"), on_node(ENDED, "n1"), False, id="it ends there"),
        pytest.param(on_node(PREEMPTOR, "n1"), None, False, id="it goes"),
        pytest.param(PREEMPTOR, NOMINATED, False, id="it waits"),
    ],
)
def test_the_priorities_on_nodes_are_counted_as_pods_come_and_go(
    old: corev1.Pod | None, new: corev1.Pod | None, any_below: bool, world: Make
) -> None:
    plugin = Preempting(world([node("n1")])).plugin
    plugin.on_pod(None, old)
    plugin.on_pod(old, new)
    assert plugin.preemption.gangs.priorities.any_below(1) is any_below
