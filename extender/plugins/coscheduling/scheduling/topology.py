"""Where a gang's members are, which topology it asks for, and which domain further members have to stay in.

PlanRequests asks for the planner, Permit and SinglePods for members that come later. An annotation that names no level is refused by
the planner, by its name. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from extender.config.types import TopologyLevel
from extender.framework.columnar import table_of
from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling.planner import Topology
from extender.plugins.coscheduling.planner.domains import DomainCache, UnknownLevelError, level_of
from extender.plugins.coscheduling.spec.topology import AskedTopology, is_elsewhere, layer_name, tier_number
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

Position = Callable[[str], int | None]
"""The row of a node in a snapshot, by the node's name; None where the snapshot does not have it."""


def places_of(manager: PodGroupManager, group: Group, but: str = "") -> Iterator[str]:
    """The node of each member that has one, but for one (a UID): bound, held or promised. Lock held."""
    seen = {but}
    places = [
        *((uid, member.node_name) for uid, member in group.members.items() if member.node_name),
        *group.held.items(),
        *((slot.uid, slot.node_name) for slot in manager.slots.of_group(group.key)),
    ]
    for uid, node_name in places:
        if uid not in seen:
            seen.add(uid)
            yield node_name


def position_in(snapshot: NodeInfoLister) -> Position:
    table = table_of(snapshot)
    if table is not None:
        return table.position
    return {node.name: at for at, node in enumerate(snapshot.list())}.get


def topology_of(configured: Topology, asked: Iterable[AskedTopology]) -> Topology:
    """Groups that start together share one answer, whichever asks: the narrowest level that any of them names."""
    known = list(asked)
    configured = _with_labels(configured, {each.node_label for each in known if each.node_label})
    needed = (level for each in known for level in (_named(configured, each.required), each.node_label))
    required = _narrowest(configured, needed)
    preferred = _narrowest(configured, (_preferred(configured, each.preferred) for each in known))
    return replace(configured, required=required, preferred=preferred) if required or preferred else configured


def _with_labels(configured: Topology, labels: AbstractSet[str]) -> Topology:
    """With a level for each of these node labels that has none. It is the widest, so that the label's value alone makes its
    domain; the configured ones go on to say how the gang is packed inside."""
    unknown = sorted(labels - {level.key for level in configured.levels})
    if not unknown:
        return configured
    return replace(configured, levels=(*(TopologyLevel(label, label) for label in unknown), *configured.levels))


def confining_level(configured: Topology, asked: Iterable[AskedTopology]) -> tuple[Topology, int] | None:
    """The levels, and the one of which those that ask have to share a domain; None where there is none, or it is unknown: such
    a gang is not planned, and what runs of it runs anywhere."""
    topology = topology_of(configured, asked)
    try:
        level = level_of(topology, topology.required)
    except UnknownLevelError:
        return None
    return (topology, level) if level is not None else None


def _narrowest(configured: Topology, levels: Iterable[str]) -> str:
    return max({level for level in levels if level}, key=lambda name: (_depth(configured, name), name), default="")


def _named(configured: Topology, level: str) -> str:
    """The name of a level that is asked for by its tier; one that is not configured keeps what it is called."""
    number = tier_number(level)
    return configured.levels[-number].name if 0 < number <= len(configured.levels) else layer_name(level)


def _preferred(configured: Topology, level: str) -> str:
    """Likewise; another system's level that is not configured is nothing to prefer."""
    name = _named(configured, level)
    return "" if is_elsewhere(level) and _depth(configured, name) == len(configured.levels) else name


def _depth(configured: Topology, name: str) -> int:
    """An unknown level comes first, so that it is refused."""
    levels = enumerate(configured.levels)
    return next((index for index, level in levels if name in (level.name, level.key)), len(configured.levels))


def shared_topologies(
    manager: PodGroupManager, group: Group, *, planned: bool
) -> Iterator[tuple[Sequence[AskedTopology], Sequence[Group]]]:
    """What is asked for, and the groups whose members have to be in one domain of it: the gang set, or, in a tree of composites, the
    group itself and all groups of each composite above it. planned: by the gang set's plan; else the group is on its own. Lock held.
    """
    composites = manager.composites
    above = composites.ancestors(group.key) if composites else ()
    gang_set = gang_set_of(manager, group) if planned and not above else (group,)
    yield [spec.topology for each in gang_set if (spec := manager.spec(each)) is not None], gang_set
    for composite in above:
        if composite.node_label:
            keys = composites.groups_of(composite.key)
            known = [manager.groups[key] for key in keys if key in manager.groups]
            yield [AskedTopology(node_label=composite.node_label)], known


class GangSetDomains:
    """Everything here runs under the manager's lock. topology: the levels that are configured."""

    def __init__(self, manager: PodGroupManager, topology: Topology) -> None:
        self._manager = manager
        self._topology = topology
        self._domains = DomainCache(topology.levels)

    def left(self, group: Group, uid: str, node_name: str, snapshot: NodeInfoLister) -> str:
        """The level of which the member would leave the domain that those it has to be with are in; empty if it would not."""
        planned = self._manager.slots.get(uid) is not None
        position = position_in(snapshot)
        here = position(node_name)
        if here is None:
            return ""
        for asked, groups in shared_topologies(self._manager, group, planned=planned):
            confining = confining_level(self._topology, asked)
            if confining is None:
                continue
            topology, level = confining
            domains = self._domains.of(snapshot, topology.levels)
            others = [at for name in self._places(groups, uid) if (at := position(name)) is not None]
            own = domains.with_nodes(level, others)
            if own and domains.ids[level][here] not in own:
                return domains.levels[level].name
        return ""

    def _places(self, gang_set: Sequence[Group], uid: str) -> Iterator[str]:
        """The nodes of all other members of the gang set that have one."""
        for group in gang_set:
            yield from places_of(self._manager, group, but=uid)
