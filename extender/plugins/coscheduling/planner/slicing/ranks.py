"""Gives the places that were found to the members: contiguous ranks to contiguous domains, and inside of these to contiguous nodes.

Slices that ask for the same may change their domains, members of one shape their nodes: so the plan is found without a look at ranks.
No counterpart upstream; Kueue gives ranks to domains in the same way (pkg/controller/tas/topology_ungater.go)
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.planner.domains import Domains
from extender.plugins.coscheduling.planner.request import Request
from extender.plugins.coscheduling.planner.room import IntColumn
from extender.plugins.coscheduling.planner.slicing.layout import Layout
from extender.plugins.coscheduling.planner.slicing.parts import Part, members_by_part

Step = tuple[int, Part | None, int]
"""(kind, the narrowest part, node): one member's place."""


def network_order(domains: Domains) -> IntColumn:
    """For each node its number among all in the order of the domains, from wide to narrow: those next to each other are near."""
    count = len(domains.ids[0]) if domains.ids else 0
    order = np.lexsort((np.arange(count), *reversed(domains.ids))) if count else np.arange(count)
    numbers = np.empty(count, dtype=np.int64)
    numbers[order] = np.arange(count)
    return numbers


def order_of(request: Request) -> Mapping[str, tuple[int, int]]:
    """UID -> what members with ranks are sorted by."""
    return {
        uid: (number, sliced.ranks[uid])
        for number, sliced in enumerate(request.sliced)
        for uid in sliced.uids
        if uid in sliced.ranks
    }


def with_members(
    steps: Sequence[Step],
    kinds: Sequence[Sequence[PodInfo]],
    layout: Layout[Any],
    domains: Domains,
    request: Request,
) -> list[PodInfo]:
    """A member for each step. kinds: the members of each, in the order of preference."""
    near = network_order(domains).tolist() or list(range(max((node for *_, node in steps), default=-1) + 1))
    parts = _exchanged(steps, layout, near)
    part_of = members_by_part(layout.parts)
    members: dict[tuple[int, Part | None], list[PodInfo]] = {}
    for kind, infos in enumerate(kinds):
        for info in infos:
            members.setdefault((kind, part_of.get(info.pod.metadata.uid)), []).append(info)
    of_each: dict[tuple[int, Part | None], list[int]] = {}
    for number, (kind, part, _) in enumerate(steps):
        of_each.setdefault((kind, parts.get(part, part)), []).append(number)
    order = order_of(request)
    result: dict[int, PodInfo] = {}
    for key, numbers in of_each.items():
        chosen = members[key][: len(numbers)]
        if order:
            chosen.sort(key=lambda info: order.get(info.pod.metadata.uid, (len(request.sliced), 0)))
            numbers.sort(key=lambda number: near[steps[number][2]])
        result.update(zip(numbers, chosen, strict=True))
    return [result[number] for number in range(len(steps))]


def _exchanged(steps: Sequence[Step], layout: Layout[Any], place: Sequence[int]) -> dict[Part | None, Part | None]:
    """Narrowest part -> the one that has its places now: of alike parts that are placed whole, the first has the first domain."""
    first: dict[Part, int] = {}
    placed: dict[Part, int] = {}
    for _, part, node in steps:
        if part is not None:
            first[part] = min(first.get(part, place[node]), place[node])
            placed[part] = placed.get(part, 0) + 1
    result: dict[Part | None, Part | None] = {}

    def whole(part: Part) -> bool:
        return all(placed.get(leaf, 0) == len(leaf.uids) for leaf in part.leaves())

    pending: list[tuple[Sequence[Part], Sequence[Part]]] = [(layout.parts, layout.parts)]
    while pending:  # parts, and those that have their places so far, in the same order
        own, places_of = pending.pop()
        alike: dict[Hashable, list[int]] = {}
        for number, part in enumerate(places_of):
            if not part.pinned and whole(part):
                alike.setdefault(layout.signature(part), []).append(number)
        order = list(range(len(own)))
        for numbers in alike.values():
            by_place = sorted(numbers, key=lambda number: min(first[leaf] for leaf in places_of[number].leaves()))
            for number, taken in zip(numbers, by_place, strict=True):
                order[number] = taken
        for number, part in enumerate(own):
            other = places_of[order[number]]
            if part.inside:
                pending.append((part.inside, other.inside))
            else:
                result[other] = part
    return result
