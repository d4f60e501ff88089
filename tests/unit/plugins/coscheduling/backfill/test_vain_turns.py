"""Gangs that can never start keep nodes free for ever less of the time, and a gang that can start has its turn among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as replaced
from itertools import pairwise

import pytest
from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling.backfill.vain_turns import A_DAY, AskedRoom, Turn, VainTurns
from extender.plugins.coscheduling.dependencies import BackfillRules
from extender.plugins.coscheduling.scheduling.reservation_turns import PAUSE_SECONDS
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group
from tests.unit.plugins.coscheduling.kube_scheduler import group, members
from tests.unit.plugins.coscheduling.short_of_room import RULES, Story
from tests.unit.plugins.coscheduling.single import refusals

Make = Callable[..., World]

HOURS = 3600
STEP = 5
NOTHING = AskedRoom(2, ("",), {"cpu": 2000})
ROOM = {"cpu": 8000}
SHARED = {"pool": "shared"}


@pytest.fixture
def story(world: Make) -> Story:
    return Story(world)


def turns(story: Story, seconds: float, step: int = STEP) -> list[tuple[int, str, int]]:
    """Walks through virtual time: (when a turn began, the gang that had it, for how long nodes were kept free), in seconds."""
    found: list[tuple[int, str, int]] = []
    last = None
    start = story.w.clock.now
    while story.w.clock.now - start < seconds:
        shadow = story.after(step)
        if shadow is not None and shadow is not last:
            found.append((int(story.w.clock.now - start), story.owner, 0))
        if shadow is not None:
            began, owner, lasted = found[-1]
            found[-1] = began, owner, lasted + step
        last = shadow
    return found


def share(found: list[tuple[int, str, int]], seconds: float) -> float:
    return sum(lasted for _, _, lasted in found) / seconds


@pytest.mark.parametrize(
    ("gangs", "began", "most"),
    [
        pytest.param(1, [300, 1200, 3000, 8400], 0.17, id="one gang, which took 67 % of the time before"),
        pytest.param(4, [300, 915, 1530, 3330, 6330, 11730], 0.25, id="four gangs, which took 96 %"),
        pytest.param(8, [300, 915, 1530, 3330, 6330, 11730], 0.25, id="eight gangs, not all of which have had a turn"),
    ],
)
def test_in_four_hours_gangs_that_can_never_start_keep_nodes_free_for(
    gangs: int, began: list[int], most: float, story: Story
) -> None:
    """On each node a small pod runs that never ends."""
    for number in range(gangs):
        story.gang(f"g{number:02}", day=1 + number)
    found = turns(story, 4 * HOURS)
    assert [when for when, _, _ in found] == began
    assert share(found, 4 * HOURS) <= most


def test_a_gang_alone_is_given_up_for_a_day_at_a_time(story: Story) -> None:
    story.gang("g")
    found = turns(story, 4 * A_DAY, step=100)
    pauses = [later - began - lasted for (began, _, lasted), (later, _, _) in pairwise(found)]
    assert pauses == [300, 1200, 4800, 19200, 76800, A_DAY, A_DAY]


def test_a_new_name_each_time_does_not_help_a_tenant(story: Story) -> None:
    """As soon as a turn is over, and some seconds before it would be, the gang is deleted and another one made."""
    kept = 0
    members = story.gang("g0", day=1)
    number = age = 0
    for _ in range(8 * HOURS // STEP):
        shadow = story.after(STEP)
        kept += STEP if shadow is not None else 0
        age = age + STEP if shadow is not None else 0
        if age >= RULES.max_seconds - STEP:
            for member in members:
                story.w.plugin.on_pod(member, None)
            story.w.plugin.on_pod_group(pod_group(f"g{number}", 2), None)
            number, age = number + 1, 0
            members = story.gang(f"g{number}", day=1)
    assert number > 5
    assert kept / (8 * HOURS) < 0.2
    assert len(story.w.plugin.rounds.reservations.turns._turns) <= 1, "nothing is kept of those that are gone"
    assert len(story.w.plugin.rounds.reservations.turns._vain._gangs) <= 1


class Churn(Story):
    """A cluster of four nodes on which a small pod runs for good, and two that small pods share, each for a minute and a half, and
    never are all of a node's over at the same time.

    The gang `large` may only go to those two nodes, and needs them whole; gangs of two members of 4 cpu each fit nowhere, and
    would fit on the four if these were empty.
    """

    SECONDS = 90

    def __init__(self, world: Make, rules: BackfillRules) -> None:
        super().__init__(world, rules)
        self.w.nodes = {f"n{number}": node(f"n{number}", "4") for number in range(4)}
        self.w.on_nodes.clear()
        for name in self.w.nodes:
            self.runs(pod(f"on-{name}", cpu="3", node_name=name))
        for name in ("m0", "m1"):
            plain = node(name, "2")
            self.w.nodes[name] = structs.replace(plain, metadata=structs.replace(plain.metadata, labels=SHARED))
            self.w.plugin.on_node(None, self.w.nodes[name])
        self.made = iter(range(100_000))
        self.ending: list[tuple[float, str]] = []
        self.started_at = 0.0

    def small_pods(self) -> None:
        """Pods that are due end; a new pod takes the room of each at once, if it may."""
        now = self.w.clock.now
        for when, name in [entry for entry in self.ending if entry[0] <= now]:
            self.ending.remove((when, name))
            self.ends(name)
        for name in ("m0", "m1"):
            while self.free(name) >= 1000:
                number = next(self.made)
                single = pod(f"single-{number}", cpu="1")
                if name in refusals(self.w, single):
                    break
                self.runs(pod(single.name, cpu="1", node_name=name))
                seconds = self.SECONDS / 2 if number in (0, 2) else self.SECONDS  # the first of each node
                self.ending.append((now + seconds, single.name))

    def free(self, name: str) -> int:
        info = self.w.snapshot().get(name)
        return info.allocatable.milli_cpu - info.requested.milli_cpu

    def large(self, members: list[corev1.Pod]) -> None:
        places = {member.name: self.w.filter(member) for member in members}
        if set(places.values()) == {"m0", "m1"}:
            for member in members:
                there = pod(member.name, "large", cpu="2", node_name=places[member.name])
                self.w.on_nodes[there.uid] = there
                self.w.plugin.on_pod(member, there)
            self.started_at = self.w.clock.now

    def walk(self, seconds: int, *, impossible: int) -> float:
        """Seconds until the gang starts; 0 if it does not."""
        self.small_pods()
        for number in range(impossible):
            self.gang(f"never{number}", day=1 + number, cpu="4")
        members = self.gang("large", day=20, nodeSelector=SHARED)
        began = self.w.clock.now
        for _ in range(seconds // 10):
            self.after(10)
            self.w.run_tasks()
            self.small_pods()
            self.large(members)
            if self.started_at:
                return self.started_at - began
        return 0.0


@pytest.mark.parametrize(
    ("impossible", "percent", "after"),
    [
        pytest.param(0, 50, range(300, 400), id="alone: within two minutes of its first turn"),
        pytest.param(4, 50, range(6330, 6430), id="after four gangs that can never start: when each has had its turn"),
        pytest.param(0, 0, range(1), id="not at all where no nodes are kept free"),
    ],
)
def test_a_gang_that_needs_nodes_which_small_pods_share_starts(
    impossible: int, percent: int, after: range, world: Make
) -> None:
    churn = Churn(world, BackfillRules(300, 600, percent))
    assert churn.walk(2 * HOURS, impossible=impossible) in after


@pytest.mark.parametrize(
    ("happened", "again"),
    [
        pytest.param(lambda s: None, None, id="nothing"),
        pytest.param(
            lambda s: s.w.plugin.on_pod_group(pod_group("g", 2), pod_group("g", 2, minResources={"cpu": "1"})),
            None,
            id="it asks for something else",
        ),
        pytest.param(lambda s: nodes(s, "3", cordoned=True), None, id="a node comes that is cordoned"),
        pytest.param(lambda s: nodes(s, "3"), "g", id="a node comes"),
        pytest.param(lambda s: smaller(s), "g", id="its members ask for less"),
    ],
)
def test_turns_in_vain_are_forgotten_once(happened: Callable[[Story], None], again: str | None, story: Story) -> None:
    story.gang("g")
    turns(story, 4000)
    happened(story)
    found = turns(story, 1200)
    assert [owner for _, owner, _ in found] == ([again] if again is not None else [])
    assert story.w.plugin.rounds.reservations.turns._turns == {"default/g": 1 if again is not None else 3}


def nodes(story: Story, cpu: str, *, cordoned: bool = False) -> None:
    story.w.nodes["new"] = node("new", cpu, unschedulable=cordoned)
    story.runs(pod("on-new", node_name="new", cpu="2"))
    story.w.plugin.on_node(None, story.w.nodes["new"])
    story.w.run_tasks()


def smaller(story: Story) -> None:
    for number in range(2):
        story.w.plugin.on_pod(pod(f"g-{number}", "g", cpu="2"), None)
    story.gang("g", cpu="1500m")


def test_a_turn_that_ends_with_a_start_clears_the_record_of_the_namespace(story: Story) -> None:
    for number in range(4):
        story.gang(f"g{number}", day=1 + number)
    turns(story, 3300)
    shadow = story.after(60)
    assert shadow is not None
    vain = story.w.plugin.rounds.reservations.turns._vain
    assert vain.of_namespace(shadow.group) == 3
    for number in range(2):
        story.runs(pod(f"{story.owner}-{number}", story.owner, cpu="0", node_name=f"n{number}"))
    assert story.after(STEP) is None
    assert vain.of_namespace(shadow.group) == 0
    assert shadow.group not in story.w.plugin.rounds.reservations.turns._turns


def test_a_gang_of_a_namespace_that_had_no_turn_in_vain_comes_before_the_others_of_one_that_had(story: Story) -> None:
    for number in range(3):
        story.gang(f"g{number}")
    story.w.plugin.on_pod_group(None, group("late", 2, namespace="other"))
    late = members(2, "late", cpu=2, namespace="other")
    story.w.create(*late)
    story.w.filter(late[0])
    assert [owner for _, owner, _ in turns(story, 1600)] == ["g0", "other/late", "g1"]


def test_a_plan_that_comes_to_no_start_clears_nothing(story: Story) -> None:
    story.gang("g")
    turns(story, 1000)
    manager, reservations = story.w.plugin.manager, story.w.plugin.rounds.reservations
    with manager.lock:
        reservations.turns.planned([manager.groups["default/g"]])
    story.w.plugin.manager.notes.forget("default/g")
    story.w.filter(pod("g-0", "g", cpu="2"))
    assert [when for when, _, _ in turns(story, 2000)] == [300], "and the pause after it is that of the second"


def test_a_start_clears_the_record(story: Story) -> None:
    story.gang("g")
    turns(story, 4000)
    for number in range(2):
        there = pod(f"g-{number}", "g", cpu="2", node_name=f"n{number}")
        story.runs(there)
    story.after(STEP)
    story.after(STEP)
    assert story.w.plugin.rounds.reservations.turns._turns == {}
    assert story.w.plugin.rounds.reservations.turns._vain._gangs == {}


def test_each_turn_keeps_other_nodes_free_while_there_are_others_that_would_do(story: Story) -> None:
    story.gang("g")
    found = []
    for _ in range(4):
        turns(story, 300)
        while story.shadow is None:
            story.after(STEP)
        found.append(sorted(story.shadow.nodes))
        turns(story, 600)
    assert found == [["n0", "n1"], ["n2", "n3"], ["n0", "n1"], ["n2", "n3"]]


def test_a_gang_that_goes_while_its_nodes_are_chosen_leaves_nothing(world: Make) -> None:
    story = Story(world)
    members = story.gang("g")
    offload = story.w._offload

    def goes_meanwhile(function: Callable[..., object], *args: object) -> object:
        for member in members:
            story.w.plugin.on_pod(member, None)
        story.w.plugin.on_pod_group(pod_group("g", 2), None)
        return offload(function, *args)

    reservations = story.w.plugin.rounds.reservations
    reservations._with = replaced(reservations._with, offload=goes_meanwhile)
    assert story.after(300) is None
    assert (reservations.turns._waits_since, reservations.turns._not_before, reservations.turns._turns) == ({}, {}, {})


def test_groups_that_start_together_have_their_turns_as_one(story: Story) -> None:
    names = "ab"
    for name in names:
        story.w.plugin.on_pod_group(None, group(name, 1, groups=",".join(names)))
        story.w.create(pod(f"{name}-0", name, cpu="2"))
    for name in names:
        story.w.plugin.manager.notes.forget(f"default/{name}")
        story.w.filter(pod(f"{name}-0", name, cpu="2"))
    assert {owner for _, owner, _ in turns(story, 4 * HOURS)} == {"a"}


class Turns:
    """VainTurns, with gangs of which each turn takes ten minutes."""

    def __init__(self) -> None:
        self.vain = VainTurns(300, PAUSE_SECONDS)
        self.now = 0.0

    def in_vain(self, *keys: str, turns: int = 1, lasted: float = 600) -> None:
        for key in keys:
            self.now += lasted
            self.vain.ended(key, turns, self.now, Turn(lasted, NOTHING, ROOM))

    def waits(self, key: str) -> float:
        """Seconds from the end of the last turn until the gang may have one, to the next ten."""
        return next(seconds for seconds in range(0, 10**6, 10) if self.vain.may_begin(key, self.now + seconds))


@pytest.fixture
def waiting() -> Turns:
    return Turns()


@pytest.mark.parametrize(
    ("before", "key", "seconds"),
    [
        pytest.param([], "a/new", 0, id="no turn yet"),
        pytest.param(["a/1", "a/2"], "a/new", 20, id="two in a row"),
        pytest.param(["a/1", "a/2", "a/3"], "a/new", 1200, id="three in a row"),
        pytest.param(["a/1", "a/2", "a/3", "a/4"], "a/new", 2400, id="four in a row"),
        pytest.param([f"a/{number}" for number in range(40)], "a/new", 4800, id="forty in a row"),
        pytest.param([f"a/{number}" for number in range(40)], "b/new", 1200, id="forty in a row, of another namespace"),
    ],
)
def test_after_turns_in_vain_a_gang_that_had_none_waits(
    before: list[str], key: str, seconds: float, waiting: Turns
) -> None:
    waiting.in_vain(*before)
    assert waiting.waits(key) == seconds


def test_after_a_start_the_namespace_and_the_others_wait_no_longer_than_at_first(waiting: Turns) -> None:
    waiting.in_vain("a/1", "a/2", "a/3", "a/4", "a/5")
    waiting.vain.started("a/6")
    assert waiting.waits("a/new") == 20
    assert waiting.vain.of_namespace("a/new") == 0


def test_where_the_cluster_has_got_larger_the_namespace_has_had_none(waiting: Turns) -> None:
    waiting.in_vain("a/1", "a/2", "a/3", "a/4", "a/5")
    assert waiting.vain.is_over("a/5", NOTHING, {"cpu": 8001})
    assert waiting.waits("a/new") == 1200


def test_after_a_day_without_turns_they_count_no_longer(waiting: Turns) -> None:
    waiting.in_vain("a/1", "a/2", "a/3", "a/4", "a/5")
    waiting.now += A_DAY
    waiting.in_vain("a/6")
    assert waiting.waits("a/new") == 20


def test_a_turn_that_is_over_at_once_is_none(waiting: Turns) -> None:
    waiting.in_vain("a/1", lasted=PAUSE_SECONDS - 1)
    assert waiting.waits("a/1") == 0


@pytest.mark.parametrize(
    ("wish", "room", "over"),
    [
        pytest.param(NOTHING, ROOM, False, id="as it was"),
        pytest.param(
            NOTHING, {"cpu": 7000, "memory": 10**9}, False, id="the cluster has more, but not of what it asks for"
        ),
        pytest.param(NOTHING, {"cpu": 8001}, True, id="the cluster has more"),
        pytest.param(AskedRoom(1, ("",), {"cpu": 2000}), ROOM, True, id="fewer members"),
        pytest.param(AskedRoom(3, ("",), {"cpu": 2000}), ROOM, False, id="more members"),
        pytest.param(AskedRoom(2, ("",), {"cpu": 1999}), ROOM, True, id="smaller members"),
        pytest.param(
            AskedRoom(2, ("",), {"cpu": 1999, "memory": 1}),
            ROOM,
            False,
            id="smaller in one resource, larger in another",
        ),
        pytest.param(AskedRoom(2, ("rack",), {"cpu": 2000}), ROOM, True, id="another topology"),
    ],
)
def test_the_turns_are_over(wish: AskedRoom, room: dict[str, int], over: bool, waiting: Turns) -> None:
    waiting.in_vain("a/1")
    assert waiting.vain.is_over("a/1", wish, room) == over
    assert (waiting.waits("a/1") == 20) == over


def test_a_cluster_that_shrinks_and_grows_again_is_not_larger(waiting: Turns) -> None:
    waiting.in_vain("a/1")
    waiting.vain.ended("a/1", 2, waiting.now + 600, Turn(600, NOTHING, {"cpu": 4000}))
    assert not waiting.vain.is_over("a/1", NOTHING, {"cpu": 8000})
