"""Long work of an informer lets others run in between."""

from __future__ import annotations

from extender.client import short_steps
from extender.client.short_steps import ShortSteps


def test_others_run_after_each_step_of_some_milliseconds() -> None:
    now, pauses = [0.0], []

    def sleep(seconds: float) -> None:
        pauses.append((round(now[0], 4), seconds))
        now[0] += 1.0  # the others take their time: it does not count as work

    steps = ShortSteps(lambda: now[0], sleep)
    for _ in range(12):
        now[0] += short_steps.STEP_SECONDS / 4
        steps.pause_if_due()
    assert pauses == [(0.005, 0), (1.01, 0), (2.015, 0)]
