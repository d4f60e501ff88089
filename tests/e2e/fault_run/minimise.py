"""Fewer acts that still go wrong: what a failing fault run can do without is left out, piece by piece.

Zeller's ddmin. Used by `make faults MINIMISE=`; each question is a run, so of one that fails only at times the answer is only likely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def minimise(acts: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Of acts that fail together: so few of them that none can be left out any more."""
    left, pieces = list(acts), 2
    while len(left) >= 2:
        size = -(-len(left) // pieces)
        parts = [left[at : at + size] for at in range(0, len(left), size)]
        rests = [[each for each in left if each not in part] for part in parts]
        if (found := next((part for part in parts if fails(part)), None)) is not None:
            left, pieces = found, 2
        elif pieces > 2 and (found := next((rest for rest in rests if fails(rest)), None)) is not None:
            left, pieces = found, pieces - 1
        elif pieces >= len(left):
            break
        else:
            pieces = min(len(left), 2 * pieces)
    return left
