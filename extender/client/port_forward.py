"""A connection to a port on the loopback address of a pod, through the API server: one HTTP call for each.

The API server's WebSocket form of port-forward: each message begins with the number of its channel, 0 for bytes and 1 for errors, and
the first message of each is the port's number. What listens on loopback alone is reached, which pods/proxy does not do.
kubectl: port-forward. Kubernetes: staging/src/k8s.io/kubelet/pkg/cri/streaming/portforward/websocket.go
"""

from __future__ import annotations

import http.client
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from extender.client.errors import ConnectionFailedError, TimedOutError

if TYPE_CHECKING:
    from websocket import WebSocket

PROTOCOL = "v4.channel.k8s.io"
DATA, ERROR = 0, 1
PORT_BYTES = 2
MAX_ERROR = 500  # characters


class _Tunnel:
    """As much of a socket as http.client asks for. The WebSocket is its owner's to close: http.client closes its socket while it
    still reads from its file."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        return io.BufferedReader(_Incoming(self._socket))

    def sendall(self, data: bytes) -> None:
        self._socket.send_binary(bytes([DATA]) + data)

    def close(self) -> None:
        """Nothing: see above."""


class _Incoming(io.RawIOBase):
    """What the port says."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._begun: set[int] = set()  # the channels whose port's number has come
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """0 at the end. Raises ConnectionFailedError for what the kubelet says of the port."""
        while not self._left:
            opcode, message = self._socket.recv_data()
            if opcode == 8 or not message:  # a close
                return 0
            self._take(message[0], message[1:])
        taken, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)

    def _take(self, channel: int, data: bytes) -> None:
        if channel not in self._begun:
            self._begun.add(channel)
            data = data[PORT_BYTES:]
        if channel == ERROR and data:
            raise ConnectionFailedError(" ".join(data.decode(errors="replace").split())[:MAX_ERROR])
        if channel == DATA:
            self._left += data


def exchange(
    socket: WebSocket, port: int, method: str, target: str, headers: Mapping[str, str], body: bytes | None
) -> tuple[int, bytes]:
    """Status and body of one HTTP call by a tunnel that is used for nothing else. Raises ConnectionFailedError, TimedOutError."""
    from websocket import WebSocketException, WebSocketTimeoutException

    client = http.client.HTTPConnection("127.0.0.1", port)
    client.sock = _Tunnel(socket)
    try:
        client.request(method, target, body, {**headers, "Connection": "close"})
        answer = client.getresponse()
        return answer.status, answer.read()
    except (WebSocketTimeoutException, TimeoutError) as error:
        raise TimedOutError(f"port {port}: no answer in time") from error
    except (WebSocketException, http.client.HTTPException, OSError) as error:
        raise ConnectionFailedError(f"port {port}: {str(error) or type(error).__name__}") from error
    finally:
        client.close()
        socket.close(timeout=0)
        socket.shutdown()  # type: ignore[no-untyped-call] # where the other end closed first, close() does nothing
