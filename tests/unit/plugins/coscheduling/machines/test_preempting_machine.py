"""A small, full cluster in which gangs and single pods of three priorities take room from each other, in any order.

No gang is ever left with a fraction, no gang keeps room that is good for nothing, and each that could have room has it in the end.
"""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling.dependencies import GangVictims, PreemptionRules
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import broken, group, member
from tests.unit.plugins.coscheduling.preempting import Preempting

PRIORITIES = st.sampled_from((0, 5, 10))


def of_priority(pod: corev1.Pod, priority: int) -> corev1.Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, priority=priority))


class PreemptingMachine(RuleBasedStateMachine):
    evicting = PreemptionRules()

    def __init__(self) -> None:
        super().__init__()
        self.kube = Preempting(World([node("n1", "2"), node("n2", "2"), node("n3", "1")]), self.evicting)
        self.count = 0

    @initialize(priorities=st.lists(PRIORITIES, min_size=3, max_size=3), minimum=st.integers(1, 3))
    def the_cluster_is_full(self, priorities: list[int], minimum: int) -> None:
        self.gang_is_created(minimum, 0, 1, priorities[0], True)
        self.kube.end_all()
        for priority in priorities[1:]:
            self.pod_is_created(1, priority)
        self.kube.end_all()

    @rule(
        minimum=st.integers(1, 3),
        extra=st.integers(-1, 1),
        cpu=st.integers(1, 2),
        priority=PRIORITIES,
        gated=st.booleans(),
    )
    def gang_is_created(self, minimum: int, extra: int, cpu: int, priority: int, gated: bool) -> None:
        self.count += 1
        name = f"g{self.count}-"
        self.kube.apply(group(name, minimum))
        for number in range(minimum + extra):
            self.kube.create(of_priority(member(f"{name}{number}", name, cpu=cpu, gated=gated), priority))

    @precondition(lambda self: self.kube.groups)
    @rule(data=st.data(), gated=st.booleans())
    def a_member_comes(self, data: st.DataObject, gated: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.kube.groups)))
        known = self.kube.plugin.manager.groups[key].members.values()
        priority = next((info.pod.priority for info in known), 5)
        self.count += 1
        name = key.removeprefix("default/")
        self.kube.create(of_priority(member(f"{name}x{self.count}", name, gated=gated), priority))

    @rule(cpu=st.integers(1, 2), priority=PRIORITIES)
    def pod_is_created(self, cpu: int, priority: int) -> None:
        self.count += 1
        self.kube.create(of_priority(member(f"lone{self.count}", "", cpu=cpu), priority))

    @precondition(lambda self: self.kube.groups)
    @rule(data=st.data())
    def gang_is_deleted(self, data: st.DataObject) -> None:
        """All of it."""
        key = data.draw(st.sampled_from(sorted(self.kube.groups)))
        self.kube.delete(*self._members(key))
        self.kube.remove(self.kube.groups[key])

    @precondition(lambda self: any(pod.name.startswith("lone") for pod in self.kube.pods.values()))
    @rule(data=st.data())
    def single_pod_is_deleted(self, data: st.DataObject) -> None:
        lone = sorted(uid for uid, pod in self.kube.pods.items() if pod.name.startswith("lone"))
        self.kube.delete(self.kube.pods[data.draw(st.sampled_from(lone))])

    @precondition(lambda self: self.kube.active and self.kube.begun is None)
    @rule(data=st.data())
    def an_attempt_begins(self, data: st.DataObject) -> None:
        """kube-scheduler goes by what it knew then."""
        self.kube.begin(data.draw(st.sampled_from(sorted(self.kube.active))))

    @precondition(lambda self: self.kube.begun is not None)
    @rule()
    def the_attempt_ends(self) -> None:
        self.kube.end_attempt()

    @precondition(lambda self: self.kube.active)
    @rule(count=st.integers(1, 4), data=st.data())
    def pods_are_tried(self, count: int, data: st.DataObject) -> None:
        if self.kube.begun is not None:
            self.kube.end_attempt()
        for _ in range(count):
            if self.kube.active:
                self.kube.attempt(data.draw(st.sampled_from(sorted(self.kube.active))))

    @rule()
    def patches_and_plans_are_made(self) -> None:
        self.kube.world.run_tasks()
        self.kube.wake()

    @precondition(lambda self: self.kube.world.waiting)
    @rule(data=st.data())
    def hold_ends(self, data: st.DataObject) -> None:
        self.kube.time_out(self.kube.pods[data.draw(st.sampled_from(sorted(self.kube.world.waiting)))])

    @precondition(lambda self: self.kube.ending())
    @rule(data=st.data())
    def victim_ends(self, data: st.DataObject) -> None:
        going = sorted(self.kube.ending(), key=lambda pod: pod.uid)
        self.kube.delete(data.draw(st.sampled_from(going)))

    @rule(name=st.sampled_from(("n1", "n2", "n3")))
    def node_is_cordoned_or_is_no_more(self, name: str) -> None:
        old = self.kube.world.nodes[name]
        new = structs.replace(old, spec=structs.replace(old.spec, unschedulable=not old.spec.unschedulable))
        self.kube.world.nodes[name] = new
        self.kube.plugin.on_node(old, new)
        self.kube.on_capacity_freed()

    @rule(seconds=st.sampled_from((1.0, 4.0, 61.0)))
    def time_passes(self, seconds: float) -> None:
        self.kube.world.clock.now += seconds
        self.kube.plugin.tick()

    @rule()
    def everything_comes_to_rest(self) -> None:
        for seconds in (1.0, 4.0, 31.0, 31.0, 4.0):
            self.kube.end_all()
            self.time_passes(seconds)
        self.kube.end_all()
        wrong = [*self._fractions(), *self._kept_in_vain(), *self._could_preempt(), *self._waits_in_vain()]
        assert wrong == [], wrong

    def _fractions(self) -> Iterable[str]:
        for key, pod_group in self.kube.groups.items():
            running = sorted(pod.name for pod in self._members(key) if pod.node_name)
            if 0 < len(running) < pod_group.spec.min_member:
                yield f"{key} is a fraction: {running}"

    def _kept_in_vain(self) -> Iterable[str]:
        """Nominations that no place stands behind, though nothing moves any more."""
        for pod in self.kube.pods.values():
            kept, place = pod.status.nominated_node_name, self.kube.plugin.manager.slots.get(pod.uid)
            if kept and not pod.node_name and (place is None or place.node_name != kept):
                yield f"{pod.name} keeps room on {kept}"

    def _could_preempt(self) -> Iterable[str]:
        for key in sorted(self.kube.groups):
            status = self.kube.plugin.report.status(key)
            if status is None or sum(status.gang.members.values()) == status.gang.members["bound"]:
                continue
            if status.gang.phase not in ("Bound", "Planned", "Assembling", "Committing") and status.fits_now:
                yield f"{key} would fit: {status.gang.reason} {status.gang.message}"
            if status.preemption is not None and status.preemption.victims and not status.preemption.why_not:
                yield f"{key} could preempt {status.preemption.victims}: {status.gang.reason} {status.gang.message}"

    def _waits_in_vain(self) -> Iterable[str]:
        """If all were tried once more, as they are after five minutes, none would get anywhere."""
        before = self.kube.running()
        self.kube.on_capacity_freed()
        self.kube.end_all()
        yield from (f"{name} waited in vain" for name in sorted(self.kube.running() - before))

    def _members(self, key: str) -> list[corev1.Pod]:
        name = key.removeprefix("default/")
        labelled = (pod for pod in self.kube.pods.values() if pod.labels.get("scheduling.x-k8s.io/pod-group") == name)
        return list(labelled)

    @invariant()
    def nothing_is_broken(self) -> None:
        assert list(broken(self.kube)) == []

    def teardown(self) -> None:
        self.everything_comes_to_rest()


PreemptingMachine.TestCase.settings = settings(
    max_examples=40, stateful_step_count=20, deadline=None, derandomize=True, database=None
)
TestPreemptingMachine = PreemptingMachine.TestCase


class SurplusOnlyMachine(PreemptingMachine):
    """No gang that runs goes for another: the guard says no far more often."""

    evicting = PreemptionRules(gang_victims=GangVictims.SURPLUS_ONLY)

    def _waits_in_vain(self) -> Iterable[str]:
        """Single pods hear only after five minutes that a gang has more members to spare than when they were refused."""
        return (why for why in super()._waits_in_vain() if not why.startswith("lone"))


SurplusOnlyMachine.TestCase.settings = PreemptingMachine.TestCase.settings
TestSurplusOnlyMachine = SurplusOnlyMachine.TestCase
