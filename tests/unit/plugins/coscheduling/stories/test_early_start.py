"""Gangs that are still being made: their members are held as they come, the last one starts all, and in vain nothing is held for long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling.state.slots import Slot
from tests.objects import make_pod_group
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, broken, group, member, members

Make = Callable[..., World]
NODES = [node(f"n{number}", "2") for number in range(4)]
SIBLINGS = "pre-filter pod g0 cannot find enough sibling pods, current pods number: {}, minMember of group: {}"


def starting(world: Make, **args: Any) -> KubeScheduler:
    """Four nodes of 2 CPUs. Half of the room, eight members of one CPU, may go to gangs that gather."""
    return KubeScheduler(world(NODES, **{"early_start": True, **args}))


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return starting(world)


def come(kube: KubeScheduler, *pods: corev1.Pod) -> None:
    kube.create(*pods)
    kube.run()
    assert list(broken(kube)) == []


def passes(kube: KubeScheduler, seconds: float) -> None:
    kube.world.clock.now += seconds
    kube.plugin.tick()
    kube.run()
    assert list(broken(kube)) == []


@pytest.mark.parametrize("gated", [False, True])
def test_members_are_held_as_they_come_and_the_last_one_starts_all(kube: KubeScheduler, gated: bool) -> None:
    kube.apply(group(minimum=4))
    for number, pod in enumerate(members(3, gated=gated)):
        come(kube, pod)
        assert len(kube.held()) == number + 1
        assert kube.starts == []
    plans = kube.world.plans
    come(kube, member("last", gated=gated))
    assert kube.starts == [{"g0", "g1", "g2", "last"}]
    assert kube.world.plans == plans == 1, "one plan of the whole gang"
    assert kube.told == {}, "kube-scheduler refused none of them"
    passes(kube, 60.0)


def test_members_that_come_have_the_time_to_bind_where_no_room_is_kept_for_later_phases(world: Make) -> None:
    kube = starting(world, members_to_come_seconds=0)
    kube.apply(group(minimum=4))
    first, *others = members(3, gated=True)
    kube.create(first)
    kube.world.run_tasks()
    kube.create(*others)
    passes(kube, 0.2)  # before kube-scheduler has asked about all
    assert kube.held() == {"g0", "g1", "g2"}
    come(kube, member("last", gated=True))
    assert kube.starts == [{"g0", "g1", "g2", "last"}]
    assert kube.world.plans == 1


def test_without_early_start_nothing_is_held(world: Make) -> None:
    kube = starting(world, early_start=False)
    kube.apply(group(minimum=4))
    come(kube, *members(3))
    assert kube.held() == set()
    assert kube.told["g0"] == SIBLINGS.format(3, 4)


def test_silence_ends_it_and_the_gang_waits_as_any_other(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4))
    come(kube, *members(3))
    passes(kube, 0.9)
    assert len(kube.held()) == 3
    passes(kube, 0.1)
    assert kube.held() == set()
    assert kube.told["g0"] == SIBLINGS.format(3, 4)
    assert list(kube.plugin.manager.slots) == []
    assert kube.world.verdicts == [], "nothing is said of it that was not true before"
    come(kube, member("single", "", cpu=2))
    assert "single" in kube.running()


def test_a_member_whose_bind_call_comes_after_the_end_is_not_held(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4))
    come(kube, *members(2))
    late = member("late")
    kube.create(late)
    node_name = kube.filter_call(late)
    passes(kube, 10.0)
    kube.bind_call(late, node_name)
    assert kube.held() == set()
    assert kube.told["late"] == SIBLINGS.replace("g0", "late").format(3, 4)
    come(kube, member("last"))
    assert kube.starts == [{"g0", "g1", "late", "last"}]


def test_as_long_as_members_keep_coming_there_is_no_silence(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4))
    for pod in members(3):
        come(kube, pod)
        passes(kube, 0.9)
    assert len(kube.held()) == 3


def test_members_that_come_slowly_are_given_several_of_their_pauses(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4))
    for pod in members(3):
        come(kube, pod)
        passes(kube, 0.9)
    passes(kube, 6.2)
    assert len(kube.held()) == 3, "7.1 s is less than eight of the pauses before"
    passes(kube, 0.2)
    assert kube.held() == set()


def test_of_a_gang_with_few_members_the_pauses_of_others_tell_what_is_usual(world: Make) -> None:
    kube = starting(world, early_start_percentage_of_room=100)
    kube.apply(group("a", minimum=5), group("b", minimum=2))
    for pod in members(3, "a", prefix="a"):
        come(kube, pod)
        passes(kube, 0.5)
    come(kube, member("b0", "b"))
    passes(kube, 3.4)
    assert "b0" in kube.held(), "eight pauses of half a second are not over"
    passes(kube, 0.6)
    assert kube.held() == set()


def test_what_is_looked_at_when_a_member_comes_does_not_grow_with_those_that_are_sent(world: Make) -> None:
    """Gated members that kube-scheduler has not asked about yet have their places, and nothing to be done for."""
    kube = KubeScheduler(world([node("n0", "640", pods=640)], early_start=True))
    kube.apply(group(minimum=300))
    asked: Counter[str] = Counter()
    slots = kube.plugin.manager.slots
    get = slots.get

    def counted(uid: str) -> Slot | None:
        asked[uid] += 1
        return get(uid)

    slots.get = counted  # type: ignore[method-assign]
    pods = members(200, gated=True)
    come(kube, pods[0])
    kube.create(*pods[1:])
    assert len(kube.plugin.manager.groups["default/g"].nominated()) == 200
    assert max(asked.values()) < 20, "each is asked about when it comes, and not again with each that comes after it"


def test_there_is_an_end_though_members_keep_coming(world: Make) -> None:
    kube = starting(world, early_start_max_seconds=2)
    kube.apply(group(minimum=4))
    for pod in members(3):
        come(kube, pod)
        passes(kube, 0.9)
    assert kube.held() == set()


def test_it_gathers_once_until_it_is_complete(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4))
    come(kube, *members(2))
    passes(kube, 1.0)
    come(kube, member("third"))
    assert kube.held() == set()
    assert kube.told["third"].startswith("pre-filter pod third cannot find enough sibling pods, current pods number: 3")
    come(kube, member("last"))
    assert kube.starts == [{"g0", "g1", "third", "last"}]


def test_a_gang_whose_pods_have_all_gone_gathers_anew(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4))
    first = members(2)
    come(kube, *first)
    passes(kube, 1.0)
    kube.delete(*first)
    come(kube, *members(3, prefix="again-"))
    assert kube.held() == {"again-0", "again-1", "again-2"}


def test_what_does_not_fit_whole_is_not_begun(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=9))
    come(kube, *members(8))
    assert kube.held() == set()
    assert kube.told["g0"].startswith("pre-filter pod g0 cannot find enough sibling pods")
    assert kube.world.verdicts == []


def test_gangs_that_gather_have_a_part_of_the_room_together(kube: KubeScheduler) -> None:
    kube.apply(group("a", minimum=3), group("b", minimum=3))
    come(kube, member("a0", "a"), member("b0", "b"))
    assert kube.held() == {"a0"}, "three of eight places for the one, and the two together would have six"


def test_a_complete_gang_takes_the_room_at_once(world: Make) -> None:
    kube = starting(world, early_start_percentage_of_room=100)
    kube.apply(group("a", minimum=6), group("b", minimum=3))
    come(kube, *members(5, "a"))
    assert len(kube.held()) == 5
    come(kube, *members(3, "b"))
    assert kube.starts == [{"b0", "b1", "b2"}]
    assert kube.held() == set()


@pytest.mark.parametrize("gated", [False, True])
def test_a_complete_gang_takes_no_more_than_it_needs_and_of_those_that_lack_the_most(world: Make, gated: bool) -> None:
    """Those that are nearly complete start soon; a member that is refused serves kube-scheduler's back-off."""
    kube = starting(world, early_start_percentage_of_room=100)
    kube.apply(*(group(name, minimum=2) for name in "acd"), group("b", minimum=2))
    kube.apply(group("a", minimum=4))
    come(kube, *members(3, "a", prefix="a", gated=gated), *(member(f"{name}0", name, gated=gated) for name in "cd"))
    assert kube.held() == {"a0", "a1", "a2", "c0", "d0"}, "there is no room left"
    come(kube, *members(2, "b", prefix="b", gated=gated))
    assert kube.starts == [{"b0", "b1"}]
    assert {uid[0] for uid in kube.held()} == {"a", "d"}, "the first that lacks the most gave way, and it alone"
    come(kube, member("a3", "a", gated=gated), member("d1", "d", gated=gated))
    assert kube.running("a") | kube.running("d") == {"a0", "a1", "a2", "a3", "d0", "d1"}


