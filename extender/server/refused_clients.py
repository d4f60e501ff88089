"""Clients that are refused by their certificates: counted, and said in the log with the reason, a few lines however many there are.

A certificate that has expired, or is of another CA, is seen here and nowhere else: kube-scheduler's own words are `remote error: tls: ...`,
and `code 403` for a name that is not allowed. No counterpart: kube-scheduler serves no clients by certificates of a CA of its own.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable

from extender import metrics

log = logging.getLogger(__name__)

QUIET_SECONDS = 60.0  # between two lines of one reason
MOST_REASONS = 20  # clients choose which
MOST_CHARACTERS = 200


class RefusedClients:
    """Used from the event loop only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: dict[str, float] = {}  # reason -> when
        self._unsaid: dict[str, int] = {}

    def handshake_failed(self, error: OSError, client: str) -> None:
        """client: its address. One that went away was not refused: a kube-scheduler that is ended goes at any time, and a probe of the
        port says nothing at all."""
        if isinstance(error, ssl.SSLEOFError) or not isinstance(error, ssl.SSLError | TimeoutError):
            log.debug("client went away in the TLS handshake client=%s error=%s", client, error)
            return
        metrics.rejected_clients.labels("handshake").inc()
        self._say("client refused in the TLS handshake", reason_of(error), client)

    def name_not_allowed(self, names: str, client: str) -> None:
        """names: those of its certificate."""
        metrics.rejected_clients.labels("name").inc()
        self._say("client refused by its name", names[:MOST_CHARACTERS], client)

    def _say(self, what: str, reason: str, client: str) -> None:
        now = self._clock()
        if reason not in self._said and len(self._said) >= MOST_REASONS:
            reason = "other"
        said = self._said.get(reason)
        if said is not None and now - said < QUIET_SECONDS:
            self._unsaid[reason] = self._unsaid.get(reason, 0) + 1
            return
        self._said[reason] = now
        log.warning("%s client=%s reason=%r more=%d", what, client, reason, self._unsaid.pop(reason, 0))


def reason_of(error: OSError) -> str:
    """In OpenSSL's words, which name no address and no file."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return "it did not come to its end in time"
