"""What is left of a gang that is broken: its members on other nodes are evicted too, also after a restart of ours.

The guard's answer is not yet an eviction: kube-scheduler may choose another node, or none. What it has chosen shows on the victim: the
condition DisruptionTarget, with the reason PreemptionByScheduler, and then its deletion. Then the rest of the gangs that the guard has
said would break goes at once. A victim that the guard has not chosen, or before a restart, may be all that is left of an eviction that
was interrupted: a while later the members of its gang that cannot run by themselves go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from cachetools import TTLCache

from extender.api import corev1
from extender.client.interface import pod_reference
from extender.crash import tell_every
from extender.plugins.coscheduling.dependencies import Eviction, Evictor, GangVictims, PreemptionRules
from extender.plugins.coscheduling.pod_conditions import was_preempted
from extender.plugins.coscheduling.preemption.evictable import running_gang, running_members
from extender.plugins.coscheduling.preemption.reselection import Selection
from extender.plugins.coscheduling.preemption.terminating_victims import TerminatingVictims
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import minima_missed

log = logging.getLogger(__name__)

EXPECTED_SECONDS = 60.0  # kube-scheduler evicts within moments; a victim that goes later goes for another reason
SETTLED_SECONDS = 10.0  # a scheduler that evicts a gang has told all of it by then
MAX_EXPECTED = 10_000


@dataclass(frozen=True, slots=True)
class _Rest:
    """victims: those that kube-scheduler evicts itself. elsewhere: those that it does not."""

    preemptor: corev1.Pod
    broken: frozenset[str]
    victims: Sequence[corev1.Pod]
    elsewhere: Sequence[corev1.Pod]


@dataclass(eq=False)
class RestOfGangs:
    """The manager's lock guards what is noted; evictions are asked for outside it."""

    manager: PodGroupManager
    evictor: Evictor
    terminating: TerminatingVictims
    rules: PreemptionRules
    may_plan: Callable[[], bool]

    def __post_init__(self) -> None:
        self._expected: TTLCache[str, _Rest] = TTLCache(MAX_EXPECTED, EXPECTED_SECONDS, timer=self.manager.clock)
        self._look_at: dict[str, float] = {}  # key of a group with a victim -> when

    def allowed(self) -> bool:
        return self.evictor.allowed_despite_budgets()

    def expect(self, preemptor: corev1.Pod, chosen: Selection) -> None:
        """An older answer for this preemptor counts no longer. Only a member of a gang that breaks shows that an answer was carried out:
        a pod of no gang, and a member to spare, may be the victim of another preemptor alone."""
        rest = _Rest(preemptor, chosen.broken, chosen.victims, [victim.pod for victim in chosen.elsewhere])
        with self.manager.lock:
            self._forget(lambda known: known.preemptor.uid == preemptor.uid)
            breaking = running_members(self.manager, chosen.broken)
            for victim in chosen.victims:
                if victim.uid in breaking:
                    self._expected[victim.uid] = rest

    def _forget(self, over: Callable[[_Rest], bool]) -> None:
        for uid in [uid for uid, known in self._expected.items() if over(known)]:
            del self._expected[uid]

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """Only a victim matters: one that goes, or one that was chosen since we have last seen it."""
        was_victim = old is not None and was_preempted(old)
        is_victim = new is not None and was_preempted(new)
        steps: list[Callable[[corev1.Pod | None, corev1.Pod], None]] = []
        if (was_victim or is_victim) and (new is None or new.deleting):
            steps.append(self._expected_victim)
        if is_victim and not was_victim:
            steps += self._last_to_spare, self._any_victim
        if steps:
            tell_every(steps, old, new or old)

    def _last_to_spare(self, old: corev1.Pod | None, new: corev1.Pod) -> None:
        """A gang goes whole though no guard of ours has said so: kube-scheduler takes the last member of a minMember of 1, or members
        one after the other. Its PodGroup says it; what is left is looked at as any rest."""
        ref = self.manager.labels.group_of(new) if old is not None and new.node_name else None
        if ref is None:
            return
        with self.manager.lock:
            group = self.manager.groups.get(ref.key)
            step = partial(self._goes_with, group, new.uid)
            goes = self.manager.quarantine.for_gang(ref.key, "preempt", step, otherwise=False)
        if goes:
            self.terminating.go((), (ref.key,))

    def _goes_with(self, group: Group | None, uid: str) -> bool:
        """Whether the gang was whole until this victim, and goes with it. Lock held."""
        spec = self.manager.specs.valid(group) if group is not None else None
        if group is None or spec is None or uid not in group.assigned:
            return False
        stay = {each for each in group.assigned if not was_preempted(group.members[each].pod)} - {uid}
        if minima_missed(group, spec, stay | {uid}, group.ended.values()):
            return False
        first = len(stay) + 1 == len(group.assigned)
        return (spec.disrupted_whole and first) or bool(minima_missed(group, spec, stay, group.ended.values()))

    def _expected_victim(self, old: corev1.Pod | None, pod: corev1.Pod) -> None:
        """It goes: with it goes the rest of the gangs that the guard has said would break."""
        with self.manager.lock:
            rest = self._expected.get(pod.uid)
            if rest is None:
                return
            self._forget(lambda known: known is rest)
            pods = self._running(rest)
        self.terminating.go(rest.victims, rest.broken)
        if pods:
            log.info("rest of preempted gangs goes groups=%s pods=%d", " ".join(sorted(rest.broken)), len(pods))
            self._evict(rest.broken, pods, rest.preemptor, f"pod {rest.preemptor.uid}")

    def _running(self, rest: _Rest) -> list[corev1.Pod]:
        """With members that have come to a node since kube-scheduler was answered, or are on their way to one. Lock held."""
        pods = {pod.uid: pod for pod in rest.elsewhere}
        pods |= {uid: info.pod for uid, info in running_members(self.manager, rest.broken).items() if uid not in pods}
        for victim in rest.victims:
            pods.pop(victim.uid, None)
        return list(pods.values())

    def _any_victim(self, old: corev1.Pod | None, new: corev1.Pod) -> None:
        """One that we see for the first time may be all that is left: of the others nothing is known then."""
        manager = self.manager
        ref = manager.labels.group_of(new)
        if ref is not None and self.rules.gang_victims is not GangVictims.ANY:
            with manager.lock:
                if old is None or self._may_be_told_later(ref.key) or self._left_over(ref.key, without=new.uid):
                    self._look_at[ref.key] = manager.clock() + SETTLED_SECONDS

    def tick(self) -> None:
        """About once a second. Before we lead, what is left is another's to finish; once nothing is, what was seen counts no longer."""
        manager, finishes = self.manager, self.may_plan() and self.evictor.allowed()
        with manager.lock:
            now = manager.clock()
            due = [key for key, at in self._look_at.items() if at <= now and not self._may_be_told_later(key)]
            left = {key: self._left_over(key) for key in due}
            for key, pods in left.items():
                if finishes or not pods:
                    del self._look_at[key]
        for key, pods in left.items():
            if finishes and pods:
                self._finish(key, pods)

    def _may_be_told_later(self, key: str) -> bool:
        """Whether it cannot be said yet which members are left over: its pods are there and its PodGroup is not, as may be when we
        start, the gang is set aside, or victims of it count as gone before they are seen to go. Lock held."""
        if self.terminating.awaits(key):
            return True
        group, quarantine = self.manager.groups.get(key), self.manager.quarantine
        if group is None or not group.members:
            return False
        return quarantine.for_gang(key, "preempt", lambda: self.manager.specs.of(group) is None, otherwise=True)

    def _left_over(self, key: str, without: str = "") -> list[corev1.Pod]:
        """The members that run of a gang that cannot run with them alone, and is not on its way to be whole. Lock held."""
        group = self.manager.groups.get(key)
        gang = running_gang(self.manager, group) if group is not None else None
        if group is None or gang is None or gang.whole_with(gang.running.keys() - {without}):
            return []
        if any(place.uid not in gang.running for place in self.manager.slots.of_group(key)):
            return []
        return [info.pod for info, _ in gang.running.values()]

    def _finish(self, key: str, pods: Sequence[corev1.Pod]) -> None:
        log.warning("preemption was broken off, the rest of the gang goes group=%s pods=%d", key, len(pods))
        self.terminating.go((), (key,))
        self._evict((key,), pods, pods[0], "a preemption that was broken off")

    def _evict(self, keys: Collection[str], pods: Sequence[corev1.Pod], by: corev1.Pod, cause: str) -> None:
        """Evicts the rest of gangs that kube-scheduler has begun to evict. by: the pod on whose behalf the victims are evicted.
        Gangs whose eviction fails are looked at again later.
        """

        def told(failure: str) -> None:
            if failure:
                log.error("rest of preempted gangs was not evicted groups=%s error=%s", " ".join(sorted(keys)), failure)
                self.terminating.stay([pod.uid for pod in pods])
                with self.manager.lock:
                    later = self.manager.clock() + SETTLED_SECONDS
                    self._look_at.update(dict.fromkeys(keys, later))

        self.terminating.go(pods)
        eviction = Eviction(pods, cause, pod_reference(by), by.spec.scheduler_name, despite_budgets=True)
        self.evictor.evict(eviction, told)
