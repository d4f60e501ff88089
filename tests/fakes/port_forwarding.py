"""The two ends of a port-forward as a client meets them: an API server that answers GETs from a table and tunnels WebSockets itself, or a
kubelet, to which a real API server passes them on.

Kubernetes: pkg/registry/core/pod/rest/subresources.go (PortForwardREST), kubelet's cri/streaming/portforward/websocket.go
"""

from __future__ import annotations

import http
import json
import re
import socket
import ssl
import threading
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

PROTOCOL = "v4.channel.k8s.io"
FORWARD = re.compile(
    r"(?:/api/v1/namespaces/(?P<ns>[^/]+)/pods/(?P<pod>[^/]+)/portforward|/portForward/(?P<kns>[^/]+)/(?P<kpod>[^/]+))"
)


class PortForwarding:
    """objects: path -> what a GET of it answers; a pair is a status and that. listening: port in the pod -> port here. asked: what was
    asked for, in order. tokens: those that are accepted; None: all callers are."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.objects: dict[str, Any] = {}
        self.listening: dict[int, int] = {}
        self.asked: list[str] = []
        self.tokens: set[str] | None = None
        self._server = serve(
            self._tunnel,
            "127.0.0.1",
            0,
            ssl=tls,
            process_request=self._answer,
            subprotocols=[Subprotocol(PROTOCOL)],
            compression=None,
        )
        self.port: int = self._server.socket.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()

    def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """None: it is a tunnel."""
        path = urlsplit(request.path).path
        self.asked.append(request.path)
        if (
            self.tokens is not None
            and request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens
        ):
            return _json(401, {"kind": "Status", "code": 401, "message": "Unauthorized"})
        if FORWARD.fullmatch(path) and path not in self.objects:
            return None
        found = self.objects.get(path, (404, {"kind": "Status", "code": 404, "message": f"{path} not found"}))
        return _json(*found) if isinstance(found, tuple) else _json(200, found)

    def _tunnel(self, connection: ServerConnection) -> None:
        request = connection.request
        assert request is not None
        query = parse_qs(urlsplit(request.path).query)
        port = int((query.get("ports") or query["port"])[0])
        number = port.to_bytes(2, "little")
        connection.send(b"\0" + number)
        connection.send(b"\1" + number)
        if port not in self.listening:
            connection.send(f"\1error forwarding port {port} to pod: connection refused".encode())
            return
        with socket.create_connection(("127.0.0.1", self.listening[port]), timeout=10) as pod:
            back = threading.Thread(target=_copy, args=(pod, connection))
            back.start()
            try:
                for message in connection:
                    assert isinstance(message, bytes)
                    assert message[0] == 0
                    pod.sendall(message[1:])
            except (ConnectionClosed, OSError):
                pass
            finally:
                _end(pod)
                back.join()


def _copy(pod: socket.socket, connection: ServerConnection) -> None:
    try:
        while data := pod.recv(65536):
            connection.send(b"\0" + data)
        connection.close()
    except (ConnectionClosed, OSError):
        return


def _end(pod: socket.socket) -> None:
    try:
        pod.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def _json(status: int, value: Any) -> Response:
    data = json.dumps(value).encode()
    headers = Headers({"Content-Type": "application/json", "Content-Length": str(len(data)), "Connection": "close"})
    return Response(status, http.HTTPStatus(status).phrase, headers, data)