def test_a_gang_that_asks_for_nothing_has_as_many_pods_give_way_as_it_has(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "8", pods=4)], early_start=True, early_start_percentage_of_room=100))
    kube.apply(group("a", minimum=4), group("b", minimum=2))
    come(kube, *members(3, "a", prefix="a", cpu=0))
    assert len(kube.held()) == 3
    come(kube, *members(2, "b", prefix="b", cpu=0))
    assert kube.starts == [{"b0", "b1"}]


def test_a_complete_gang_of_lower_priority_waits(world: Make) -> None:
    kube = starting(world, early_start_percentage_of_room=100)
    kube.apply(group("a", minimum=6), group("b", minimum=3))
    come(kube, *(with_priority(each, 10) for each in members(5, "a")))
    come(kube, *members(3, "b"))
    assert len(kube.held()) == 5
    come(kube, with_priority(member("last", "a"), 10))
    assert len(kube.running("a")) == 5
    assert kube.running("b") == set()


def test_a_single_pod_takes_the_room_at_once(world: Make) -> None:
    kube = starting(world, early_start_percentage_of_room=100)
    kube.apply(group(minimum=8))
    come(kube, *members(7))
    assert len(kube.held()) == 7
    single = member("single", "", cpu=2)
    come(kube, single)
    assert kube.held() == set()
    kube.active[single.uid] = None  # kube-scheduler tries it again when it forgets pods that were assumed
    kube.run()
    assert "single" in kube.running()


