"""Gangs and pods that want to preempt and may not yet: whose turn it is, and when each is tried again.

Gangs for which a search found no victims wait longer each time. Pods whose call of our preempt verb met no extender, and pods that
were vetoed until a gang has more members to spare, are tried again when that changes.
No counterpart in kube-scheduler, which preempts for a pod as soon as that has found no node.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

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

MAX_NOTED = 10_000  # pods of each kind
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

    def put_back(self, group: Group, scheduler_name: str) -> None:
        """Unless it was put in anew meanwhile."""
        self._wanted.setdefault(group.key, scheduler_name)

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
            times = self._times(group)
            self._leave_alone(group, times + 1, RETRY.seconds(times + 1))

    def pause(self, gang_set: Sequence[Group], seconds: float) -> None:
        """Not at once, though nothing was in vain."""
        for group in gang_set:
            self._leave_alone(group, self._times(group), seconds)

    def barred(self, group: Group, seconds: float) -> None:
        """It may not search yet: in so many seconds it is as if it had never done so."""
        self._leave_alone(group, 0, seconds)

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

    def _leave_alone(self, group: Group, times: int, seconds: float) -> None:
        self._tried[group.key] = times, self._clock() + seconds


@dataclass(slots=True)
class _Unheard:
    pod: corev1.Pod
    due: float
    times: int = 0


class FailedPreemptCalls:
    """The manager's lock guards what is noted."""

    def __init__(
        self,
        manager: PodGroupManager,
        dependencies: CoschedulingDependencies,
        steering: OrderedSteering,
        any_node: Callable[[], str],
    ) -> None:
        """any_node: the name of one, or empty where there is none."""
        self._manager = manager
        self._steering = steering
        self._with = dependencies
        self._any_node = any_node
        self._noted: dict[str, _Unheard] = {}

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        pod = new or old
        if pod is None:
            return
        if new is not None and not new.node_name and not new.deleting and preempt_call_failed(new):
            if self._with.ours(new):
                self._note(new)
        else:
            with self._manager.lock:
                self._noted.pop(pod.uid, None)

    def _note(self, pod: corev1.Pod) -> None:
        with self._manager.lock:
            known = self._noted.get(pod.uid)
            if known is not None:
                known.pod = pod
            elif len(self._noted) < MAX_NOTED:
                self._noted[pod.uid] = _Unheard(pod, self._manager.clock())

    def tick(self) -> None:
        """About once a second; no pod is tried again before we lead."""
        with self._manager.lock:
            noted = bool(self._noted)
        if not noted or not self._with.may_plan():
            return
        node_name, now = self._any_node(), self._manager.clock()
        with self._manager.lock:
            due = [each for each in self._noted.values() if each.due <= now and may_preempt(self._manager, each.pod)]
            for each in due:
                each.due = now + CALL_RETRY.seconds(each.times + 1)
                each.times += 1
            if due and node_name:
                log.info(
                    "pods whose preempt call had failed are tried again pods=%s", " ".join(each.pod.key for each in due)
                )
                places = [(each.pod, each.pod.status.nominated_node_name or node_name) for each in due]
                _activate(self._manager, self._steering, places)
        self._steering.carry_out()


@dataclass(frozen=True, slots=True)
class _Vetoed:
    """node_name: where it might have preempted. spare: how many each gang there could do without, by key; no entry where its own
    gang was the cause. may_break: whether gangs could be broken at all."""

    pod: corev1.Pod
    node_name: str
    spare: Mapping[str, float] = field(default_factory=dict)
    may_break: bool = True


class VetoedPreemptors:
    """The manager's lock guards what is noted."""

    def __init__(
        self,
        manager: PodGroupManager,
        steering: OrderedSteering,
        any_node: Callable[[], str],
        may_break: Callable[[], bool],
    ) -> None:
        """any_node: the name of one, or empty where there is none. may_break: whether we may evict a gang's other members."""
        self._manager = manager
        self._steering = steering
        self._any_node = any_node
        self._may_break = may_break
        self._noted: dict[str, _Vetoed] = {}

    def note_extra(self, pod: corev1.Pod, node_name: str) -> None:
        """A member of a gang that has not started: evicting for it alone would be in vain."""
        with self._manager.lock:
            self._note(_Vetoed(pod, node_name))

    def note_in_want_of_victims(self, pod: corev1.Pod, node_name: str, gangs: Collection[str]) -> None:
        """gangs: the keys of those that stood in the way, since they need the pods that would have to go."""
        may_break = self._may_break()
        with self._manager.lock:
            spare = {key: _to_spare(self._manager, key) for key in gangs}
            self._note(_Vetoed(pod, node_name, spare, may_break))

    def _note(self, vetoed: _Vetoed) -> None:
        if vetoed.pod.uid in self._noted or len(self._noted) < MAX_NOTED:
            self._noted[vetoed.pod.uid] = vetoed

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        pod = new or old
        if old is None and new is not None and not new.node_name and no_candidate_was_left(new):
            with self._manager.lock:
                if self._manager.find(new) is not None:
                    self.note_extra(new, new.status.nominated_node_name)
            return
        if pod is None or (new is not None and not new.node_name and not new.deleting):
            return
        with self._manager.lock:
            self._noted.pop(pod.uid, None)

    def tick(self) -> None:
        """About once a second."""
        with self._manager.lock:
            waiting = list(self._noted.values())
        if not waiting:
            return
        may_break, any_node = self._may_break(), self._any_node()
        with self._manager.lock:
            waiting = list(self._noted.values())
            spare = {key: _to_spare(self._manager, key) for key in {key for each in waiting for key in each.spare}}
            due = [
                each
                for each in waiting
                if may_preempt(self._manager, each.pod) and _is_otherwise(each, spare, may_break)
            ]
            for each in due:
                del self._noted[each.pod.uid]
            places = [(each.pod, each.node_name or any_node) for each in due]
            if places:
                log.info("vetoed preemptors may preempt now pods=%s", " ".join(pod.key for pod, _ in places))
                _activate(self._manager, self._steering, places)
        self._steering.carry_out()


def _activate(manager: PodGroupManager, steering: OrderedSteering, places: Sequence[tuple[corev1.Pod, str]]) -> None:
    """In line with all that is decided of these pods: a plan that is made meanwhile has the last word. Lock held."""
    for place in places:
        group = manager.find(place[0])
        steering.activate_by_nomination(group.key if group is not None else "", [place])


def _is_otherwise(vetoed: _Vetoed, spare: Mapping[str, float], may_break: bool) -> bool:
    if not vetoed.spare:
        return True  # its own gang was the cause, and has started
    return (may_break and not vetoed.may_break) or any(spare[key] > known for key, known in vetoed.spare.items())


def _to_spare(manager: PodGroupManager, key: str) -> float:
    """How many of the gang could go with it still whole; no end of them where no member there needs the others. Lock held."""
    group = manager.groups.get(key)
    gang = running_gang(manager, group) if group is not None else None
    return gang.to_spare if gang is not None else math.inf
