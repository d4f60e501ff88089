"""Log lines to standard error that never stall the thread that logs, and tell no secret.

A write to a full pipe blocks, and in the worker it would block the event loop with every verb and probe: there a native
thread writes, and lines that it cannot keep up with are dropped and counted. The master, which has no loop, asks first.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import select
import sys
import time
from _queue import SimpleQueue  # the native one, also where gevent has patched `queue`
from collections.abc import Callable
from typing import Any

from extender import metrics
from extender.redaction import redacted

STDERR = 2
MAX_QUEUED = 10_000
ATOMIC = 4096  # a pipe that is ready takes so many bytes without blocking
TEXT, JSON = FORMATS = ("text", "json")
FORMAT = "%(levelname).1s%(asctime)s.%(msecs)03d %(name)s] %(message)s"
_LEVELS = {0: logging.ERROR, 1: logging.WARNING, 2: logging.INFO, 3: logging.INFO}
MOST_VERBOSE = 10  # as klog's
_CHATTY = ("urllib3", "werkzeug", "kubernetes")
INDENT = "  "  # of the lines of a traceback
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {0x2028: "\\u2028", 0x2029: "\\u2029"}

Write = Callable[[bytes], None]


def set_up(verbosity: int, write: Write, logging_format: str = TEXT) -> None:
    """All logging of this process goes to `write`. verbosity as Kubernetes' -v: 2 what happens, 4 decisions. logging_format: one of
    FORMATS, as kube-scheduler's --logging-format."""
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = (
        False  # looked up for each line, not in FORMAT
    )
    root = logging.getLogger()
    root.handlers[:] = [LineHandler(write, logging_format)]
    root.setLevel(logging.INFO)
    set_verbosity(verbosity)
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel(logging.ERROR)


def set_verbosity(verbosity: int) -> None:
    """Of what is logged from here on, as Kubernetes' -v."""
    logging.getLogger("extender").setLevel(_LEVELS.get(verbosity, logging.DEBUG))


def take_stderr(write: Write) -> None:
    """What is printed there (tracebacks of threads and greenlets) takes the same way."""
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Raw(write)), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )


def write_if_ready(line: bytes) -> None:
    """For a process without a thread for it: a sink that does not take the line at once does not get it."""
    try:
        if select.select([], [STDERR], [], 0)[1]:
            os.write(STDERR, line[:ATOMIC])
    except (OSError, ValueError):
        return


class LineWriter:
    """Writes lines to a descriptor from one native thread. `write` never blocks."""

    def __init__(self, start_thread: Callable[[Callable[[], None], tuple[()]], Any], fd: int = STDERR) -> None:
        self._fd = fd
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._accepted = 0  # counted by the callers of write, all on one native thread
        self._written = 0  # counted by our thread
        start_thread(self._run, ())

    def write(self, line: bytes) -> None:
        if not line:
            return
        if self._accepted - self._written >= MAX_QUEUED:
            metrics.log_drops.inc()
            return
        self._accepted += 1
        self._lines.put(line)

    def flush(self, seconds: float) -> None:
        """Waits until all is written, but no longer than that."""
        until = time.monotonic() + seconds
        while self._written < self._accepted and time.monotonic() < until:
            time.sleep(0.005)

    def stop(self) -> None:
        """Ends the thread when it has written what is there."""
        self._lines.put(b"")

    def _run(self) -> None:
        while line := self._lines.get():
            try:
                while line:
                    line = line[os.write(self._fd, line) :]
            except Exception:
                line = b""  # the reader has gone: nothing to be done, and nowhere to say so
            self._written += 1


class LineFormatter(logging.Formatter):
    """A message is one line, whatever names a caller puts into it; a traceback follows on lines of its own."""

    def __init__(self) -> None:
        super().__init__(FORMAT, "%m%d %H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = record.message.translate(_CONTROL)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - likewise
        """Indented: what an exception says, which may be a tenant's text with line breaks, forges no message."""
        return "\n".join(INDENT + line.translate(_CONTROL) for line in super().formatException(ei).split("\n"))


_DIRECTIVE = re.compile(r"(?:(?:^| )(?P<key>[A-Za-z_]\w*)=)?(?P<format>%[-#0 +]*\d*(?:\.\d+)?[A-Za-z%])")
_VERBOSITY = {logging.DEBUG: 4}


class JSONFormatter(logging.Formatter):
    """A JSON object on a line: `ts` (milliseconds since 1970), `caller`, `msg`, `v` as kube-scheduler's, and `level`.

    What a message says as `pod=web-0` is a field. Errors have no `v`, as there. Each text is without its secrets before it is JSON: a
    secret that is taken out of a line of JSON may take a quote or a brace with it. k8s.io/component-base/logs/json
    """

    def format(self, record: logging.LogRecord) -> str:
        message, fields = _split(record)
        line: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{record.name}:{record.lineno}",
            "level": record.levelname.lower(),
            "msg": redacted(message),
        }
        if record.levelno < logging.ERROR:
            line["v"] = _VERBOSITY.get(record.levelno, 2)
        for key, value in fields.items():
            line[f"{key}_" if key in line else key] = _told(key, value)
        if record.exc_info:
            line["stacktrace"] = redacted(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


def _told(key: str, value: Any) -> Any:
    """Of a field. Its name says too that it is a secret, as in `token=...`."""
    if not isinstance(value, str):
        return value
    name = f"{key}="
    return redacted(name + value).removeprefix(name)


def _split(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """The message without its `key=value`, and those. A message that is given whole, as by libraries, has none."""
    if not isinstance(record.msg, str) or not isinstance(record.args, tuple) or not record.args:
        return record.getMessage(), {}
    values = iter(record.args)
    fields: dict[str, Any] = {}

    def place(directive: re.Match[str]) -> str:
        if directive["format"] == "%%":
            return directive[0].replace("%%", "%")
        value = next(values)
        if directive["key"] is None:
            return str(directive["format"] % (value,))
        fields[directive["key"]] = value if isinstance(value, (bool, int, float)) else str(value)
        return ""

    try:
        return _DIRECTIVE.sub(place, record.msg).strip(), fields
    except (StopIteration, TypeError, ValueError):  # not written as ours are
        return record.getMessage(), {}


class LineHandler(logging.Handler):
    """Of a text line the secrets are taken out here; JSON comes without."""

    def __init__(self, write: Write, logging_format: str = TEXT) -> None:
        super().__init__()
        self._write = write
        self._is_json = logging_format == JSON
        self.setFormatter(JSONFormatter() if self._is_json else LineFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        self._write(((line if self._is_json else redacted(line)) + "\n").encode("utf-8", "backslashreplace"))


class _Raw(io.RawIOBase):
    def __init__(self, write: Write) -> None:
        self._write_line = write

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        line = bytes(data)
        self._write_line(redacted(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape"))
        return len(line)
