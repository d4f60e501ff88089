"""NodeResourcesFit's filter for all nodes at once; node_resources_fit.py has the rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from extender.api.quantity import MAX_INT64
from extender.framework.columnar import ALL_PASS, IntColumn, Mask, NodeTable, Verdicts
from extender.framework.resource import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resource
from extender.framework.status import Status, unresolvable, unschedulable

MOST_REASONS = 60  # bits of an int64


def fit_verdicts(asked: Resource, is_ignored: Callable[[str], bool], table: NodeTable) -> Verdicts | None:
    """A bit a reason; the highest says that the node could never have it."""
    wants = list(_wants(asked, is_ignored))
    if len(wants) >= MOST_REASONS or any(want > MAX_INT64 for _, want in wants):
        return None
    reasons = ["Too many pods", *(f"Insufficient {name}" for name, _ in wants)]
    codes = (table.requested(PODS) + 1 > table.allocatable(PODS)).astype(np.int64)
    never: Mask = np.zeros(len(table), dtype=np.bool_)
    for bit, (name, want) in enumerate(wants, 1):
        there = table.allocatable(name)
        short = want > there - table.requested(name)
        codes[short] |= 1 << bit
        never |= short & (want > there)
    codes[never] |= 1 << MOST_REASONS
    return _named(codes, reasons)


def _wants(asked: Resource, is_ignored: Callable[[str], bool]) -> Iterator[tuple[str, int]]:
    """In the order in which the reasons come."""
    native = ((CPU, asked.milli_cpu), (MEMORY, asked.memory), (EPHEMERAL_STORAGE, asked.ephemeral_storage))
    yield from ((name, want) for name, want in native if want > 0)
    yield from ((name, want) for name, want in asked.scalar.items() if want > 0 and not is_ignored(name))


def _named(codes: IntColumn, reasons: list[str]) -> Verdicts:
    refused = np.flatnonzero(codes)
    if not len(refused):
        return ALL_PASS
    different, places = np.unique(codes[refused], return_inverse=True)
    numbers = np.zeros(len(codes), dtype=np.int32)
    numbers[refused] = places + 1
    return Verdicts(numbers, [_status(bits, reasons) for bits in different.tolist()])


def _status(bits: int, reasons: list[str]) -> Status:
    short = [reason for bit, reason in enumerate(reasons) if bits >> bit & 1]
    return unresolvable(*short) if bits >> MOST_REASONS & 1 else unschedulable(*short)
