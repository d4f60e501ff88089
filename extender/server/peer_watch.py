"""Notices at once when the caller of a held bind hangs up: FIN, reset, or its process killed.

One real epoll for all of them, its own descriptor waited on by the event loop. kube-scheduler's timeout or death is
told to this module alone: a WSGI handler hears nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from select import EPOLLERR, EPOLLHUP, EPOLLONESHOT, EPOLLRDHUP, POLLERR, POLLHUP, POLLRDHUP

import gevent
from gevent import monkey
from gevent.socket import wait_read

from extender.crash import crashed, guarded

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
_GONE = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLONESHOT


class EpollPeerWatch:
    """Lives in the worker's event loop; callbacks run there and must not block."""

    def __init__(self) -> None:
        self._epoll = monkey.get_original("select", "epoll")()
        self._new_poll = monkey.get_original("select", "poll")
        self._callbacks: dict[int, Callable[[], None]] = {}
        gevent.spawn(self._run)

    def watch(self, fd: int, callback: Callable[[], None]) -> Callable[[], None]:
        """The descriptor must stay open until the watch is cancelled or has called. To cancel it calls for a caller that has hung up
        already, which a busy loop has not come to."""
        self._epoll.register(fd, _GONE)
        self._callbacks[fd] = callback

        def cancel() -> None:
            if self._callbacks.get(fd) is callback:
                self._forget(fd)
                if self.is_gone(fd):
                    guarded("peer-watch", callback)

        return cancel

    def _forget(self, fd: int) -> None:
        del self._callbacks[fd]
        try:
            self._epoll.unregister(fd)
        except (OSError, ValueError) as error:
            log.debug("peer watch already gone fd=%d error=%s", fd, error)

    def is_gone(self, fd: int) -> bool:
        """Whether the caller has hung up by now; for a call that no watch was worth while for."""
        poll = self._new_poll()
        poll.register(fd, POLLRDHUP)
        return any(events & (POLLRDHUP | POLLHUP | POLLERR) for _, events in poll.poll(0))

    def _run(self) -> None:
        """Ends with the event loop only: a fault of one call, or of one look, ends no other."""
        while True:
            try:
                self._look()
            except Exception:
                crashed("peer-watch")
                gevent.sleep(RETRY_SECONDS)

    def _look(self) -> None:
        wait_read(self._epoll.fileno())
        for fd, _ in self._epoll.poll(0):
            callback = self._callbacks.get(fd)
            if callback is not None:
                self._forget(fd)
                guarded("peer-watch", callback)
