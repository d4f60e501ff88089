"""PostFilter's rejection of a gang whose quorum is far off: all holds end, its plan goes, and it backs off."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.framework.cycle_state import CycleState
from extender.framework.interface import NodeToStatus
from extender.framework.status import unschedulable
from tests.unit.plugins.coscheduling.conftest import Waiting, World, node, pod, pod_group

Make = Callable[..., World]
MEMBERS = 10
UNSCHEDULABLE = unschedulable("no room")
REJECTED = "PodGroup default/g gets rejected due to Pod p9 is unschedulable even after PostFilter"


def gang(world: Make, held: int, **args: int) -> tuple[World, list[Waiting]]:
    """So many of ten are held."""
    w = world([node("n1", "20")], **args)
    w.plugin.on_pod_group(None, pod_group("g", MEMBERS))
    members = [pod(f"p{number}", "g") for number in range(MEMBERS)]
    w.create(*members)
    waiting = [w.bind(each, w.filter(each)) for each in members[:held]]
    return w, [each for each in waiting if isinstance(each, Waiting)]


def post_filter(w: World, name: str = "p9", of: str = "g") -> str:
    status = w.plugin.post_filter(CycleState(), pod(name, of), NodeToStatus({}, UNSCHEDULABLE))[1]
    assert not status.success
    return status.message


@pytest.mark.parametrize(
    ("held", "percentage", "rejected"),
    [
        pytest.param(8, 10, True, id="two of ten are missing, more than a tenth"),
        pytest.param(9, 10, False, id="one of ten is missing, a tenth"),
        pytest.param(8, 20, False, id="two of ten are missing, a fifth"),
        pytest.param(7, 20, True, id="three of ten are missing, more than a fifth"),
        pytest.param(9, 0, True, id="one is missing, and none may be"),
    ],
)
def test_a_gang_is_rejected_where_more_of_it_is_missing(
    held: int, percentage: int, rejected: bool, world: Make
) -> None:
    w, waiting = gang(world, held, pod_group_reject_percentage=percentage)
    assert post_filter(w) == (REJECTED if rejected else "")
    assert {each.decision for each in waiting} == {"rejected: optimistic rejection in PostFilter" if rejected else ""}
    group = w.plugin.manager.groups["default/g"]
    own = w.plugin.manager.slots.uids_of("default/g")
    assert (own == {each.pod.uid for each in waiting}) is rejected, "its plan is dropped, but for what is let go"
    diagnosis = group.last_diagnosis
    assert (diagnosis is not None and diagnosis.text == REJECTED) is rejected


@pytest.mark.parametrize(
    ("seconds", "held", "backs_off"),
    [
        pytest.param(0, 5, False, id="it is told not to"),
        pytest.param(5, 5, True, id="for podGroupBackoffSeconds"),
        pytest.param(5, 9, False, id="it is not rejected"),
    ],
)
def test_a_rejected_gang_backs_off(seconds: int, held: int, backs_off: bool, world: Make) -> None:
    w, _ = gang(world, held, pod_group_backoff_seconds=seconds)
    post_filter(w)
    queue = w.plugin.manager.queue
    assert queue.backs_off("default/g") is backs_off
    w.clock.now += 5
    queue.flush()
    assert not queue.backs_off("default/g")


def test_a_pod_of_a_group_that_is_not_there_is_refused(world: Make) -> None:
    w = world([node("n1")])
    assert post_filter(w, of="") == "can not find pod group"


def test_what_a_scheduler_that_binds_without_us_holds_is_let_go_by_unreserve_with_its_cause(world: Make) -> None:
    w, waiting = gang(world, 2, pod_group_backoff_seconds=5)
    w.plugin.unreserve(CycleState(), waiting[0].pod, "n1")
    assert waiting[1].decision == "rejected: rejection in Unreserve"
    assert w.plugin.manager.queue.backs_off("default/g")
    assert w.plugin.manager.slots.uids_of("default/g") == {waiting[1].pod.uid}, "until its call has ended"