def test_no_pod_is_evicted_where_a_gang_that_gathers_has_the_room(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4))
    come(kube, *members(3))
    assert kube.plugin.process_preemption(member("single", "", cpu=2), {}) == {}
    kube.run()
    assert kube.held() == set()


def test_a_member_of_another_shape_has_the_gang_planned_anew(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3))
    come(kube, *members(2))
    come(kube, member("large", cpu=2))
    assert kube.starts == [{"g0", "g1", "large"}]
    assert list(kube.plugin.manager.slots) == []


def test_a_member_of_another_shape_that_does_not_fit_starts_no_fraction(world: Make) -> None:
    kube = starting(world, early_start_percentage_of_room=100)
    kube.apply(group(minimum=3))
    come(kube, *(structs.replace(each, spec=each.spec) for each in members(2)))
    come(kube, member("large", cpu=3))
    assert kube.starts == []
    passes(kube, 1.0)
    assert kube.held() == set()
    assert kube.running() == set()


def test_a_member_that_goes_leaves_its_room_to_the_next(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4))
    pods = members(3)
    come(kube, *pods)
    kube.delete(pods[1])
    kube.run()
    come(kube, member("next"))
    come(kube, member("last"))
    kube.run()
    assert kube.running() == {"g0", "g2", "next", "last"}


def while_planned(kube: KubeScheduler, happens: Callable[[], None]) -> None:
    """It happens during the next plan."""
    todo = [happens]

    def offload(function: Callable[..., object], *args: object) -> object:
        kube.world.plans += 1
        if todo:
            todo.pop()()
        return function(*args)

    kube.world.connect(offload=offload)


