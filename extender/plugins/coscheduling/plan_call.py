"""A filter call that needs a plan which is still to be made, and how long such calls may wait.

Admission opens a call under the manager's lock, the scheduling cycle waits for it under no lock at all, PlanningRounds closes it
once its gang has been planned. kube-scheduler's loop is serial: what one filter call waits for, every pod waits for.
No counterpart upstream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from extender.framework.giving_way import GIVING_WAY
from extender.framework.status import Status

LONGEST_SECONDS = 0.75  # where no other gang is planned before the call's own: filter answers within a second
BESIDE_OTHERS_SECONDS = 0.05
SHARE = 0.1  # of all time that filter calls may wait for plans
SAVED_SECONDS = 1.5  # the most waiting time that a quiet spell saves up
KEPT_NODES = 100  # of a call that waits no longer: kube-scheduler offers no fewer where it has not tried all nodes

Wait = Callable[[threading.Event, float], bool]
"""Waits for an event for at most so many seconds; whether it is set."""


@dataclass(slots=True, eq=False)
class PlanCall:
    """One filter call for a member. The manager's lock guards what changes; `done` is its own lock.

    allowed: the nodes that kube-scheduler offered; None where it asked about the nominated node alone.
    waiting: the answer is not given yet, so the member needs no patch. attempts: plans so far that did not place it where
    kube-scheduler asked. refusal: why its gang's plan found no places; it is not noted where room has come free meanwhile.
    """

    uid: str
    allowed: frozenset[str] | None
    waits: WaitingTime
    others_first: bool = False
    waiting: bool = True
    attempts: int = 0
    refusal: Status | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def wait(self, at_most: float) -> None:
        """Until its gang has been planned, or its time is up. No lock is held."""
        self.waits.wait(self.done, min(at_most, BESIDE_OTHERS_SECONDS if self.others_first else LONGEST_SECONDS))

    def give_up(self) -> None:
        """The filter call ends without an answer from this: the member is sent when it has a place."""
        self.waiting = False
        if self.allowed is not None and len(self.allowed) > KEPT_NODES:
            self.allowed = None

    def close(self, refusal: Status | None = None) -> None:
        """Its gang has been planned. The manager's lock is held."""
        self.refusal = refusal
        self.done.set()


@dataclass(frozen=True, slots=True)
class EventCall:
    """A filter call that comes before the gangs are planned that have begun, or before the watch shows its pod. done: set once they are,
    or it has. what: the pod's UID in the latter case."""

    done: threading.Event
    waits: WaitingTime
    what: str = ""

    def wait(self, at_most: float) -> None:
        self.waits.wait(self.done, min(at_most, LONGEST_SECONDS))

    def give_up(self) -> None:
        """The pod is woken when they are planned."""


class WaitingTime:
    """What filter calls may still wait for plans, of all calls together: a share of all time, some of it saved up.

    A tenant whose gangs take long to plan keeps kube-scheduler's loop waiting for at most a tenth of its time.
    """

    def __init__(self, clock: Callable[[], float], wait: Wait = threading.Event.wait) -> None:
        """clock: monotonic seconds."""
        self._clock = clock
        self._wait = wait
        self._lock = threading.Lock()  # guards the two below; no other is taken under it
        self._saved = SAVED_SECONDS
        self._counted = clock()

    def any_left(self) -> bool:
        return self._left() > 0

    def wait(self, event: threading.Event, at_most: float) -> bool:
        """Whether the event is set."""
        started = self._clock()
        with GIVING_WAY.waiting():
            done = self._wait(event, max(0.0, min(at_most, self._left())))
        with self._lock:
            self._saved -= self._clock() - started
        return done

    def _left(self) -> float:
        with self._lock:
            now = self._clock()
            self._saved = min(SAVED_SECONDS, self._saved + SHARE * (now - self._counted))
            self._counted = now
            return self._saved
