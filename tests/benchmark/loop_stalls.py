"""How long the event loop of `serve` is kept busy at a time while 5,000 nodes and 150,000 pods are listed, and listed again.

No verb and no probe is answered meanwhile. A process of its own plays the API server (real_objects); a heart on the loop
(beating_extender) measures, in CPU of the loop's own thread. Target: at most 100 ms.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.benchmark.real_objects import SIZES, Size, await_ready, played_api_server
from tests.e2e.extender import Extender

WANTED_MS = 100
QUIET_SECONDS = 5.0


def _tell(what: str, file: Path) -> None:
    """And begins anew."""
    cpu, took, collected, *ran = file.read_text().split(" ", 3)
    file.unlink()
    times = f"{_ms(cpu)} of CPU, {_ms(took)} by the clock, {_ms(collected)} collecting cycles"
    print(f"  {what:16} {times}   {' '.join(ran)}", flush=True)


def _ms(seconds: str) -> str:
    return f"{float(seconds) * 1e3:4.0f} ms"


def run() -> None:
    for size in SIZES:
        print(f"the longest work on the event loop, {size.nodes} nodes and {size.pods} pods; wanted: {WANTED_MS} ms")
        with tempfile.TemporaryDirectory() as temporary:
            _measure(size, Path(temporary))


def _measure(size: Size, folder: Path) -> None:
    with played_api_server(folder, size) as played:
        beats = folder / "beats"
        extender = Extender(folder, played.kubeconfig)
        command = extender.program.command
        at = command.index("extender.cli.main")
        command[at : at + 1] = ["tests.benchmark.beating_extender", str(beats)]
        extender.start(wait=False)
        try:
            await_ready(extender)
            _tell("first lists", beats)
            time.sleep(QUIET_SECONDS)
            _tell("after them", beats)
            played.list_again()
            time.sleep(QUIET_SECONDS)
            _tell("listed again", beats)
            time.sleep(QUIET_SECONDS)
            _tell("nothing happens", beats)
        finally:
            extender.stop()


if __name__ == "__main__":
    run()
