"""Whether the kube-scheduler beside us holds the Lease: only then we plan, patch, bind and write events.

The holder's identity is its host name, "_" and a UUID; in a pod both containers have the same host name. A Lease that
nobody has renewed within its own duration counts for nobody, so a process that was stopped does not act on what it
last saw. kube-scheduler: cmd/kube-scheduler/app/server.go, k8s.io/client-go/tools/leaderelection
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from extender.api.coordinationv1 import Lease

DEFAULT_LEASE_SECONDS = 15


class Leadership:
    """Fed by the Lease's informer. Without a Lease to watch we always lead."""

    def __init__(self, host_name: str, clock: Callable[[], float], *, watched: bool) -> None:
        self._prefix = host_name + "_"
        self._clock = clock
        self._watched = watched
        self._lock = threading.Lock()  # guards the two below
        self._holder = ""
        self._valid_until = 0.0

    def on_lease(self, old: Lease | None, new: Lease | None) -> None:
        with self._lock:
            if new is None:
                self._holder = ""
                return
            self._holder = new.spec.holder_identity
            seconds = new.spec.lease_duration_seconds or DEFAULT_LEASE_SECONDS
            self._valid_until = self._clock() + seconds

    @property
    def leading(self) -> bool:
        if not self._watched:
            return True
        with self._lock:
            return self._holder.startswith(self._prefix) and self._clock() < self._valid_until

    @property
    def reason(self) -> str:
        """Why not, for a refusal and for readiness; empty while we lead."""
        if self.leading:
            return ""
        with self._lock:
            if not self._holder:
                return "nobody holds the Lease"
            if not self._holder.startswith(self._prefix):
                return "another kube-scheduler holds the Lease"
            return "the Lease has expired"


class LeaseHandlers:
    """The Lease's informer to the leadership."""

    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership

    def on_add(self, lease: Lease) -> None:
        self._leadership.on_lease(None, lease)

    def on_update(self, old: Lease, new: Lease) -> None:
        self._leadership.on_lease(old, new)

    def on_delete(self, lease: Lease) -> None:
        self._leadership.on_lease(lease, None)
