"""Preemptors that may not preempt yet, gangs and pods: in which order, and when, each is tried again.

A gang for which a search found no victims waits longer each time. A pod whose preempt call reached no extender is tried again once one
leads; a pod that was vetoed, because a gang has too few members to spare, once the gang has more.
No counterpart in kube-scheduler, which preempts for a pod as soon as that has found no node.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from extender.api import corev1
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.dispatch.ordered_steering import OrderedSteering
from extender.plugins.coscheduling.pod_conditions import no_candidate_was_left, preempt_call_failed
from extender.plugins.coscheduling.preemption.evictable import running_gang
from extender.plugins.coscheduling.state.gang_sets import may_preempt
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.retry import Retry

log = logging.getLogger(__name__)

MAX_NOTED = 10_000
RETRY = Retry(2.0, 60.0, factor=3.0)  # of a search for victims that found none
CALL_RETRY = Retry(10.0, 300.0)  # of a preempt call that met no extender again


class PreemptionQueue:
    """Not locked: the manager's lock guards it. clock: monotonic seconds; delay_seconds: from the first refusal on."""

    def __init__(self, clock: Callable[[], float], delay_seconds: float) -> None:
        self._clock = clock
        self._delay_seconds = delay_seconds
        self._wanted: dict[str, str] = {}  # key -> scheduler
        self._tried: dict[str, tuple[int, float]] = {}  # key -> how often in vain, not before

    def add(self, group: Group, scheduler_name: str) -> None:
        self._wanted[group.key] = scheduler_name

    def pop(self, group: Group) -> str | None:
        """The scheduler of its members; None if it wants no victims any more."""
        return self._wanted.pop(group.key, None)

    def due(self, groups: Mapping[str, Group]) -> list[Group]:
        """In no order. groups: those that there are, by key."""
        now = self._clock()
        return [
            group for key in self._wanted if (group := groups.get(key)) is not None and self._not_before(group) <= now
        ]

    def _not_before(self, group: Group) -> float:
        since = group.last_diagnosis.since if group.last_diagnosis is not None else 0.0
        return max(self._tried.get(group.key, (0, 0.0))[1], since + self._delay_seconds)

    def in_vain(self, gang_set: Sequence[Group]) -> None:
        for group in gang_set:
            times = self._times(group) + 1
            self._tried[group.key] = times, self._clock() + RETRY.seconds(times)

    def pause(self, gang_set: Sequence[Group], seconds: float) -> None:
        """Not at once, though nothing was in vain."""
        for group in gang_set:
            self._tried[group.key] = self._times(group), self._clock() + seconds

    def something_new(self) -> None:
        """The cluster is another one: no gang is left alone for what was in vain before."""
        self._tried.clear()

    def succeeded(self, group: Group) -> None:
        self._tried.pop(group.key, None)

    def prune(self, keys: AbstractSet[str]) -> None:
        """Forgets groups that are gone. keys: of those that there are."""
        for noted in (self._tried, self._wanted):
            for key in noted.keys() - keys:
                del noted[key]

    def _times(self, group: Group) -> int:
        return self._tried.get(group.key, (0, 0.0))[0]


@dataclass(frozen=True, slots=True)
class _Noted:
    """A pod that was vetoed, or, with a retry_at, one whose preempt call reached no extender; tries: since then.

    node_name: where it might have preempted. spare: key of each gang there -> members that it could do without; empty if the pod was
    vetoed because its own gang has to start first. may_break: whether gangs could be broken at all.
    """

    pod: corev1.Pod
    node_name: str
    spare: Mapping[str, float] = field(default_factory=dict)
    may_break: bool = True
    retry_at: float | None = None
    tries: int = 0

    def is_due(self, now: float, spare: Mapping[str, float], may_break: bool) -> bool:
        """Whether what it waits for has come about, for a pod that may preempt at all."""
        if self.retry_at is not None:
            return self.retry_at <= now
        more = (may_break and not self.may_break) or any(spare[key] > known for key, known in self.spare.items())
        return more or not self.spare


