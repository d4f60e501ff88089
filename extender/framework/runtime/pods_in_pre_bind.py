"""Pods whose PreBind runs: until it has ended, a preemptor cancels the binding in place of deleting the pod.

kube-scheduler: pkg/scheduler/framework/runtime/pods_in_prebind_map.go
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class PodInPreBind:
    """One pod. Running -> cancelled, or running -> finished; nothing after either."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _finished and _message
        self._finished = False
        self._message: str | None = None
        self.cancelled = threading.Event()
        """For a plugin that waits: set as soon as there is nothing to wait for."""

    def cancel_pod(self, message: str) -> bool:
        """False if PreBind has ended: the pod is about to be bound."""
        with self._lock:
            if self._finished:
                return False
            if self._message is None:
                self._message = message
        self.cancelled.set()
        return True

    def finish(self) -> str | None:
        """Why it was cancelled; None says that it was not, and cannot be any more. Go: MarkPrebound."""
        with self._lock:
            if self._message is None:
                self._finished = True
            return self._message


class PodsInPreBindMap:
    """By UID. Shared by the profiles of one scheduler."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _pods
        self._pods: dict[str, PodInPreBind] = {}

    def get(self, uid: str) -> PodInPreBind | None:
        with self._lock:
            return self._pods.get(uid)

    def cancel_all(self, message: str) -> None:
        """For a scheduler that stops."""
        with self._lock:
            running = list(self._pods.values())
        for pod in running:
            pod.cancel_pod(message)

    @contextmanager
    def running(self, uid: str) -> Iterator[PodInPreBind]:
        """The pod is known for as long as this lasts."""
        entry = PodInPreBind()
        with self._lock:
            self._pods[uid] = entry
        try:
            yield entry
        finally:
            with self._lock:
                if self._pods.get(uid) is entry:
                    del self._pods[uid]
