"""How long the event loop of `serve` is kept busy at a time while up to 10,000 nodes and 150,000 pods are listed, and listed again.

No verb and no probe is answered meanwhile. A process of its own plays the API server (real_objects); a heart on the loop
(beating_extender) measures, in CPU of the loop's own thread. Target: at most 100 ms.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.benchmark.real_objects import SIZES, Size, await_ready, played_api_server
from tests.benchmark.table import Table
from tests.e2e.extender import Extender

WANTED_MS = 100
QUIET_SECONDS = 5.0


def _note(table: Table, size: Size, what: str, file: Path) -> None:
    """And begins anew."""
    cpu, took, collected, *ran = file.read_text().split(" ", 3)
    file.unlink()
    table.add(f"{size.name}: {what}", cpu=_ms(cpu), clock=_ms(took), collected=_ms(collected))
    print(f"      {' '.join(ran)}", flush=True)


def _ms(seconds: str) -> float:
    return float(seconds) * 1e3


def run() -> None:
    table = Table(f"the longest work on the event loop, in ms; wanted: {WANTED_MS} of CPU", "stalls")
    for size in SIZES:
        with tempfile.TemporaryDirectory() as temporary:
            _measure(table, size, Path(temporary))


def _measure(table: Table, size: Size, folder: Path) -> None:
    with played_api_server(folder, size) as played:
        beats = folder / "beats"
        extender = Extender(folder, played.kubeconfig)
        command = extender.program.command
        at = command.index("extender.cli.main")
        command[at : at + 1] = ["tests.benchmark.beating_extender", str(beats)]
        extender.start(wait=False)
        try:
            await_ready(extender)
            _note(table, size, "first lists", beats)
            time.sleep(QUIET_SECONDS)
            _note(table, size, "after them", beats)
            played.list_again()
            time.sleep(QUIET_SECONDS)
            _note(table, size, "listed again", beats)
            time.sleep(QUIET_SECONDS)
            _note(table, size, "nothing happens", beats)
        finally:
            extender.stop()


if __name__ == "__main__":
    run()
