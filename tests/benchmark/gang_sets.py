"""Groups that start together, made one by one: what each link costs, as there are more groups, and as sets are larger.

Pairs as a leader and its workers make them; then one tenant's groups in one set, as a star, a chain and a clique: what is
beyond 64 is refused. The old way computed all sets anew after each change. Targets: twice as many pairs take twice as long; a
pair made beside a tenant's 800 linked groups takes as long as one made alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from extender.plugins.coscheduling.spec.named_groups import MAX_GROUPS, Keys
from extender.plugins.coscheduling.state.gang_set_index import GangSetIndex
from tests.benchmark.table import Table

ROUNDS = 3
PAIRS = (500, 1000, 2000)
OLD_PAIRS = (50, 100, 200)  # more would take minutes
LINKED = (100, 200, 400, 800)
BESIDE = 200  # pairs
Change = tuple[str, Keys]


class _AllAnew:
    """What the extender did before: every change of a link voids every set, and those of groups that name others are made anew."""

    def __init__(self) -> None:
        self._named: dict[str, Keys] = {}

    def name(self, key: str, others: Keys) -> None:
        self._named[key] = others
        known: dict[str, Keys] = {}
        for each in self._named:
            if each not in known:
                unit = self._connected(each)
                known.update(dict.fromkeys(unit, unit))

    def _connected(self, key: str) -> Keys:
        found, fresh = {key}, [key]
        while fresh:
            current = fresh.pop()
            namers = {other for other, names in self._named.items() if current in names}
            new = (namers | set(self._named.get(current, ()))) - found
            found |= new
            fresh += new
        return tuple(sorted(found))


def _pairs(number: int) -> Iterator[Change]:
    return ((f"honest/workers-{each}", (f"honest/leader-{each}",)) for each in range(number))


def _star(number: int) -> Iterator[Change]:
    return ((f"tenant/g{each}", ("tenant/hub",)) for each in range(number))


def _chain(number: int) -> Iterator[Change]:
    return ((f"tenant/g{each}", (f"tenant/g{each + 1}",)) for each in range(number))


def _clique(number: int) -> Iterator[Change]:
    for each in range(number):
        yield f"tenant/g{each}", tuple(f"tenant/g{other}" for other in range(max(0, each - MAX_GROUPS + 1), each))


SHAPES: dict[str, Callable[[int], Iterator[Change]]] = {"star": _star, "chain": _chain, "clique": _clique}


def _milliseconds(groups: GangSetIndex | _AllAnew, changes: Sequence[Change]) -> float:
    start = time.process_time()
    for key, others in changes:
        groups.name(key, others)
    return (time.process_time() - start) * 1e3


def _beside(tenant: Sequence[Change]) -> tuple[float, float]:
    """Milliseconds of CPU: the tenant's changes; and as many pairs beside them, while the first of its groups comes and goes."""
    groups = GangSetIndex()
    own = _milliseconds(groups, tenant)
    spent = 0.0
    for pair in _pairs(BESIDE):
        for change in ((tenant[0][0], ()), tenant[0]):
            groups.name(*change)
        groups.fitting()
        spent += _milliseconds(groups, [pair])
    return own, spent


def run() -> None:
    table = Table("links of groups that start together, milliseconds of CPU in all")
    for _ in range(ROUNDS):
        for number in PAIRS:
            table.add(f"{number} pairs", new=_milliseconds(GangSetIndex(), list(_pairs(number))))
        for number in OLD_PAIRS:
            changes = list(_pairs(number))
            old, new = _milliseconds(_AllAnew(), changes), _milliseconds(GangSetIndex(), changes)
            table.add(f"{number} pairs", old=old, new=new)
        table.add("pairs alone", beside=_milliseconds(GangSetIndex(), list(_pairs(BESIDE))))
        for shape, changes_of in SHAPES.items():
            for number in LINKED:
                own, beside = _beside(list(changes_of(number)))
                table.add(f"{shape} of {number}", new=own, beside=beside)
    for number in OLD_PAIRS:
        for way in ("old", "new"):
            table.row(f"{number} pairs", way, "ms")
        over = table.median(f"{number} pairs", "old") / table.median(f"{number} pairs", "new")
        print(f"  {number} pairs: old / new = {over:.0f}", flush=True)
    for fewer, more in pairwise(PAIRS):
        grown = table.median(f"{more} pairs", "new") / table.median(f"{fewer} pairs", "new")
        print(f"  growth from {fewer} to {more} pairs: {grown:.2f}  target 2, linear", flush=True)
    for shape in SHAPES:
        for number in LINKED:
            table.row(f"{shape} of {number}", "new", "ms")
            beside = table.median(f"{shape} of {number}", "beside") / table.median("pairs alone", "beside")
            print(f"    {BESIDE} pairs beside it / alone = {beside:.2f}  target 1", flush=True)
