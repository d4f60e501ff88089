"""What the planner is asked for a tree of CompositePodGroups: which groups may be chosen, how many, and in which domains.

PlanRequests asks. While no groups of the tree are chosen all of them may be; afterwards, and once the tree has started, those of the
gang set alone, in the domains that the tree is in. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from extender.plugins.coscheduling.composites import MAX_DEPTH
from extender.plugins.coscheduling.planner import Branch, Leaf, Topology
from extender.plugins.coscheduling.planner.request import Tree
from extender.plugins.coscheduling.scheduling.topology import topology_of
from extender.plugins.coscheduling.spec.in_tree import CompositeSpec
from extender.plugins.coscheduling.spec.topology import AskedTopology
from extender.plugins.coscheduling.state.gang_sets import choice
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

NodesOf = Callable[[Group], Sequence[str]]
"""The nodes of a group's members that have one: bound, held or planned."""


def tree_of(
    manager: PodGroupManager,
    gang_set: Sequence[Group],
    topology: Topology,
    leaf: Callable[[Group], Leaf],
    nodes_of: NodesOf,
) -> Branch | None:
    """None for a gang set of no tree. topology: the levels that are configured. Lock held."""
    composites = manager.composites
    root = composites.root_of(gang_set[0].key) if composites.parents and gang_set else ""
    spec = composites.spec(root) if root else None
    if spec is None:
        return None
    decided = composites.has_started(root) or bool(choice(manager, root))
    return _Trees(manager, gang_set, topology, leaf, nodes_of, decided=decided).branch(spec)


class _Trees:
    """decided: which groups are to start; the gang set has them, and all of them have to be placed."""

    def __init__(
        self,
        manager: PodGroupManager,
        gang_set: Sequence[Group],
        topology: Topology,
        leaf: Callable[[Group], Leaf],
        nodes_of: NodesOf,
        *,
        decided: bool,
    ) -> None:
        self._manager = manager
        self._wanted = {group.key for group in gang_set}
        self._topology = topology
        self._leaf = leaf
        self._nodes_of = nodes_of
        self._decided = decided

    def branch(self, spec: CompositeSpec, depth: int = 1) -> Branch:
        composites, groups = self._manager.composites, self._manager.groups
        own, inner = composites.children(spec.key)
        children: list[Tree] = [self._leaf(groups[key]) for key in own if key in self._wanted and key in groups]
        if depth < MAX_DEPTH:
            below = (self.branch(known, depth + 1) for key in inner if (known := composites.spec(key)) is not None)
            children += [each for each in below if each.children or not self._decided]
        placed = [
            name
            for key in composites.groups_of(spec.key)
            if (group := groups.get(key)) is not None
            for name in self._nodes_of(group)
        ]
        needed = len(children) if self._decided else spec.min_groups
        return Branch(spec.key, children, needed, topology_of(self._topology, [_asked(spec)]), placed)


def _asked(spec: CompositeSpec) -> AskedTopology:
    return AskedTopology(node_label=spec.node_label)
