"""Pods that Permit told to wait, until allowed, rejected or timed out.

The binding cycle adds and awaits them; Permit plugins allow or reject them. There is no timer thread: whoever awaits a
pod sleeps until its first timeout, so a thousand waiting pods cost a thousand sleepers and nothing else.
kube-scheduler: pkg/scheduler/framework/runtime/waiting_pods_map.go
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from extender.api import corev1
from extender.framework.handle import Clock
from extender.framework.interface import WaitingPod
from extender.framework.status import SUCCESS, Code, Status, unschedulable


class PendingPod(WaitingPod):
    """waiting -> allowed | rejected | preempted | timed out, once: the first signal wins."""

    def __init__(self, pod: corev1.Pod, node_name: str, timeouts: Mapping[str, float], clock: Clock) -> None:
        now = clock()
        self._pod = pod
        self._node_name = node_name
        self._clock = clock
        self._changed = threading.Condition()  # guards the two below; innermost
        self._pending = {plugin: (now + seconds, seconds) for plugin, seconds in timeouts.items()}
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
            if self._decision is not None:
                return False
            self._pending.pop(plugin, None)
            if not self._pending:
                self._decide(SUCCESS)
            return True

    def reject(self, plugin: str, message: str) -> bool:
        with self._changed:
            return self._decide(unschedulable(message, plugin=plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        with self._changed:
            return self._decide(Status(Code.ERROR, (message,), plugin))

    def _decide(self, status: Status) -> bool:
        if self._decision is not None:
            return False
        self._decision = status
        self._changed.notify_all()
        return True

    def await_decision(self) -> Status:
        """Blocks until a signal comes, or until the first plugin's time is up."""
        with self._changed:
            while self._decision is None:
                plugin, (deadline, seconds) = min(self._pending.items(), key=lambda item: item[1])
                left = deadline - self._clock()
                if left > 0:
                    self._changed.wait(left)
                else:
                    self._decide(unschedulable(_timed_out(plugin, seconds), plugin=plugin))
            return self._decision

    def expire(self, now: float) -> bool:
        """For a driver on virtual time: rejects if the first timeout has passed."""
        with self._changed:
            plugin, (deadline, seconds) = min(
                self._pending.items(), key=lambda item: item[1], default=("", (now + 1, 0))
            )
            return deadline <= now and self._decide(unschedulable(_timed_out(plugin, seconds), plugin=plugin))

    @property
    def decision(self) -> Status | None:
        with self._changed:
            return self._decision

    @property
    def deadline(self) -> float:
        """The first timeout, in seconds of the clock."""
        with self._changed:
            return min((deadline for deadline, _ in self._pending.values()), default=self._clock())


def _timed_out(plugin: str, seconds: float) -> str:
    return f"rejected due to timeout after waiting {go_duration(seconds)} at plugin {plugin}"


def go_duration(seconds: float) -> str:
    """As Go prints a time.Duration: 10s, 1m0s, 1h0m5s, 1.5s, 500ms, 0s."""
    if seconds == 0:
        return "0s"
    if seconds < 1:
        return f"{seconds * 1000:.6g}ms"
    whole, hours_text = seconds, ""
    hours, whole = divmod(whole, 3600)
    minutes, rest = divmod(whole, 60)
    if hours:
        hours_text = f"{int(hours)}h{int(minutes)}m"
    elif minutes:
        hours_text = f"{int(minutes)}m"
    return f"{hours_text}{round(rest, 9):.12g}s"


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

    def remove(self, uid: str) -> None:
        with self._lock:
            self._pods.pop(uid, None)

    def get(self, uid: str) -> PendingPod | None:
        with self._lock:
            return self._pods.get(uid)

    def iterate(self, callback: Callable[[WaitingPod], None]) -> None:
        with self._lock:
            for pod in self._pods.values():
                callback(pod)
