"""The standard error of a program as a pipe with a reader that may stop to read, as a container runtime with a full disk.

The program's log file is a named pipe; what is read goes to the file beside it. Used by `rig`.
"""

from __future__ import annotations

import os
import threading

from tests.e2e.processes import Program

PIECE = 65536


class StderrPipe:
    """From `start` to `stop`; open for writing here too, so that no program's end is the pipe's."""

    def __init__(self, program: Program) -> None:
        self._pipe = program.log_file.with_suffix(".pipe")
        self._pipe.unlink(missing_ok=True)
        os.mkfifo(self._pipe)
        self._log = program.log_file
        program.output = self._pipe
        self._flows = threading.Event()
        self._flows.set()
        self._stopping = False
        self._end = -1
        self._thread = threading.Thread(target=self._run, name="stderr", daemon=True)

    def start(self) -> None:
        self._end = os.open(self._pipe, os.O_RDWR)
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self.flow()
        os.write(self._end, b"\n")
        self._thread.join(10)
        os.close(self._end)

    def block(self) -> None:
        """At the latest after one more piece."""
        self._flows.clear()

    def flow(self) -> None:
        self._flows.set()

    def _run(self) -> None:
        with self._log.open("ab", buffering=0) as log:
            while not self._stopping:
                self._flows.wait()
                log.write(os.read(self._end, PIECE))
