"""A gang's preemption after its victims were told: it ends when the last of them has gone, or when they take too long.

GangPreemption hands over what it has begun; Preemption tells which pods go. No counterpart in kube-scheduler, which forgets its
victims once they are told, and finds the room free when it tries the pod again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from extender.api import corev1
from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.preemption.preemption_queue import PreemptionQueue
from extender.plugins.coscheduling.scheduling.arrivals import Arrivals
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.stops import Reason, Stop
from extender.plugins.coscheduling.state.units import unit_of

log = logging.getLogger(__name__)


class AwaitedRoom:
    """Lock order: planning (PlanningRounds'), then the manager's lock. lease_seconds: of the places, from when the room is free."""

    def __init__(
        self,
        manager: PodGroupManager,
        rounds: PlanningRounds,
        arrivals: Arrivals,
        queue: PreemptionQueue,
        newest_snapshot: Callable[[], NodeInfoLister],
        lease_seconds: float,
    ) -> None:
        self._manager = manager
        self._rounds = rounds
        self._arrivals = arrivals
        self._queue = queue
        self._newest_snapshot = newest_snapshot
        self._lease_seconds = lease_seconds

    def forget_those_gone(self, unit: Sequence[Group]) -> None:
        """Of a preemption that has just begun: who went between its plan and now is not heard of any more."""
        there = {info.pod.uid for node in self._newest_snapshot().list() for info in node.pods}
        with self._manager.lock:
            for group in unit:
                if group.preempting is not None:
                    group.preempting.waits_for &= there
        self._send_if_free(unit)

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """A victim has gone: with the last of them the gang's members are sent."""
        if old is None or (new is not None and not new.terminal):
            return
        finished: list[Group] = []
        with self._manager.lock:
            for group in self._manager.groups.values():
                if group.preempting is not None and old.uid in group.preempting.waits_for:
                    group.preempting.waits_for.discard(old.uid)  # the groups of a unit share it
                    if not group.preempting.waits_for:
                        finished.append(group)
        self._send_those_with_room(finished)

    def tick(self) -> None:
        """About once a second: preemptions that take too long are given up."""
        with self._manager.lock:
            now = self._manager.clock()
            waiting = [(group, group.preempting) for group in self._manager.groups.values() if group.preempting]
            late = [group.key for group, preempting in waiting if preempting.until <= now]
            free = [group for group, preempting in waiting if not preempting.waits_for]
        self._send_those_with_room(free)  # where what followed the end of the last victim has failed
        for key in late:
            log.warning("victims did not go in time group=%s", key)
            step = partial(self.give_up, key, messages.VICTIMS_DID_NOT_GO)
            self._manager.quarantine.for_gang(key, "preempt", step, None)

    def give_up(self, key: str, text: str) -> None:
        """The gang with that key loses its places, and says why. Nothing, if it does not preempt any more."""
        manager = self._manager
        with manager.lock:
            group = manager.groups.get(key)
            if group is None or group.preempting is None:
                return
            unit = unit_of(manager, group)
            self._queue.in_vain(unit)
        self._rounds.drop_plan(key)
        with manager.lock:
            for each in unit:
                each.stop(Stop(Reason.PREEMPTION_FAILED, text, manager.clock()))
                manager.denied[each.key] = text

    def _send_those_with_room(self, groups: Iterable[Group]) -> None:
        for group in groups:
            step = partial(self._send_with_unit, group)
            self._manager.quarantine.for_gang(group.key, "preempt", step, None)

    def _send_with_unit(self, group: Group) -> None:
        with self._manager.lock:
            unit = unit_of(self._manager, group)
        self._send_if_free(unit)

    def _send_if_free(self, unit: Sequence[Group]) -> None:
        manager = self._manager
        with manager.lock:
            if any(group.preempting is None or group.preempting.waits_for for group in unit):
                return
            expires = manager.clock() + self._lease_seconds
            for group in unit:
                group.preempting = None
                group.stopped = None
                for place in manager.ledger.of_group(group.key):
                    manager.ledger.reserve(replace(place, expires=expires))
                manager.permitted[group.key] = True
        log.info("room for a preempting gang is free group=%s", unit[0].key)
        for group in unit:
            self._arrivals.send(group)
