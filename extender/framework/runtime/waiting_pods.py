"""Pods that Permit told to wait, until allowed, rejected or timed out.

              allow, by the last pending plugin
   waiting ------------------------------------> allowed   (SUCCESS)
      |    ------------------------------------> rejected  (UNSCHEDULABLE: reject, or the first timeout)
      |    ------------------------------------> preempted (ERROR: the pod is tried again)

The first signal wins; the smallest timeout is one of them. The binding cycle adds and awaits waiting pods; Permit
plugins allow or reject them. There is no timer thread: the thread that awaits a pod sleeps until its first timeout, and what
signals it looks at the clock first, so a thousand waiting pods cost a thousand sleepers and nothing else.
kube-scheduler: pkg/scheduler/framework/runtime/waiting_pods_map.go
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from extender.api import corev1
from extender.config.durations import go_duration
from extender.framework.handle import Clock
from extender.framework.interface import WaitingPod
from extender.framework.status import SUCCESS, Code, Status, unschedulable


@dataclass(frozen=True, slots=True, order=True)
class _Timeout:
    deadline: float
    seconds: float
    plugin: str

    @property
    def status(self) -> Status:
        waited = go_duration(self.seconds)
        text = f"rejected due to timeout after waiting {waited} at plugin {self.plugin}"
        return unschedulable(text, plugin=self.plugin)


class PendingPod(WaitingPod):
    """timeouts: seconds by plugin. Go: waitingPod."""

    def __init__(self, pod: corev1.Pod, node_name: str, timeouts: Mapping[str, float], clock: Clock) -> None:
        now = clock()
        self._pod = pod
        self._node_name = node_name
        self._clock = clock
        # Guards the two below; the innermost lock. Not over a plain Lock: a Condition finds out by trying to take it
        # whether the thread owns it, and under gevent that is a turn of the event loop for each wait and each notify.
        self._changed = threading.Condition()
        self._pending = {plugin: _Timeout(now + seconds, seconds, plugin) for plugin, seconds in timeouts.items()}
        self._decision: Status | None = None

    @property
    def pod(self) -> corev1.Pod:
        return self._pod

    @property
    def node_name(self) -> str:
        return self._node_name

    def pending_plugins(self) -> Iterable[str]:
        with self._changed:
            return tuple(self._pending)

    def allow(self, plugin: str) -> bool:
        with self._changed:
            self._look_at_clock()
            if self._decision is not None:
                return False
            self._pending.pop(plugin, None)
            if not self._pending:
                self._decide(SUCCESS)
            return True

    def reject(self, plugin: str, message: str) -> bool:
        with self._changed:
            self._look_at_clock()
            return self._decide(unschedulable(message, plugin=plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        with self._changed:
            self._look_at_clock()
            return self._decide(Status(Code.ERROR, (message,), plugin))

    def await_decision(self) -> Status:
        """Blocks until a signal comes, or until the first plugin's time is up."""
        with self._changed:
            while True:
                first = self._look_at_clock()
                if self._decision is not None:
                    return self._decision
                self._changed.wait(first.deadline - self._clock() if first is not None else None)

    def expire(self) -> bool:
        """For a driver on virtual time, where no thread sleeps: looks at the clock. True if time was up just now."""
        with self._changed:
            before = self._decision
            self._look_at_clock()
            return before is None and self._decision is not None

    @property
    def decision(self) -> Status | None:
        """None while the pod waits."""
        with self._changed:
            self._look_at_clock()
            return self._decision

    @property
    def deadline(self) -> float | None:
        """The first timeout, in seconds of the clock; None where nothing is pending any more."""
        with self._changed:
            return min(self._pending.values()).deadline if self._pending else None

    def _look_at_clock(self) -> _Timeout | None:
        """Decides if time is up; the lock is held. The timeout that comes first, if any is pending."""
        first = min(self._pending.values(), default=None)
        if first is not None and self._decision is None and first.deadline <= self._clock():
            self._decide(first.status)
        return first

    def _decide(self, status: Status) -> bool:
        if self._decision is not None:
            return False
        self._decision = status
        self._changed.notify_all()
        return True


class WaitingPodsMap:
    """By UID. Callbacks of `iterate` run under the lock: they may allow and reject, not add or remove."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # guards _pods; taken before a pod's own
        self._pods: dict[str, PendingPod] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, pod: PendingPod) -> None:
        with self._lock:
            self._pods[pod.pod.uid] = pod

    def remove(self, pod: PendingPod) -> None:
        """This one, not a newer one of the same UID."""
        with self._lock:
            if self._pods.get(pod.pod.uid) is pod:
                del self._pods[pod.pod.uid]

    def get(self, uid: str) -> PendingPod | None:
        with self._lock:
            return self._pods.get(uid)

    def iterate(self, callback: Callable[[WaitingPod], None]) -> None:
        with self._lock:
            for pod in self._pods.values():
                callback(pod)
