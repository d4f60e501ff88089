"""Log lines to standard error, from a thread that may block where the verbs may not.

A sink that does not keep up, a full pipe, costs lines and is counted; it stalls nobody.
"""

from __future__ import annotations

import logging
import logging.handlers
import queue
import sys

from extender import metrics

MAX_QUEUED = 10_000
_LEVELS = {0: logging.ERROR, 1: logging.WARNING, 2: logging.INFO, 3: logging.INFO}
FORMAT = "%(levelname).1s%(asctime)s %(name)s] %(message)s"


class DroppingQueueHandler(logging.handlers.QueueHandler):
    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            metrics.log_drops.inc()


def set_up(verbosity: int) -> logging.handlers.QueueListener:
    """verbosity as in Kubernetes' -v: 2 what happens, 4 decisions, 5 and more everything. The caller stops the listener."""
    sink = logging.StreamHandler(sys.stderr)
    sink.setFormatter(logging.Formatter(FORMAT, "%m%d %H:%M:%S"))
    lines: queue.Queue[logging.LogRecord] = queue.Queue(MAX_QUEUED)
    root = logging.getLogger()
    root.handlers[:] = [DroppingQueueHandler(lines)]
    root.setLevel(logging.INFO)
    logging.getLogger("extender").setLevel(_LEVELS.get(verbosity, logging.DEBUG))
    for chatty in ("urllib3", "werkzeug", "kubernetes"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    listener = logging.handlers.QueueListener(lines, sink)
    listener.start()
    return listener
