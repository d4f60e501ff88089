"""Why a pod's wait in Permit has failed, for the plugins whose Unreserve runs next.

The binding cycle writes it, Coscheduling reads it. kube-scheduler has no counterpart: its Unreserve is told no reason
"""

from __future__ import annotations

from extender.framework.cycle_state import CycleState

_KEY = "PermitRejection"


def note_rejection(state: CycleState, message: str) -> None:
    state.write(_KEY, message)


def rejection_of(state: CycleState) -> str:
    """Empty where the pod did not wait, or waited and was allowed."""
    return state.get(_KEY, str) or ""
