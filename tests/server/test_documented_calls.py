"""The pages' commands that ask a running server, word for word: `curl`, `explain`, `whatif`. What stands below one is what it prints.

Each page has a server of its own, started as the page starts it; ports are free ones, and ages and times are not compared.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from extender.cli.main import main
from tests.documented import PAGES, PROJECT, ended_blocks
from tests.e2e.processes import free_port

SERVE = re.compile(r"^\.venv/bin/gang-extender (serve --cluster \S+) &$", re.MULTILINE)
SECONDS = 30.0
ASKING = ("curl ", ".venv/bin/gang-extender explain", ".venv/bin/gang-extender whatif")
AGE = re.compile(r"\b\d+[dhms](?:\d+[hms])?\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def calls(page: Path) -> list[tuple[str, str]]:
    """Commands of the page that ask a server, with what they print."""
    return [each for each in ended_blocks(page) if each[0].startswith(ASKING)]


PAGES_WITH_CALLS = [page for page in PAGES if calls(page)]


@dataclass(frozen=True, slots=True)
class Server:
    port: int
    ops_port: int

    def here(self, text: str) -> str:
        return text.replace("localhost:8888", f"127.0.0.1:{self.port}").replace(
            "localhost:8889", f"127.0.0.1:{self.ops_port}"
        )


@pytest.fixture
def server(page: Path) -> Iterator[Server]:
    """Begun as the page says, and ready."""
    [arguments] = SERVE.findall(page.read_text())
    made = Server(free_port(), free_port())
    ports = [f"--port={made.port}", f"--ops-port={made.ops_port}"]
    command = [sys.executable, "-m", "extender.cli.main", *arguments.split(), *ports]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + SECONDS
        while curl(["-sf", f"http://127.0.0.1:{made.ops_port}/readyz"]).returncode:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield made
        process.terminate()
        process.wait(SECONDS)


def curl(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["curl", *arguments], cwd=PROJECT, capture_output=True, text=True, check=False, timeout=SECONDS
    )


def without_ages(text: str) -> str:
    return AGE.sub("AGE", text)


@pytest.mark.parametrize("page", PAGES_WITH_CALLS, ids=lambda page: page.name)
def test_a_call_answers_what_stands_below_it(page: Path, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    for command, output in calls(page):
        name, *arguments = shlex.split(command)
        if name == "curl":
            done = curl([server.here(each) for each in arguments])
            assert (command, done.stdout.rstrip("\n")) == (command, output.rstrip("\n"))
        else:
            assert main([*arguments, "--server", f"http://127.0.0.1:{server.ops_port}"]) == 0
            assert without_ages(capsys.readouterr().out) == without_ages(output)


def test_readme_shows_each_verb() -> None:
    verbs = {re.search(r"localhost:8888/(\w+)", command) for command, _ in calls(PROJECT / "README.md")}
    assert {each[1] for each in verbs if each} == {"filter", "prioritize", "preempt", "bind"}
