"""A command whose output is not read to its end, or that is interrupted: it ends at once, quietly, as a shell expects."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tests.e2e.processes import eventually

CLOSED, INTERRUPTED = 141, 130
SECONDS = 30.0
BUFFERED = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
COMMAND = [sys.executable, "-W", "error", "-m", "extender.cli.main"]


@pytest.fixture
def pods(tmp_path: Path) -> str:
    """More of them than a pipe holds; they run already."""
    meta = {"namespace": "n" * 60}
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "name": f"pod-{number}"}, "spec": {"nodeName": "node"}}
        for number in range(1000)
    ]
    file = tmp_path / "pods.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    return str(file)


@pytest.fixture
def scenarios(tmp_path: Path) -> str:
    file = tmp_path / "scenarios.json"
    pending = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    nodes = [{"metadata": {"name": f"node-{number}"}} for number in range(500)]
    file.write_text(json.dumps([{"name": "a", "nodes": nodes, "pending": pending}]))
    return str(file)


@pytest.fixture
def url() -> Iterator[str]:
    """An ops listener with more gangs than a pipe holds."""

    class Gangs(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(["gang"] * 20_000).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  - the base's name
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Gangs) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["simulate", "PODS"], id="a table"),
        pytest.param(["simulate", "PODS", "-o", "json"], id="JSON"),
        pytest.param(["evaluate", "SCENARIOS"], id="evaluate"),
        pytest.param(["explain", "--server", "URL", "-o", "json"], id="explain"),
        pytest.param(["version"], id="one line, which only the last flush writes"),
        pytest.param(["simulate", "--help"], id="help"),
        pytest.param(["--help"], id="help of all"),
    ],
)
def test_a_reader_that_leaves_ends_the_command(pods: str, scenarios: str, url: str, arguments: list[str]) -> None:
    named = {"PODS": pods, "SCENARIOS": scenarios, "URL": url}
    command = [*COMMAND, *(named.get(each, each) for each in arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=BUFFERED) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(SECONDS) == CLOSED
        said = process.stderr.read().decode()
    assert [line for line in said.splitlines() if not line.startswith("warning: ")] == []


def test_output_that_cannot_be_written_is_an_error(pods: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, "simulate", pods], stdout=full, stderr=subprocess.PIPE, check=False, timeout=SECONDS
        )
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[-1] == "gang-extender: standard output: No space left on device"
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("form", ["table", "yaml"])
def test_what_the_locale_lacks_is_written_all_the_same(tmp_path: Path, form: str) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: größe}}", encoding="utf-8")
    done = subprocess.run(
        [*COMMAND, "simulate", str(file), "-o", form],
        capture_output=True,
        check=False,
        timeout=SECONDS,
        env={**BUFFERED, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
    assert rb"gr\xf6\xdfe" in done.stdout.lower()


def test_without_a_standard_output_a_command_does_its_work(pods: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{' '.join(COMMAND)} simulate {pods} >&-"], capture_output=True, check=False, timeout=SECONDS
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0


def _unread(pipe: BinaryIO) -> int:
    return int(struct.unpack("i", fcntl.ioctl(pipe.fileno(), termios.FIONREAD, bytes(4)))[0])


@pytest.fixture
def may_be_interrupted() -> Iterator[None]:
    """Programs inherit it that an interrupt is ignored, as it is where a shell has put these tests into the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("may_be_interrupted")
def test_an_interrupted_run_ends_quietly(tmp_path: Path) -> None:
    """The command has read what there is of its file, and waits for more. An interrupt between two reads is noticed when the second
    returns, so the writer goes."""
    pipe = tmp_path / "cluster.yaml"
    os.mkfifo(pipe)
    with subprocess.Popen([*COMMAND, "simulate", str(pipe)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        with pipe.open("wb", buffering=0) as writer:
            writer.write(b"# pods to come\n")
            eventually(lambda: _unread(writer) == 0, within=SECONDS, what="it has read that")
            process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == INTERRUPTED
        assert process.communicate() == (b"", b"")
