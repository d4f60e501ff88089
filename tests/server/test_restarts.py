"""The master over its worker: replaced when killed or blocked, one at a time, and not to be changed from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.processes import eventually, free_port
from tests.server.service import SOON, Service, ended, pod_body, raw


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


def test_a_killed_worker_is_replaced(start: Callable[..., Service]) -> None:
    service = start()
    caller = service.hold(1)[0]
    first = service.report()["pid"]
    service.kill_worker()
    assert ended(caller, within=SOON)
    eventually(lambda: service.ops("/readyz", timeout=1)[0] == 200, within=SOON, what="a new worker is ready")
    assert service.report()["pid"] != first
    assert service.report()["held"] == 0
    service.filter()


def test_a_blocked_worker_is_replaced(start: Callable[..., Service]) -> None:
    service = start(blocked_seconds=2)
    first = service.report()["pid"]
    with service.connect() as caller:
        caller.sendall(raw("filter", pod_body("block-it")))  # pure Python on the event loop, without end
        assert ended(caller, within=SOON)
    eventually(lambda: service.ops("/readyz", timeout=1)[0] == 200, within=SOON, what="a new worker is ready")
    assert service.report()["pid"] != first


@pytest.mark.parametrize("name", ["SIGHUP", "SIGTTIN", "SIGTTOU", "SIGUSR2", "SIGWINCH"])
def test_no_signal_makes_a_second_worker(start: Callable[..., Service], name: str) -> None:
    service = start()
    before = children(service.program.pid)
    service.program.signal(getattr(signal, name))
    eventually(lambda: "ignored" in service.program.log(), within=SOON, what="the signal is ignored, and that is said")
    assert children(service.program.pid) == before == [service.report()["pid"]]


def test_the_environment_changes_nothing(start: Callable[..., Service]) -> None:
    elsewhere = free_port()
    service = start(
        {
            "GUNICORN_CMD_ARGS": f"--workers 4 --bind 127.0.0.1:{elsewhere} --worker-class sync --timeout 1",
            "GUNICORN_PID": "1",
            "GUNICORN_FD": "0",
            "LISTEN_FDS": "1",
            "WEB_CONCURRENCY": "4",
            "PORT": str(elsewhere),
            "FORWARDED_ALLOW_IPS": "*",
        }
    )
    assert children(service.program.pid) == [service.report()["pid"]]
    with pytest.raises(ConnectionRefusedError):
        service.connect(elsewhere)


def test_no_file_is_left_behind(start: Callable[..., Service], tmp_path: Path) -> None:
    """gunicorn's control socket would be in the home folder, which need not be writable."""
    home = tmp_path / "home"
    home.mkdir()
    service = start({"HOME": str(home), "XDG_RUNTIME_DIR": str(home)})
    service.filter()
    assert list(home.rglob("*")) == []


def test_a_taken_port_is_named(service: Service, tmp_path: Path) -> None:
    second = Service(tmp_path)
    second.program.command[-1] = second.program.command[-1].replace(str(second.ops_port), str(service.ops_port))
    second.program.start()
    second.program.wait(within=SOON)
    assert second.returncode == 1
    assert f"cannot listen on 127.0.0.1:{service.ops_port}: Address already in use" in second.program.log()


def test_verbs_that_cannot_be_built_end_it_with_the_reason(tmp_path: Path) -> None:
    """Also where the thread that writes the log is slow: its process waits for it."""
    script = (
        "from extender.server import serve\n"
        "from extender.server.options import ServeOptions\n"
        "import gevent.monkey, os, sys\n"
        "sleep, write = gevent.monkey.get_original('time', 'sleep'), os.write\n"
        "def slow(fd, line):\n"
        "    if fd == 2: sleep(0.05)\n"
        "    return write(fd, line)\n"
        "os.write = slow\n"
        "def build(offload): raise RuntimeError('no such cluster')\n"
        f"sys.exit(serve.run(build, ServeOptions(port={free_port()}, ops_port={free_port()})))\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=SOON, check=False)
    assert ended.returncode == 1
    assert "no such cluster" in ended.stderr


def test_open_files_are_enough_for_all_connections(service: Service) -> None:
    limits = Path(f"/proc/{service.report()['pid']}/limits").read_text()
    soft = next(line for line in limits.splitlines() if line.startswith("Max open files")).split()[3]
    assert int(soft) >= 2 * 4096 or soft == str(os.sysconf("SC_OPEN_MAX"))
