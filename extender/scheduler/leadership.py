"""Whether the kube-scheduler beside us, or we ourselves, hold the Lease: only then we plan, patch, bind and write events.

The holder's identity is its host name, "_" and a UUID; in a pod both containers have the same host name. A renewal counts for
the Lease's duration from its renewTime, and for no longer than that from when we read it: after a pause of this process or
of its machine, what was waiting in the socket makes no leader. kube-scheduler: cmd/kube-scheduler/app/server.go,
k8s.io/client-go/tools/leaderelection (which goes by the time of reading alone: it asks when a Lease may be *taken*)
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from extender.api.coordinationv1 import Lease, LeaseSpec

log = logging.getLogger(__name__)

DEFAULT_LEASE_SECONDS = 15
# A share of the Lease's duration, as client-go's default is for 15 s. A renewal of ours counts so long: by then nothing that began under it
# goes on when another takes the Lease.
RENEW_DEADLINE = 10 / 15
# How far the clock that wrote renewTime may differ from ours. In a pod it is the same clock; this is for its corrections.
CLOCK_SKEW_SECONDS = 1.0


class Leadership:
    """Fed by the Lease's informer. Without a Lease to watch we always lead.

    clock: monotonic, in seconds; wall: the time of day, in seconds since 1970. share: of the Lease's duration, for which a renewal
    counts: less than 1 where no kube-scheduler ends before it (election). electors: what elects its leader by the Lease.
    """

    def __init__(
        self,
        host_name: str,
        clock: Callable[[], float],
        *,
        watched: bool,
        wall: Callable[[], float] = time.time,
        share: float = 1.0,
        electors: str = "kube-scheduler",
    ) -> None:
        self._share = share
        self._electors = electors
        self._prefix = host_name + "_"
        self._clock = clock
        self._wall = wall
        self._watched = watched
        self._lock = threading.Lock()  # guards the five below
        self._logging = threading.Lock()  # guards _logged; taken before the other
        self._logged: str | None = None  # the reason that the log has last
        self._seen: LeaseSpec | None = None
        self._read_until: float | None = None  # by the clock; None where what was read proves no renewal
        self._seconds = 0.0  # for which that renewal counts
        self._renewed_until: float | None = (
            None  # by the time of day; None where the Lease does not say when it was renewed
        )
        self._given_up = False

    def on_lease(self, old: Lease | None, new: Lease | None) -> None:
        """The Lease as it was and is; None where there is none. Only a change counts as a renewal, not that it was read again."""
        with self._lock:
            if new is None:
                self._seen = self._read_until = self._renewed_until = None
                return
            first, changed = self._seen is None, new.spec != self._seen
            self._seen = new.spec
            if not changed:
                return
            read = self._clock()  # before the time of day: a pause between the two makes the Lease older, not younger
            now = self._wall()
            seconds = (new.spec.lease_duration_seconds or DEFAULT_LEASE_SECONDS) * self._share
            renewed = new.spec.renew_time.timestamp() if new.spec.renew_time is not None else None
            says_when = renewed is not None and renewed <= now + CLOCK_SKEW_SECONDS
            self._read_until = read + seconds if says_when or not first else None
            self._seconds = seconds
            self._renewed_until = renewed + seconds + CLOCK_SKEW_SECONDS if renewed is not None else None

    def elected(self) -> None:
        """We have written that the Lease is ours."""
        with self._lock:
            self._given_up = False

    def gives_up(self) -> None:
        """We write that it has no holder: from now on another may lead, and what our watch shows is of before."""
        with self._lock:
            self._given_up = True
        self.tick()

    def tick(self) -> None:
        """With each reading of the Lease and about once a second, since it also ends by time: the log says what has changed."""
        if not self._watched:
            return
        with self._logging:
            before, now = self._logged, self.reason
            self._logged = now
        if now == before:
            return
        if not now:
            log.info("leadership gained")
        elif before == "":
            log.warning("leadership lost reason=%r", now)
        else:
            log.info("not the leader reason=%r", now)

    @property
    def leading(self) -> bool:
        return not self.reason

    @property
    def reason(self) -> str:
        """Why not, for a refusal and for readiness; empty while we lead."""
        if not self._watched:
            return ""
        with self._lock:
            if self._given_up:
                return "we have given the Lease up"
            if self._seen is None or not self._seen.holder_identity:
                return "the Lease has no holder"
            if not self._seen.holder_identity.startswith(self._prefix):
                return f"another {self._electors} holds the Lease"
            if self._read_until is None:
                return "the Lease has not been renewed since it was first read"
            too_old = self._renewed_until is not None and self._wall() >= self._renewed_until
            return "the Lease has expired" if too_old or self._clock() >= self._read_until else ""

    @property
    def unheard_seconds(self) -> float:
        """For how long, beyond half of the Lease's duration, no renewal has been read though the holder is ours; 0 where it is not."""
        with self._lock:
            if (
                self._seen is None
                or self._read_until is None
                or not self._seen.holder_identity.startswith(self._prefix)
            ):
                return 0.0
            return max(0.0, self._clock() - (self._read_until - self._seconds / 2))


class LeaseHandlers:
    """The Lease's informer to the leadership, and then to `tell`: whatever else follows from what the Lease is now."""

    def __init__(self, leadership: Leadership, tell: Callable[[Lease | None], None] | None = None) -> None:
        self._leadership = leadership
        self._tell = tell

    def on_add(self, lease: Lease) -> None:
        self._read(None, lease)

    def on_update(self, old: Lease, new: Lease) -> None:
        self._read(old, new)

    def on_delete(self, lease: Lease) -> None:
        self._read(lease, None)

    def _read(self, old: Lease | None, new: Lease | None) -> None:
        self._leadership.on_lease(old, new)
        self._leadership.tick()
        if self._tell is not None:
            self._tell(new)
