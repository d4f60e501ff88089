"""TLS for the verbs: 1.3, client certificates required, files read again when they change.

A pair that cannot be loaded, half written perhaps, leaves the old one in place.
"""

from __future__ import annotations

import logging
import ssl
import time
from pathlib import Path

from extender.server.options import ServeOptions

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0


class Certificates:
    """The current context. Used from the event loop only."""

    def __init__(self, options: ServeOptions) -> None:
        self._cert, self._key = options.tls_cert_file, options.tls_private_key_file
        self._ca = options.client_ca_file
        self._looked = time.monotonic()
        self._seen = self._stamp()
        self._context = self._load()

    def current(self) -> ssl.SSLContext:
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self._reload()
        return self._context

    def _reload(self) -> None:
        try:
            stamp = self._stamp()
            if stamp != self._seen:
                self._context = self._load()
                self._seen = stamp
                log.info("certificates reloaded file=%s", self._cert)
        except (OSError, ssl.SSLError) as error:
            log.error("certificates not reloaded, the old ones stay file=%s error=%s", self._cert, error)

    def _stamp(self) -> tuple[tuple[int, int], ...]:
        stats = [Path(path).stat() for path in (self._cert, self._key, self._ca)]
        return tuple((stat.st_mtime_ns, stat.st_size) for stat in stats)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self._cert, self._key)
        context.load_verify_locations(cafile=self._ca)
        context.set_alpn_protocols(["http/1.1"])
        return context
