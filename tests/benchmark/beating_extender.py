"""`gang-extender` with a heart on its event loop: `python -m tests.benchmark.beating_extender FILE serve ...`.

FILE says at any time how long the loop was kept busy at most since it was last removed: seconds of CPU, seconds by the clock, of them
seconds in the collector of cycles, and what ran. CPU is what counts: by the clock other processes of the machine take their part. What
ran is the stack of the main thread in the middle of the longest piece of work, seen from outside of the loop. Used by loop_stalls.
"""

from extender.server import serve as serve  # isort: skip  - patches: everything else comes after

import gc
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import gevent
from gevent import monkey

from extender.cli import main as command
from extender.scheduler import factory

BEAT_SECONDS = 0.001
LOOK_SECONDS = 0.005
MANY_SECONDS = 0.03  # a beat that is late by more is worth a look at the stack


class Heart:
    """beats on the loop; a native thread looks on."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._beat = time.perf_counter()
        self._seen = ""  # by the thread, while the loop is late
        self._loop = 0  # the main thread's id
        self._collected = self._collecting_since = 0.0

    def start(self) -> None:
        self._loop = monkey.get_original("_thread", "get_ident")()
        gc.callbacks.append(self._note_collection)
        gevent.spawn(self._run)
        monkey.get_original("_thread", "start_new_thread")(self._look_on, ())

    def _run(self) -> None:
        longest = 0.0
        while True:
            cpu, self._beat, self._seen, self._collected = time.thread_time(), time.perf_counter(), "", 0.0
            gevent.sleep(BEAT_SECONDS)
            worked, took = time.thread_time() - cpu, time.perf_counter() - self._beat
            if not self._file.exists():
                longest = 0.0
            if worked > longest or not self._file.exists():
                longest = worked
                whole = self._file.with_suffix(".new")
                whole.write_text(f"{worked} {took} {self._collected} {self._seen}")
                whole.rename(self._file)  # it is read at any time

    def _note_collection(self, phase: str, info: object) -> None:
        if phase == "start":
            self._collecting_since = time.perf_counter()
        else:
            self._collected += time.perf_counter() - self._collecting_since

    def _look_on(self) -> None:
        sleep = monkey.get_original("time", "sleep")
        while True:
            sleep(LOOK_SECONDS)
            frame = sys._current_frames().get(self._loop)
            if frame is not None and not self._seen and time.perf_counter() - self._beat > MANY_SECONDS:
                stack = traceback.extract_stack(frame)[-7:]
                self._seen = " > ".join(f"{Path(each.filename).stem}:{each.lineno} {each.name}" for each in stack)


def main(file: str, *arguments: str) -> int:
    build = factory.build

    def with_a_heart(*args: Any, **options: Any) -> Any:
        Heart(Path(file)).start()
        return build(*args, **options)

    setattr(factory, "build", with_a_heart)  # noqa: B010
    return command.main(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