@dataclass(eq=False)
class WaitingPreemptors:
    """Single pods. The manager's lock guards what is noted.

    any_node: the name of one, or empty where there is none. may_break: whether we may evict a gang's other members.
    """

    manager: PodGroupManager
    dependencies: CoschedulingDependencies
    steering: OrderedSteering
    any_node: Callable[[], str]
    may_break: Callable[[], bool]

    def __post_init__(self) -> None:
        self._noted: dict[str, _Noted] = {}

    def note_extra(self, pod: corev1.Pod, node_name: str) -> None:
        """A member of a gang that has not started: evicting for it alone would be in vain."""
        with self.manager.lock:
            self._note(_Noted(pod, node_name))

    def note_in_want_of_victims(self, pod: corev1.Pod, node_name: str, gangs: Collection[str]) -> None:
        """gangs: the keys of those that stood in the way, since they need the pods that would have to go."""
        may_break = self.may_break()
        with self.manager.lock:
            spare = {key: _to_spare(self.manager, key) for key in gangs}
            self._note(_Noted(pod, node_name, spare, may_break))

    def _note(self, noted: _Noted) -> None:
        """Lock held."""
        if self.manager.is_gone(noted.pod):
            return  # its preempt call was under way: no event would come to forget it, and it would be taken for a member later
        if noted.pod.uid in self._noted or len(self._noted) < MAX_NOTED:
            self._noted[noted.pod.uid] = noted

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """What it says of its last attempt counts, for one that we see for the first time too."""
        pod = new or old
        if pod is None:
            return
        with self.manager.lock:
            known = self._noted.get(pod.uid)
            failed = known is not None and known.retry_at is not None
            if new is None or new.node_name or new.deleting:
                self._noted.pop(pod.uid, None)
            elif preempt_call_failed(new):
                if self.dependencies.ours(new):
                    noted = known if known is not None and failed else _Noted(new, "", retry_at=self.manager.clock())
                    self._note(replace(noted, pod=new, node_name=new.status.nominated_node_name))
            elif failed:
                del self._noted[pod.uid]
            elif old is None and no_candidate_was_left(new) and self.manager.find(new) is not None:
                self.note_extra(new, new.status.nominated_node_name)

    def tick(self) -> None:
        """About once a second; no pod is tried again before we lead."""
        manager = self.manager
        with manager.lock:
            noted = list(self._noted.values())
        if not noted or not self.dependencies.may_plan():
            return
        may_break, any_node = self.may_break(), self.any_node()
        with manager.lock:
            now, noted = manager.clock(), list(self._noted.values())
            spare = {key: _to_spare(manager, key) for key in {key for each in noted for key in each.spare}}
            due = [each for each in noted if may_preempt(manager, each.pod) and each.is_due(now, spare, may_break)]
            for each in due:
                del self._noted[each.pod.uid]
                if each.retry_at is not None:
                    later, tries = now + CALL_RETRY.seconds(each.tries + 1), each.tries + 1
                    self._note(replace(each, retry_at=later, tries=tries))
                self._activate(each.pod, each.node_name or any_node)
        if due:
            log.info("preemptors are tried again pods=%s", " ".join(each.pod.key for each in due))
        self.steering.carry_out()

    def _activate(self, pod: corev1.Pod, node_name: str) -> None:
        """In line with all that is decided of this pod: a plan that is made meanwhile has the last word. Lock held."""
        group = self.manager.find(pod)
        if node_name:
            self.steering.activate_by_nomination(group.key if group is not None else "", [(pod, node_name)])


def _to_spare(manager: PodGroupManager, key: str) -> float:
    """How many of the gang could go with it still whole; no end of them where no member there needs the others. Lock held."""
    group = manager.groups.get(key)
    gang = running_gang(manager, group) if group is not None else None
    return gang.to_spare if gang is not None else math.inf
