"""Clients that send half of what they should, nothing, or without end, against the real worker.

They are let go in time, and nothing else notices: neither the verbs nor the probes. A release of gunicorn that loses one
of the worker's overrides fails here.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.processes import eventually
from tests.server.service import LONG, SOON, Service, bind_body, ended, payload, raw, read_answer

CROWD = 30
HALF = payload("filter")[:100]
CHUNKED = b"POST /filter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


HALVES = {
    "one byte": b"P",
    "half a header": b"POST /filter HTTP/1.1\r\nHost: x\r\nConte",
    "half a body": raw("filter", HALF, length=len(HALF) * 3),
    "no body": raw("bind", b"", length=100),
    "half a chunk": CHUNKED + b"ff\r\nabc",
    "half a body for no verb": raw("nonsense", HALF, length=len(HALF) * 3),
}


@contextmanager
def crowd_at(service: Service) -> Iterator[list[tuple[str, socket.socket]]]:
    """Many connections of each kind that send half a request and then nothing."""
    opened = []
    try:
        for kind, data in list(HALVES.items()) * CROWD:
            sock = service.connect()
            opened.append((kind, sock))
            sock.sendall(data)
        yield opened
    finally:
        for _, sock in opened:
            sock.close()


def test_half_a_request_is_let_go_in_time(service: Service) -> None:
    with crowd_at(service) as crowd:
        assert [kind for kind, sock in crowd if not ended(sock, within=SOON)] == []


def test_half_a_request_keeps_no_other_waiting(start: Callable[..., Service]) -> None:
    service = start(request_seconds=LONG)
    with crowd_at(service):
        service.filter()
        assert service.ops("/livez")[0] == 200


@pytest.mark.parametrize(
    "start_of_it",
    [
        pytest.param(b"POST /filter HTTP/1.1\r\nX: ", id="in the header"),
        pytest.param(raw("filter", b"", length=100_000), id="in the body"),
    ],
)
def test_a_byte_at_a_time_is_no_way_around_the_deadline(service: Service, start_of_it: bytes) -> None:
    began = time.monotonic()
    with service.connect() as sock:
        sock.sendall(start_of_it)
        sock.settimeout(0.1)
        while True:
            try:
                sock.sendall(b"a")
                if not sock.recv(65536):
                    break
            except TimeoutError:
                assert time.monotonic() - began < SOON, "it is read on without end"
            except OSError:
                break
    assert time.monotonic() - began > 0.5


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(b"nonsense\r\n\r\n", 400, id="no HTTP"),
        pytest.param(
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, id="a TLS hello where there is none"
        ),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, id="an HTTP/2 preface"),
        pytest.param(b"POST /" + b"a" * 2000 + b" HTTP/1.1\r\n\r\n", 414, id="a long line"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 40 + b"\r\n", 431, id="many header fields"),
        pytest.param(b"GET / HTTP/1.1\r\nA: " + b"b" * 9000 + b"\r\n\r\n", 431, id="a long header field"),
        pytest.param(raw("filter", b"", "Content-Length: 5"), 400, id="two lengths"),
        pytest.param(raw("filter", b"", "Transfer-Encoding: chunked"), 400, id="a length and chunks"),
        pytest.param(raw("filter", b"", length=-1), 400, id="a length below zero"),
        pytest.param(CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", 411, id="chunks"),
        pytest.param(raw("filter", b"", length=10**12), 413, id="a length beyond all bounds"),
        pytest.param(raw("filter", b"{}"), 400, id="JSON that is no request"),
    ],
)
def test_what_cannot_be_a_request_is_refused(service: Service, data: bytes, status: int) -> None:
    with service.connect() as sock:
        sock.sendall(data)
        assert read_answer(sock)[0] == status
    service.filter()


def test_an_upgrade_to_http_2_is_not_taken(service: Service) -> None:
    with service.connect() as sock:
        upgrade = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
        sock.sendall(raw("filter", payload("filter"), *upgrade))
        assert read_answer(sock)[0] == 200


@pytest.mark.parametrize(
    ("start_of_it", "more"),
    [
        pytest.param(raw("filter", b"", length=8_000_000_000), b"a" * 65536, id="Content-Length beyond the limit"),
        pytest.param(raw("filter", b"", length=16_000_000), b"a" * 65536, id="Content-Length within the limit"),
        pytest.param(CHUNKED, b"8000\r\n" + b"a" * 0x8000 + b"\r\n", id="chunked"),
        pytest.param(b"POST /filter HTTP/1.1\r\n", b"A: " + b"a" * 4000 + b"\r\n", id="headers"),
    ],
)
def test_a_body_without_end_keeps_no_caller_waiting(service: Service, start_of_it: bytes, more: bytes) -> None:
    over = threading.Event()

    def flood() -> None:
        while not over.is_set():
            try:
                with service.connect() as sock:
                    sock.settimeout(1)
                    sock.sendall(start_of_it)
                    while not over.is_set():
                        sock.sendall(more)
            except OSError:
                continue  # closed on us: once more

    senders = [threading.Thread(target=flood) for _ in range(3)]
    for sender in senders:
        sender.start()
    try:
        until = time.monotonic() + 1
        while time.monotonic() < until:
            service.filter()
            assert service.ops("/livez")[0] == 200
    finally:
        over.set()
        for sender in senders:
            sender.join()


def test_an_answer_that_is_not_read_is_given_up(start: Callable[..., Service]) -> None:
    service = start(request_seconds=LONG, send_seconds=0.5, drain_seconds=LONG)
    names = ",".join(f'"{"n" * 200}-{number}"' for number in range(50_000))
    body = ('{"Pod": {"metadata": {"name": "a"}}, "NodeNames": [' + names + "]}").encode()
    with service.connect() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(raw("filter", body))
        eventually(lambda: service.report()["filter"] == 1, within=SOON, what="it is being answered")
        service.filter()
        service.terminate(within=SOON)  # an answer on its way would be waited for
    assert "Traceback" not in service.program.log()


def test_silent_callers_make_room_for_one_that_speaks(start: Callable[..., Service]) -> None:
    """More connections than there are places, on both ports, and none of them says a word."""
    service = start(worker_connections=40)
    silent = [service.connect(port) for port in (service.port, service.ops_port) for _ in range(60)]
    try:
        for _ in range(5):
            service.filter()
            assert service.ops("/livez")[0] == 200
    finally:
        for sock in silent:
            sock.close()


def test_silent_callers_cost_no_other_its_connection(start: Callable[..., Service]) -> None:
    """kube-scheduler's idle one was the oldest of all: its next call met the end of it."""
    service = start(worker_connections=40)
    client = service.client()
    filter_on(client)
    kept = client.sock
    with silent_callers(service, 60):
        service.filter()
        filter_on(client)
    assert client.sock is kept
    client.close()


