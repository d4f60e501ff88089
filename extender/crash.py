"""Where an exception ends that nobody expected, on a thread that has to go on: logged, counted, and told to the caller.

For every loop that lives as long as the process: informers, background tasks, workers. An outcome that is expected is handled
where it happens and never comes here. In kube-scheduler a panic ends the process, and all that it has assumed with it.
Kubernetes: k8s.io/apimachinery/pkg/util/runtime (HandleCrash, HandleError)
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable

from extender import metrics

log = logging.getLogger(__name__)


def guarded(where: str, work: Callable[[], object]) -> bool:
    """Runs it. False, and never an exception, if it raised; where is a name out of few, for the metric.

    Whoever interrupts the main thread is obeyed.
    """
    try:
        work()
    except BaseException as error:
        if not isinstance(error, Exception) and threading.current_thread() is threading.main_thread():
            raise
        crashed(where)
        return False
    return True


def crashed(where: str) -> None:
    """Called by who has just caught it."""
    with contextlib.suppress(Exception):  # an exception that cannot even be shown
        metrics.unexpected_errors.labels(where).inc()
        log.exception("unexpected error where=%s", where)
