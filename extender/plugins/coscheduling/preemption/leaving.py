"""Victims count for their gangs no more from the moment that they are told to go, as pods that are being deleted.

They go one after the other, and the watch is late with each: meanwhile what is left of a gang that goes whole would look like
one that lacks a member, whose replacement would be given the first victim's room and stay behind alone.
No counterpart upstream: kube-scheduler knows no gangs.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from extender.api import corev1
from extender.plugins.coscheduling.group_events import GroupEvents
from extender.plugins.coscheduling.pod_group_manager import PodGroupManager

SHOWN_SECONDS = 30.0  # the watch shows a deletion within moments; who is still there then was not told after all


class Leaving:
    """The manager's lock guards who leaves. Called outside it."""

    def __init__(self, manager: PodGroupManager, events: GroupEvents) -> None:
        self._manager = manager
        self._events = events
        self._told: dict[str, tuple[corev1.Pod, float]] = {}  # UID -> the pod, and when it stays if nothing is seen

    def go(self, pods: Iterable[corev1.Pod]) -> None:
        """These will be told to go."""
        for pod in pods:
            with self._manager.lock:
                self._told[pod.uid] = pod, self._manager.clock() + SHOWN_SECONDS
                self._manager.leaving.add(pod.uid)
            self._events.on_pod(pod, _deleting(pod))

    def stay(self, uids: Iterable[str]) -> None:
        """Nobody has told these after all. Who has gone by now is not brought back."""
        for uid in uids:
            with self._manager.lock:
                pod, _ = self._told.pop(uid, (None, 0.0))
                self._manager.leaving.discard(uid)
                if pod is not None:
                    self._manager.comes_back(uid)
            if pod is not None:
                self._events.on_pod(_deleting(pod), pod)

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """The watch says so itself, or shows the pod as it is now."""
        pod = new or old
        if pod is None or pod.uid not in self._told:
            return
        with self._manager.lock:
            if new is None or new.deleting or new.terminal:
                self._told.pop(pod.uid, None)
                self._manager.leaving.discard(pod.uid)
            elif pod.uid in self._told:
                self._told[pod.uid] = new, self._told[pod.uid][1]

    def tick(self) -> None:
        """About once a second."""
        now = self._manager.clock()
        with self._manager.lock:
            late = [uid for uid, (_, until) in self._told.items() if until <= now]
        self.stay(late)


def _deleting(pod: corev1.Pod) -> corev1.Pod:
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=datetime.now(UTC))
    return msgspec.structs.replace(pod, metadata=metadata)
