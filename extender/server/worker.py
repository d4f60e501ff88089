"""gunicorn's gevent worker, made fit for callers that misbehave and for calls that are held.

Deadlines for handshake, request and send; close instead of drain; all held binds answered at SIGTERM; a blocked event
loop dies instead of lingering. Relies on names of gunicorn's that are not public: tests/server runs the real worker.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar

import gevent
from gevent import monkey
from gevent.pool import Pool
from gevent.server import StreamServer
from gevent.socket import wait_read
from gunicorn import util
from gunicorn.http.parser import RequestParser
from gunicorn.workers.base_async import AsyncWorker
from gunicorn.workers.ggevent import GeventWorker

from extender.server import certificate_ends, greenlets, logs
from extender.server.client_auth import is_allowed
from extender.server.connections import GRACE_SECONDS, Connections
from extender.server.deadline_socket import DeadlineSocket, Limits
from extender.server.known_heads import KnownRequest
from extender.server.loop_lag import LoopLag
from extender.server.options import QUESTION_BYTES, ServeOptions
from extender.server.peer_watch import EpollPeerWatch
from extender.server.respond import date, respond
from extender.server.state import Port, state_of
from extender.server.tls import Certificates

DRAINING = "the extender is shutting down"
HEADROOM_BYTES = 64 * 1024  # request line and headers beside the largest body
GIVE_WAY_SECONDS = 1e-6  # sleep(0) would starve the loop's timers
HEARTBEAT_SECONDS = 1.0
POLL_SECONDS = 0.01
UNREAD_SECONDS = 0.2  # for the rest of a body that was refused unread
STOP_SECONDS = 0.5
FLUSH_SECONDS = 1.0
# A caller whose machine is gone is noticed after 15 + 3 * 10 s: nothing else ends its held binds before their time.
KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3))


_NO_TIMEOUT = nullcontext()


class Listener:
    """One of them: its pool, so that no port can fill another's, and its connections."""

    def __init__(self, sock: Any, options: ServeOptions) -> None:
        self.name = sock.getsockname()
        self.port = _port_of(self.name[1], options)
        self.is_verbs = self.port is Port.VERBS
        self.knows_by_name = self.is_verbs and options.tls
        self.pool = Pool(options.worker_connections)
        self.connections = Connections(options.worker_connections)
        self._making_room = False
        self.limits = Limits(
            idle_seconds=options.idle_seconds,
            request_seconds=options.request_seconds,
            send_seconds=options.send_seconds,
            max_bytes=HEADROOM_BYTES + (options.max_body_bytes if self.is_verbs else QUESTION_BYTES),
            give_way=_give_way,
        )

    def getsockname(self) -> Any:
        """For gunicorn, which would ask the socket: a connection accepted just before SIGTERM closed it still needs its name."""
        return self.name

    def opened(self, connection: DeadlineSocket) -> None:
        self.connections.opened(connection)
        self._see_to_room()

    def trust(self, connection: DeadlineSocket) -> None:
        self.connections.trust(connection)
        self._see_to_room()

    def answered(self, connection: DeadlineSocket) -> None:
        if not self.knows_by_name:
            self.connections.trust(connection)
        self.connections.answered(connection)
        self._see_to_room()

    def _see_to_room(self) -> None:
        """A moment later: some of those that have just come have something to say."""
        if self.connections.crowded and not self._making_room:
            self._making_room = True
            gevent.spawn(self._make_room)

    def _make_room(self) -> None:
        self._making_room = False
        if self.connections.make_room():
            self._making_room = True
            gevent.spawn_later(GRACE_SECONDS, self._make_room)


def _port_of(number: int, options: ServeOptions) -> Port:
    if number == options.port:
        return Port.VERBS
    return Port.PAGES if options.pages and number == options.pages_port else Port.OPS


class Settled:
    """gunicorn's configuration, which makes each value anew each time it is asked: a dozen times for a request."""

    def __init__(self, configuration: Any) -> None:
        self._configuration = configuration

    def __getattr__(self, name: str) -> Any:
        """Of what is asked for the first time."""
        value = self.__dict__[name] = getattr(self._configuration, name)
        return value


def _give_way() -> None:
    gevent.sleep(GIVE_WAY_SECONDS)


