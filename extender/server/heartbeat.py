"""The worker's heartbeat, by which gunicorn's master sees a worker that is blocked: a file that is in no folder.

gunicorn makes one in a folder for temporary files, and there need not be one: a root file system may be read-only, a disk full.
Used by worker.
"""

from __future__ import annotations

import os
from typing import Any

from gunicorn.workers import base
from gunicorn.workers.workertmp import WorkerTmp


class Heartbeat(WorkerTmp):  # type: ignore[misc]
    """In memory. Made by the master, inherited by its worker."""

    def __init__(self, cfg: Any) -> None:
        self._tmp = os.fdopen(os.memfd_create("heartbeat"), "w+b", 0)


def install() -> None:
    """For all workers of this process. gunicorn has no setting for it."""
    base.WorkerTmp = Heartbeat
