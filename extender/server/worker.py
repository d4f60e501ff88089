"""gunicorn's gevent worker, made fit for callers that misbehave and for calls that are held.

Deadlines for handshake, request and send; close instead of drain; all held binds answered at SIGTERM; a blocked event
loop dies instead of lingering. Relies on names of gunicorn's that are not public: tests/server runs the real worker.
"""

from __future__ import annotations

import os
import ssl
import sys
import time
from typing import Any

import gevent
from gunicorn.workers.base_async import AsyncWorker
from gunicorn.workers.ggevent import GeventWorker

from extender import metrics
from extender.server.app import state_of
from extender.server.deadline_socket import DeadlineSocket
from extender.server.options import ServeOptions
from extender.server.peer_watch import EpollPeerWatch
from extender.server.tls import Certificates

DRAINING = "the extender is shutting down"
HEADROOM_BYTES = 64 * 1024  # request line and headers beside the largest body
GIVE_WAY_SECONDS = 1e-6  # sleep(0) would starve the loop's timers
POLL_SECONDS = 0.01


class Worker(GeventWorker):  # type: ignore[misc]
    """`options` is set on the class by serve before the fork."""

    options: ServeOptions = ServeOptions()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.active = 0
        self.draining = False

    def init_process(self) -> None:
        self.certificates = Certificates(self.options) if self.options.tls else None
        super().init_process()

    def load_wsgi(self) -> None:
        """The application is built here, in the process that serves it, and its threads with it."""
        super().load_wsgi()
        state_of(self.wsgi).peer_watch = EpollPeerWatch()
        state_of(self.wsgi).verbs.start()

    def handle(self, listener: Any, client: Any, addr: Any) -> None:
        if self.certificates is not None and listener.getsockname()[1] == self.options.port:
            client = self._handshake(client, self.certificates)
            if client is None:
                return
        guarded = DeadlineSocket(
            client,
            idle_seconds=self.options.idle_seconds,
            request_seconds=self.options.request_seconds,
            send_seconds=self.options.send_seconds,
            max_bytes=self.options.max_body_bytes + HEADROOM_BYTES,
            give_way=lambda: gevent.sleep(GIVE_WAY_SECONDS),
        )
        AsyncWorker.handle(self, listener, guarded, addr)  # past GeventWorker's, which would take the timeouts off

    def _handshake(self, client: Any, certificates: Certificates) -> Any:
        """The TLS socket, or None for a client that does not get through in time; no traceback for each."""
        try:
            with gevent.Timeout(self.options.handshake_seconds, TimeoutError("handshake")):
                return certificates.current().wrap_socket(client, server_side=True)
        except (ssl.SSLError, OSError) as error:
            metrics.rejected_clients.labels("handshake").inc()
            self.log.debug("handshake failed: %s", error)
            client.close()
            return None

    def handle_request(self, listener_name: Any, req: Any, sock: Any, addr: Any) -> None:
        self.active += 1
        try:
            super().handle_request(listener_name, req, sock, addr)
        finally:
            self.active -= 1
        if sock.expired or req.body.read(1):  # unread or cut: close, never read it to its end
            raise StopIteration
        if self.draining:
            raise StopIteration
        sock.rearm()

    def timeout_ctx(self) -> Any:
        """The socket keeps the time; this is only the backstop."""
        return gevent.Timeout(self.options.idle_seconds + self.options.request_seconds, False)

    def handle_exit(self, sig: Any, frame: Any) -> None:
        gevent.spawn(self._drain)

    def _drain(self) -> None:
        """Every held bind is answered now; what has begun to commit is carried to its end; then we are gone."""
        if self.draining:
            return
        self.draining = True
        self.alive = False
        verbs = state_of(self.wsgi).verbs
        verbs.drain(DRAINING)
        deadline = time.monotonic() + self.options.drain_seconds
        while self.active > 0 and time.monotonic() < deadline:
            gevent.sleep(POLL_SECONDS)
        with gevent.Timeout(1.0, False):
            verbs.stop()
        sys.stderr.flush()
        os._exit(0)

    def handle_abort(self, sig: Any, frame: Any) -> None:
        """The event loop was blocked for so long that nothing here can be trusted to run: a new worker starts."""
        os._exit(1)
