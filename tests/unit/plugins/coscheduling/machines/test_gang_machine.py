"""A small world in which anything may happen in any order: pods come and go, are tried, held and timed out, groups change
what they ask for, nodes come, time passes. What may never be, never is; and each pod that waits has a reason that is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from extender.api import corev1
from extender.plugins.coscheduling.quarantine import BACK_OFF
from extender.plugins.coscheduling.scheduling.checks import failed_check
from extender.plugins.coscheduling.spec.group_annotations import asked_by
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.injection import BindingAgain, with_boundaries
from tests.unit.plugins.coscheduling.knowing import Knowing
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, broken, group, member

GROUPS = ("a", "b", "c")
UNSAID = ("", "NotTried", "OrderedAfterOthers")


class Starts:
    """What a start has to be, told from pods and PodGroups alone."""

    def __init__(self, kube: Watched) -> None:
        self._kube = kube
        self._whole: set[str] = set()  # groups that have been whole since their first member ran
        self._whole_of: dict[str, int] = {}  # those -> the largest minMember that was met
        self._units_whole: set[frozenset[str]] = set()
        self._begun: set[str] = set()  # UIDs of those whose batch has started already
        self.wrong: list[str] = []

    def judge(self, starting: Mapping[str, str]) -> None:
        """Before they are bound."""
        keys = {self._key(self._kube.pods[uid]) for uid in starting if uid in self._kube.pods}
        for key in sorted(keys):
            gang_set = self._unit(key)
            alone = gang_set in self._units_whole or len(gang_set) == 1 or starting.keys() <= self._begun
            for each in [key] if alone or self._is_free(key) else sorted(gang_set):
                if not self._enough(each, set(starting)):
                    self.wrong.append(f"{each} starts with too few: {sorted(starting)}")

    def follow(self) -> None:
        """After anything has happened."""
        bound = {key: self._bound(key) for key in self._kube.groups}
        self._begun = {uid for each in self._kube.plugin.manager.groups.values() for uid in each.started}
        for key, uids in bound.items():
            if self._minima_met(key, uids):
                self._whole.add(key)
                asked = self._kube.groups[key].spec.min_member
                self._whole_of[key] = max(asked, self._whole_of.get(key, 0))
            elif not uids:
                self._whole.discard(key)
                self._whole_of.pop(key, None)
        for gang_set in {self._unit(key) for key in self._kube.groups}:
            if all(key in bound and self._minima_met(key, bound[key]) for key in gang_set):
                self._units_whole.add(gang_set)
            elif not any(self._bound(key) for key in gang_set):
                self._units_whole.discard(gang_set)

    def _enough(self, key: str, starting: set[str]) -> bool:
        pod_group = self._kube.groups.get(key)
        if pod_group is None:
            return False
        bound, mine = self._bound(key), {uid for uid in starting if self._key(self._kube.pods[uid]) == key}
        if self._is_free(key):
            return True
        policy = asked_by(pod_group.metadata, key).match_policy
        if policy is MatchPolicy.ONLY_WAITING and mine and mine <= self._begun:
            return True
        if policy is MatchPolicy.ONLY_WAITING and len(bound) >= pod_group.spec.min_member:
            known = self._kube.plugin.manager.groups[key].started
            with_others = mine <= known and (not mine or self._minima_met(key, mine | known) or len(mine) == 1)
            return with_others or self._minima_met(key, mine)
        ended = {uid for uid, pod in self._kube.ended.items() if bound and self._key(pod) == key}
        return self._minima_met(key, bound | mine | ended) or self._all_there_is(key, bound | mine)

    def _all_there_is(self, key: str, uids: set[str]) -> bool:
        """Of a gang that has been whole, and of which fewer than minMember are left: whether these are all of them."""
        if self._whole_of.get(key, 0) < self._kube.groups[key].spec.min_member:
            return False
        left = {uid for uid, pod in self._kube.pods.items() if self._key(pod) == key}
        return left <= uids and len(left) < self._kube.groups[key].spec.min_member

    def _is_free(self, key: str) -> bool:
        """Whether its members are on their own by now, whatever it is asked to start with later."""
        pod_group = self._kube.groups.get(key)
        policy = asked_by(pod_group.metadata, key).match_policy if pod_group is not None else None
        return policy is MatchPolicy.ONCE_SATISFIED and key in self._whole

    def _minima_met(self, key: str, uids: set[str]) -> bool:
        pod_group = self._kube.groups.get(key)
        if pod_group is None:
            return False
        asked = asked_by(pod_group.metadata, key)
        pods = {**self._kube.ended, **self._kube.pods}
        roles = [asked.roles.role_of(pods[uid]) for uid in uids if uid in pods]
        enough = len(uids) >= max(pod_group.spec.min_member, asked.roles.total)
        return enough and all(roles.count(role) >= minimum for role, minimum in asked.roles.minima)

    def _bound(self, key: str) -> set[str]:
        return {uid for uid, pod in self._kube.pods.items() if pod.node_name and self._key(pod) == key}

    def _key(self, pod: corev1.Pod) -> str:
        return f"default/{pod.labels['scheduling.x-k8s.io/pod-group']}"

    def _unit(self, key: str) -> frozenset[str]:
        named = {each.key: asked_by(each.metadata, each.key).groups for each in self._kube.groups.values()}
        gang_set, before = {key}, set[str]()
        while gang_set != before:
            before = set(gang_set)
            gang_set |= {other for one in before for other in named.get(one, ())}
            gang_set |= {one for one, others in named.items() if gang_set & set(others)}
        return frozenset(gang_set)


class Watched(KubeScheduler):
    starts_judged: Starts

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.ended: dict[str, corev1.Pod] = {}

    def _settle(self, starting: Mapping[str, str] | None = None) -> None:
        super()._settle(starting)
        self.starts_judged.follow()

    def _start(self, started: Mapping[str, str]) -> None:
        self.starts_judged.judge(started)
        super()._start(started)


class GangMachine(RuleBasedStateMachine):
    kube: Watched

    def __init__(self) -> None:
        super().__init__()
        self.kube = Watched(World([node("n1", "3"), node("n2", "2")]))
        self.kube.starts_judged = Starts(self.kube)
        self.kube.world.connect(succeeded_pods=self._succeeded)
        self.count = 0

    @initialize(
        minimums=st.lists(st.integers(1, 3), min_size=3, max_size=3),
        missing=st.lists(st.integers(-1, 1), min_size=3, max_size=3),
        names=st.lists(st.sampled_from(("", "", "a", "b", "default/a,c")), min_size=3, max_size=3),
        policies=st.lists(st.sampled_from(("", *MatchPolicy)), min_size=3, max_size=3),
        gated=st.lists(st.booleans(), min_size=3, max_size=3),
    )
    def gangs_are_there(
        self, minimums: list[int], missing: list[int], names: list[str], policies: list[str], gated: list[bool]
    ) -> None:
        """Most of them complete, or nearly so."""
        for number, name in enumerate(GROUPS):
            self.group_asks_for_something_else(name, minimums[number], policies[number], names[number], "")
            self.pods_are_created(name, minimums[number] - missing[number], gated[number])

    @rule(
        name=st.sampled_from(GROUPS), cpu=st.integers(1, 2), gated=st.booleans(), role=st.sampled_from(("", "master"))
    )
    def pod_is_created(self, name: str, cpu: int, gated: bool, role: str) -> None:
        self.count += 1
        self.kube.create(member(f"{name}{self.count}", name, cpu=cpu, gated=gated, role=role))

    @rule(name=st.sampled_from(GROUPS), count=st.integers(1, 3), gated=st.booleans())
    def pods_are_created(self, name: str, count: int, gated: bool) -> None:
        for _ in range(count):
            self.pod_is_created(name, 1, gated, "")

    def _succeeded(self, namespace: str, found: Callable[[Iterable[corev1.Pod]], None]) -> None:
        found(list(self.kube.ended.values()))

    @precondition(lambda self: any(pod.node_name for pod in self.kube.pods.values()))
    @rule(data=st.data())
    def pod_succeeds(self, data: st.DataObject) -> None:
        """Its watch ends with it; some of these machines have no list that shows it."""
        uid = data.draw(st.sampled_from(sorted(uid for uid, pod in self.kube.pods.items() if pod.node_name)))
        self.kube.ended[uid] = self.kube.pods[uid]
        self.kube.delete(self.kube.pods[uid])

    @precondition(lambda self: self.kube.pods)
    @rule(data=st.data())
    def pod_is_deleted(self, data: st.DataObject) -> None:
        self.kube.delete(self.kube.pods[data.draw(st.sampled_from(sorted(self.kube.pods)))])

    @precondition(lambda self: self.kube.active)
    @rule(count=st.integers(1, 4), data=st.data())
    def pods_are_tried(self, count: int, data: st.DataObject) -> None:
        for _ in range(count):
            if self.kube.active:
                self.kube.attempt(data.draw(st.sampled_from(sorted(self.kube.active))))

    @precondition(lambda self: self.kube.world.tasks or self.kube.world.steered or self.kube.world.ungated)
    @rule()
    def patches_and_plans_are_made(self) -> None:
        self.kube.world.run_tasks()
        self.kube.wake()

    @precondition(lambda self: self.kube.world.waiting)
    @rule(data=st.data())
    def hold_ends(self, data: st.DataObject) -> None:
        self.kube.time_out(self.kube.pods[data.draw(st.sampled_from(sorted(self.kube.world.waiting)))])

    @rule(
        name=st.sampled_from(GROUPS),
        minimum=st.integers(0, 4),
        policy=st.sampled_from(("", *MatchPolicy)),
        names=st.sampled_from(("", "a", "b", "default/a,c")),
        roles=st.sampled_from(("", "master=1", "nonsense")),
    )
    def group_asks_for_something_else(self, name: str, minimum: int, policy: str, names: str, roles: str) -> None:
        asked = {"match_policy": policy, "groups": names, "roles": roles}
        self.kube.apply(group(name, minimum, **{key: value for key, value in asked.items() if value}))

    @rule(name=st.sampled_from(GROUPS))
    def group_is_deleted(self, name: str) -> None:
        if f"default/{name}" in self.kube.groups:
            self.kube.remove(self.kube.groups[f"default/{name}"])

    @precondition(lambda self: len(self.kube.world.nodes) < 4)
    @rule(cpu=st.sampled_from(("1", "2")))
    def node_is_added(self, cpu: str) -> None:
        added = node(f"n{len(self.kube.world.nodes) + 1}", cpu)
        self.kube.world.nodes[added.name] = added
        self.kube.plugin.on_node(None, added)

    @rule(seconds=st.sampled_from((1.0, 4.0, 61.0)))
    def time_passes(self, seconds: float) -> None:
        self.kube.world.clock.now += seconds
        self.kube.plugin.tick()

    @rule()
    def everything_comes_to_rest(self) -> None:
        for _ in range(3):
            self.kube.run()
            self.time_passes(4.0)
        self.kube.run()
        assert list(self._without_a_reason()) == []

    def _without_a_reason(self) -> Iterable[str]:
        """Of the groups with pods to be placed: those without a reason, and those that would fit."""
        report = self.kube.plugin.report
        for gang in report.summaries():
            status = report.status(gang.key)
            assert status is not None
            each = self.kube.plugin.manager.groups[gang.key]
            if gang.phase == "Planned" and failed_check(self.kube.plugin.manager, each, "default-scheduler", ""):
                yield f"{gang.key} keeps places, and cannot start"
            bound = gang.members["bound"]
            if gang.phase in ("Bound", "Planned", "Assembling", "Committing") or sum(gang.members.values()) == bound:
                continue
            if status.fits_now:
                yield f"{gang.key} would fit: {gang.reason} {gang.message}"
            if gang.reason in UNSAID or not gang.message or not status.told:
                yield f"{gang.key} is {gang.phase} for {gang.reason!r}"
            if not gang.place:
                yield f"{gang.key} has no place in line"

    @invariant()
    def nothing_is_broken(self) -> None:
        assert list(broken(self.kube)) == []
        assert self.kube.starts_judged.wrong == []

    def teardown(self) -> None:
        self.everything_comes_to_rest()
        self.kube.delete(*list(self.kube.pods.values()))
        for each in list(self.kube.groups.values()):
            self.kube.remove(each)
        manager = self.kube.plugin.manager
        assert (manager.groups, len(manager.slots), bool(manager.gang_set_index.named)) == ({}, 0, False)


GangMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestGangMachine = GangMachine.TestCase


class SmallClusterMachine(GangMachine):
    """So few nodes that kube-scheduler offers all, and gated members are not nominated."""

    def __init__(self) -> None:
        super().__init__()
        self.kube.world.connect(offers_all=lambda: True)


SmallClusterMachine.TestCase.settings = GangMachine.TestCase.settings
TestSmallClusterMachine = SmallClusterMachine.TestCase


class EarlyStartMachine(GangMachine):
    """Members are held while their gang is still being made, and all of the room may be theirs."""

    def __init__(self) -> None:
        super().__init__()
        world = World([node("n1", "3"), node("n2", "2")], early_start=True, early_start_percentage_of_room=100)
        self.kube = Watched(world)
        self.kube.starts_judged = Starts(self.kube)
        world.connect(succeeded_pods=self._succeeded)


EarlyStartMachine.TestCase.settings = GangMachine.TestCase.settings
TestEarlyStartMachine = EarlyStartMachine.TestCase


class WatchedAndKnowing(Watched, Knowing):
    pass


class RefusingMachine(GangMachine):
    """kube-scheduler's own filters refuse gangs, or single members, for a time, and no patch wakes these; the extender restarts."""

    kube: WatchedAndKnowing

    def __init__(self) -> None:
        super().__init__()
        self.kube = WatchedAndKnowing(World([node("n1", "3"), node("n2", "2")]))
        self.kube.starts_judged = Starts(self.kube)

    @rule(name=st.sampled_from(GROUPS))
    def kube_scheduler_refuses_a_gang(self, name: str) -> None:
        self.kube.refuses[name] = "0/2 nodes are available: 2 node(s) didn't match scheduler-enforced node affinity."

    @precondition(lambda self: self.kube.pods)
    @rule(data=st.data())
    def kube_scheduler_refuses_a_member(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.kube.pods)))
        self.kube.refuses[self.kube.pods[uid].name] = "0/2 nodes are available: 2 node(s) had an unknown reason."

    @rule()
    def the_extender_restarts(self) -> None:
        self.kube.extender_restarts(World(list(self.kube.world.nodes.values())))

    @rule(name=st.sampled_from(GROUPS))
    def kube_scheduler_accepts_it_again(self, name: str) -> None:
        self.kube.refuses.pop(name, None)
        self.kube.something_happens()

    @rule()
    def it_goes_on_refusing(self) -> None:
        """And the members that wait for it say so."""
        for _ in range(2):
            self.kube.run()
            self.time_passes(61.0)
        self.kube.run()
        assert not [why for why in super()._without_a_reason() if "would fit" not in why]

    def _without_a_reason(self) -> Iterable[str]:
        """Once it accepts all of them, which the extender cannot see, and every denial has come to its end."""
        self.kube.refuses.clear()
        self.kube.something_happens()
        for _ in range(3):
            self.kube.run()
            self.time_passes(61.0)
        self.kube.run()
        return super()._without_a_reason()


