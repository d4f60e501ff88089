"""Whether pods fit beside each other, exactly and by CPU alone: every way of sharing them out over the nodes.

Used by `liveness`; it knows nothing of plans, reservations and kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Counts = tuple[int, ...]  # of each demand, how many


@dataclass(frozen=True, slots=True)
class Demand:
    """So many pods that are alike. apart: pods of this name are not on one node, nor on those taken by others of it.

    only: the nodes that they can be on; None for all.
    """

    cpu: int
    count: int
    apart: str = ""
    taken: frozenset[str] = frozenset()
    only: frozenset[str] | None = None


def fit(demands: Sequence[Demand], free: Mapping[str, int]) -> bool:
    """Node by node: what may still be without a place after it, whatever was taken before."""
    left: set[Counts] = {tuple(demand.count for demand in demands)}
    for node, room in free.items():
        shares = list(_shares(demands, node, room))
        left |= {
            tuple(count - share for count, share in zip(counts, taken, strict=True))
            for counts in left
            for taken in shares
            if all(share <= count for count, share in zip(counts, taken, strict=True))
        }
    return any(not any(counts) for counts in left)


def _shares(demands: Sequence[Demand], node: str, room: int, apart: frozenset[str] = frozenset()) -> Iterable[Counts]:
    """All that one node can take of the demands."""
    if not demands:
        yield ()
        return
    first, others = demands[0], demands[1:]
    most = first.count if not first.cpu else min(first.count, max(0, room) // first.cpu)
    if first.only is not None and node not in first.only:
        most = 0
    if first.apart:
        most = 0 if node in first.taken or first.apart in apart else min(most, 1)
    for share in range(most + 1):
        kept = apart | {first.apart} if first.apart and share else apart
        for rest in _shares(others, node, room - share * first.cpu, kept):
            yield (share, *rest)
