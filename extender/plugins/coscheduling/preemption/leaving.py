"""Victims count for their gangs no more from the moment that they are told to go, as pods that are being deleted.

They go one after the other, and the watch is late with each: meanwhile what is left of a gang that goes whole would look like
one that lacks a member, whose replacement would be given the first victim's room and stay behind alone.
No counterpart upstream: kube-scheduler knows no gangs.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial

import msgspec

from extender.api import corev1
from extender.plugins.coscheduling.scheduling.group_events import GroupEvents
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

SHOWN_SECONDS = 30.0  # the watch shows a deletion within moments; who is still there then was not told after all


class Leaving:
    """The manager keeps who leaves, and under its lock they count for their groups no more. Called outside it."""

    def __init__(self, manager: PodGroupManager, events: GroupEvents) -> None:
        self._manager = manager
        self._events = events

    def go(self, pods: Iterable[corev1.Pod]) -> None:
        """These will be told to go."""
        for pod in pods:
            self._manager.quarantine.for_gang(self._manager.key_of(pod), "preempt", partial(self._go, pod), None)

    def _go(self, pod: corev1.Pod) -> None:
        with self._manager.lock:
            self._manager.leaving[pod.uid] = pod, self._manager.clock() + SHOWN_SECONDS
        self._events.on_pod(pod, _deleting(pod))

    def stay(self, uids: Iterable[str]) -> None:
        """Nobody has told these after all. Who has gone by now is not brought back."""
        for uid in uids:
            with self._manager.lock:
                pod, _ = self._manager.leaving.pop(uid, (None, 0.0))
                if pod is not None:
                    self._manager.comes_back(uid)
            if pod is not None:
                step = partial(self._events.on_pod, _deleting(pod), pod)
                self._manager.quarantine.for_gang(self._manager.key_of(pod), "preempt", step, None)

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """The watch says so itself, or shows the pod as it is now."""
        pod = new or old
        if pod is None:
            return
        with self._manager.lock:
            leaving = self._manager.leaving
            if new is None or new.deleting or new.terminal:
                leaving.pop(pod.uid, None)
            elif pod.uid in leaving:
                leaving[pod.uid] = new, leaving[pod.uid][1]

    def tick(self) -> None:
        """About once a second."""
        now = self._manager.clock()
        with self._manager.lock:
            late = [uid for uid, (_, until) in self._manager.leaving.items() if until <= now]
        self.stay(late)


def _deleting(pod: corev1.Pod) -> corev1.Pod:
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=datetime.now(UTC))
    return msgspec.structs.replace(pod, metadata=metadata)
