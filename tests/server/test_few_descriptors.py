"""The kernel gives the worker no more descriptors: what is connected goes on, and newcomers have their turn once there are some."""

from __future__ import annotations

import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.processes import eventually
from tests.server.service import LONG, SOON, Service, pod_body, raw, read_answer


@contextmanager
def no_more_descriptors(pid: int, numbers: int | None = None) -> Iterator[None]:
    """Beyond those that it has, which stay open. numbers: below which a new one has to be, where not below the highest; with 0 of them no
    free number has to be filled, and poll(2) is refused besides."""
    was = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    if numbers is None:
        numbers = 1 + max(int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir())
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (numbers, was[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, was)


def fill(service: Service, pid: int) -> list[socket.socket]:
    """The numbers below the highest that are free, and three more that wait to be accepted."""
    there = {int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir()}
    return [service.connect() for _ in range(max(there) + 1 - len(there) + 3)]


def test_what_is_connected_goes_on_and_the_others_come_later(start: Callable[..., Service]) -> None:
    service = start(request_seconds=LONG)
    pid = service.report()["pid"]
    held = service.hold(2)
    caller = service.connect()
    caller.sendall(raw("filter", pod_body("before")))
    assert read_answer(caller)[0] == 200
    with no_more_descriptors(pid):
        waiting = fill(service, pid)
        eventually(
            lambda: "Too many open files" in service.program.log(), within=SOON, what="one could not be accepted"
        )
        caller.sendall(raw("filter", pod_body("meanwhile")))
        assert read_answer(caller)[0] == 200
    waiting[-1].sendall(raw("filter", pod_body("after")))
    assert read_answer(waiting[-1])[0] == 200
    service.release()
    assert [read_answer(each)[0] for each in held] == [200, 200]
    eventually(lambda: service.ops("/livez") == (200, "ok"), within=SOON, what="alive")
    assert service.report()["pid"] == pid, "the worker was not replaced"
    for each in (*waiting, caller):
        each.close()
