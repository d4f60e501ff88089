"""How long a member is held: as its PodGroup says or the plugin's default, and never beyond what leaves the commit its time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from extender.api.schedulingv1alpha1 import PodGroup
from extender.framework.status import wait
from tests.unit.plugins.coscheduling.conftest import World, node, pod
from tests.unit.plugins.coscheduling.kube_scheduler import group

Make = Callable[..., World]


def asking(each: PodGroup, seconds: int | None) -> PodGroup:
    return structs.replace(each, spec=structs.replace(each.spec, schedule_timeout_seconds=seconds))


@pytest.mark.parametrize(
    ("own", "default", "limit", "seconds", "warns"),
    [
        pytest.param(None, 60.0, 100.0, 60.0, False, id="the default"),
        pytest.param(20, 60.0, 100.0, 20.0, False, id="less, as its PodGroup says"),
        pytest.param(90, 60.0, 100.0, 90.0, False, id="more, as its PodGroup says"),
        pytest.param(100, 60.0, 100.0, 100.0, False, id="as long as it may be"),
        pytest.param(101, 60.0, 100.0, 100.0, True, id="longer than the bind call may take"),
        pytest.param(None, 160.0, 100.0, 100.0, True, id="a default that is too long"),
    ],
)
def test_a_hold_lasts(
    own: int | None,
    default: float,
    limit: float,
    seconds: float,
    warns: bool,
    world: Make,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "extender")
    w = world([node("n1")])
    w.connect(hold_limit=lambda members: limit)
    w.plugin.on_pod_group(None, asking(group(minimum=2), own))
    w.create(first := pod("p0", "g"), pod("p1", "g"))
    status, found = w.plugin.gang_permit.permit(first, "n1", default)
    assert (status.wait, found) == (True, seconds)
    asked = own or default
    text = f"wait clamped to the bind timeout group=default/g seconds={asked:g} limit={limit:g}"
    assert [each.getMessage() for each in caplog.records] == ([text] if warns else [])


def test_the_longer_the_more_members_start_together_the_shorter_a_hold_may_be(world: Make) -> None:
    """Their commit takes its time as well: it is that of all the groups that start together."""
    w = world([node("n1", "8")])
    w.connect(hold_limit=lambda members: 50.0 - members)
    w.plugin.on_pod_group(None, group("g", 2, groups="h"))
    w.plugin.on_pod_group(None, group("h", 3))
    w.create(first := pod("g0", "g"), pod("g1", "g"), *(pod(f"h{number}", "h") for number in range(3)))
    status, seconds = w.plugin.gang_permit.permit(first, "n1", 60.0)
    assert (status.wait, seconds) == (True, 45.0)


CLAIM: dict[str, Any] = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


@pytest.mark.parametrize(
    ("arriving", "unbound", "limit", "seconds"),
    [
        pytest.param(
            "p0", {"late"}, 1000.0, 660.0, id="while a sibling's claims are bound it is held that much longer"
        ),
        pytest.param("p0", {"late"}, 100.0, 100.0, id="and not longer than the bind call may take"),
        pytest.param("p0", set(), 1000.0, 60.0, id="claims that are bound take no time"),
        pytest.param("late", {"late"}, 1000.0, 60.0, id="its own claims are bound by now"),
    ],
)
def test_a_member_whose_claims_are_still_to_be_bound_comes_late(
    arriving: str, unbound: set[str], limit: float, seconds: float, world: Make
) -> None:
    w = world([node("n1")])
    w.connect(has_unbound_claims=lambda each: each.name in unbound, hold_limit=lambda members: limit)
    w.plugin.on_pod_group(None, group(minimum=2))
    members = {"p0": pod("p0", "g"), "late": pod("late", "g", **CLAIM)}
    w.create(*members.values())
    for each in members.values():
        w.filter(each)
    assert w.plugin.gang_permit.permit(members[arriving], "n1", 60.0) == (wait(), seconds)


def test_a_member_that_was_refused_and_has_no_place_is_not_waited_for(world: Make) -> None:
    w = world([node("n1")])
    w.connect(has_unbound_claims=lambda each: True, hold_limit=lambda members: 1000.0)
    w.plugin.on_pod_group(None, group(minimum=2))
    w.create(late := pod("late", "g", **CLAIM))
    assert "cannot find enough sibling pods" in w.filter(late)
    w.create(first := pod("p0", "g"))
    assert w.plugin.gang_permit.permit(first, "n1", 60.0) == (wait(), 60.0)
