"""Whether the Lease is renewed, and whether the clocks of its holder and of this machine agree with the API server's.

The API server's clock is the measure, by the `Date` of its answers: the ages of pods and gangs are by it, and a machine that is wrong
itself cannot say which other one is. The doctor asks here. kube-scheduler has no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from extender.api.coordinationv1 import Lease
from extender.client import interface as kinds
from extender.client.errors import NotFoundError
from extender.client.interface import API
from extender.config.findings import Finding, Severity
from extender.config.types import NamespacedName
from extender.doctor.questions import Questions
from extender.scheduler.leadership import DEFAULT_LEASE_SECONDS, RENEW_DEADLINE

ERROR, WARNING, _ = Severity

TOLERATED_SECONDS = 2.0
FIX = "keep the clocks of all machines in step (NTP)"

Clock = Callable[[], datetime]


def this_machines() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Reading:
    """date: what the API server's clock showed, in whole seconds, at some time between asked and answered by this machine's."""

    date: datetime
    asked: datetime
    answered: datetime

    @property
    def latest(self) -> datetime:
        return self.date + timedelta(seconds=1)

    @property
    def ahead_seconds(self) -> float:
        """How far this machine's clock is ahead of the API server's at least, negative where it is behind.

        0 where a slow answer, and the parts of seconds that the date has not, may be all of the difference."""
        least, most = (self.asked - self.latest).total_seconds(), (self.answered - self.date).total_seconds()
        return max(least, 0.0) or min(most, 0.0)


def examine(ask: Questions, watched: NamespacedName | None, clock: Clock) -> Iterator[Finding]:
    """watched: the Lease to look at; None: of none. clock: this machine's."""
    reading, forbidden = ask.read("the API server's clock", partial(_read, ask.api, clock))
    yield from forbidden
    lease: Lease | None = None
    if watched is not None:
        field = f"leases {watched.namespace}/{watched.name}"
        try:
            lease, forbidden = ask.read(field, partial(ask.api.get, kinds.LEASES, watched.name, watched.namespace))
            yield from forbidden
        except NotFoundError:
            message = "no kube-scheduler has ever held the Lease that the extender watches: nothing is scheduled"
            fix = "compare leaderLease with leaderElection in kube-scheduler's configuration"
            yield ask.finding(ERROR, "NoLease", field, message, fix)
        if lease is not None:
            # Asked anew: the Lease may have been renewed since.
            now, _ = ask.read("the API server's clock", partial(_read, ask.api, clock))
            yield from _lease(ask, field, lease, now or Reading(clock(), clock(), clock()))
    if reading is not None:
        yield from _this_machine(ask, reading.ahead_seconds, _duration(lease))


def _read(api: API, clock: Clock) -> Reading | None:
    asked = clock()
    date = api.server_time()
    return Reading(date, asked, clock()) if date is not None else None


def _lease(ask: Questions, field: str, lease: Lease, now: Reading) -> Iterator[Finding]:
    if (renewed := lease.spec.renew_time) is None:
        return
    since = (now.date - renewed).total_seconds()
    ahead = (renewed - now.latest).total_seconds()
    if since > _duration(lease):
        holder = lease.spec.holder_identity or "its holder"
        message = f"{holder} renewed it {since:.0f} s ago by the API server's clock: no kube-scheduler leads"
        fix = "look at kube-scheduler's log, and at the clock of its machine"
        yield ask.finding(ERROR, "LeaseExpired", field, message, fix)
    elif ahead > TOLERATED_SECONDS:
        message = (
            f"it was renewed {ahead:.0f} s from now: the clock of its holder's machine is ahead of the API server's, and "
            "an extender with another clock takes an old renewal for a new one"
        )
        severity = _severity(ahead, _duration(lease))
        yield ask.finding(severity, "ClocksDiffer", field, message, FIX)


def _this_machine(ask: Questions, ahead: float, lease_seconds: float) -> Iterator[Finding]:
    if abs(ahead) <= TOLERATED_SECONDS:
        return
    message = (
        f"this machine's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the API server's: an extender or a "
        "kube-scheduler on it misjudges the ages of pods and whether a Lease still counts"
    )
    severity = _severity(abs(ahead), lease_seconds)
    yield ask.finding(severity, "ClocksDiffer", "this machine's clock", message, FIX)


def _severity(seconds: float, lease_seconds: float) -> Severity:
    """An error from where a holder gives up its Lease (renewDeadline): by then two may each hold it by its own clock, or none."""
    return ERROR if seconds >= lease_seconds * RENEW_DEADLINE else WARNING


def _duration(lease: Lease | None) -> float:
    return (lease.spec.lease_duration_seconds if lease is not None else 0) or DEFAULT_LEASE_SECONDS
