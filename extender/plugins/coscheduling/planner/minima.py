"""Plans where more than one minimum has to be met: roles inside a group, groups that start together.

A plan without minima places `needed` of the members, whichever. Here each minimum gets its members first: everybody at once
if there is room, else exactly as many of each kind as have to be, and the others beside them as far as they fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.planner.request import Cause, Deadline, Minimum, Placement, Request, Verdict

PlanOne = Callable[[Request], Placement | Verdict]
"""A plan of a request without minima."""


def plan_minima(request: Request, plan: PlanOne) -> Placement | Verdict:
    """The verdict names the minimum that does not even fit alone, if there is one."""
    minima, deadline = request.minima, Deadline.of(request)
    request = replace(request, minima=())
    if any(len(minimum.uids) < minimum.needed for minimum in minima):
        return Verdict("not enough members", len(request.members), request.needed, Cause.MEMBERS)
    result = plan(request)
    if isinstance(result, Placement) and _met(result, minima):
        return result
    for core in _cores(request.members, minima):
        placed = plan(replace(request, members=core, needed=len(core)))
        if isinstance(placed, Placement):
            return _with_the_others(request, core, placed, plan)
        result = placed  # it says what the minima lack
    return _named(request, minima, result, plan, deadline) if isinstance(result, Verdict) else result


def _named(request: Request, minima: Sequence[Minimum], verdict: Verdict, plan: PlanOne, deadline: Deadline) -> Verdict:
    everybody = {info.pod.uid for info in request.members}
    for minimum in minima:
        if not minimum.name or minimum.uids >= everybody or verdict.cause is Cause.BUDGET or deadline.spent(1.0):
            continue
        core = _core(sorted(request.members, key=_size), [minimum])
        alone = plan(replace(request, members=core, needed=minimum.needed))
        if isinstance(alone, Verdict) and alone.cause is not Cause.BUDGET:
            return replace(alone, reason=f"{minimum.name}: {alone.reason}")
    return verdict


def _met(placement: Placement, minima: Sequence[Minimum]) -> bool:
    return all(len(minimum.uids & placement.nodes.keys()) >= minimum.needed for minimum in minima)


def _cores(members: Sequence[PodInfo], minima: Sequence[Minimum]) -> Iterator[list[PodInfo]]:
    """Who is to be placed for the minima: the smallest, or, if those are others, the first in the order of preference."""
    smallest = _core(sorted(members, key=_size), minima)
    first = _core(members, minima)
    if {info.pod.uid for info in smallest} != {info.pod.uid for info in first}:
        yield first
    yield smallest


def _core(members: Sequence[PodInfo], minima: Sequence[Minimum]) -> list[PodInfo]:
    chosen: set[str] = set()
    for minimum in minima:
        missing = minimum.needed - len(minimum.uids & chosen)
        for info in members:
            if missing <= 0:
                break
            if info.pod.uid in minimum.uids and info.pod.uid not in chosen:
                chosen.add(info.pod.uid)
                missing -= 1
    return [info for info in members if info.pod.uid in chosen]


def _size(info: PodInfo) -> tuple[int, int, int]:
    requests = info.requests
    return sum(requests.scalar.values()), requests.milli_cpu, requests.memory


def _with_the_others(request: Request, core: Sequence[PodInfo], placed: Placement, plan: PlanOne) -> Placement:
    """Members beyond the minima come after them, as far as they fit."""
    others = [info for info in request.members if info.pod.uid not in placed.nodes]
    taken = [(placed.nodes[info.pod.uid], info) for info in core]
    nodes = [*request.placed, *placed.nodes.values()]
    more = plan(replace(request, members=others, needed=0, promised=[*request.promised, *taken], placed=nodes))
    if not isinstance(more, Placement) or not more.nodes:
        return placed
    waves: tuple[frozenset[str], ...] = ()
    if placed.waves or more.waves:
        waves = (*(placed.waves or (frozenset(placed.nodes),)), *(more.waves or (frozenset(more.nodes),)))
    return Placement({**placed.nodes, **more.nodes}, waves, placed.domain)
