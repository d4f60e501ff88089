"""Long work of an informer lets others run in between."""

from __future__ import annotations

import subprocess
import sys

from extender.client import short_steps
from extender.client.short_steps import ShortSteps


def test_others_run_after_each_step_of_some_milliseconds() -> None:
    now, pauses = [0.0], []

    def sleep(seconds: float) -> None:
        pauses.append((round(now[0], 4), seconds))
        now[0] += 1.0  # the others take their time: it does not count as work

    steps = ShortSteps(lambda: now[0], sleep)
    for _ in range(12):
        now[0] += short_steps.STEP_SECONDS / 4 + 1e-9
        steps.pause_if_due()
    assert [at for at, _ in pauses] == [0.002, 1.004, 2.006]
    assert {seconds for _, seconds in pauses} == {short_steps.PAUSE_SECONDS}


EVENT_LOOP = """
from gevent import monkey; monkey.patch_all()
import threading, time
from extender.client.short_steps import ShortSteps, pause
beats, over = [], threading.Event()
def heart():
    while not over.is_set():
        beats.append(1)
        time.sleep(0.0001)
def work(steps):
    for _ in range(20):
        until = time.perf_counter() + 0.005
        while time.perf_counter() < until: pass
        steps.pause_if_due() if steps else pause()
threads = [threading.Thread(target=work, args=(steps,)) for steps in (ShortSteps(), ShortSteps(), None)]
threading.Thread(target=heart).start()
for each in threads: each.start()
for each in threads: each.join()
over.set()
print(len(beats))
"""


def test_timers_of_the_event_loop_have_their_turn_after_each_step() -> None:
    """Sixty pieces of work by three threads: with sleep(0) the loop looks at its timers after fifty."""
    done = subprocess.run([sys.executable, "-c", EVENT_LOOP], capture_output=True, text=True, timeout=30, check=True)
    assert int(done.stdout) > 10
