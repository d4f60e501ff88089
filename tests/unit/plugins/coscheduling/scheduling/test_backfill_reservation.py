"""Which gang has nodes kept free for it, which pods that keeps out, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from extender.api import corev1
from extender.cli.explain_text import page
from extender.config.types import ExtenderConfiguration
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.backfill.backfill_nodes import is_pinned
from extender.plugins.coscheduling.dependencies import BackfillRules, Verdict
from tests.documented import configuration_in
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group
from tests.unit.plugins.coscheduling.short_of_room import Story
from tests.unit.plugins.coscheduling.single import refusals
from tests.unit.plugins.coscheduling.starting import cut_short

Make = Callable[..., World]
KEPT = "pod with pgName: default/{} last failed in 3s, deny: " + messages.kept_free(2)


@pytest.fixture
def story(world: Make) -> Story:
    return Story(world)


def test_the_first_in_line_gets_one_once_it_has_waited_long_enough(story: Story) -> None:
    story.gang("young", day=2)
    story.gang("old", day=1)
    assert story.after(299) is None
    shadow = story.after(1)
    assert shadow is not None
    assert story.owner == "old"
    assert shadow.nodes == {"n0", "n1"}, "those that least is missing on, by name, half of all at most"
    assert story.w.verdicts[-1] == (
        "default/old GangShadow: the gang is first in line: room that comes free on 2 node(s) of the cluster is kept for it"
    )


def test_its_beginning_is_an_event_and_what_was_said_before_still_holds(story: Story) -> None:
    story.gang("g")
    story.after(300)
    text = "the gang is first in line: room that comes free on 2 node(s) of the cluster is kept for it"
    assert story.w.told[-1] == ("default/g", Verdict(False, "GangShadow", text, event_only=True))


PINNED = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}]
        }
    }
}
DAEMON_SET = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}


@pytest.mark.parametrize(
    ("single", "kept"),
    [
        pytest.param(pod("s", priority=5), True, id="a pod of equal priority"),
        pytest.param(pod("s", priority=4), True, id="a pod of lower priority"),
        pytest.param(pod("s", priority=6), False, id="a pod of higher priority"),
        pytest.param(pod("s", priority=5, affinity=PINNED, owners=[DAEMON_SET]), False, id="a DaemonSet's pod"),
        pytest.param(pod("s", priority=5, affinity=PINNED), True, id="a pod that names one node by itself"),
        pytest.param(
            pod("s", priority=5, affinity=PINNED, owners=[{**DAEMON_SET, "controller": False}]),
            True,
            id="a pod that a DaemonSet owns and does not control",
        ),
        pytest.param(
            pod("s", priority=5, affinity=PINNED, owners=[{**DAEMON_SET, "kind": "ReplicaSet"}]),
            True,
            id="a ReplicaSet's pod that names one node",
        ),
        pytest.param(
            pod("s", priority=5, affinity=PINNED, owners=[{**DAEMON_SET, "apiVersion": "tenant.example/v1"}]),
            True,
            id="a pod of another group's DaemonSet",
        ),
        pytest.param(
            pod("s", priority=5, affinity=PINNED, owners=[JOB, {**DAEMON_SET, "controller": None}]),
            True,
            id="a pod of which a DaemonSet is the second owner",
        ),
        pytest.param(pod("s", priority=5, owners=[DAEMON_SET]), True, id="a DaemonSet's pod that could run anywhere"),
    ],
)
def test_a_shadow_keeps_out(single: corev1.Pod, kept: bool, story: Story) -> None:
    story.gang("g", priority=5)
    story.after(300)
    found = refusals(story.w, single)
    assert found == ({"n0": messages.NODES_RESERVED, "n1": messages.NODES_RESERVED} if kept else {})


def test_two_terms_are_no_single_node() -> None:
    term = PINNED["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]
    both = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term, term]}}}
    assert is_pinned(pod("s", affinity=PINNED, owners=[DAEMON_SET]))
    assert not is_pinned(pod("s", affinity=both, owners=[DAEMON_SET]))


def test_a_gang_that_would_go_there_waits_and_says_for_which_and_one_that_fits_elsewhere_passes(story: Story) -> None:
    story.gang("g")
    story.after(300)
    story.ends("on-n0")
    small = story.gang("small", day=2, cpu="1")
    assert {story.w.filter(member) for member in small} == {"n2", "n3"}
    other = story.gang("other", day=3, cpu="1")
    assert story.w.filter(other[0]) == KEPT.format("other")
    last_diagnosis = story.w.plugin.manager.groups["default/other"].last_diagnosis
    assert last_diagnosis is not None
    assert str(last_diagnosis.reason) == "OrderedAfterOthers"


def test_a_gang_of_higher_priority_goes_there(story: Story) -> None:
    story.gang("g", priority=5)
    story.after(300)
    story.ends("on-n0")
    high = story.gang("high", cpu="1", priority=6)
    assert {story.w.filter(member) for member in high} <= {"n0", "n1", "n2", "n3"}


def test_room_that_comes_free_there_starts_the_gang_and_the_shadow_ends_with_its_start(story: Story) -> None:
    members = story.gang("g")
    story.after(300)
    story.ends("on-n0")
    assert story.w.filter(members[0]).startswith("pod with pgName")
    story.ends("on-n1")
    places = {member.name: story.w.filter(member) for member in members}
    assert set(places.values()) == {"n0", "n1"}
    assert story.after(1) is not None, "its members are still to come"
    for member in members:
        there = pod(member.name, "g", cpu="2", node_name=places[member.name])
        story.w.on_nodes[there.uid] = there
        story.w.plugin.on_pod(member, there)
    assert refusals(story.w, pod("s"))
    assert story.after(1) is None
    story.after(1)
    assert story.rings == [["s"]]


@pytest.mark.parametrize(
    "happened",
    [
        pytest.param(lambda s: s.w.plugin.on_pod_group(pod_group("g", 2), None), id="its object is deleted"),
        pytest.param(lambda s: s.w.plugin.on_pod(pod("g-0", "g"), None), id="a member is deleted"),
        pytest.param(lambda s: setattr(s.w, "leading", False), id="we lead no more"),
    ],
)
def test_a_shadow_ends_when(happened: Callable[[Story], None], story: Story) -> None:
    story.gang("g")
    assert story.after(300) is not None
    happened(story)
    assert story.after(1) is None


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(BackfillRules(0, 600, 0), id="no nodes"),
        pytest.param(BackfillRules(0, 0, 50), id="no time"),
        pytest.param(BackfillRules(), id="not configured"),
    ],
)
def test_it_can_be_turned_off(rules: BackfillRules, world: Make) -> None:
    story = Story(world, rules)
    story.gang("g")
    assert story.after(1000) is None


def test_a_gang_that_no_free_room_would_help_gets_none(story: Story) -> None:
    story.gang("nowhere", nodeSelector={"disk": "ssd"})
    story.gang("huge", cpu="3")
    assert story.after(300) is None
    story.gang("g")
    assert story.after(300) is not None
    assert story.owner == "g"


def test_a_gang_whose_pod_group_has_gone_gets_none(story: Story) -> None:
    story.gang("g")
    story.after(299)
    story.w.plugin.on_pod_group(pod_group("g", min_member=4), None)
    assert story.after(1) is None
    assert story.w.verdicts[-1] != "the gang is first in line"


def test_a_gang_for_which_the_nodes_are_too_few_gets_none(world: Make) -> None:
    story = Story(world, BackfillRules(300, 600, 25))
    story.gang("g")
    assert story.after(300) is None
    story.gang("one", cpu="1")
    assert story.shadow is None


def test_a_gang_of_which_a_part_runs_is_completed_there_too(story: Story) -> None:
    story.gang("g")
    story.after(300)
    story.w.plugin.on_pod_group(None, pod_group("begun", 2))
    story.runs(pod("begun-there", "begun", cpu="0", node_name="n2"))
    for name in ("n2", "n3"):
        story.runs(pod(f"more-{name}", node_name=name))
    missing = pod("begun-0", "begun", cpu="1")
    story.w.create(missing)
    cut_short(story.w.plugin.manager, "default/begun")
    assert story.w.filter(missing) in ("n0", "n1")


def test_a_plan_that_was_made_before_keeps_its_places(story: Story) -> None:
    story.gang("g")
    story.w.clock.now += 300
    early = story.gang("early", day=2, cpu="1")
    before = {member.name: story.w.filter(member) for member in early}
    assert story.after(0) is not None
    assert {member.name: story.w.filter(member) for member in early} == before


def test_the_pages_show_it_and_which_gang_the_others_wait_for(story: Story) -> None:
    story.gang("g")
    story.after(300)
    other = story.gang("other", day=2, cpu="1")
    story.runs(pod("more", node_name="n2"))
    story.w.plugin.on_node(None, node("n9", "0"))
    story.w.run_tasks()
    story.w.filter(other[0])
    report = story.w.plugin.report
    own = report.status("default/g")
    assert own is not None
    assert own.kept_free is not None
    assert own.kept_free.nodes == ("n0", "n1")
    assert (own.kept_free.until - own.kept_free.since).total_seconds() == 600
    assert any("2 nodes of the cluster for 10m more" in line for line in page(own, own.kept_free.since))
    status = report.status("default/other")
    assert status is not None
    assert status.kept_free is None
    assert status.gang.reason == "OrderedAfterOthers"
    assert status.reserved_for == ("default/g",)
    assert [each.kind for each in status.relaxations] == ["BackfillReservation"]
    assert (status.gang.place, status.in_line) == (2, 2)


def test_the_example_of_the_documentation_is_the_default(tmp_path: Path) -> None:
    text = (Path(__file__).parents[5] / "docs" / "operations.md").read_text().partition("## Order between gangs")[2]
    read, default = configuration_in(text, tmp_path), ExtenderConfiguration()
    for key in ("shadow_after_seconds", "shadow_max_seconds", "shadow_max_nodes_percent"):
        assert getattr(read, key) == getattr(default, key)
