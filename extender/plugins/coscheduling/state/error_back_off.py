"""Members whose bind call failed: when kube-scheduler brings them back.

After an error kube-scheduler lets a pod serve its back-off, 1 s, then 2, 4, 8, 10, in a queue of its own that no event and no
patch empties early; with its whole seconds that is 1.5 to 11 s. A gang is planned when enough of its members are back: a plan
before that would keep room, and hold those that come first, for nobody. The gates ask; Coscheduling and Admission tell.
kube-scheduler: pkg/scheduler/backend/queue/backoff_queue.go (podErrorBackoffQ)
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from extender.retry import Retry

BACK_OFF = Retry(1.0, 10.0)  # podInitialBackoffSeconds, podMaxBackoffSeconds
ROUNDING_SECONDS = 1.5  # it counts in whole seconds, and looks once a second


class ErrorBackOffs:
    """Of one group. Not locked: the manager's lock guards it."""

    def __init__(self) -> None:
        self._errors: dict[str, int] = {}  # UID -> in a row
        self._due: dict[str, float] = {}  # UID -> when it is back at the latest

    def failed(self, uid: str, now: float) -> float:
        """Its bind call was answered with an error. Returns when it is back at the latest."""
        errors = self._errors[uid] = self._errors.get(uid, 0) + 1
        self._due[uid] = now + BACK_OFF.seconds(errors) + ROUNDING_SECONDS
        return self._due[uid]

    def came(self, uid: str) -> None:
        """kube-scheduler asks about it."""
        self._due.pop(uid, None)

    def refused(self, uid: str) -> None:
        """By a filter: from now on it is parked, and errors are counted anew."""
        self.forget(uid)

    def away(self, now: float) -> AbstractSet[str]:
        return {uid for uid, due in self._due.items() if due > now}

    def forget(self, uid: str) -> None:
        self._errors.pop(uid, None)
        self._due.pop(uid, None)
