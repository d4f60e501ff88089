"""A program that a test starts, with its log in a file: awaited until ready, ended by its own pid, restarted.

Used by control_plane and extender. Nothing here knows what the programs are.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

BLOCKS, BLOCK = 40, 250
_ports: list[int] = []  # ours, and not given out yet


class NotReadyError(Exception):
    """A program ended, or did not get ready in time; the message ends with the tail of its log."""


def free_port() -> int:
    """None that a connection may be given: while its program is away any other's could take it, one to this very port too."""
    while True:
        if not _ports:
            _ports.extend(_claimed_block())
        port = _ports.pop()
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _claimed_block() -> range:
    """Ports that are this process's alone until it ends: two runs of the tests on one machine, or a benchmark beside them,
    would else give the same out before a program listens there. Raises OSError if all are taken."""
    first = _first_ephemeral_port()
    for block in random.sample(range(BLOCKS), BLOCKS):
        claim = socket.socket(socket.AF_UNIX)
        with suppress(OSError):
            claim.bind(f"\0gang-extender-tests-ports-{block}")
            claim.detach()  # stays open
            start = first - (block + 1) * BLOCK
            return range(start, start + BLOCK)
        claim.close()
    raise OSError("no free port")


def _first_ephemeral_port() -> int:
    with suppress(OSError):
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    return 32768


def eventually(true: Callable[[], object], *, within: float, what: str, every: float = 0.02) -> float:
    """Waits until `true()` is; returns the seconds that it took. For what no event can be had for."""
    began = time.monotonic()
    while not true():
        if time.monotonic() - began > within:
            raise AssertionError(f"not within {within:g} s: {what}")
        time.sleep(every)
    return time.monotonic() - began


class Program:
    """One process at a time under one name; every start appends to the same log."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.command = list(command)
        self.log_file = folder / f"{name}.log"
        self.output = self.log_file  # another where something stands in between
        self.env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    def start(self) -> None:
        assert not self.running, f"{self.name} runs already"
        with self.output.open("ab", buffering=0) as log:
            # a session of its own: what it starts in turn (gunicorn's worker) can be ended with it
            self._process = subprocess.Popen(
                self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.env, start_new_session=True
            )

    def await_ready(self, ready: Callable[[], bool], within: float = 60) -> None:
        deadline = time.monotonic() + within
        while not ready():
            if not self.running:
                raise NotReadyError(
                    f"{self.name} ended with {self._process and self._process.returncode}\n{self.tail()}"
                )
            if time.monotonic() > deadline:
                raise NotReadyError(f"{self.name} was not ready within {within:g} s\n{self.tail()}")
            time.sleep(0.02)

    def signal_group(self, number: signal.Signals) -> None:
        """To the process and all that it started: as the kernel freezes a whole container."""
        if self.running:
            os.killpg(self.pid, number)

    def signal(self, number: signal.Signals) -> None:
        """To the process itself, which passes it on as it would in production."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """As if the machine took it away: the process and all that it started."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def wait(self, within: float) -> float:
        """The seconds until it had ended; raises subprocess.TimeoutExpired if it has not."""
        assert self._process is not None
        began = time.monotonic()
        self._process.wait(within)
        return time.monotonic() - began

    def stop(self, within: float = 10) -> None:
        """TERM, and KILL for what is still there."""
        if self._process is None:
            return
        self.signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(within)
        self.kill()

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def tail(self, lines: int = 40) -> str:
        return "\n".join(f"  {self.name}| {line}" for line in self.log().splitlines()[-lines:])
