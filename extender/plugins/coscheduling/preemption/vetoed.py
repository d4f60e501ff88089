"""Preemptors that were left no candidate for a gang's sake: they are tried again once it would be otherwise.

kube-scheduler's own filters have refused them and parked them, and nothing that happens to a gang wakes such a pod: not that
its own has started, nor that another has grown and has members to spare. The guard notes them, Preemption tells what becomes of
them. Of extra members before a restart their conditions tell. No counterpart upstream.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from extender.api import corev1
from extender.plugins.coscheduling.collaborators import Steering
from extender.plugins.coscheduling.preemption.running_gangs import running_gang
from extender.plugins.coscheduling.state.pod_conditions import no_candidate_was_left
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.units import may_preempt

log = logging.getLogger(__name__)

MAX_NOTED = 10_000


@dataclass(frozen=True, slots=True)
class _Vetoed:
    """node_name: where it might have preempted. spare: how many each gang there could do without, by key; no entry where its own
    gang was the cause. may_break: whether gangs could be broken at all."""

    pod: corev1.Pod
    node_name: str
    spare: Mapping[str, float] = field(default_factory=dict)
    may_break: bool = True


class VetoedPreemptors:
    """The manager's lock guards what is noted; steering is asked outside it."""

    def __init__(
        self,
        manager: PodGroupManager,
        steering: Steering,
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
        """gangs: the keys of those that stood in the way, since they need whoever would have to go."""
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
        may_break = self._may_break()
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
        places = [(each.pod, each.node_name or self._any_node()) for each in due]
        if places:
            log.info("vetoed preemptors may preempt now pods=%s", " ".join(pod.key for pod, _ in places))
            self._steering.rouse(places)


def _is_otherwise(vetoed: _Vetoed, spare: Mapping[str, float], may_break: bool) -> bool:
    if not vetoed.spare:
        return True  # its own gang was the cause, and has started
    return (may_break and not vetoed.may_break) or any(spare[key] > known for key, known in vetoed.spare.items())


def _to_spare(manager: PodGroupManager, key: str) -> float:
    """How many of the gang could go with it still whole; no end of them where nobody there needs the others. Lock held."""
    group = manager.groups.get(key)
    gang = running_gang(manager, group) if group is not None else None
    return gang.to_spare if gang is not None else math.inf
