"""Requests whose head, byte for byte, came before: gunicorn reads each head once, and makes an environ of it once.

kube-scheduler's heads differ in their Content-Length alone. A head is remembered only after gunicorn has taken it, so that what is
refused, and why, stays gunicorn's; to find it again is a look-up, which is less than any parser costs.
The worker uses it: see docs/design/0058-lean-plumbing.md. No counterpart in kube-scheduler, which asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gunicorn.http import wsgi
from gunicorn.http.message import Request

MAX_HEADS = 512
MAX_HEAD_BYTES = 1024
END = b"\r\n\r\n"
SECRETS = frozenset({"AUTHORIZATION", "COOKIE", "PROXY-AUTHORIZATION"})  # a head with one of them is not kept in memory
_OF_THE_HEAD = ("method", "uri", "path", "query", "fragment", "version", "headers", "scheme", "must_close")
_OF_ONE_REQUEST = (
    "wsgi.input", "wsgi.early_hints", "gunicorn.socket", "REMOTE_ADDR", "REMOTE_PORT", "SERVER_NAME", "SERVER_PORT",
)  # fmt: skip

Environ = dict[str, Any]


@dataclass(slots=True)
class KnownHead:
    """parsed: attributes of gunicorn's request. environ: without what belongs to one request; None before the first is made."""

    parsed: Mapping[str, Any]
    environ: Environ | None = None


class KnownHeads:
    """What gunicorn made of the heads that came lately. Used from the event loop only."""

    def __init__(self) -> None:
        self._heads: dict[bytes, KnownHead] = {}

    def __len__(self) -> int:
        return len(self._heads)

    def get(self, head: bytes) -> KnownHead | None:
        return self._heads.get(head)

    def put(self, head: bytes, request: Request) -> KnownHead | None:
        """None where it is not kept. Beyond the limit the oldest goes: a caller with ever new heads has them read one by one."""
        if len(head) > MAX_HEAD_BYTES or any(name in SECRETS or name == "EXPECT" for name, _ in request.headers):
            return None
        if len(self._heads) >= MAX_HEADS:
            del self._heads[next(iter(self._heads))]
        known = KnownHead({name: getattr(request, name) for name in _OF_THE_HEAD})
        self._heads[head] = known
        return known


KNOWN = KnownHeads()
"""Of the process: what a head means depends on gunicorn's settings alone, of which there is one set."""


class KnownRequest(Request):  # type: ignore[misc]
    known: KnownHead | None = None

    def parse(self, unreader: Any) -> bytes:
        """As gunicorn's: returns what came behind the head. Raises what gunicorn's does."""
        data = unreader.read()
        if not data:
            raise StopIteration
        end = data.find(END) + len(END)
        head, rest = (data[:end], data[end:]) if end >= len(END) else (b"", b"")
        self.known = KNOWN.get(head)
        if self.known is not None:
            self.__dict__.update(self.known.parsed)
            return rest
        unreader.unread(data)
        unused: bytes = super().parse(unreader)
        if head and unused == rest:  # it ended where we say, and nothing more was read for it
            self.known = KNOWN.put(head, self)
        return unused


def create(request: KnownRequest, sock: Any, client: Any, server: Any, cfg: Any) -> tuple[wsgi.Response, Environ]:
    """As gunicorn's. client, server: the addresses of the two ends."""
    known = request.known
    if known is None or known.environ is None:
        response, environ = wsgi.create(request, sock, client, server, cfg)
        if known is not None:
            known.environ = {name: value for name, value in environ.items() if name not in _OF_ONE_REQUEST}
        return response, environ
    environ = {
        **known.environ,
        "wsgi.input": request.body,
        "gunicorn.socket": sock,
        "REMOTE_ADDR": client[0],
        "REMOTE_PORT": str(client[1]),
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
    }
    return wsgi.Response(request, sock, cfg), environ
