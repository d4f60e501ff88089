"""Gangs that began to start before a restart, or before another extender led: they are planned before any other pod is answered.

PlanningRounds makes the plans; filter calls that come before wait for them. No counterpart upstream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Protocol

from extender.api import corev1
from extender.crash import guarded
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.plan_call import EventCall, WaitingTime
from extender.plugins.coscheduling.scheduling.planning_order import take
from extender.plugins.coscheduling.scheduling.rejected_in_tree import mark_rejections_current
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

BEGUN_SECONDS = 2.0  # after which other pods are answered though not all gangs that have begun are planned
AGAIN_SECONDS = 1.0  # after which they are looked for again where that raised
MOST_KEPT_WAITING = 10_000


class Rounds(Protocol):
    """What PlanningRounds does for it."""

    def schedule_planning(self) -> None: ...

    def plan_one(self, group: Group) -> None: ...


class BegunGangs:
    """Lock order: that around `finish`, then the one around plans, then the manager's."""

    def __init__(
        self,
        manager: PodGroupManager,
        dependencies: CoschedulingDependencies,
        rounds: Rounds,
        keep_rooms: Callable[[], None],
        waiting_time: WaitingTime,
    ) -> None:
        """keep_rooms: keeps room for members to come, of gangs whose other members run."""
        self._manager = manager
        self._with = dependencies
        self._rounds = rounds
        self._keep_rooms = keep_rooms
        self._waiting_time = waiting_time
        self._finishing = threading.Lock()  # around finish; taken before the lock around plans
        self._planned = threading.Event()  # set once what has begun is planned, until others have led
        self._again_at: float | None = None  # where that raised; the manager's lock guards it
        self._kept_waiting: dict[str, corev1.Pod] = {}  # refused until then, by UID; the manager's lock guards it

    def is_planned(self) -> bool:
        """Whether pods may be answered: gangs that began to start before a restart have their places, or no gang may be planned."""
        if self._planned.is_set() or not self._with.may_plan():
            return True
        with self._manager.lock:
            return self._again_at is not None

    def call(self, pod: corev1.Pod) -> EventCall:
        """For a filter call that comes before that: the pod is woken afterwards if the call does not wait for so long."""
        with self._manager.lock:
            if not self._planned.is_set() and len(self._kept_waiting) < MOST_KEPT_WAITING:
                self._kept_waiting[pod.uid] = pod
        self._rounds.schedule_planning()
        return EventCall(self._planned, self._waiting_time)

    def finish(self) -> None:
        """Once since we lead: the gangs of which a part runs are planned before any other pod is answered, whatever their
        priority. They began to start before a restart, and no other pod may have the room that their missing members need.

        After BEGUN_SECONDS the rest of them is planned in the background.
        """
        with self._finishing:
            if self._planned.is_set() or not self._with.may_plan():
                return
            with self._manager.lock:
                if self._again_at is not None and self._manager.clock() < self._again_at:
                    return
            done = guarded("begun", self._plan)
            with self._manager.lock:
                if done:
                    self._planned.set()
                else:  # a fault of no single gang: every call would run into it
                    self._again_at = self._manager.clock() + AGAIN_SECONDS
                pods, self._kept_waiting = list(self._kept_waiting.values()), {}
        if pods:
            self._with.wake_refused(pods)

    def _plan(self) -> None:
        manager = self._manager
        until = manager.clock() + BEGUN_SECONDS
        with manager.lock:
            mark_rejections_current(manager)
            begun = manager.line.in_order(self._groups())
            manager.queue.move_to_active(group.key for group in begun)
        for group in begun:
            if manager.clock() >= until:
                self._rounds.schedule_planning()
                break
            with manager.lock:
                take(manager, group.key)
            self._rounds.plan_one(group)
        self._keep_rooms()

    def _groups(self) -> list[Group]:
        """Lock held."""
        manager = self._manager
        return [
            group
            for group in list(manager.groups.values())
            if manager.quarantine.for_gang(group.key, "begun", partial(manager.begun.recall, group), otherwise=False)
        ]

    def look_again(self) -> None:
        """We lead no more: what others begin meanwhile is to be finished when we do again."""
        with self._manager.lock:
            self._planned.clear()
            self._again_at = None
