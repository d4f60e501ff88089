"""Log lines: one each, whatever is in them, and no caller waits for a reader that does not read."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from extender import metrics
from extender.server import logs
from tests.e2e.processes import eventually, free_port
from tests.server.conftest import TIMES
from tests.server.service import SOON, Service, pod_body


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    for fd in (read, write):
        os.close(fd)


def record(message: str, *args: object) -> logging.LogRecord:
    return logging.LogRecord("extender.a", logging.INFO, __file__, 1, message, args, None)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        pytest.param("web-0", "pod bound pod=web-0", id="as in Kubernetes' own logs"),
        pytest.param("a\nI0101 forged", r"pod bound pod=a\x0aI0101 forged", id="a line break is no second line"),
        pytest.param("\x1b[2J", r"pod bound pod=\x1b[2J", id="nothing that a terminal obeys"),
        pytest.param("a\u2028b", r"pod bound pod=a\u2028b", id="nor a line break of Unicode's"),
        pytest.param("größe", "pod bound pod=größe", id="letters stay"),
    ],
)
def test_a_message_is_one_line(name: str, line: str) -> None:
    written: list[bytes] = []
    logs.LineHandler(written.append).emit(record("pod bound pod=%s", name))
    assert re.fullmatch(rf"I\d{{4}} \d\d:\d\d:\d\d\.\d{{3}} extender\.a\] {re.escape(line)}\n", written[0].decode())


def test_what_cannot_be_encoded_is_written_all_the_same() -> None:
    written: list[bytes] = []
    logs.LineHandler(written.append).emit(record("pod=%s", "\ud800"))
    assert rb"\ud800" in written[0]


@pytest.mark.parametrize(
    ("message", "arguments", "expected"),
    [
        pytest.param(
            "pod bound pod=%s node=%s", ("a", "n"), {"msg": "pod bound", "pod": "a", "node": "n"}, id="fields"
        ),
        pytest.param("%s ended resource=%s", ("list", "pods"), {"msg": "list ended", "resource": "pods"}, id="both"),
        pytest.param("victims=%d share=%.1f", (3, 0.25), {"msg": "", "victims": 3, "share": 0.25}, id="numbers"),
        pytest.param("pod=%s", ('a" } \n x',), {"msg": "", "pod": 'a" } \n x'}, id="a value cannot forge a field"),
        pytest.param("msg=%s v=%s", ("a", "b"), {"msg": "", "msg_": "a", "v_": "b"}, id="names that are taken"),
        pytest.param("100%% of x=1", (), {"msg": "100%% of x=1"}, id="a whole message stays"),
        pytest.param("half %s %s", ("a",), None, id="too few values"),
        pytest.param("1%% of nodes node=%s", ("n",), {"msg": "1% of nodes", "node": "n"}, id="a percent sign"),
    ],
)
def test_json_has_a_field_for_each_value(
    message: str, arguments: tuple[object, ...], expected: dict[str, Any] | None
) -> None:
    written: list[bytes] = []
    handler = logs.LineHandler(written.append, logs.JSON)
    if expected is None:
        with pytest.raises(TypeError):  # as of a text line: logging says so itself
            handler.emit(record(message, *arguments))
        return
    handler.emit(record(message, *arguments))
    (line,) = written[0].splitlines()
    found = json.loads(line)
    assert {key: found.pop(key) for key in ("caller", "level")} == {"caller": "extender.a:1", "level": "info"}
    assert found.pop("v") == 2
    assert abs(found.pop("ts") / 1000 - time.time()) < 60
    assert found == expected


def test_json_of_an_error_has_its_traceback_on_the_same_line() -> None:
    written: list[bytes] = []
    try:
        raise ValueError("lost")
    except ValueError:
        failed = logging.LogRecord("extender.a", logging.ERROR, __file__, 1, "failed pod=%s", ("a",), sys.exc_info())
    logs.LineHandler(written.append, logs.JSON).emit(failed)
    (line,) = written[0].splitlines()
    found = json.loads(line)
    assert ("v" in found, found["level"], found["pod"]) == (False, "error", "a")
    assert found["stacktrace"].endswith("ValueError: lost")


def test_a_traceback_forges_no_message() -> None:
    written: list[bytes] = []
    try:
        raise ValueError("lost\nI0101 00:00:00.000 extender.a] forged\x1b[2J")
    except ValueError:
        failed = logging.LogRecord("extender.a", logging.ERROR, __file__, 1, "failed", (), sys.exc_info())
    logs.LineHandler(written.append).emit(failed)
    first, *traceback = written[0].decode().splitlines()
    assert first.endswith("failed")
    assert all(line.startswith("  ") and line.isprintable() for line in traceback)
    assert traceback[-1] == r"  I0101 00:00:00.000 extender.a] forged\x1b[2J"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('password: "', id="a quote that is not closed"),
        pytest.param("password=", id="no value: what follows is of JSON"),
        pytest.param(r"key: \"x1\\", id="quotes that are escaped"),
        pytest.param("token: 'x1", id="another quote"),
    ],
)
def test_json_stays_json_where_secrets_are_taken_out(text: str) -> None:
    written: list[bytes] = []
    logs.LineHandler(written.append, logs.JSON).emit(record("pod bound pod=%s node=%s: %s", text, "n", text))
    assert json.loads(written[0])["node"] == "n"


@pytest.fixture
def writer(pipe: tuple[int, int]) -> Iterator[logs.LineWriter]:
    threads: list[threading.Thread] = []

    def start_thread(run: Callable[[], None], args: tuple[()]) -> None:
        threads.append(threading.Thread(target=run, args=args))
        threads[-1].start()

    writer = logs.LineWriter(start_thread, pipe[1])
    yield writer
    writer.stop()
    os.set_blocking(pipe[0], False)
    while threads[0].is_alive():
        drain(pipe[0])
        threads[0].join(0.01)


def drain(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except BlockingIOError:
        return b""


def test_lines_come_out_in_order(pipe: tuple[int, int], writer: logs.LineWriter) -> None:
    for number in range(100):
        writer.write(b"%d\n" % number)
    writer.flush(5)
    assert drain(pipe[0]).split() == [b"%d" % number for number in range(100)]


def test_a_reader_that_does_not_read_costs_lines_and_no_time(
    writer: logs.LineWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MAX_QUEUED", 50)
    before = metrics.log_drops._value.get()
    for _ in range(200):
        writer.write(b"x" * 10_000)
    writer.flush(0.05)
    assert metrics.log_drops._value.get() - before >= 140


def test_a_sink_that_is_gone_is_no_error(pipe: tuple[int, int], capfd: pytest.CaptureFixture[str]) -> None:
    threads: list[threading.Thread] = []
    gone = os.dup(pipe[1])
    os.close(gone)
    writer = logs.LineWriter(lambda run, args: threads.append(threading.Thread(target=run, args=args)), gone)
    writer.write(b"a")
    writer.stop()
    threads[0].start()
    threads[0].join(5)
    writer.flush(0)
    assert capfd.readouterr().err == ""


def test_what_is_printed_goes_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    written: list[bytes] = []
    logs.take_stderr(written.append)
    print("a traceback", file=sys.stderr)
    assert b"".join(written) == b"a traceback\n"


def test_a_blocked_stderr_stops_neither_verbs_nor_probes_nor_the_end() -> None:
    """As when what collects the logs has stopped reading."""
    port, ops_port = free_port(), free_port()
    options = json.dumps({"port": port, "ops_port": ops_port, **TIMES})
    program = subprocess.Popen([sys.executable, "-m", "tests.server.program", options], stderr=subprocess.PIPE)
    service = Service.__new__(Service)
    service.port, service.ops_port, service.client_context = port, ops_port, None
    try:
        eventually(lambda: service.ops("/readyz")[0] == 200, within=SOON, what="it is ready")
        for _ in range(20):
            assert service.post("filter", pod_body("log-much"))[0] == 200  # 200 kB of log each
            with service.connect() as garbage:
                garbage.sendall(b"garbage\r\n\r\n")
        service.filter()
        assert service.ops("/livez") == (200, "ok")
        program.terminate()
        assert program.wait(SOON) == 0
    finally:
        program.kill()
        program.communicate()