def filter_on(client: http.client.HTTPConnection) -> None:
    """On the connection that it has kept alive. Raises OSError where that was closed."""
    client.request("POST", "/filter", payload("filter"))
    answer = client.getresponse()
    assert (answer.status, bool(answer.read())) == (200, True)


@contextmanager
def silent_callers(service: Service, count: int) -> Iterator[None]:
    silent = [service.connect() for _ in range(count)]
    try:
        yield
    finally:
        for sock in silent:
            sock.close()


def test_held_binds_up_to_the_last_place_leave_the_probes_alone(start: Callable[..., Service]) -> None:
    service = start(worker_connections=40)
    callers = service.hold(40)
    assert service.ops("/livez") == (200, "ok")
    assert service.ops("/readyz") == (200, "ok")
    for caller in callers:
        caller.close()
    eventually(lambda: service.report()["held"] == 0, within=SOON, what="no member is held")
    assert service.post("bind", bind_body("a")) == (200, {"Error": ""})


def test_an_idle_caller_is_kept(start: Callable[..., Service]) -> None:
    """kube-scheduler keeps two connections open for 90 s: closing them first would fail its next call."""
    service = start(request_seconds=0.3)
    client = service.client()
    for _ in range(2):
        filter_on(client)
        time.sleep(0.6)  # longer than a request may take
    client.close()


def test_requests_come_one_after_the_other_in_one_packet(service: Service) -> None:
    with service.connect() as sock:
        sock.sendall(raw("filter", payload("filter")) * 3)
        data = b""
        sock.settimeout(5)
        while data.count(b'"Error":""}') < 3:
            data += sock.recv(65536)
    assert data.count(b"HTTP/1.1 200 OK") == 3
