"""Events that may help gangs that wait, from the watch to the gangs that they wake.

GroupEvents notes each; PlanningRounds has them judged before it takes the next gang, so what happens while a gang is planned is
judged after it was refused, and by what it was refused for. No event moves a gang that it cannot help.
kube-scheduler: pkg/scheduler/backend/queue (in_flight_events.go, MoveAllToActiveOrBackoffQueue)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from extender.api import corev1
from extender.client.short_steps import pause
from extender.framework.hint_rows import HintRow
from extender.framework.listers import NodeInfoLister
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.hints.gang_hints import EventJudge, GangHints
from extender.plugins.coscheduling.hints.helpful_events import Happened
from extender.plugins.coscheduling.state.counts.standing import counts_at
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager, in_parts
from extender.plugins.coscheduling.waits_for import WaitIndex

MOST_NOTED = 1000  # beyond it every gang is looked at
MOST_KEYS = 1000


class WakeUps:
    """The manager's lock guards what is kept here, and is not held while a snapshot is made."""

    def __init__(
        self, manager: PodGroupManager, newest_snapshot: Callable[[], NodeInfoLister], rows: Sequence[HintRow]
    ) -> None:
        self._manager = manager
        self._newest_snapshot = newest_snapshot
        self._hints = GangHints(rows)
        self._noted: deque[Happened] = deque()
        self._too_many = False
        self._asked = False  # to have what is noted judged, which has not begun
        self._anti_affinity_keys: set[str] = set()  # topology keys of the anti-affinity of all pods that came to nodes
        self.planning = False  # a gang is being planned: what happens meanwhile is judged afterwards

    def note(self, happened: Happened) -> bool:
        """Returns whether what is noted has to be judged now, which nothing noted before has asked for: a gang waits, or may have to,
        that it could help. What gives no node more room is not kept while no gang looks beyond its nodes."""
        manager = self._manager
        with manager.lock:
            self._follow_keys(happened.new)
            if happened.may_help:
                manager.notes.cluster_epoch += 1
            if not (
                happened.may_help or self.planning or self._anti_affinity_keys or manager.queue.index.looks_beyond_nodes
            ):
                return False
            if len(self._noted) >= MOST_NOTED:
                self._noted.clear()
                self._too_many = True
            elif not self._too_many:
                self._noted.append(happened)
            if self._asked or not (self.planning or manager.queue.waiting or manager.queue.unschedulable):
                return False
            self._asked = True
            return True

    def ask_again(self) -> None:
        """What is noted was not judged, since no gang may be planned now: the next event asks for it anew."""
        with self._manager.lock:
            self._asked = False

    def _follow_keys(self, new: object) -> None:
        if isinstance(new, corev1.Pod) and new.spec.affinity is not None and len(self._anti_affinity_keys) < MOST_KEYS:
            self._anti_affinity_keys.update(term.topology_key for term in PodInfo(new).required_anti_affinity_terms)

    def judge(self, *, while_planning: bool = True) -> bool:
        """Has the gangs planned that something has happened for. Returns whether there are any.

        while_planning: else True while a gang is being planned, after which this is called.
        """
        manager = self._manager
        with manager.lock:
            if self.planning and not while_planning:
                return True
            self._asked = False
            noted, too_many = list(self._noted), self._too_many
            if not (noted or too_many):
                return False
            self._noted.clear()
            self._too_many = False
            anti_affinity_keys = frozenset(self._anti_affinity_keys)
            index = manager.queue.index
            # not only those that wait: where a plan was in vain the filter call that it was for may not have been answered yet
            concerned = bool(manager.queue.unschedulable)
        if not concerned:
            return False
        snapshot = self._newest_snapshot()
        judges = [self._hints.judge(each, snapshot, self._stays, anti_affinity_keys) for each in noted]
        found = index.keys() if too_many else set[str]()
        for judge in judges:
            found |= self._helped(judge, index)
        return self._wake(found)

    def _helped(self, judge: EventJudge, index: WaitIndex) -> set[str]:
        """Asks only the demands that the event concerns, and other threads have their turn between them."""
        with self._manager.lock:
            found = judge.helped_whatever_they_ask(index)
            candidates = judge.candidates(index)
        for some in in_parts(candidates):
            with self._manager.lock:
                for demand in some:
                    if not demand.keys <= found and judge.helps(demand):
                        found |= demand.keys
            pause()
        return found

    def _wake(self, keys: set[str]) -> bool:
        """Returns whether one of them waits."""
        manager = self._manager
        woken = False
        for some in in_parts(sorted(keys)):
            with manager.lock:
                waiting = [key for key in some if key in manager.queue.waiting or self._is_asked_about(key)]
                manager.notes.wake(waiting)
                woken = woken or bool(waiting)
            pause()
        return woken

    def _is_asked_about(self, key: str) -> bool:
        """Whether a filter call is still to be answered, by which a member of the group waits then. Lock held."""
        group = self._manager.groups.get(key)
        return group is not None and bool(group.calls)

    def _stays(self, info: PodInfo, priority: int) -> bool:
        """Lock held."""
        group = self._manager.find(info.pod)
        own = gang = info.pod.priority
        if group is not None:
            gang = self._manager.quarantine.for_gang(
                group.key, "wake-ups", partial(self._manager.line.priority_of, group), otherwise=own
            )
        return counts_at(own, gang) >= priority