class Worker(GeventWorker):  # type: ignore[misc]
    """`options` is set on the class by serve before the fork."""

    options: ClassVar[ServeOptions] = ServeOptions()
    cfg: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.answering: set[DeadlineSocket] = set()  # callers of the verbs with a request that is not answered yet
        self.listeners: dict[Any, Listener] = {}
        self.loop_lag = LoopLag()

    def init_process(self) -> None:
        self.lines = logs.LineWriter(monkey.get_original("_thread", "start_new_thread"))
        logs.set_up(self.options.verbosity, self.lines.write, self.options.logging_format)
        logs.take_stderr(self.lines.write)
        self.certificates = Certificates.of(self.options)
        greenlets.follow()
        super().init_process()

    def say_the_rest(self) -> None:
        """Writes what is still queued: the native thread ends with the process, whatever it has left.

        gunicorn calls it (worker_exit) after its own last lines, which tell why a worker could not be built.
        """
        self.lines.flush(FLUSH_SECONDS)

    def load_wsgi(self) -> None:
        """The application is built here, in the process that serves it, and its threads with it.

        All native threads that there will ever be are started first: where none can be had later, gevent's pool raises, and
        yet does what it was asked for as soon as one is free, beside the next plan.
        """
        pool = gevent.get_hub().threadpool
        pool.size = pool.maxsize
        super().load_wsgi()
        RequestParser.mesg_class = KnownRequest
        util.http_date = date
        self.cfg = Settled(self.cfg)
        state_of(self.wsgi).peer_watch = EpollPeerWatch()
        state_of(self.wsgi).verbs.start()
        self.loop_lag.start()

    # Accepting, until told to go

    def run(self) -> None:
        servers = [self._serve(sock) for sock in self.sockets]
        while self.alive and self.ppid == os.getppid():
            self.notify()
            self._await_signal(HEARTBEAT_SECONDS)
        for server in servers:
            server.close()
        self._drain()

    def _serve(self, sock: Any) -> Any:
        sock.setblocking(1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # accepted sockets inherit these options
        for option, value in KEEP_ALIVE:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
        listener = Listener(sock, self.options)
        self.listeners[listener.name] = listener
        server = StreamServer(sock, handle=partial(self.handle, listener), spawn=listener.pool)
        server.start()
        return server

    def notify(self) -> None:
        """The heartbeat alone: GeventWorker's own ends a worker whose master has gone, before it has answered its callers."""
        self.tmp.notify()

    def _await_signal(self, seconds: float) -> None:
        """Python tells of signals between two steps of ours: waiting on the wake-up pipe makes that at once."""
        try:
            wait_read(self.PIPE[0], timeout=seconds, timeout_exc=TimeoutError())
            os.read(self.PIPE[0], 4096)
        except TimeoutError:
            return

    def handle(self, listener: Listener, client: Any, addr: Any) -> None:
        connection = DeadlineSocket(client, listener.limits)
        listener.opened(connection)
        certificates = self.certificates.get(listener.port)
        try:
            if certificates is None or self._handshake(listener, connection, certificates, addr):
                # Past GeventWorker's own, which would take the timeouts off.
                AsyncWorker.handle(self, listener, connection, addr)
        finally:
            listener.connections.closed(connection)

    def _handshake(self, listener: Listener, connection: DeadlineSocket, certificates: Certificates, addr: Any) -> bool:
        """Whether the client gets through in time; no traceback for each that does not."""
        try:
            with gevent.Timeout(self.options.handshake_seconds, TimeoutError("handshake")):
                connection.handshake(certificates.current())
            if listener.knows_by_name and is_allowed(connection.getpeercert(), self.options):
                certificate_ends.of_client(connection.getpeercert())
                listener.trust(connection)
            return True
        except OSError as error:
            state_of(self.wsgi).refused_clients.handshake_failed(error, _host(addr))
            connection.close()
            return False

    # One request

    def handle_request(self, listener_name: Any, req: Any, sock: Any, addr: Any) -> None:
        listener = self.listeners[listener_name]
        if listener.is_verbs:
            self.answering.add(sock)
            if not state_of(self.wsgi).verbs.keeps_connections():
                req.force_close()  # the answer says so too: kube-scheduler makes a new one for its next call
        sock.hold()
        try:
            respond(self.wsgi, self.cfg, req, sock, addr, listener_name, last=not self.alive)
        finally:
            try:
                sock.flush()
            finally:
                self.answering.discard(sock)
        sock.hurry(UNREAD_SECONDS)
        if _is_unread(req) or sock.expired or not self.alive:  # close, never read a refused body to its end
            raise StopIteration
        sock.rearm()
        listener.answered(sock)

    def timeout_ctx(self) -> Any:
        """The socket keeps the time: whatever the parser waits for, it waits for in recv."""
        return _NO_TIMEOUT

    # Going

    def handle_exit(self, sig: Any, frame: Any) -> None:
        self.alive = False

    def handle_quit(self, sig: Any, frame: Any) -> None:
        self.alive = False  # as for SIGTERM: an answer costs no time

    def handle_abort(self, sig: Any, frame: Any) -> None:
        """The event loop was blocked for so long that nothing here can be trusted to run: a new worker starts."""
        os._exit(1)

    def _drain(self) -> None:
        """Every held bind is answered now; commits and evictions that have begun are carried to their end; then we are gone."""
        self.alive = False
        verbs = state_of(self.wsgi).verbs
        draining = gevent.spawn(verbs.drain, DRAINING)
        until = time.monotonic() + self.options.drain_seconds
        while time.monotonic() < until and (not draining.ready() or self._is_answering()):
            self.notify()
            gevent.sleep(POLL_SECONDS)
        self.loop_lag.stop()
        _at_most(STOP_SECONDS, verbs.stop)
        self.say_the_rest()
        os._exit(0)  # no thread that is still about can keep us

    def _is_answering(self) -> bool:
        """Whether a request that came in whole has no answer yet."""
        return any(not caller.receiving for caller in self.answering)


def _host(address: Any) -> str:
    """As accept gives it."""
    return str(address[0]) if isinstance(address, tuple) and address else "unknown"


def _at_most(seconds: float, function: Callable[[], None]) -> None:
    gevent.spawn(function).join(timeout=seconds)


def _is_unread(req: Any) -> bool:
    try:
        return bool(req.body.read(1))
    except Exception:
        return True
