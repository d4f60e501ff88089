"""Groups of a tree of composites, of which not all have to start: at least minGroupCount of each composite's.

Of a composite's domains those are tried that may have the room, by counting, and the roomiest first: its groups are placed there in order,
those with placed members first, and once more with those that found no room first. The try that places the most groups counts, and
members beyond minMember are added at the end.
Kubernetes: KEP-6012 (CompositePodGroup); its scheduler places one group after the other, too
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

import numpy as np

from extender.framework.hypothetical import Cluster, with_pods
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.planner.domains import Domains, level_of
from extender.plugins.coscheduling.planner.members import classes, core_of, judged, relevant_labels
from extender.plugins.coscheduling.planner.request import (
    Branch,
    Cause,
    Deadline,
    Judge,
    Leaf,
    Minimum,
    NoPlacement,
    OutOfTimeError,
    Placement,
    Request,
    Tree,
)
from extender.plugins.coscheduling.planner.room import IntColumn, Room

PlanOne = Callable[[Request], Placement | NoPlacement]
"""A plan of a request without a tree."""

DOMAINS = 32  # of one composite's level that are tried


@dataclass(frozen=True)
class Placed:
    """leaves: each group that has all it needs, and the nodes that it may use (None: any). groups: how many they are."""

    nodes: Mapping[str, str] = field(default_factory=dict)
    waves: tuple[tuple[frozenset[str], ...], ...] = ()
    leaves: tuple[tuple[Leaf, frozenset[str] | None], ...] = ()

    @property
    def groups(self) -> int:
        return len(self.leaves)

    def beside(self, other: Placed) -> Placed:
        return Placed({**self.nodes, **other.nodes}, self.waves + other.waves, self.leaves + other.leaves)


def plan_tree(cluster: Cluster, request: Request, plan: PlanOne, judge: Judge) -> Placement | NoPlacement:
    if request.tree is None:
        raise ValueError("a request without a tree")
    search = _Search(cluster, request, plan, judge)
    found = search.place(request.tree, None, Placed(), whole=True)
    if (not isinstance(found, Placed) or found.groups < _leaves(request.tree)) and _any_extra(request.tree):
        least = search.place(request.tree, None, Placed(), whole=False)
        if isinstance(least, Placed) and (not isinstance(found, Placed) or least.groups > found.groups):
            found = search.with_the_others(least)
        elif not isinstance(found, Placed):
            found = least
    if isinstance(found, NoPlacement):
        return replace(found, composite=request.tree.name) if _leaves(request.tree) > 1 else found
    several = any(len(waves) > 1 for waves in found.waves)
    waves = tuple(wave for each in found.waves for wave in each) if several else (frozenset(found.nodes),)
    return Placement(found.nodes, waves if found.nodes else ())


class _Search:
    """whole: all members of a group are placed, else those alone that its minima ask for."""

    def __init__(self, cluster: Cluster, request: Request, plan: PlanOne, judge: Judge) -> None:
        self._snapshot = with_pods(cluster, request.promised)
        self._names = [node.name for node in self._snapshot.list()]
        self._request = request
        self._plan = plan
        self._judge = judge
        self._deadline = Deadline.of(request)
        self._members = {info.pod.uid: info for info in request.members}
        self._domains: dict[object, Domains] = {}

    @cached_property
    def _takes(self) -> Sequence[tuple[frozenset[str], IntColumn]]:
        """(members that any node treats alike, how many of them each node takes at most, by its filters and its room)."""
        found: list[tuple[frozenset[str], IntColumn]] = []
        for alike in classes(self._request, relevant_labels(self._request.members, self._snapshot), self._judge):
            self._deadline.check()
            shape, _ = judged(alike, self._snapshot, self._judge)
            capacity = Room.of(self._snapshot, alike.asked).capacity(alike.asked)
            found.append((frozenset(info.pod.uid for info in alike.members), np.where(shape.open_, capacity, 0)))
        return found

    def place(self, tree: Tree, within: frozenset[str] | None, before: Placed, *, whole: bool) -> Placed | NoPlacement:
        """Places for this part of the tree, on these nodes (None: any), beside what has been placed before."""
        self._deadline.check()
        if isinstance(tree, Leaf):
            return self._leaf(tree, within, before, whole=whole)
        best: Placed | None = None
        verdict: NoPlacement | None = None
        for nodes in islice(self._regions(tree, within), DOMAINS):
            try:
                found = self._branch(tree, nodes, before, whole=whole)
            except OutOfTimeError:
                if best is None:
                    raise
                return best
            if isinstance(found, NoPlacement):
                verdict = found if verdict is None or found.placed > verdict.placed else verdict
            elif best is None or found.groups > best.groups:
                best = found
            if best is not None and best.groups == _leaves(tree):
                break
        if best is not None:
            return best
        if verdict is None:
            verdict = NoPlacement("no node takes it", 0, self._request.needed, Cause.NODES)
        level = _level_name(tree)
        return (
            replace(verdict, reason=f"no single {level} takes it: {verdict.reason}", level=level) if level else verdict
        )

    def _regions(self, branch: Branch, within: frozenset[str] | None) -> Iterator[frozenset[str] | None]:
        """The nodes of each domain of the composite's level; of the one alone that its members are in already."""
        level = level_of(branch.topology, branch.topology.required)
        if level is None:
            yield within
            return
        domains = self._domains_of(branch)
        here = set(branch.placed)
        own = domains.with_nodes(level, (i for i, name in enumerate(self._names) if name in here)) if here else ()
        for domain in sorted(own) or self._roomiest(branch, domains, level, within):
            nodes = frozenset(self._names[i] for i in domains.nodes_of(level, domain))
            nodes = nodes if within is None else nodes & within
            if nodes:
                yield nodes

    def _roomiest(self, branch: Branch, domains: Domains, level: int, within: frozenset[str] | None) -> Sequence[int]:
        """The domains that may take the composite, those first that may take the most of it; if none may, the one that comes nearest.

        Counted is what each kind of member finds there by itself: a domain with too little for that has too little in the end.
        """
        here = np.array([within is None or name in within for name in self._names], dtype=np.int64)
        known = np.flatnonzero(domains.sums(level, here))
        if len(known) <= 1:
            return [int(domain) for domain in known]
        sums = [(uids, domains.sums(level, takes * here)[known]) for uids, takes in self._takes]
        groups, members = _most(branch, sums)
        order = np.lexsort((-members, -groups))
        may = (groups[order] > 0) & (members[order] >= least_needed(branch))
        return [int(domain) for domain in known[order[may] if may.any() else order[:1]]]

    def _domains_of(self, branch: Branch) -> Domains:
        levels = branch.topology.levels
        if levels not in self._domains:
            self._domains[levels] = Domains(self._snapshot, levels)
        return self._domains[levels]

    def _branch(
        self, branch: Branch, within: frozenset[str] | None, before: Placed, *, whole: bool
    ) -> Placed | NoPlacement:
        """In order; where they are too few, once more with those first that found no room. A part of which members have places
        already was chosen before, also before a restart: it comes before those of which none has."""
        order = _placed_first(branch.children)
        best, failed = self._in_order(order, within, before, whole=whole)
        count = len(order) - len(failed)
        first = failed
        for child, _ in first:
            if count >= branch.needed:
                break
            if len(failed) == len(order) or isinstance(self.place(child, within, before, whole=whole), NoPlacement):
                continue  # no other is in its way
            order = _placed_first([child, *(each for each in branch.children if each is not child)])
            found, missing = self._in_order(order, within, before, whole=whole)
            if len(order) - len(missing) > count:
                best, failed, count = found, missing, len(order) - len(missing)
        if count >= branch.needed:
            return best
        told = f"{count} of {len(order)} groups of CompositePodGroup {branch.name} fit, {branch.needed} are needed"
        if len(failed) == len(order) == 1:
            return failed[0][1]
        if not failed:
            return NoPlacement(f"{told}: there are no more", len(best.nodes), self._request.needed, Cause.MEMBERS)
        child, verdict = failed[0]
        reason = verdict.reason if isinstance(child, Branch) else f"PodGroup {child.name} does not: {verdict.reason}"
        return replace(verdict, reason=f"{told}; {reason}", placed=len(best.nodes), needed=self._request.needed)

    def _in_order(
        self, order: Sequence[Tree], within: frozenset[str] | None, before: Placed, *, whole: bool
    ) -> tuple[Placed, list[tuple[Tree, NoPlacement]]]:
        """(what was placed of them, those that were not and why)."""
        placed, failed = Placed(), list[tuple[Tree, NoPlacement]]()
        for child in order:
            found = self.place(child, within, before.beside(placed), whole=whole)
            if isinstance(found, NoPlacement):
                failed.append((child, found))
            else:
                placed = placed.beside(found)
        return placed, failed

    def _leaf(self, leaf: Leaf, within: frozenset[str] | None, before: Placed, *, whole: bool) -> Placed | NoPlacement:
        members = [info for info in self._request.members if info.pod.uid in leaf.uids]
        if len(members) < leaf.needed:
            return NoPlacement("not enough members", 0, leaf.needed, Cause.MEMBERS)
        if not whole:
            members = core_of(members, leaf.minima or [Minimum(leaf.uids, leaf.needed)])
        if not members:
            return Placed(leaves=((leaf, within),))
        found = self._plan(self._asking(leaf, members, within, before))
        if isinstance(found, NoPlacement):
            return found
        return Placed(found.nodes, (found.waves or (frozenset(found.nodes),),), ((leaf, within),))

    def _asking(
        self, leaf: Leaf, members: Sequence[PodInfo], within: frozenset[str] | None, before: Placed, needed: int = -1
    ) -> Request:
        """needed: of the members; -1 for what the group's minima ask for."""
        own = self._request.allowed
        allowed = dict(own)
        if within is not None:
            allowed |= {uid: own[uid] & within if uid in own else within for uid in (info.pod.uid for info in members)}
        taken = [(node, self._members[uid]) for uid, node in before.nodes.items()]
        return replace(
            self._request,
            tree=None,
            members=members,
            needed=leaf.needed if needed < 0 else needed,
            minima=leaf.minima if needed < 0 else (),
            topology=leaf.topology,
            placed=[*leaf.placed, *(node for uid, node in before.nodes.items() if uid in leaf.uids)],
            allowed=allowed,
            promised=[*self._request.promised, *taken],
            budget_seconds=self._deadline.left,
        )

    def with_the_others(self, placed: Placed) -> Placed:
        """Members beyond the minima, as far as they fit beside all that has been placed."""
        for leaf, within in placed.leaves:
            others = [self._members[uid] for uid in sorted(leaf.uids & self._members.keys() - placed.nodes.keys())]
            if not others or self._deadline.spent(1.0):
                continue
            found = self._plan(self._asking(leaf, others, within, placed, needed=0))
            if isinstance(found, Placement) and found.nodes:
                placed = Placed(
                    {**placed.nodes, **found.nodes}, (*placed.waves, (frozenset(found.nodes),)), placed.leaves
                )
        return placed


