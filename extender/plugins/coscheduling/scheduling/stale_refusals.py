"""Parked members whose refusal says what has become untrue: they are woken to hear what is true, once it has stood for a while.

The plugin's tick calls. To wake a plain pod costs a patch of ours, two attempts of kube-scheduler and its own patch, and a
gang of 16 that is being created would cost that 16 times for every member that comes. kube-scheduler has no counterpart.
"""

from __future__ import annotations

from functools import partial

from extender.api import corev1
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.scheduling.gates import shut_gate
from extender.plugins.coscheduling.scheduling.steering_in_order import SteeringInOrder
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

STOOD_SECONDS = 2.0  # after the last change: a gang that grows is left alone


class StaleRefusals:
    """Called by one thread; the manager's lock is held while groups are looked through."""

    def __init__(self, manager: PodGroupManager, steering: SteeringInOrder) -> None:
        self._manager = manager
        self._steering = steering
        self._seen: dict[tuple[str, str], tuple[str, float]] = {}  # (group, scheduler) -> what is true, since when

    def tick(self) -> None:
        with self._manager.lock:
            before, self._seen = self._seen, {}
            for group in list(self._manager.groups.values()):
                if group.refused:
                    step = partial(self._told_otherwise, group, before)
                    none: list[corev1.Pod] = []
                    pods = self._manager.quarantine.for_gang(group.key, "stale-refusals", step, none)
                    self._steering.wake(group.key, pods)
        self._steering.carry_out()

    def _told_otherwise(self, group: Group, before: dict[tuple[str, str], tuple[str, float]]) -> list[corev1.Pod]:
        """Lock held."""
        now = self._manager.clock()
        pods: list[corev1.Pod] = []
        for uid in group.refused:
            member = group.members[uid]
            told = member.rejection_facts
            if not told:
                continue
            name = member.pod.spec.scheduler_name
            key = group.key, name
            if key not in self._seen:
                true = self._true_words(group, member.pod)
                known = before.get(key)
                self._seen[key] = known if known is not None and known[0] == true else (true, now)
            true, since = self._seen[key]
            known_by_asking = not true and told != messages.INTERNAL_ERROR
            if true != told and not known_by_asking and now - since >= STOOD_SECONDS:
                member.rejection_facts = ""
                pods.append(member.pod)
        return pods

    def _true_words(self, group: Group, pod: corev1.Pod) -> str:
        """What the members of the pod's scheduler would be told now; empty where that is decided when they ask. Lock held."""
        gate = shut_gate(self._manager, group, pod.spec.scheduler_name, pod.name)
        if gate is not None:
            return gate.told
        if group.calls:  # what is decided now will be true in a moment
            return ""
        return group.stopped.message if group.stopped is not None else ""
