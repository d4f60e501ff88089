"""How a reservation ends, what is counted and logged of it, and which questions it leaves nodes out of."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from extender import metrics
from extender.api import corev1
from extender.plugins.coscheduling.dependencies import BackfillRules, Verdict
from extender.plugins.coscheduling.scheduling.backfill_reservation import BackfillReservations
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion
from extender.plugins.coscheduling.state.group import Group
from tests.unit.plugins.coscheduling.conftest import LABEL, World, node, pod, pod_group
from tests.unit.plugins.coscheduling.managing import LIGHT
from tests.unit.plugins.coscheduling.short_of_room import RULES, Story

Make = Callable[..., World]


@pytest.fixture
def story(world: Make) -> Story:
    """A gang of priority 5 has had two nodes kept free for it for a moment."""
    made = Story(world)
    made.gang("g", priority=5)
    made.after(300)
    assert made.owner == "g"
    made.w.tasks.clear()
    return made


def reservations(story: Story) -> BackfillReservations:
    return story.w.plugin.rounds.reservations


def counted(why: str) -> float:
    return float(metrics.shadows.labels(why)._value.get())


def starts(story: Story) -> None:
    for number in range(2):
        story.runs(pod(f"g-{number}", "g", cpu="0", node_name=f"n{number}"))


def goes(story: Story) -> None:
    for number in range(2):
        story.w.plugin.on_pod(pod(f"g-{number}", "g"), None)
    story.w.plugin.on_pod_group(pod_group("g", 2), None)


def lacks_a_member(story: Story) -> None:
    story.w.plugin.on_pod(pod("g-0", "g"), None)


def lead_is_lost(story: Story) -> None:
    story.w.leading = False


def time_is_over(story: Story) -> None:
    story.w.clock.now += RULES.max_seconds - 1


def fails(story: Story) -> None:
    story.w.plugin.manager.quarantine.set_aside("default/g")


@pytest.mark.parametrize(
    ("happened", "why", "in_vain"),
    [
        pytest.param(starts, "started", False, id="it starts"),
        pytest.param(time_is_over, "expired", True, id="its time is over"),
        pytest.param(lacks_a_member, "gone", True, id="it lacks a member"),
        pytest.param(fails, "gone", True, id="it is set aside"),
        pytest.param(lead_is_lost, "gone", False, id="we lead no more: it may not have been in vain"),
    ],
)
def test_a_reservation_ends_where(
    happened: Callable[[Story], None], why: str, in_vain: bool, story: Story, caplog: pytest.LogCaptureFixture
) -> None:
    story.w.clock.now += 60  # a turn that is over at once does not count
    before = counted(why)
    happened(story)
    with caplog.at_level(logging.INFO):
        assert story.after(0.5) is None
    text = f"backfill reservation ends group=default/g domain=the cluster result={why}"
    assert text in [record.message for record in caplog.records]
    assert counted(why) == before + 1
    assert metrics.shadow_nodes._value.get() == 0
    assert reservations(story).turns.tried("default/g") == (frozenset(("n0", "n1")) if in_vain else frozenset())
    assert "plan" in story.w.tasks, "others may have the nodes"
    manager = story.w.plugin.manager
    with manager.lock:
        assert (reservations(story).ended(), reservations(story).ended()) == (True, False)


def test_one_whose_gang_is_gone_leaves_nothing(story: Story) -> None:
    story.w.clock.now += 60
    goes(story)
    assert story.after(1) is None
    assert reservations(story).turns.tried("default/g") == frozenset()


def test_a_gang_that_backs_off_for_a_moment_keeps_it(story: Story) -> None:
    story.w.plugin.manager.queue.back_off("default/g", 5)
    assert story.after(1) is not None


def test_its_beginning_is_counted_and_logged(world: Make, caplog: pytest.LogCaptureFixture) -> None:
    story, before = Story(world), counted("begun")
    story.gang("g")
    with caplog.at_level(logging.INFO):
        story.after(300)
    text = "backfill reservation begins group=default/g domain=the cluster nodes=2"
    assert text in [record.message for record in caplog.records]
    assert counted("begun") == before + 1
    assert metrics.shadow_nodes._value.get() == 2
    with story.w.plugin.manager.lock:
        assert not reservations(story).ended()


def test_it_is_for_the_gang_from_now_on_for_so_long(story: Story) -> None:
    found = story.shadow
    assert found is not None
    now = story.w.clock.now
    assert (found.group, found.keys, found.priority) == ("default/g", frozenset(("default/g",)), 5)
    assert (found.since, found.until) == (now, now + RULES.max_seconds)
    assert (found.wish.needed, dict(found.wish.largest)["cpu"]) == (2, 2000)


@pytest.mark.parametrize(("percent", "nodes"), [(50, 2), (75, 2), (49, 0)], ids=["half", "more", "too few"])
def test_so_many_nodes_are_kept_free_at_most(percent: int, nodes: int, world: Make) -> None:
    story = Story(world, BackfillRules(300, 600, percent))
    story.gang("g")
    found = story.after(300)
    assert (len(found.nodes) if found is not None else 0) == nodes


@pytest.mark.parametrize(
    ("own", "member"),
    [
        pytest.param(False, "a", id="without an object: the first that our gate holds"),
        pytest.param(True, "", id="with one: none, the object has it"),
    ],
)
def test_which_member_of_a_gang_hears_of_it(own: bool, member: str, world: Make) -> None:
    heard: list[tuple[bool, str, str]] = []

    class Hearing(World):
        def decided(self, pod_group: object, key: str, verdict: Verdict, member: corev1.Pod | None = None) -> None:
            heard.append((pod_group is not None, verdict.reason, member.name if member is not None else ""))

    story = Story(Hearing)
    gates: dict[str, Any] = {"schedulingGates": [{"name": "scheduling.x-k8s.io/gang"}]}
    if own:
        story.w.plugin.on_pod_group(None, pod_group("g", 2))
    labels = {LABEL: "g"} if own else LIGHT
    story.w.create(*(pod(name, labels=labels, cpu="2", **gates) for name in ("b", "a")))
    story.w.run_tasks()
    story.after(300)
    assert heard[-1] == (own, "GangShadow", member)


# Questions


def question(story: Story, *names: str) -> tuple[list[Group], PlanQuestion]:
    manager = story.w.plugin.manager
    gang_set = [manager.groups[f"default/{name}"] for name in names]
    with manager.lock:
        asked = story.w.plugin.rounds.requests.question(gang_set, "default-scheduler", story.w.snapshot())
    return gang_set, asked


def test_the_nodes_are_left_out_of_what_another_gang_is_asked_for(story: Story) -> None:
    story.gang("o", day=2, priority=5)
    gang_set, asked = question(story, "o")
    uid = "o-0"
    asked = asked.asking(replace(asked.request, allowed={uid: frozenset(("n1", "n2"))}))
    with story.w.plugin.manager.lock:
        permitted = reservations(story).permitted(gang_set, asked)
    members = {info.pod.uid for info in asked.request.members}
    rest = dict.fromkeys(members, frozenset(("n2", "n3")))
    assert dict(permitted.request.allowed) == {**rest, **({uid: frozenset(("n2",))} if uid in members else {})}


@pytest.mark.parametrize(
    ("name", "priority", "kept"),
    [
        pytest.param("o", 5, True, id="another gang of its priority"),
        pytest.param("o", 4, True, id="one of a lower priority"),
        pytest.param("o", 6, False, id="one of a higher priority"),
        pytest.param("g", 5, False, id="the gang itself"),
    ],
)
def test_whether_the_nodes_are_kept_from(name: str, priority: int, kept: bool, story: Story) -> None:
    if name != "g":
        story.gang(name, day=2, priority=priority)
    gang_set, asked = question(story, name)
    with story.w.plugin.manager.lock:
        found = reservations(story).kept_from_gang_set(gang_set)
        permitted = reservations(story).permitted(gang_set, asked)
    assert found == (frozenset(("n0", "n1")) if kept else frozenset())
    assert (permitted is asked) is not kept


def test_where_none_is_kept_free_the_question_is_the_same(world: Make) -> None:
    story = Story(world)
    story.gang("o")
    gang_set, asked = question(story, "o")
    with story.w.plugin.manager.lock:
        assert reservations(story).permitted(gang_set, asked) is asked
        assert reservations(story).kept_from(pod("s")) == frozenset()


def test_a_member_of_the_gang_may_go_there(story: Story) -> None:
    manager = story.w.plugin.manager
    with manager.lock:
        assert reservations(story).kept_from(manager.groups["default/g"].members["g-0"].pod) == frozenset()
        assert reservations(story).kept_from(pod("s", priority=5)) == {"n0", "n1"}


def test_in_its_next_turn_the_gang_has_other_nodes(story: Story) -> None:
    story.after(RULES.max_seconds)
    assert story.shadow is None
    found = story.after(300)
    assert found is not None
    assert found.nodes == {"n2", "n3"}


def test_where_no_others_would_do_it_has_the_same(world: Make) -> None:
    story = Story(world)
    for name in ("n2", "n3"):
        story.w.nodes[name] = node(name, "1")
    story.gang("g")
    assert story.after(300) is not None
    story.after(RULES.max_seconds)
    found = story.after(300)
    assert found is not None
    assert found.nodes == {"n0", "n1"}
