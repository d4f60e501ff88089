"""SIGTERM, SIGINT and the death of the master: held binds are answered, commits that began are carried to their end."""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from extender.server.options import ServeOptions
from extender.server.worker import Listener
from tests.e2e.processes import eventually
from tests.server.service import LONG, SOON, Service, bind_body, ended, payload, pod_body, raw, read_answer

DRAINED = (200, b'{"Error":"the extender is shutting down"}')


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_held_binds_are_answered_and_it_ends(start: Callable[..., Service], number: signal.Signals) -> None:
    service = start(drain_seconds=LONG)
    callers = service.hold(200)
    service.program.signal(number)
    assert [read_answer(caller) for caller in callers] == [DRAINED] * 200
    service.program.wait(within=SOON)
    assert service.returncode == 0


def test_held_binds_are_answered_at_once_while_a_commit_goes_on(start: Callable[..., Service]) -> None:
    """One that has no end: what is answered was not kept waiting for it."""
    service = start(drain_seconds=LONG)
    callers = service.hold(200)
    with service.connect() as committing:
        committing.sendall(raw("bind", bind_body("endless-it")))
        eventually(lambda: service.report()["bind"] == 201, within=SOON, what="the commit has begun")
        service.program.signal(signal.SIGTERM)
        assert [read_answer(caller) for caller in callers] == [DRAINED] * 200
        assert service.program.running
        service.program.kill()


def test_connections_that_ask_for_nothing_keep_it_from_ending_no_longer(start: Callable[..., Service]) -> None:
    service = start(drain_seconds=LONG, idle_seconds=LONG, request_seconds=LONG)
    idle = service.client()
    idle.request("POST", "/filter", payload("filter"))
    idle.getresponse().read()
    with service.connect(), service.connect(service.ops_port):
        service.terminate(within=SOON)
    idle.close()
    assert service.returncode == 0


def test_a_commit_that_began_is_carried_to_its_end(start: Callable[..., Service]) -> None:
    service = start(drain_seconds=LONG)
    held = service.hold(1)[0]
    with service.connect() as committing:
        committing.sendall(raw("bind", bind_body("commit-it")))
        eventually(lambda: service.report()["bind"] == 2, within=SOON, what="the commit has begun")
        service.program.signal(signal.SIGTERM)
        answered, _, _ = select.select([held, committing], [], [], SOON)
        assert held in answered, "the commit was answered first"
        assert read_answer(held) == DRAINED
        assert read_answer(committing) == (200, b'{"Error":""}')
    service.program.wait(within=SOON)
    assert service.returncode == 0


def test_a_commit_that_never_ends_is_left_at_the_limit(start: Callable[..., Service]) -> None:
    service = start(drain_seconds=0.5)
    with service.connect() as committing:
        committing.sendall(raw("bind", bind_body("endless-it")))
        eventually(lambda: service.report()["bind"] == 1, within=SOON, what="the commit has begun")
        service.terminate(within=SOON)
        assert ended(committing, within=SOON)
    assert "the verbs were stopped" in service.program.log(), "by itself: gunicorn's master had not to kill it"


@pytest.mark.parametrize(
    ("drain_seconds", "told"),
    [
        pytest.param(LONG, True, id="in time"),
        pytest.param(0.5, False, id="not in time: the next leader finishes it"),
    ],
)
def test_an_eviction_that_began_is_carried_to_its_end_meanwhile_held_binds_are_answered(
    start: Callable[..., Service], drain_seconds: float, told: bool
) -> None:
    """It had half a second."""
    service = start(drain_seconds=drain_seconds)
    held = service.hold(1)[0]
    assert service.post("filter", pod_body("evict-it"))[0] == 200
    service.program.signal(signal.SIGTERM)
    assert read_answer(held) == DRAINED
    service.program.wait(within=SOON)
    assert ("all victims were told" in service.program.log()) is told


def test_no_new_connection_is_let_in_meanwhile(start: Callable[..., Service]) -> None:
    service = start()
    with service.connect() as committing:
        committing.sendall(raw("bind", bind_body("commit-it")))
        eventually(lambda: service.report()["bind"] == 1, within=SOON, what="the commit has begun")
        service.program.signal(signal.SIGTERM)
        eventually(lambda: _refused(service.port), within=SOON, what="the port is closed")
        assert read_answer(committing)[0] == 200


def _refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return True
    return False


def test_half_a_request_does_not_keep_it(start: Callable[..., Service]) -> None:
    service = start(drain_seconds=LONG, request_seconds=LONG)
    with service.connect() as slow:
        slow.sendall(raw("filter", b"{", length=1000))
        assert service.post("filter", payload("filter"))[0] == 200
        service.terminate(within=SOON)


def test_a_worker_without_its_master_answers_and_goes(start: Callable[..., Service]) -> None:
    """A commit that it has begun takes it longer than to notice."""
    service = start()
    callers = service.hold(5)
    worker = service.report()["pid"]
    with service.connect() as committing:
        committing.sendall(raw("bind", bind_body("commit-it")))
        eventually(lambda: service.report()["bind"] == 6, within=SOON, what="the commit has begun")
        os.kill(service.program.pid, signal.SIGKILL)
        service.program.wait(within=SOON)
        assert [read_answer(caller) for caller in callers] == [DRAINED] * 5
        assert read_answer(committing) == (200, b'{"Error":""}')
    eventually(lambda: not Path(f"/proc/{worker}").exists(), within=SOON, what="the worker is gone")


def test_a_listener_that_was_closed_says_where_it_was_for_the_callers_that_it_had_accepted() -> None:
    """The closed socket does not, and each such caller was a traceback in the log."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        name = sock.getsockname()
        listener = Listener(sock, ServeOptions(port=name[1]))
    assert sock.fileno() == -1
    assert (listener.getsockname(), listener.is_verbs) == (name, True)
