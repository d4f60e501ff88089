"""Filter calls for pods that the watch has not shown yet: their group may be in a field that kube-scheduler does not send.

A kube-scheduler that is older than spec.schedulingGroup sends pods without it, so that only the watch says which group a pod is in. One
that is asked about first would pass as a single pod, outside of its gang's places. No counterpart upstream.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from extender.api import corev1
from extender.framework.cycle_state import AWAITED, CycleState
from extender.plugins.coscheduling.plan_call import EventCall, WaitingTime
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

MOST_CALLS = 1000  # of which the watch is awaited at a time: kube-scheduler asks about one pod after the other


@dataclass(eq=False, slots=True)
class UnshownPods:
    """The manager's lock guards what is known here."""

    manager: PodGroupManager
    waiting_time: WaitingTime
    _waiting: set[str] = field(default_factory=set)  # UIDs of pods without a node that the watch has shown
    _calls: dict[str, threading.Event] = field(default_factory=dict)  # by UID

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """Once its group has it."""
        pod = new or old
        if pod is None:
            return
        with self.manager.lock:
            if new is not None and not new.node_name:
                self._waiting.add(pod.uid)
            else:
                self._waiting.discard(pod.uid)
            shown = self._calls.pop(pod.uid, None)
        if shown is not None:
            shown.set()

    def has_shown(self, state: CycleState, pod: corev1.Pod) -> bool:
        """Whether the pod may be answered; what to wait for is in the state then, once. A call that has waited for something else was
        for a pod that had been shown."""
        awaited = state.awaited
        ours = isinstance(awaited, EventCall) and awaited.what == pod.uid
        if awaited is not None and not ours:
            return True
        with self.manager.lock:
            known = bool(pod.node_name) or pod.uid in self._waiting or bool(self.manager.key_of(pod))
            if ours:
                self._calls.pop(pod.uid, None)
                state.delete(AWAITED)
            elif not known and len(self._calls) < MOST_CALLS:
                event = self._calls.setdefault(pod.uid, threading.Event())
                state.write(AWAITED, EventCall(event, self.waiting_time, pod.uid))
        return known
