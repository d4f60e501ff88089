"""TLS handshakes that failed: counted, and said in the log with the reason, a few lines however many there are.

A certificate that has expired, or is of another CA, is seen here and nowhere else: kube-scheduler's own words are `remote error: tls: ...`.
No counterpart: kube-scheduler serves no clients by certificates of a CA of its own.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable

from extender import metrics

log = logging.getLogger(__name__)

QUIET_SECONDS = 60.0  # between two lines of one reason
MOST_REASONS = 20  # OpenSSL has some hundred; strangers choose


class FailedHandshakes:
    """Used from the event loop only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: dict[str, float] = {}  # reason -> when
        self._unsaid: dict[str, int] = {}

    def failed(self, error: OSError, address: object) -> None:
        """address: of the client, as accept gave it."""
        metrics.rejected_clients.labels("handshake").inc()
        reason, now = reason_of(error), self._clock()
        if reason not in self._said and len(self._said) >= MOST_REASONS:
            reason = "other"
        said = self._said.get(reason)
        if said is not None and now - said < QUIET_SECONDS:
            self._unsaid[reason] = self._unsaid.get(reason, 0) + 1
            return
        self._said[reason] = now
        client = address[0] if isinstance(address, tuple) and address else "unknown"
        more = self._unsaid.pop(reason, 0)
        log.warning("client refused in the TLS handshake client=%s reason=%r more=%d", client, reason, more)


def reason_of(error: OSError) -> str:
    """In OpenSSL's words, which name no address and no file."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    if isinstance(error, TimeoutError):
        return "it did not come to its end in time"
    return "the client went away"
