"""How many members each node takes: into as few domains and nodes as can be, or as evenly as can be.

Pure arithmetic on capacities. Largest first until the rest fits into one, then the one with the least room that holds the
rest: so few are broken up, and what stays free stays whole.
"""

from __future__ import annotations

import numpy as np

from extender.config.types import Packing
from extender.plugins.coscheduling.planner.domains import Domains
from extender.plugins.coscheduling.planner.labels import NONE
from extender.plugins.coscheduling.planner.room import IntColumn


def fewest(capacity: IntColumn, count: int) -> IntColumn:
    """What each takes of count, which all together hold. Ties go to the first."""
    taken = np.zeros_like(capacity)
    if count <= 0:
        return taken
    order = np.argsort(-capacity, kind="stable")
    falling = capacity[order]
    sums = np.cumsum(falling)
    full = int(np.searchsorted(sums, count))  # so many are filled before the rest fits into one
    rest = count - (int(sums[full - 1]) if full else 0)
    taken[order[:full]] = falling[:full]
    least = falling[full:][falling[full:] >= rest][-1]  # the smallest that holds the rest
    last = full + int(np.argmax(falling[full:] == least))
    taken[order[last]] = rest
    return taken


def most_even(capacity: IntColumn, count: int) -> IntColumn:
    """The same with the largest share as small as it can be."""
    if count <= 0:
        return np.zeros_like(capacity)
    low, high = 1, int(capacity.max())
    while low < high:  # the least height at which all are in
        middle = (low + high) // 2
        if int(np.minimum(capacity, middle).sum()) >= count:
            high = middle
        else:
            low = middle + 1
    taken = np.minimum(capacity, low - 1)
    rest = count - int(taken.sum())
    higher = np.flatnonzero(capacity >= low)
    taken[higher[np.argsort(-capacity[higher], kind="stable")][:rest]] += 1
    return taken


def split(
    domains: Domains, packing: Packing, capacity: IntColumn, at: IntColumn, level: int, count: int
) -> list[tuple[int, int]]:
    """(node, how many) for count members on the nodes `at`, which hold them, by domains from `level` down."""
    if level == len(domains.levels):
        share = most_even if packing is Packing.MOST_EVEN else fewest
        taken = share(capacity[at], count)
        return [(int(at[i]), int(taken[i])) for i in np.flatnonzero(taken)]
    ids = domains.ids[level][at]
    sums = domains.sums(level, capacity, at)
    inside = min(count, int(sums.sum()))
    result: list[tuple[int, int]] = []
    by_domain = fewest(sums, inside)
    for domain in np.flatnonzero(by_domain):
        part = at[ids == domain]
        result += split(domains, packing, capacity, part, level + 1, int(by_domain[domain]))
    if count > inside:  # nodes without the label come last
        result += split(domains, packing, capacity, at[ids == NONE], level + 1, count - inside)
    return result
