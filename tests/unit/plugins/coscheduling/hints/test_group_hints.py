"""What wakes a pod that Coscheduling refused, where the mirror's own queue runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from extender.api.schedulingv1alpha1 import GANG_READY
from extender.framework.interface import ClusterEventWithHint, EnqueueExtensions
from extender.plugins.coscheduling.hints.group_hints import GroupHints
from extender.plugins.coscheduling.spec.membership import GroupLabels
from tests.objects import make_node, make_pod, make_pod_group
from tests.unit.plugins.wakes import wakes


class Hints(EnqueueExtensions):
    name = "Coscheduling"

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return GroupHints(GroupLabels()).events_to_register()


MEMBER = make_pod().name("refused").pod_group("g")
LONER = make_pod().name("refused")
SIBLING = make_pod().name("sibling").pod_group("g")
STRANGER = make_pod().name("stranger").pod_group("h")
GROUP = make_pod_group().name("g").min_member(3)
NODE = make_node().name("n")


@pytest.mark.parametrize(
    ("pod", "old", "new", "woken"),
    [
        pytest.param(MEMBER, None, SIBLING, True, id="one more member"),
        pytest.param(MEMBER, None, SIBLING.node("n"), True, id="one more member, on a node already"),
        pytest.param(MEMBER, None, STRANGER, False, id="one more member of another group"),
        pytest.param(MEMBER, None, make_pod().name("loner"), False, id="a pod of no group"),
        pytest.param(MEMBER, SIBLING.scheduling_gates("x"), SIBLING, True, id="a sibling lost its gate"),
        pytest.param(MEMBER, make_pod().name("sibling"), SIBLING, True, id="a pod joined the group"),
        pytest.param(MEMBER, SIBLING, SIBLING.nominated_node_name("n"), False, id="a sibling was nominated"),
        pytest.param(MEMBER, MEMBER, MEMBER.nominated_node_name("n"), True, id="the pod itself was nominated"),
        pytest.param(MEMBER, MEMBER, MEMBER.condition(GANG_READY, "True"), True, id="the pod was told to go on"),
        pytest.param(
            MEMBER, MEMBER, MEMBER.condition("PodScheduled", "False"), False, id="the pod was told of refusal"
        ),
        pytest.param(MEMBER, SIBLING, None, True, id="a member that waited went, and its promised place with it"),
        pytest.param(MEMBER, make_pod().name("loner"), None, False, id="a pod that waited went"),
        pytest.param(MEMBER, make_pod().name("loner").node("n"), None, True, id="a pod left its node"),
        pytest.param(
            MEMBER,
            make_pod().name("loner").node("n").req(cpu="2"),
            make_pod().name("loner").node("n").req(cpu="1"),
            True,
            id="a pod on a node asks for less",
        ),
        pytest.param(MEMBER, None, GROUP, True, id="its group came"),
        pytest.param(MEMBER, GROUP, GROUP.min_member(2), True, id="its group asks for fewer"),
        pytest.param(MEMBER, GROUP, GROUP.label("x", "y"), False, id="its group asks for the same"),
        pytest.param(MEMBER, None, make_pod_group().name("h").min_member(2), False, id="another group came"),
        pytest.param(LONER, GROUP, None, True, id="a group went, for a pod that was refused its places"),
        pytest.param(LONER, None, SIBLING, False, id="one more member, for a pod of no group"),
        pytest.param(LONER, SIBLING, None, True, id="a member went, for a pod that was refused its place"),
        pytest.param(MEMBER, None, NODE, True, id="a new node"),
        pytest.param(MEMBER, NODE.capacity(cpu="1"), NODE.capacity(cpu="2"), True, id="a node has grown"),
        pytest.param(MEMBER, NODE, NODE.annotation("a", "b"), False, id="a node's annotation"),
        pytest.param(MEMBER, NODE, None, False, id="a node went"),
    ],
)
def test_wakes(pod: Any, old: Any, new: Any, woken: bool) -> None:
    assert wakes(Hints(), pod.obj(), old and old.obj(), new and new.obj()) is woken
