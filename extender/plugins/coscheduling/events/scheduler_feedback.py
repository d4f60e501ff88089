"""What kube-scheduler's changes of a member's pod say: it cleared our nomination, rejected the member in-tree, or has an old message.

GroupEvents asks with each change of a pod. After a rejection the member is dispatched again with its wave, or its slot is refuted and
the member planned anew. The plugin's tick has unschedulable members tried again if their message has been untrue for a while.
kube-scheduler: pkg/scheduler/schedule_one.go (handleSchedulingFailure) writes what is read here
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial

from extender.api import corev1
from extender.client.short_steps import pause
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dispatch.dispatcher import Dispatcher
from extender.plugins.coscheduling.dispatch.ordered_steering import OrderedSteering
from extender.plugins.coscheduling.pod_conditions import (
    no_candidate_was_left,
    refused_in_tree,
    taken_back,
    was_gated,
)
from extender.plugins.coscheduling.scheduling.checks import failed_check
from extender.plugins.coscheduling.scheduling.lost_slots import refute
from extender.plugins.coscheduling.scheduling.phases import Situation, situation
from extender.plugins.coscheduling.scheduling.rejected_in_tree import note_refused
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import Member, MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager, in_parts
from extender.plugins.coscheduling.state.refutations import How
from extender.plugins.coscheduling.state.slots import Slot

log = logging.getLogger(__name__)


class SchedulerFeedback:
    """Takes the manager's lock, and releases it before any member is sent."""

    def __init__(self, manager: PodGroupManager, dispatcher: Dispatcher) -> None:
        self._manager = manager
        self._dispatcher = dispatcher

    def on_nomination_cleared(self, old: corev1.Pod, new: corev1.Pod) -> bool:
        """Our nomination is gone from the API, and we did not take it. Returns whether the group has to be planned again.

        A pod that kube-scheduler's own filters have refused with it has its place refuted; otherwise (a pod preempts
        there, our filter said no, its binding failed) the nomination is made once more, since it holds room against others.
        """
        with self._manager.lock:
            group = self._manager.find(new)
            member = group.members.get(new.uid) if group is not None else None
            if group is None or member is None or new.uid in group.held:
                return False
            if member.nomination != old.status.nominated_node_name:
                return False
            if taken_back(old, new):
                return False  # by us, before the place was promised again: that patch is to come
            group.happened(new.uid, MemberEvent.NOMINATION_CLEARED)
            member.nomination = None
            place = self._manager.slots.get(new.uid)
            if place is None:
                return False
            refused = refused_in_tree(old, new, member.last_rejection)
            if self._dispatcher.too_early(group, new.uid) or group.preempting is not None:
                group.happened(
                    new.uid, MemberEvent.PARKED
                )  # sent once more when its turn comes: that says nothing about its place
                return False
            if refused and place.node_name == old.status.nominated_node_name:
                self._refute(group, place)
                return True
            if not refused and member.renominated:
                return False
            member.renominated = True
            group.happened(new.uid, MemberEvent.PARKED)
        self._dispatcher.dispatch(group)
        return False

    def on_unschedulable(self, old: corev1.Pod, new: corev1.Pod) -> bool:
        """A planned member of which we have not been asked may have been refused by kube-scheduler's own filters: it came
        before its turn, or before our patch, and is nominated when its turn comes. One that our gate held until it was sent
        has its place refuted instead; and so has one that keeps its nomination, as it does where it might have preempted and
        our verb said no, unless that cycle began before the nomination: kube-scheduler tries it again for the patch then. Nothing
        follows while the gang preempts. Returns whether the group has to be planned again.
        """
        with self._manager.lock:
            group = self._manager.find(new)
            if group is None or new.uid not in group.members or new.uid in group.held:
                return False
            member = group.members[new.uid]
            if not refused_in_tree(old, new, member.last_rejection):
                return False
            place = self._manager.slots.get(new.uid)
            nominated = new.status.nominated_node_name
            if place is None or (nominated and not _kept_in_vain(member, place, old, new)):
                return False
            if group.preempting is not None:  # of course: its room is not free yet, and it is sent once that is
                self._note_parked(group, new.uid)
                return False
            if nominated or (was_gated(old) and not self._dispatcher.in_waves(group)):
                self._refute(group, place)
                return True
            self._note_parked(group, new.uid)
            if not self._dispatcher.in_waves(group):
                note_refused(self._manager, group, place)
        self._dispatcher.dispatch(group)
        return False

    def _refute(self, group: Group, place: Slot) -> None:
        """Lock held."""
        log.info("planned place refused by kube-scheduler pod=%s node=%s", place.pod.key, place.node_name)
        refute(self._manager, group, place, How.REFUSED)
        group.happened(place.uid, MemberEvent.PARKED)
        self._manager.places.lose(group, [place.uid])

    def _note_parked(self, group: Group, uid: str) -> None:
        """Lock held."""
        group.happened(uid, MemberEvent.PARKED)
        group.members[uid].doubt_nomination()