def test_a_member_that_comes_while_the_gang_is_planned_has_a_place_of_that_plan(kube: KubeScheduler) -> None:
    while_planned(kube, lambda: kube.create(member("second")))
    kube.apply(group(minimum=3))
    come(kube, member("first"), member("last"))
    assert kube.starts == [{"first", "second", "last"}]
    assert kube.world.plans == 1


def test_an_early_start_that_ends_while_it_is_planned_has_no_room(kube: KubeScheduler) -> None:
    while_planned(kube, lambda: give_way(kube))
    kube.apply(group(minimum=3))
    come(kube, *members(2))
    assert kube.held() == set()
    assert list(kube.plugin.manager.slots) == []


def give_way(kube: KubeScheduler) -> None:
    with kube.plugin.manager.lock:
        kube.plugin.early_starts.make_way(0)


def test_a_gang_that_is_to_start_with_another_by_now_waits_for_it(kube: KubeScheduler) -> None:
    kube.apply(group("a", minimum=2))
    kube.create(member("a0", "a"))
    kube.apply(group("b", minimum=2, groups="default/a"))
    plans = kube.world.plans
    come(kube, *members(2, "b"))
    assert kube.held() == set()
    assert kube.told["b0"].endswith("cannot start: fewer pods exist than minMember of 2")
    assert kube.world.plans == plans
    passes(kube, 1.0)
    assert list(kube.plugin.manager.slots) == []
    come(kube, member("a1", "a"))
    assert kube.running() == {"a0", "a1", "b0", "b1"}


def test_while_held_calls_end_no_pod_is_evicted_for_that_room(world: Make) -> None:
    kube = starting(world, early_start_percentage_of_room=100)
    asked: list[str] = []
    kube.plugin.rounds.on_no_room(lambda short, scheduler_name: asked.append(short.key))
    kube.apply(group("a", minimum=6), group("b", minimum=6))
    come(kube, *members(5, "a"))
    complete = members(6, "b")
    kube.create(*complete)
    kube.attempt(complete[0].uid)
    while kube.world.waiting:  # the calls end one by one, and each is a reason to plan
        assert asked == []
        kube.call_ends(next(iter(kube.world.waiting)))
        kube.plugin.rounds.plan_waiting()
    kube.run()
    assert len(kube.running("b")) == 6
    assert asked == []
    kube.apply(group("c", minimum=8))
    come(kube, *members(8, "c"))
    assert asked, "there are none left that could give way"


def test_a_minimum_that_is_lowered_starts_those_that_are_held(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4))
    come(kube, *members(3))
    kube.apply(group(minimum=3))
    kube.run()
    assert kube.starts == [{"g0", "g1", "g2"}]
    passes(kube, 1.0)
    assert list(kube.plugin.manager.slots) == []


def test_a_leader_that_leads_no_more_holds_no_gang_together(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=4))
    come(kube, *members(3))
    kube.plugin.early_starts.tick(may_plan=False)
    kube.run()
    assert kube.held() == set()


def test_a_gang_that_was_there_before_a_leader_began_to_lead_waits_until_it_is_complete(world: Make) -> None:
    """After a restart all that is there comes at once; what lacks members may have done so for hours."""
    kube = starting(world, early_start_percentage_of_room=100)
    early = kube.plugin.early_starts
    early.tick(may_plan=False)
    kube.apply(group(minimum=4), group("new", minimum=3))
    kube.create(*members(3))
    early.tick(may_plan=True)
    come(kube, member("late"), *members(2, "new", prefix="new"))
    assert kube.held() == {"new0", "new1"}
    assert kube.starts == [{"g0", "g1", "g2", "late"}]


def with_priority(pod: corev1.Pod, priority: int) -> corev1.Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, priority=priority))


