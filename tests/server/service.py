"""The real worker under a test: started, asked over raw sockets or HTTP, signalled, ended by its own pid.

Used by every test of tests/server that is about the worker.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import sys
from pathlib import Path
from typing import Any

from tests.e2e.processes import Program, eventually, free_port

PAYLOADS = Path(__file__).parent.parent / "payloads"
LONG = 600.0
"""Seconds that no test takes: what ends earlier has not waited for that."""
SOON = 60.0  # on a machine with much else to do


def payload(verb: str) -> bytes:
    """A request as kube-scheduler 1.36.3 sent it."""
    return (PAYLOADS / f"{verb}.json").read_bytes()


def pod_body(name: str) -> bytes:
    """A filter request for a pod of that name."""
    return json.dumps({"Pod": {"metadata": {"name": name}}, "NodeNames": ["node-1"]}).encode()


def bind_body(name: str) -> bytes:
    return json.dumps({"PodName": name, "PodNamespace": "default", "PodUID": name, "Node": "node-1"}).encode()


def raw(verb: str, body: bytes, *headers: str, length: int | None = None) -> bytes:
    """A request as bytes, with a Content-Length of its own if wanted."""
    lines = [
        f"POST /{verb} HTTP/1.1",
        "Host: x",
        f"Content-Length: {len(body) if length is None else length}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def read_answer(sock: socket.socket) -> tuple[int, bytes]:
    """Status and body of one answer."""
    response = http.client.HTTPResponse(sock)
    response.begin()
    return response.status, response.read()


def ended(sock: socket.socket, within: float) -> bool:
    """Whether the other side closes the connection in time, whatever it says before."""
    sock.settimeout(max(within, 0.001))
    try:
        while sock.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


class Service:
    def __init__(
        self, folder: Path, env: dict[str, str] | None = None, program: str = "tests.server.program", **options: Any
    ) -> None:
        self.port, self.ops_port = free_port(), free_port()
        options = {"port": self.port, "ops_port": self.ops_port, **options}
        command = [sys.executable, "-W", "error", "-m", program, json.dumps(options)]
        self.program = Program("service", command, folder, env)
        self.client_context: ssl.SSLContext | None = None
        self._callers: list[socket.socket] = []

    def start(self) -> Service:
        self.program.start()
        self.program.await_ready(lambda: self.ops("/readyz")[0] == 200, within=SOON)
        return self

    def stop(self) -> None:
        self.program.stop(within=SOON)
        for caller in self._callers:
            caller.close()

    def connect(self, port: int | None = None) -> socket.socket:
        """Plain, to the verbs unless another port is given."""
        return socket.create_connection(("127.0.0.1", port or self.port), timeout=SOON)

    def client(self, *, timeout: float = SOON) -> http.client.HTTPConnection:
        """To the verbs, with TLS if the service has it; kept alive."""
        if self.client_context is not None:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.client_context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def post(self, verb: str, body: bytes, *, timeout: float = SOON) -> tuple[int, Any]:
        """On a connection of its own."""
        client = self.client(timeout=timeout)
        try:
            client.request("POST", f"/{verb}", body)
            answer = client.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            client.close()

    def filter(self) -> None:
        """One good filter call, on a connection of its own, is answered."""
        status, answer = self.post("filter", payload("filter"))
        assert (status, answer["NodeNames"]) == (200, ["node-0", "node-1", "node-2"])

    def ops(self, path: str, *, timeout: float = SOON) -> tuple[int, str]:
        """Status and body of a probe or page; status 0 for no answer."""
        client = http.client.HTTPConnection("127.0.0.1", self.ops_port, timeout=timeout)
        try:
            client.request("GET", path)
            answer = client.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            client.close()

    def report(self) -> dict[str, int]:
        """What the fake verbs have seen."""
        report: dict[str, int] = json.loads(self.ops("/gangs")[1])
        return report

    def hold(self, count: int) -> list[socket.socket]:
        """That many bind calls, held; their connections."""
        before = self.report()["held"]
        callers = []
        for number in range(count):
            caller = self.connect()
            caller.sendall(raw("bind", bind_body(f"held-{number}")))
            callers.append(caller)
        self._callers.extend(callers)
        eventually(lambda: self.report()["held"] == before + count, within=SOON, what=f"{count} binds are held")
        return callers

    def release(self) -> None:
        assert self.post("bind", bind_body("release")) == (200, {"Error": ""})

    def kill_worker(self) -> None:
        os.kill(self.report()["pid"], signal.SIGKILL)

    def terminate(self, within: float) -> float:
        """SIGTERM, as the kubelet sends it; the seconds until it was gone."""
        self.program.signal(signal.SIGTERM)
        return self.program.wait(within)

    @property
    def returncode(self) -> int | None:
        process = self.program._process
        return process.returncode if process is not None else None
