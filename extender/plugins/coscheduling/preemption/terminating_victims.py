"""Victims on their way out, and the gang that waits for their room.

A victim that is told counts as gone at once; one that was not told after all is put back. The gang keeps its places until the last
victim has gone, or its time is up.
No counterpart in kube-scheduler, which nominates and goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import msgspec

from extender import metrics
from extender.api import corev1
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import PREEMPTED, Verdict, Verdicts
from extender.plugins.coscheduling.events.gang_scheduler import GangScheduler
from extender.plugins.coscheduling.events.group_events import GroupEvents
from extender.plugins.coscheduling.preemption.waiting_preemptors import PreemptionQueue
from extender.plugins.coscheduling.scheduling.lost_slots import recheck
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group, Preempting
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

log = logging.getLogger(__name__)

SHOWN_SECONDS = 30.0  # the watch shows a deletion within moments; a pod that is still there then was not told after all


@dataclass(eq=False)
class TerminatingVictims:
    """The manager keeps the pods that leave; under its lock they count for their groups no more. Called outside it."""

    manager: PodGroupManager
    events: GroupEvents
    verdicts: Verdicts

    def go(self, pods: Iterable[corev1.Pod], broken: Collection[str] = ()) -> None:
        """These will be told to go. broken: the keys of running gangs that go whole by it, which their PodGroups say."""
        metrics.gangs_broken.inc(len(broken))
        for key in sorted(broken):
            with self.manager.lock:
                group = self.manager.groups.get(key)
                known = group.object if group is not None else None
            if known is not None:
                self.verdicts.decided(known, key, Verdict(False, PREEMPTED, messages.PREEMPTED, disrupted=True))
        for pod in pods:
            self.manager.quarantine.for_gang(self.manager.key_of(pod), "preempt", partial(self._go, pod), None)

    def _go(self, pod: corev1.Pod) -> None:
        with self.manager.lock:
            if self.manager.is_gone(pod) and pod.uid not in self.manager.terminating:
                return  # by the watch's word: it would be taken for one that was not told
            self._note(pod, self.manager.key_of(pod), self.manager.clock() + SHOWN_SECONDS)
        self.events.on_pod(pod, _deleting(pod))

    def stay(self, uids: Iterable[str]) -> None:
        """These were not told after all. A pod that has gone by now is not brought back."""
        for uid in uids:
            with self.manager.lock:
                pod, _ = self._forget(uid)
                if pod is not None:
                    self.manager.comes_back(uid)
            if pod is not None:
                step = partial(self.events.on_pod, _deleting(pod), pod)
                self.manager.quarantine.for_gang(self.manager.key_of(pod), "preempt", step, None)

    def awaits(self, key: str) -> bool:
        """Whether a victim of this group counts as gone, and may yet turn out to stay. Lock held."""
        return key in self.manager.nodes_of_victims

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """The watch says so itself, or shows the pod as it is now."""
        pod = new or old
        if pod is None:
            return
        with self.manager.lock:
            if pod.uid not in self.manager.terminating:
                return
            if new is not None and not new.deleting and not new.terminal:
                _, key, until = self.manager.terminating[pod.uid]
                self._note(new, key, until)
                return
            _, key = self._forget(pod.uid)
            group = self.manager.groups.get(key) if not self.awaits(key) else None
            gang_set = gang_set_of(self.manager, group) if group is not None else ()
        if gang_set:  # its members need not be beside its victims any more
            self.events.wake([each.key for each in gang_set])

    def tick(self) -> None:
        """About once a second."""
        now = self.manager.clock()
        with self.manager.lock:
            late = [uid for uid, (_, _, until) in self.manager.terminating.items() if until <= now]
        self.stay(late)

    def _note(self, pod: corev1.Pod, key: str, until: float) -> None:
        """key: of its group; empty for a pod of none. Lock held."""
        self.manager.terminating[pod.uid] = pod, key, until
        if key:
            self.manager.nodes_of_victims.setdefault(key, {})[pod.uid] = pod.node_name

    def _forget(self, uid: str) -> tuple[corev1.Pod | None, str]:
        """The pod, None if it is not known as a victim, and the key of its group. Lock held."""
        pod, key, _ = self.manager.terminating.pop(uid, (None, "", 0.0))
        nodes = self.manager.nodes_of_victims.get(key, {})
        nodes.pop(uid, None)
        if key and not nodes:
            self.manager.nodes_of_victims.pop(key, None)
        return pod, key


def _deleting(pod: corev1.Pod) -> corev1.Pod:
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=datetime.now(UTC))
    return msgspec.structs.replace(pod, metadata=metadata)


@dataclass(eq=False)
class VictimTermination:
    """Lock order: planning (PlanningRounds'), then the manager's lock. Places are kept for wait_seconds from when the room is free."""

    coscheduling: GangScheduler
    queue: PreemptionQueue

    def __post_init__(self) -> None:
        self._manager = self.coscheduling.manager
        self._keys: set[str] = set()  # of groups that wait for victims, or did a second ago

    def wait_for(self, gang_set: Sequence[Group], preempting: Preempting) -> None:
        """From now on. The groups of a gang set share what they wait for. Lock held."""
        for group in gang_set:
            group.preempting = preempting
            self._keys.add(group.key)

    def _waiting(self) -> list[tuple[Group, Preempting]]:
        """Lock held."""
        known = (self._manager.groups.get(key) for key in self._keys)
        return [(group, group.preempting) for group in known if group is not None and group.preempting is not None]

    def forget_those_gone(self, gang_set: Sequence[Group]) -> None:
        """Of a preemption that has just begun: no event comes for a victim that went between its plan and now.

        Its places are as new as its plan. Held members that let go for it are on their nodes until their bind calls have ended.
        """
        there = {info.pod.uid for node in self.coscheduling.dependencies.newest_snapshot().list() for info in node.pods}
        with self._manager.lock:
            for group in gang_set:
                if group.preempting is not None:
                    group.preempting.waits_for &= there
        self._send_if_free(gang_set, planned_just_now=True)

    def has_preempted(self, gang_set: Sequence[Group]) -> None:
        """What preempt calls have said is spent; not by evictions that have failed: no call comes again for that."""
        with self._manager.lock:
            for group in gang_set:
                group.refuted.has_preempted()

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """A victim has gone: with the last of them the gang's members are sent."""
        if old is None or (new is not None and not new.terminal):
            return
        with self._manager.lock:
            waiting = [(group, each) for group, each in self._waiting() if old.uid in each.waits_for]
            for _, preempting in waiting:
                preempting.waits_for.discard(old.uid)
            finished = [group for group, preempting in waiting if not preempting.waits_for]
        self._send_those_with_room(finished)

    def tick(self) -> None:
        """About once a second: preemptions that take too long are given up."""
        with self._manager.lock:
            now = self._manager.clock()
            waiting = self._waiting()
            self._keys = {group.key for group, _ in waiting}
            late = [group.key for group, preempting in waiting if preempting.until <= now]
            free = [group for group, preempting in waiting if not preempting.waits_for]
        self._send_those_with_room(free)  # where what followed the end of the last victim has failed
        for key in late:
            log.warning("victims did not terminate in time group=%s", key)
            step = partial(self.give_up, key, messages.VICTIMS_DID_NOT_GO)
            self._manager.quarantine.for_gang(key, "preempt", step, None)

    def awaited_by(self, key: str) -> bool:
        """Whether the gang with that key still waits for victims."""
        with self._manager.lock:
            group = self._manager.groups.get(key)
            return group is not None and group.preempting is not None

    def give_up(self, key: str, text: str) -> None:
        """The gang with that key loses its places, and says why. Nothing, if it does not preempt any more."""
        manager = self._manager
        with manager.lock:
            group = manager.groups.get(key)
            if group is None or group.preempting is None:
                return
            gang_set = gang_set_of(manager, group)
            self.queue.in_vain(gang_set)
        self.coscheduling.rounds.drop_plan(key)
        with manager.lock:
            for each in gang_set:
                each.stop(Diagnosis(UnschedulableReason.PREEMPTION_FAILED, text, manager.clock()))
                manager.denied[each.key] = text

    def _send_those_with_room(self, groups: Iterable[Group]) -> None:
        for group in groups:
            step = partial(self._send_with_gang_set, group)
            self._manager.quarantine.for_gang(group.key, "preempt", step, None)

    def _send_with_gang_set(self, group: Group) -> None:
        with self._manager.lock:
            gang_set = gang_set_of(self._manager, group)
        self._send_if_free(gang_set)

    def _send_if_free(self, gang_set: Sequence[Group], *, planned_just_now: bool = False) -> None:
        manager, snapshot = self._manager, self.coscheduling.dependencies.newest_snapshot()
        with manager.lock:
            if any(group.preempting is None or group.preempting.waits_for for group in gang_set):
                return
            expires = manager.clock() + self.coscheduling.wait_seconds
            for group in gang_set:
                group.preempting = None
                group.last_diagnosis = None
                for place in manager.slots.of_group(group.key):
                    manager.slots.reserve(replace(place, expires=expires))
                manager.permitted[group.key] = True
            # A place may have been lost meanwhile, with its node; one on a node that was closed is no good now.
            if not planned_just_now:
                names = {place.node_name for group in gang_set for place in manager.slots.of_group(group.key)}
                recheck(manager, names, snapshot)
            lacking = [group.key for group in gang_set if not group.planned]
            manager.queue.move_to_active(lacking)
        log.info("room for a preempting gang is free group=%s", gang_set[0].key)
        if lacking:
            self.coscheduling.rounds.schedule_planning()  # else members without the others would hold what is there
            return
        for group in gang_set:
            self.coscheduling.dispatcher.dispatch(group)
