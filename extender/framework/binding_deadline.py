"""When a binding cycle has to be over, by the handle's clock: the caller of the bind verb gives up soon after.

The binding cycle writes it, DefaultBinder reads it. kube-scheduler: context.Context's deadline, which every plugin is given
"""

from __future__ import annotations

import math

from extender.framework.cycle_state import CycleState

_KEY = "BindingDeadline"


def end_binding_by(state: CycleState, at: float) -> None:
    state.write(_KEY, at)


def binding_ends_by(state: CycleState) -> float:
    """Infinite where none is set."""
    at = state.get(_KEY, float)
    return math.inf if at is None else at
