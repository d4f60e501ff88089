"""Nodes in the order in which room is made on them for a gang in slices: those that together hold one more slice, the cheapest first.

The search for victims clears as many of them as it takes, a backfill reservation keeps them free. The order is only a guess at what helps:
the planner says whether it does. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling.planner.domains import NONE, Domains, UnknownLevelError, level_of
from extender.plugins.coscheduling.planner.request import Request
from extender.plugins.coscheduling.planner.room import IntColumn

Price = tuple[float, ...]
"""Of all nodes of one order as many parts, the first of them the most important."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Step:
    """rows: of nodes on which room is made together, all in one domain of the level at hand, one of the rows of which is `row`."""

    rows: tuple[int, ...]
    price: Price
    row: int

    @property
    def rank(self) -> tuple[Price, tuple[int, ...]]:
        return self.price, self.rows


def in_slices(
    snapshot: NodeInfoLister, request: Request, rows: Sequence[int], holds: IntColumn, price: Callable[[int], Price]
) -> list[tuple[int, ...]] | None:
    """The rows in steps, each of which holds one more of the widest slices; then each of the rest by itself. None where the gang has no
    slices, or of levels that are not configured.

    rows: of one slice those are taken first that come first. holds: for each node how many members there is, or would be, room for.
    price: of making that room on a node.
    """
    sliced = max((each for each in request.sliced if each.sizes), key=lambda each: len(each.uids), default=None)
    if sliced is None:
        return None
    try:
        levels = [(level_of(request.topology, name), size or len(sliced.uids)) for name, size in sliced.sizes]
    except UnknownLevelError:
        return None
    ids = Domains(snapshot, request.topology.levels).ids
    known = [(ids[level], size) for level, size in levels if level is not None]
    steps = list(_narrowest(*known[-1], rows, holds, price)) if known else []
    for (wider, members), (_, inside) in zip(reversed(known[:-1]), reversed(known[1:]), strict=True):
        steps = list(_together(steps, wider, -(-members // max(1, inside))))
    steps.sort(key=lambda step: step.rank)
    rest = set(rows).difference(*(step.rows for step in steps))
    return [*(step.rows for step in steps if step.rows), *((row,) for row in rows if row in rest)]


def _narrowest(
    ids: IntColumn, size: int, rows: Sequence[int], holds: IntColumn, price: Callable[[int], Price]
) -> Iterator[_Step]:
    """In each domain, for one slice after the other, the nodes that it takes."""
    for inside in _by_domain(rows, lambda row: int(ids[row])):
        held, some = 0, list[int]()
        for row in inside:
            held += int(holds[row])
            some.append(row)
            while held >= size > 0:
                yield _Step(tuple(some), _sum(map(price, some)), row)
                held, some = held - size, []


def _together(steps: Iterable[_Step], ids: IntColumn, number: int) -> Iterator[_Step]:
    """So many steps of one wider domain as one, the cheapest first; those that are too few are none."""
    for inside in _by_domain(steps, lambda step: int(ids[step.row])):
        order = sorted(inside, key=lambda step: step.rank)
        for at in range(0, len(order) // number * number, number):
            some = order[at : at + number]
            rows = tuple(row for step in some for row in step.rows)
            yield _Step(rows, _sum(step.price for step in some), some[0].row)


def _by_domain(things: Iterable[T], domain_of: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """In the order of the domains; without what is in none."""
    found: dict[int, list[T]] = {}
    for thing in things:
        found.setdefault(domain_of(thing), []).append(thing)
    found.pop(NONE, None)
    return (found[domain] for domain in sorted(found))


def _sum(prices: Iterable[Price]) -> Price:
    """Empty where there are none, which is less than any."""
    return tuple(map(sum, zip(*prices, strict=True)))
