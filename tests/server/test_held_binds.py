"""Bind calls that are held, against the real worker: they cost others nothing and end with their callers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from extender.server.worker import KEEP_ALIVE
from tests.e2e.processes import eventually
from tests.server.service import SOON, Service, bind_body, payload, pod_body, raw, read_answer

MANY = 1000


@pytest.fixture
def held(service: Service) -> Iterator[Callable[[int], list[socket.socket]]]:
    opened: list[socket.socket] = []

    def hold(count: int) -> list[socket.socket]:
        opened.extend(service.hold(count))
        return opened

    yield hold
    for sock in opened:
        sock.close()
    eventually(lambda: service.report()["held"] == 0, within=SOON, what="no member is held")


def test_a_thousand_held_binds_keep_no_caller_waiting(
    service: Service, held: Callable[[int], list[socket.socket]]
) -> None:
    callers = held(MANY)
    service.filter()
    assert service.ops("/livez") == (200, "ok")
    assert service.ops("/metrics")[0] == 200
    service.release()
    assert [read_answer(caller) for caller in callers] == [(200, b'{"Error":""}')] * MANY


@pytest.mark.parametrize(
    "leave",
    [
        pytest.param(lambda sock: sock.close(), id="closes"),
        pytest.param(lambda sock: sock.shutdown(socket.SHUT_WR), id="says that it sends no more"),
        pytest.param(lambda sock: _reset(sock), id="resets"),
        pytest.param(lambda sock: (sock.sendall(b"more"), sock.close()), id="sends more and closes"),
    ],
)
def test_a_caller_that_leaves_is_noticed(
    service: Service, held: Callable[[int], list[socket.socket]], leave: Callable[[socket.socket], object]
) -> None:
    before = service.report()["gone"]
    callers = held(3)
    leave(callers[1])
    eventually(lambda: service.report()["gone"] == before + 1, within=SOON, what="one has gone")
    assert service.report()["held"] == 2
    service.release()
    assert [read_answer(caller)[0] for caller in (callers[0], callers[2])] == [200, 200]


def _reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    sock.close()


def test_a_killed_kube_scheduler_lets_go_of_all_its_calls(service: Service) -> None:
    before = service.report()
    request = raw("bind", bind_body("held-far"))
    script = (
        "import socket, sys, time\n"
        f"socks = [socket.create_connection(('127.0.0.1', {service.port})) for _ in range(100)]\n"
        f"[sock.sendall({request!r}) for sock in socks]\n"
        "time.sleep(60)\n"
    )
    scheduler = subprocess.Popen([sys.executable, "-c", script])
    try:
        eventually(lambda: service.report()["held"] == 100, within=SOON, what="100 binds are held")
    finally:
        os.kill(scheduler.pid, signal.SIGKILL)
        scheduler.wait()
    eventually(lambda: service.report()["held"] == 0, within=SOON, what="all are let go")
    assert service.report()["gone"] == before["gone"] + 100


def test_a_kube_scheduler_whose_machine_is_gone_is_asked_for_a_sign_of_life(
    service: Service, held: Callable[[int], list[socket.socket]]
) -> None:
    """Neither FIN nor reset comes from there. The kernel's table shows a keep-alive timer (2) on our end, 15 s at most ahead."""
    (caller,) = held(1)
    timer, due = keep_alive_timer(service.port, caller.getsockname()[1])
    assert timer == 2
    assert 0 <= due <= 15


def keep_alive_timer(port: int, peer: int) -> tuple[int, float]:
    """Of the connection from `peer` on loopback: the kind of timer that runs, and the seconds until it is due."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, _, timer, *_ = line.split()
        if (int(local.split(":")[1], 16), int(remote.split(":")[1], 16)) == (port, peer):
            kind, ticks = timer.split(":")
            return int(kind, 16), int(ticks, 16) / os.sysconf("SC_CLK_TCK")
    raise AssertionError("no such connection")


def test_a_caller_that_gives_no_sign_of_life_is_given_up_after_45_seconds() -> None:
    options = dict(KEEP_ALIVE)
    seconds = options[socket.TCP_KEEPIDLE] + options[socket.TCP_KEEPINTVL] * options[socket.TCP_KEEPCNT]
    assert (len(options), seconds) == (3, 45)


def test_planning_on_a_native_thread_keeps_no_caller_waiting(service: Service) -> None:
    before = service.report()["filter"]
    with service.connect() as planner:
        planner.sendall(raw("filter", pod_body("plan-it")))  # pure Python until another call has come in
        eventually(lambda: service.report()["filter"] == before + 1, within=SOON, what="it is being planned")
        service.filter()
        assert read_answer(planner)[0] == 200


def test_where_no_thread_can_be_had_any_more_plans_are_made_all_the_same(start: Callable[..., Service]) -> None:
    """As where the pod's limit on processes is reached. gevent's pool raised, and did the work later, beside other work."""
    service = start()
    assert service.post("filter", pod_body("starve-it"))[1]["Error"] == ""
    planners = [service.connect() for _ in range(3)]
    for planner in planners:
        planner.sendall(raw("filter", pod_body("offload-it")))
    service.filter()
    assert ["internal error" in str(read_answer(planner)[1]) for planner in planners] == [False] * 3
    for planner in planners:
        planner.close()
    assert service.ops("/livez") == (200, "ok")
    assert "Traceback" not in service.program.log()


def test_nothing_is_left_of_callers_that_came_and_went(service: Service) -> None:
    open_files = Path(f"/proc/{service.report()['pid']}/fd")
    before = len(list(open_files.iterdir()))
    for _ in range(3):
        for caller in service.hold(50):
            caller.close()
        eventually(lambda: service.report()["held"] == 0, within=SOON, what="no member is held")
    for _ in range(50):
        service.post("filter", payload("filter"))
    eventually(lambda: len(list(open_files.iterdir())) <= before + 2, within=SOON, what="the descriptors are closed")