def labelled(pod: corev1.Pod, **labels: str) -> corev1.Pod:
    """Of a StatefulSet, or an Indexed Job."""
    there = {
        **pod.metadata.labels,
        **{f"{PREFIXES[key]}/{key.replace('_', '-')}": text for key, text in labels.items()},
    }
    return structs.replace(pod, metadata=structs.replace(pod.metadata, labels=there))


PREFIXES = {
    "pod_index": "apps.kubernetes.io",
    "job_completion_index": "batch.kubernetes.io",
    "job_global_index": "jobset.sigs.k8s.io",
}


def test_members_with_ranks_have_the_room_that_was_found_for_their_rank(kube: KubeScheduler) -> None:
    """Neighbours in rank are neighbours in the order of nodes, in whatever order they come."""
    kube.apply(group(minimum=4))
    pods = [labelled(each, job_completion_index=str(rank)) for rank, each in enumerate(members(4))]
    for rank in (2, 0, 3):
        come(kube, pods[rank])
    assert kube.held() == {"g0", "g2", "g3"}
    come(kube, pods[1])
    assert kube.starts == [{"g0", "g1", "g2", "g3"}]
    assert [kube.pods[each.uid].node_name for each in pods] == ["n0", "n0", "n1", "n1"]
    assert kube.world.plans == 1


ROLES = "leader=1,worker=2"


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("order", ["leader,worker,worker", "worker,worker,leader"])
def test_of_a_gang_with_roles_one_of_each_is_there_before_any_is_held(world: Make, gated: bool, order: str) -> None:
    kube = starting(world, early_start_percentage_of_room=100)
    kube.apply(group(minimum=3, roles=ROLES))
    there: list[str] = []
    for number, role in enumerate(order.split(",")):
        come(kube, member(f"g{number}", role=role, cpu=2 if role == "leader" else 1, gated=gated))
        there.append(role)
        complete = len(there) == 3
        assert len(kube.held()) == (0 if complete or len(set(there)) < 2 else len(there))
    assert kube.starts == [{"g0", "g1", "g2"}]
    assert list(kube.plugin.manager.slots) == []


def test_a_member_of_a_role_that_no_more_are_missing_of_completes_nothing(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3, roles=ROLES))
    come(kube, member("leader", role="leader"), member("w0", role="worker"))
    come(kube, member("second", role="leader"))
    assert kube.starts == []
    assert "w0" in kube.held()
    come(kube, member("w1", role="worker"))
    assert len(kube.starts) == 1
    assert kube.starts[0] >= {"w0", "w1"}
    passes(kube, 1.0)
    assert list(kube.plugin.manager.slots) == []


def test_a_role_that_is_missing_for_too_long_ends_it(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3, roles=ROLES))
    come(kube, member("leader", role="leader"), member("w0", role="worker"))
    assert kube.held() == {"leader", "w0"}
    passes(kube, 1.0)
    assert kube.held() == set()
    assert kube.told["w0"].startswith("pre-filter pod w0 cannot find enough sibling pods")


def test_min_resources_say_that_the_others_are_larger_until_one_of_them_is_there(world: Make) -> None:
    """A small launcher comes first. Members like it would not be all that is asked for."""
    kube = starting(world, early_start_percentage_of_room=100)
    kube.apply(make_pod_group().namespace("default").name("g").min_member(3).min_resources(cpu="5").obj())
    come(kube, member("launcher"))
    assert kube.held() == set()
    come(kube, member("w0", cpu=2))
    assert kube.held() == {"launcher", "w0"}
    come(kube, member("w1", cpu=2))
    assert kube.starts == [{"launcher", "w0", "w1"}]
    assert kube.world.plans == 1


def test_after_the_first_few_members_min_resources_are_compared_no_more(world: Make) -> None:
    kube = KubeScheduler(world([node("n0", "640")], early_start=True))
    kube.apply(make_pod_group().namespace("default").name("g").min_member(12).min_resources(cpu="22").obj())
    come(kube, *members(8), *members(3, prefix="large", cpu=5))
    assert kube.held() == set()
    come(kube, member("last"))
    assert len(kube.starts[0]) == 12
