"""More gangs come at once than there are bind calls to hold: they start one after the other, and none waits for another that
waits for it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from unittest.mock import patch

import pytest

from extender.api import corev1
from extender.plugins.coscheduling import messages
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, broken, group, member, members, on_node

Make = Callable[..., World]


class Capped(KubeScheduler):
    """Bind calls beyond the cap are answered with an error, as by InFlight."""

    def __init__(self, world: World, cap: int, **others: object) -> None:
        world.connect(max_held_binds=cap, **others)
        super().__init__(world)
        self.cap = cap
        self.too_many = 0

    def _bind(self, pod: corev1.Pod, node_name: str) -> None:
        if len(self.world.waiting) >= self.cap:
            self.too_many += 1
            self._refused(pod, f"too many waiting binds ({self.cap})", "SchedulerError")
            return
        super()._bind(pod, node_name)

    def rounds(self, count: int) -> None:
        for _ in range(count):
            self.run()
            self.world.clock.now += 1.0
            self.plugin.tick()
        self.run()


@pytest.fixture
def roomy(world: Make) -> World:
    return world([node(f"n{number}", "64") for number in range(10)])


@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
@pytest.mark.parametrize("seed", range(3))
def test_gangs_that_fit_and_come_shuffled_all_start_under_the_cap(roomy: World, seed: int, gated: bool) -> None:
    """100 members were held, of ten gangs a part each, and no gang started, hold after hold."""
    kube = Capped(roomy, 100)
    pods = [pod for name in "abcdefghij" for pod in members(16, name, gated=gated)]
    random.Random(seed).shuffle(pods)
    kube.apply(*(group(name, 16) for name in "abcdefghij"))
    kube.create(*pods)
    kube.rounds(15)
    assert len(kube.running()) == 160
    assert kube.too_many == 0
    assert list(broken(kube)) == []


def test_a_gang_that_has_to_wait_says_always_the_same_and_keeps_its_places(roomy: World) -> None:
    kube = Capped(roomy, 5)
    kube.apply(group("a", 3), group("b", 3))
    first, second = members(3, "a"), members(3, "b")
    kube.create(*first, *second)
    kube.attempt(first[0].uid)
    for pod in second[:2]:
        kube.attempt(pod.uid)
    assert {kube.told[pod.name] for pod in second[:2]} == {messages.BIND_CALLS_TAKEN}
    kube.world.clock.now += 120.0
    kube.plugin.expired_slots.tick()
    assert len(kube.plugin.manager.slots.of_group("default/b")) == 3
    kube.rounds(5)
    assert len(kube.running()) == 6


def test_a_gang_that_waits_comes_when_another_has_ended_without_a_start(roomy: World) -> None:
    kube = Capped(roomy, 5)
    kube.apply(group("a", 3), group("b", 3))
    first, second = members(3, "a"), members(3, "b")
    kube.create(*first, *second)
    kube.attempt(first[0].uid)
    kube.attempt(second[0].uid)
    kube.delete(first[1])
    kube.rounds(2)
    assert kube.starts == [{"b0", "b1", "b2"}]


def test_smaller_gangs_do_not_pass_a_large_one_for_good(roomy: World) -> None:
    kube = Capped(roomy, 10)
    kube.apply(group("a", 4), group("large", 9), group("c", 4))
    for name, size in (("a", 4), ("large", 9), ("c", 4)):
        kube.create(*members(size, name))
        kube.attempt(f"default/{name}0")
    assert (kube.told["large0"], kube.told["c0"]) == (messages.BIND_CALLS_TAKEN, messages.BIND_CALLS_TAKEN)
    kube.run()
    assert [sorted({name.rstrip("0123456789") for name in start}) for start in kube.starts] == [["a"], ["large"], ["c"]]


def test_a_gang_that_waits_for_calls_is_not_passed_by_a_smaller_one_that_comes_later(roomy: World) -> None:
    """The calls that are free are kept for it, also while its own members are not asked for."""
    kube = Capped(roomy, 10)
    kube.apply(group("a", 6), group("large", 6), group("small", 3))
    for name, size in (("a", 6), ("large", 6), ("small", 3)):
        kube.create(*members(size, name))
        kube.attempt(f"default/{name}0")
    assert [kube.told.get(name) for name in ("a0", "large0", "small0")] == [
        None,
        messages.BIND_CALLS_TAKEN,
        messages.BIND_CALLS_TAKEN,
    ]
    kube.delete(*members(6, "large"))
    kube.rounds(2)
    assert kube.starts == [{f"a{number}" for number in range(6)}, {f"small{number}" for number in range(3)}]


def test_what_a_held_member_costs_does_not_grow_with_the_gangs_that_wait_for_calls(roomy: World) -> None:
    """All that wait were counted before each of them: with 490 waiting gangs a single hold took seconds."""
    kube = Capped(roomy, 10)
    slots = kube.plugin.dispatcher.bind_slots
    counts: list[int] = []
    for waiting in (10, 40):
        kube.apply(*(group(f"g{number}", 4) for number in range(waiting)))
        for number in range(waiting):
            if f"default/g{number}0" not in kube.pods:
                kube.create(*members(4, f"g{number}"))
                kube.attempt(f"default/g{number}0")
        with patch.object(slots, "_calls_of", wraps=slots._calls_of) as counted:
            kube.attempt(f"default/g{waiting - 1}1")  # asked about
            kube.attempt(f"default/g0{1 + len(counts)}")  # held
            kube.plugin.dispatcher.send_those_that_wait()
        counts.append(counted.call_count)
    assert counts[1] <= counts[0] <= 10


def test_groups_that_start_together_count_together(roomy: World) -> None:
    kube = Capped(roomy, 10)
    kube.apply(group("a", 3, groups="b"), group("b", 3), group("c", 3, groups="d"), group("d", 3))
    for name in "abcd":
        kube.create(*members(3, name))
    for name in "acbd":
        kube.attempt(f"default/{name}0")
    assert {kube.told[name] for name in ("c0", "d0")} == {messages.BIND_CALLS_TAKEN}
    kube.run()
    assert [sorted({name[0] for name in start}) for start in kube.starts] == [["a", "b"], ["c", "d"]]
    assert kube.too_many == 0


@pytest.mark.parametrize(
    ("minimum", "refused"),
    [pytest.param(5, False, id="as many as there are"), pytest.param(6, True, id="one more")],
)
def test_a_gang_that_could_never_be_held_whole_says_so(roomy: World, minimum: int, refused: bool) -> None:
    kube = Capped(roomy, 5)
    kube.apply(group(minimum=minimum))
    kube.create(*members(minimum))
    kube.rounds(2)
    assert (len(kube.running()) == 0) is refused
    if refused:
        assert kube.told["g0"] == messages.EXCEEDS_HELD_BINDS
        assert kube.reason() == "ExceedsMaxHeldBinds"
        assert any("GangWaiting: minMember exceeds maxHeldBinds" in told for told in kube.world.verdicts)


def test_groups_that_together_could_never_be_held_say_so(roomy: World) -> None:
    kube = Capped(roomy, 5)
    kube.apply(group("a", 3, groups="b"), group("b", 3))
    kube.create(*members(3, "a"), *members(3, "b"))
    kube.rounds(2)
    assert {kube.told[name] for name in ("a0", "b0")} == {messages.EXCEEDS_HELD_BINDS}


def test_what_is_missing_of_a_gang_that_runs_in_part_counts_alone(roomy: World) -> None:
    kube = Capped(roomy, 2)
    kube.apply(group(minimum=4))
    pods = members(4)
    kube.create(*(on_node(pod, "n0") for pod in pods[:2]), *pods[2:])
    kube.rounds(2)
    assert len(kube.running()) == 4


def test_gates_stay_on_until_there_are_calls_to_hold_the_members(roomy: World) -> None:
    kube = Capped(roomy, 5)
    for name in "ab":
        kube.apply(group(name, 3))
        kube.create(*members(3, name, gated=True))
    kube.world.run_tasks()
    assert {name[0] for name, _ in kube.world.steered} == {"a"}
    kube.run()
    assert len(kube.running()) == 6


def test_a_gang_that_has_lost_its_plan_asks_anew(roomy: World) -> None:
    kube = Capped(roomy, 5)
    kube.apply(group("a", 3), group("b", 3))
    kube.create(*members(3, "a"), *members(3, "b"))
    slots, groups = kube.plugin.dispatcher.bind_slots, kube.plugin.manager.groups
    for name in "ab":
        groups[f"default/{name}"].planned = True
    assert slots.lets_in(groups["default/a"])
    groups["default/a"].planned = False
    assert slots.lets_in(groups["default/b"])
    groups["default/a"].planned = True
    assert not slots.lets_in(groups["default/a"])
    for name in "ab":
        groups[f"default/{name}"].planned = False


def with_more_than_it_needs(kube: Capped, *, gated: bool) -> list[corev1.Pod]:
    """Two groups that start together, one with six members beyond its minMember; and another gang. 14 members in all."""
    kube.apply(group("a", 2, groups="b"), group("b", 2), group("c", 4))
    return [*members(8, "a", gated=gated), *members(2, "b", gated=gated), *members(4, "c", gated=gated)]


@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
@pytest.mark.parametrize("seed", range(4))
def test_members_beyond_minmember_that_are_held_for_another_group_count_too(
    roomy: World, seed: int, gated: bool
) -> None:
    """All eight of one group were held, and two of the other gang: no call was left for the two that both waited for."""
    kube = Capped(roomy, 10)
    pods = with_more_than_it_needs(kube, gated=gated)
    random.Random(seed).shuffle(pods)
    kube.create(*pods)
    kube.rounds(12)
    assert (len(kube.running()), kube.too_many) == (14, 0)
    assert list(broken(kube)) == []
    slots = kube.plugin.dispatcher.bind_slots
    assert (slots._extra, slots._waiting) == ({}, {})


def test_members_of_a_role_that_is_there_already_count_too(roomy: World) -> None:
    """The workers were all held, and the master, which all waited for, found no call."""
    kube = Capped(roomy, 6)
    kube.apply(group(minimum=3, roles="master=1"))
    kube.create(*members(10, role="worker"), member("master", role="master"))
    kube.rounds(12)
    assert (len(kube.running()), kube.too_many) == (11, 0)


def with_some_kept_back(roomy: World) -> tuple[Capped, list[corev1.Pod]]:
    """Three of six members that were asked about are held; the others would take calls that the rest of their set needs."""
    kube = Capped(roomy, 5)
    pods = with_more_than_it_needs(kube, gated=False)
    kube.create(*pods[:10])
    for pod in pods[:6]:
        kube.attempt(pod.uid)
    return kube, pods


def test_one_that_is_kept_back_says_so_and_comes_once_its_groups_have_started(roomy: World) -> None:
    kube, pods = with_some_kept_back(roomy)
    assert kube.held() == {"a0", "a1", "a2"}
    assert {kube.told[f"a{number}"] for number in (3, 4, 5)} == {messages.BIND_CALLS_TAKEN}
    kube.plugin.dispatcher.dispatch(kube.plugin.manager.groups["default/a"])  # another wave's turn, say
    kube.wake()
    assert {kube.pods[f"default/a{number}"].status.nominated_node_name for number in (3, 4, 5)} == {""}
    for pod in pods[8:10]:
        kube.attempt(pod.uid)
    assert kube.starts == [{"a0", "a1", "a2", "b0", "b1"}]
    kube.rounds(3)
    assert len(kube.running()) == 10


def test_a_gang_that_is_kept_back_passes_no_gang_that_waits(roomy: World) -> None:
    kube = Capped(roomy, 9)
    kube.apply(group("a", 2, groups="b"), group("b", 2), group("large", 6))
    pods = [*members(8, "a"), *members(2, "b"), *members(6, "large")]
    kube.create(*pods)
    kube.attempt(pods[0].uid)
    kube.attempt("default/large0")
    for pod in pods[1:5]:
        kube.attempt(pod.uid)
    assert kube.held() == {"a0", "a1"}, "the large gang is next"
    kube.rounds(12)
    assert (len(kube.running()), kube.too_many) == (16, 0)


def test_of_those_that_went_while_they_were_kept_back_nothing_is_left(roomy: World) -> None:
    kube, pods = with_some_kept_back(roomy)
    kube.delete(*[kube.pods[pod.uid] for pod in pods[:10]])
    kube.rounds(1)
    kube.world.clock.now += 11.0
    kube.plugin.tick()
    slots = kube.plugin.dispatcher.bind_slots
    assert (slots._extra, slots._passed, slots._let_in, slots._waiting) == ({}, {}, set(), {})


def test_a_member_that_is_held_has_no_other_gang_counted(roomy: World) -> None:
    kube = Capped(roomy, 100)
    kube.apply(*(group(name, 3) for name in "abcdef"))
    kube.create(*(pod for name in "abcdef" for pod in members(3, name)))
    for name in "abcdef":
        kube.attempt(f"default/{name}0")
    slots = kube.plugin.dispatcher.bind_slots
    with patch.object(slots, "_calls", side_effect=AssertionError("counted")):
        kube.attempt("default/a1")
    assert {"a0", "a1", "b0"} <= kube.held()
