"""What Coscheduling takes from the extender's own configuration: the same behind a kube-scheduler and in-process.

Both factories call it, and evaluate. No counterpart upstream.
"""

from __future__ import annotations

from extender.config.types import ExtenderConfiguration
from extender.plugins.coscheduling.dependencies import BackfillRules
from extender.plugins.coscheduling.planner import Topology

COMMIT_SECONDS = 5.0  # what a commit may take before the caller's own timeout, and 10 ms more a member
COMMIT_SECONDS_PER_MEMBER = 0.01
ANSWER_SECONDS = 0.25  # of these, kept for the answer's way back

BRIEF_BINDS = 200
"""Bind calls that are taken beside those of `maxHeldBinds`: of single pods, and of members that wait for no sibling. They end as soon
as the API server has answered. Without them gangs that are held would cost single pods their binding."""


def topology(configuration: ExtenderConfiguration) -> Topology:
    return Topology(configuration.topology, packing=configuration.packing)


def backfill_rules(configuration: ExtenderConfiguration) -> BackfillRules:
    return BackfillRules(
        configuration.shadow_after_seconds, configuration.shadow_max_seconds, configuration.shadow_max_nodes_percent
    )


def hold_limit(bind_timeout_seconds: float, members: int) -> float:
    """The longest hold that leaves a gang of so many its commit before kube-scheduler gives up on the call."""
    return max(1.0, bind_timeout_seconds - COMMIT_SECONDS - COMMIT_SECONDS_PER_MEMBER * members)


def bind_seconds(bind_timeout_seconds: float) -> float:
    """How long a bind call may take from its arrival to its answer."""
    return bind_timeout_seconds - ANSWER_SECONDS


def hold_seconds_left(deadline: float, now: float) -> float:
    """What a call that has to be answered by then may still be held: its commit comes after."""
    return max(0.0, deadline + ANSWER_SECONDS - COMMIT_SECONDS - now)
