"""What Coscheduling takes from the extender's own configuration: the same behind a kube-scheduler and in-process.

Both factories call it, and evaluate. No counterpart upstream.
"""

from __future__ import annotations

from extender.plugins.coscheduling.dependencies import COMMIT_SECONDS

ANSWER_SECONDS = 0.25  # of these, kept for the answer's way back

BRIEF_BINDS = 200
"""Bind calls that are taken beside those of `maxHeldBinds`: of single pods, and of members that wait for no sibling. They end as soon
as the API server has answered. Without them gangs that are held would cost single pods their binding."""


def bind_seconds(bind_timeout_seconds: float) -> float:
    """How long a bind call may take from its arrival to its answer."""
    return bind_timeout_seconds - ANSWER_SECONDS


def hold_seconds_left(deadline: float, now: float) -> float:
    """What a call that has to be answered by then may still be held: its commit comes after."""
    return max(0.0, deadline + ANSWER_SECONDS - COMMIT_SECONDS - now)
