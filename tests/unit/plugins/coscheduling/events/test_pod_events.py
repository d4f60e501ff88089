"""Of what happens to pods: a slot that goes with its member is room for others."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, members

Make = Callable[..., World]


@pytest.mark.parametrize("early_start", [True, False], ids=["started early", "once complete"])
def test_a_member_too_many_that_is_deleted_before_its_gang_starts_leaves_its_room(
    early_start: bool, world: Make
) -> None:
    """Two of its three members are enough, and the plan stays: nothing else would tell the gang that the third one's room suffices for."""
    kube = KubeScheduler(world([node("n1", "5")], early_start=early_start))
    kube.plugin.tick()
    kube.apply(group("larger", 2), group("waits", 3))
    too_many, *_ = larger = members(3, "larger", gated=True)
    kube.create(*larger)
    waiting = members(3, "waits")
    kube.create(*waiting)
    kube.attempt(waiting[0].uid)
    assert kube.plugin.manager.groups["default/larger"].planned
    kube.delete(too_many)
    kube.run()
    assert all(kube.pods[pod.uid].node_name for pod in waiting)