RefusingMachine.TestCase.settings = settings(GangMachine.TestCase.settings, derandomize=True, database=None)
TestRefusingMachine = RefusingMachine.TestCase


class WatchedAndBindingAgain(Watched, BindingAgain):
    pass


class FaultyMachine(GangMachine):
    """Something raises at a gang for a time, in one of the steps that are done for it; events come again that raised."""

    kube: WatchedAndBindingAgain

    def __init__(self) -> None:
        super().__init__()
        world = World([node("n1", "3"), node("n2", "2")])
        self.faulty: dict[str, set[str]] = {}  # what raises -> at which gangs
        plugin = world.plugin
        steps: tuple[tuple[Any, str], ...] = (
            (plugin.manager.specs, "of"),
            (plugin.manager.line, "order"),
            (plugin.manager.places, "placed"),
            (plugin.rounds, "_waits"),
            (plugin.rounds.requests, "_of_group"),
            (plugin.dispatcher, "dispatch"),
            (plugin.observer, "_look"),
            (plugin.gang_permit._gang_start, "_note_start"),
            (plugin.events._pods, "_matters"),
        )
        for owner, name in steps:
            self.faulty[name] = set()
            setattr(owner, name, self._faulty(name, getattr(owner, name)))
        self.catch_up, self.behind = with_boundaries(world)
        self.kube = WatchedAndBindingAgain(world)
        self.kube.starts_judged = Starts(self.kube)

    def _faulty(self, name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def raises(group: Group, *args: Any, **kwargs: Any) -> Any:
            if group.key in self.faulty[name]:
                raise KeyError("a fault of ours")
            return step(group, *args, **kwargs)

        return raises

    @rule(name=st.sampled_from(GROUPS), step=st.sampled_from(("of", "order", "placed", "_waits", "_of_group")))
    def a_plan_raises(self, name: str, step: str) -> None:
        self.faulty[step].add(f"default/{name}")

    @rule(name=st.sampled_from(GROUPS), step=st.sampled_from(("dispatch", "_look", "_note_start", "_matters")))
    def another_step_raises(self, name: str, step: str) -> None:
        self.faulty[step].add(f"default/{name}")

    @rule(name=st.sampled_from(GROUPS))
    def its_faults_are_gone(self, name: str) -> None:
        for keys in self.faulty.values():
            keys.discard(f"default/{name}")

    @rule(seconds=st.sampled_from((1.0, 4.0, 61.0)))
    def time_passes(self, seconds: float) -> None:
        self.kube.world.clock.now += seconds
        self.catch_up()
        self.kube.plugin.tick()

    @rule()
    def others_come_to_rest(self) -> None:
        """A gang that is not at fault has its place, or a reason."""
        for _ in range(2):
            self.kube.run()
            self.time_passes(4.0)
        self.kube.run()
        at_fault = set[str]().union(*self.faulty.values()) | set(self.kube.plugin.manager.quarantine)
        gang_set = {each.key for key in at_fault for each in self._with(key)}
        assert [why for why in super()._without_a_reason() if why.partition(" ")[0] not in gang_set] == []

    def _with(self, key: str) -> Iterable[Group]:
        """The groups that start together with it."""
        manager = self.kube.plugin.manager
        with manager.lock:
            return gang_set_of(manager, manager.groups[key]) if key in manager.groups else ()

    @rule()
    def everything_comes_to_rest(self) -> None:
        """When all faults are gone."""
        for keys in self.faulty.values():
            keys.clear()
        for _ in range(3):
            self.kube.run()
            self.time_passes(BACK_OFF.longest_seconds)
        super().everything_comes_to_rest()
        assert len(self.kube.plugin.manager.quarantine) == 0

    @invariant()
    def nothing_is_broken(self) -> None:
        """An event that raised is not done with yet, and its gang's notes may contradict each other; no gang starts by them."""
        if not any(self.faulty.values()) and not self.behind():
            assert list(broken(self.kube)) == []
        assert self.kube.starts_judged.wrong == []


FaultyMachine.TestCase.settings = settings(GangMachine.TestCase.settings, derandomize=True, database=None)
TestFaultyMachine = pytest.mark.faults(FaultyMachine.TestCase)
