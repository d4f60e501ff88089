"""`gang-extender` whose filter is sick while a file is there: `python -m tests.e2e.sick_extender FILE errs serve ...`.

`errs`: it answers Error to every pod, and is alive all the while: every page and probe is answered. `blocks`: a call blocks its event
loop, and nothing is answered any more. `dies`: a call costs more memory than its container may have, and the kernel kills all in it. How
long it errs, or is not reached, counts in kubelet.py's seconds, so that its probes fail in time. Used by test_sick_leader.
"""

from extender.server import serve as serve  # isort: skip  - patches: everything else comes after

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gevent import monkey

from extender.cli import main as command
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.scheduler import filter_health
from extender.scheduler.filter_health import FilterHealth
from extender.scheduler.unreached import Unreached
from tests.e2e.kubelet import SCALE

SLEEP = monkey.get_original("time", "sleep")  # of the thread, not of a greenlet


def sick_while(file: Path, sick: str, pre_filter: Any) -> Any:
    def faulty(self: Coscheduling, state: object, pod: object, nodes: object) -> Any:
        while sick == "blocks" and file.exists():
            SLEEP(1)
        if sick == "dies" and file.exists():
            os.killpg(0, signal.SIGKILL)  # as memory.oom.group does
        if file.exists():
            raise KeyError("a fault of ours")
        return pre_filter(self, state, pod, nodes)

    return faulty


def in_less_time(init: Any) -> Any:
    def scaled(self: FilterHealth, clock: Callable[[], float], **settings: Any) -> None:
        init(self, lambda: clock() / SCALE, **settings)

    return scaled


def sooner(trouble: Any) -> Any:
    return lambda self, seconds: trouble(self, seconds * SCALE)


def main(file: str, sick: str, *arguments: str) -> int:
    setattr(Coscheduling, "pre_filter", sick_while(Path(file), sick, Coscheduling.pre_filter))  # noqa: B010
    setattr(FilterHealth, "__init__", in_less_time(FilterHealth.__init__))  # noqa: B010
    setattr(Unreached, "trouble", sooner(Unreached.trouble))  # noqa: B010
    filter_health.QUIET_SECONDS /= SCALE  # kube-scheduler's back-off is as shipped
    return command.main(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
