"""Whether filter has answered every call with an Error for a while: then no pod is scheduled, and the probes say so.

The scheduler tells of each answer that it has worked for; "not the leader" and "not synced" are none. A fault of one gang is not
enough: its members are one asker, and are refused while it is set aside (plugins/coscheduling/state/quarantine.py). The answers that are
none it tells to another one of these, for which one asker is enough: a kube-scheduler that asks leads, and should not.
kube-scheduler has no counterpart: a panic ends the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

READINESS_SECONDS = 30.0  # of errors alone, after which /readyz fails
LIVENESS_SECONDS = 90.0  # after which /livez fails as well: the process is started anew
# Without a call, after which nothing is known; kube-scheduler tries a pod again within 10 s of an Error.
QUIET_SECONDS = 60.0
CALLS = 3
ASKERS = 2
# Of refusals or errors alone, after which /livez says that kube-scheduler asks an extender that is of no use to it. Its probe has to fail
# (after 45 s more of it) before the extender's own does, which is 15 s after LIVENESS_SECONDS: design/0023.
USELESS_SECONDS = 5.0
UNFIT_SECONDS = 30.0  # after which a replica that elects itself gives the Lease up: no probe has patience besides


@dataclass(slots=True)
class _Errors:
    """since, last: of the first and the last error in a row, in seconds of the clock. askers: some of the gangs and single pods."""

    since: float
    last: float
    calls: int = 0
    askers: set[str] = field(default_factory=set)


class FilterHealth:
    """clock: monotonic seconds. askers: of so many at least; text: what has happened to all calls; hint: what to do."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        askers: int = ASKERS,
        text: str = "every filter call has been answered with an Error",
        hint: str = "; see the log",
    ) -> None:
        self._clock = clock
        self._askers = askers
        self._text, self._hint = text, hint
        self._lock = threading.Lock()  # guards _errors; the innermost
        self._errors: _Errors | None = None

    def answered(self, asker: str, *, error: bool) -> None:
        """asker: the key of the gang, or of the single pod. Nodes and refusals alike end a row of errors."""
        with self._lock:
            if not error:
                self._errors = None
                return
            now = self._clock()
            if self._errors is None or now - self._errors.last > QUIET_SECONDS:
                self._errors = _Errors(now, now)
            self._errors.last = now
            self._errors.calls += 1
            if len(self._errors.askers) < self._askers:
                self._errors.askers.add(asker)

    def trouble(self, seconds: float) -> str:
        """Why the probe that fails after so many seconds does so; empty while it does not."""
        with self._lock:
            errors, now = self._errors, self._clock()
            if errors is None or errors.calls < CALLS or len(errors.askers) < self._askers:
                return ""
            if now - errors.since < seconds or now - errors.last > QUIET_SECONDS:
                return ""
            return f"{self._text} for {now - errors.since:.0f}s{self._hint}"