def _most(tree: Tree, sums: Sequence[tuple[frozenset[str], IntColumn]]) -> tuple[IntColumn, IntColumn]:
    """(how many groups each domain takes at most, none where they are too few for a composite; how many members)."""
    mine = _uids(tree)
    members: IntColumn = np.add.reduce([np.minimum(room, len(mine & uids)) for uids, room in sums])
    if isinstance(tree, Leaf):
        return (members >= tree.needed).astype(np.int64), members
    parts = [_most(child, sums)[0] for child in tree.children]
    enough = np.add.reduce([part > 0 for part in parts], dtype=np.int64) >= tree.needed
    return np.where(enough, np.add.reduce(parts), 0), members


def _uids(tree: Tree) -> frozenset[str]:
    return tree.uids if isinstance(tree, Leaf) else frozenset().union(*map(_uids, tree.children))


def _placed_first(children: Sequence[Tree]) -> list[Tree]:
    return sorted(children, key=lambda child: not child.placed)


def _level_name(branch: Branch) -> str:
    level = level_of(branch.topology, branch.topology.required)
    return branch.topology.levels[level].name if level is not None else ""


def _leaves(tree: Tree) -> int:
    return 1 if isinstance(tree, Leaf) else sum(map(_leaves, tree.children))


def _any_extra(tree: Tree) -> bool:
    """Whether a group has members beyond its minima, without which more groups may fit."""
    if isinstance(tree, Leaf):
        return len(tree.uids) > tree.needed
    return any(map(_any_extra, tree.children))


def least_needed(tree: Tree) -> int:
    """How many members have to be placed at least, whichever groups are chosen."""
    if isinstance(tree, Leaf):
        return tree.needed
    return sum(sorted(map(least_needed, tree.children))[: tree.needed])
