"""TLS 1.3 for a listener, files read again when they change. For the verbs client certificates are required.

A pair that cannot be loaded, half written perhaps, leaves the old one in place, and is tried again each second: that it could not be read
may have been for want of a descriptor.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from extender.server import certificate_ends
from extender.server.options import ServeOptions
from extender.server.state import Port

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0

Stamp = tuple[tuple[int, int, int], ...]


class Certificates:
    """The current context, cached: to build one for each connection costs as much as the handshake.

    Used from the event loop only. ca: of the clients, which then have to show a certificate; empty: none is asked for. Raises OSError,
    naming the files, when they are wrong at the start.
    """

    def __init__(self, cert: str, key: str, ca: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self._cert, self._key, self._ca = cert, key, ca
        self._clock = clock
        self._looked = clock()
        self._seen = self._stamp()
        self._context = self._load()
        self._said = ""  # of what could not be loaded since

    @classmethod
    def of(cls, options: ServeOptions) -> Mapping[Port, Certificates]:
        """Of the ports that have TLS."""
        found = {}
        if options.tls:
            files = options.tls_cert_file, options.tls_private_key_file, options.client_ca_file
            found[Port.VERBS] = cls(*files)
        if options.pages:
            found[Port.PAGES] = cls(options.pages_tls_cert_file, options.pages_tls_private_key_file)
        return found

    def current(self) -> ssl.SSLContext:
        now = self._clock()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self._look()
        return self._context

    def _look(self) -> None:
        try:
            stamp = self._stamp()
            if stamp != self._seen:
                self._context = self._load()
                self._seen = stamp
                log.info("certificates reloaded file=%s", self._cert)
            self._said = ""
        except OSError as error:
            if str(error) != self._said:
                log.error("certificates not reloaded, the old ones stay error=%s", error)
            self._said = str(error)

    def _stamp(self) -> Stamp:
        stats = [Path(path).stat() for path in (self._cert, self._key, self._ca) if path]
        return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in stats)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(self._cert, self._key)
        except ssl.SSLError as error:
            raise OSError(f"{self._cert} and {self._key} are not a certificate and its key: {error}") from error
        if not self._ca:
            certificate_ends.of_pages(self._cert)
            return context
        context.verify_mode = ssl.CERT_REQUIRED
        context.num_tickets = (
            0  # kube-scheduler resumes no session, and two tickets cost as much as the rest of the handshake
        )
        try:
            context.load_verify_locations(cafile=self._ca)
        except ssl.SSLError as error:
            raise OSError(f"{self._ca} is not a CA certificate: {error}") from error
        certificate_ends.of_server(self._cert)
        certificate_ends.of_client_cas(context)
        return context
