"""Members of different priorities: when verdicts say so, and when a condition that says so is stale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.api.codec import convert
from extender.api.schedulingv1alpha1 import PodGroupStatus
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import Verdict
from extender.plugins.coscheduling.report.priority_remark import RemarkedVerdicts, priorities_differ, remark_is_stale
from extender.plugins.coscheduling.state.group import Group
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, member
from tests.unit.plugins.coscheduling.stories.test_in_tree_groups import in_tree, named

Make = Callable[..., World]


def of_priority(name: str, priority: int) -> corev1.Pod:
    made = member(name)
    return structs.replace(made, spec=structs.replace(made.spec, priority=priority))


def gang(world: Make, priorities: list[int], **asked: Any) -> tuple[World, Group]:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, group(**asked))
    w.create(*(of_priority(f"g{number}", priority) for number, priority in enumerate(priorities)))
    return w, w.plugin.manager.groups["default/g"]


@pytest.mark.parametrize(
    ("priorities", "asked", "differ"),
    [
        pytest.param([5, 5], {}, False, id="all alike"),
        pytest.param([5, 9], {}, True, id="two priorities"),
        pytest.param([5, 9], {"minimum": 1}, False, id="each member is on its own"),
        pytest.param([5, 9], {"roles": "nonsense"}, False, id="what the group asks for is not known"),
    ],
)
def test_whether_it_matters(priorities: list[int], asked: dict[str, Any], differ: bool, world: Make) -> None:
    w, found = gang(world, priorities, **asked)
    assert priorities_differ(w.plugin.manager, found) == differ


@pytest.mark.parametrize(
    ("priorities", "message", "stale"),
    [
        pytest.param([5, 9], messages.with_priorities("no room"), False, id="it says so, and it is so"),
        pytest.param([5, 5], messages.with_priorities("no room"), True, id="it is so no more"),
        pytest.param([5, 9], "no room", True, id="it does not say so yet"),
        pytest.param([5, 5], "no room", False, id="there is nothing to say"),
    ],
)
def test_whether_a_condition_is_stale(priorities: list[int], message: str, stale: bool, world: Make) -> None:
    w, found = gang(world, priorities)
    told = convert({"conditions": [{"type": "Scheduled", "status": "False", "message": message}]}, PodGroupStatus)
    w.plugin.on_pod_group(found.pod_group, structs.replace(group(), status=told))
    assert remark_is_stale(w.plugin.manager, found) == stale


class Heard:
    def __init__(self) -> None:
        self.messages: list[str] = []

    def decided(self, pod_group: object, key: str, verdict: Verdict, member: corev1.Pod | None = None) -> None:
        self.messages.append(verdict.message)

    def forget(self, key: str) -> None:
        self.messages.append(f"forget {key}")


def test_verdicts_carry_the_remark_and_events_alone_do_not(world: Make) -> None:
    w, found = gang(world, [5, 9])
    heard = Heard()
    verdicts = RemarkedVerdicts(heard, w.plugin.manager)
    verdicts.decided(found.pod_group, "default/g", Verdict(False, "NoRoom", "no room"))
    verdicts.decided(found.pod_group, "default/g", Verdict(False, "NoRoom", "no room", event_only=True))
    assert heard.messages == [messages.with_priorities("no room"), "no room"]


def test_a_member_of_a_group_that_is_gone_is_told_nothing(world: Make) -> None:
    w, _ = gang(world, [5, 9])
    heard = Heard()
    RemarkedVerdicts(heard, w.plugin.manager).decided(
        None, "default/g", Verdict(False, "NoRoom", "x"), member("stranger")
    )
    assert heard.messages == []


def of_scheduler(name: str) -> corev1.Pod:
    made = named(name)
    return structs.replace(made, spec=structs.replace(made.spec, scheduler_name=name))


def test_of_pods_of_another_scheduler_kube_scheduler_says_itself(world: Make) -> None:
    """The conditions of a PodGroup of its own kind; those of the CRD are ours alone."""
    w = world([node("n1")], in_tree_pod_groups=True)
    w.plugin.manager.labels = w.plugin.manager.labels.serving(lambda pod: pod.spec.scheduler_name == "ours")
    w.plugin.on_pod_group(None, in_tree("g", 2))
    w.create(of_scheduler("theirs"))
    heard, found = Heard(), w.plugin.manager.groups["default/g"]
    verdicts = RemarkedVerdicts(heard, w.plugin.manager)
    verdicts.decided(found.object, "default/g", Verdict(False, "NoRoom", "not told"))
    w.plugin.on_pod_group(None, group())
    verdicts.decided(found.object, "default/g", Verdict(False, "NoRoom", "by the CRD's"))
    w.plugin.on_pod_group(group(), None)
    w.create(of_scheduler("ours"))
    verdicts.decided(found.object, "default/g", Verdict(False, "NoRoom", "one is ours"))
    assert heard.messages == ["by the CRD's", "one is ours"]