def _kept_in_vain(member: Member, place: Slot, old: corev1.Pod, new: corev1.Pod) -> bool:
    """Whether it was refused with the nomination to its place, and is to come no more: not while a victim goes there.

    The refusal says nothing of a place that kube-scheduler heard of while it was deciding: its snapshot may be older than the room.
    """
    kept = old.status.nominated_node_name == new.status.nominated_node_name == place.node_name
    return kept and no_candidate_was_left(new) and member.no_candidate_with == place.node_name


STOOD_SECONDS = 2.0  # after the last change: a gang that grows is left alone


@dataclass(frozen=True, slots=True)
class _Facts:
    """What members of a group are told now, and since when, in seconds of the clock; read off in which situation."""

    words: str
    since: float
    situation: Situation | None


class StaleRefusals:
    """Called by one thread; the manager's lock is held while some of the groups are looked through."""

    def __init__(self, manager: PodGroupManager, steering: OrderedSteering) -> None:
        self._manager = manager
        self._steering = steering
        self._seen: dict[tuple[str, str], _Facts] = {}  # by group and scheduler

    def tick(self) -> None:
        with self._manager.lock:
            before, self._seen = self._seen, {}
            keys = [key for key, group in self._manager.groups.items() if group.refused]
        for some in in_parts(keys):
            with self._manager.lock:
                for group in filter(None, map(self._manager.groups.get, some)):
                    step = partial(self._told_otherwise, group, before)
                    none: list[corev1.Pod] = []
                    pods = self._manager.quarantine.for_gang(group.key, "stale-refusals", step, none)
                    self._steering.activate(group.key, pods)
            pause()
        self._steering.carry_out()

    def _told_otherwise(self, group: Group, before: dict[tuple[str, str], _Facts]) -> list[corev1.Pod]:
        """Lock held."""
        now = self._manager.clock()
        pods: list[corev1.Pod] = []
        for uid in group.refused:
            member = group.members[uid]
            told = member.rejection_facts
            if not told:
                continue
            key = group.key, member.pod.spec.scheduler_name
            if key not in self._seen:
                self._seen[key] = self._facts(group, member.pod, before.get(key))
            facts = self._seen[key]
            known_by_asking = not facts.words and told != messages.INTERNAL_ERROR
            if facts.words != told and not known_by_asking and now - facts.since >= STOOD_SECONDS:
                member.rejection_facts = ""
                pods.append(member.pod)
        return pods

    def _facts(self, group: Group, pod: corev1.Pod, before: _Facts | None) -> _Facts:
        """Lock held."""
        now = situation(self._manager, group)
        if before is not None and now is not None and before.situation == now:
            return before
        words = self._true_words(group, pod)
        since = before.since if before is not None and before.words == words else self._manager.clock()
        return _Facts(words, since, now)

    def _true_words(self, group: Group, pod: corev1.Pod) -> str:
        """What the members of the pod's scheduler would be told now; empty where that is decided when they ask. Lock held."""
        failed = failed_check(self._manager, group, pod.spec.scheduler_name, pod.name)
        if failed is not None:
            return failed.told
        if group.calls:  # what is decided now will be true in a moment
            return ""
        return group.last_diagnosis.message if group.last_diagnosis is not None else ""
