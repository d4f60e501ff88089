"""The domain that a gang is in, asked once more when a member comes to bind: it may have been planned elsewhere meanwhile.

Between our answer in filter and the bind call the room of a plan can go to others, and the gang be planned in another rack. The
member that was on its way then is not held where it would tear its gang apart. The Barrier asks; SinglePods judges extra
members likewise, in filter. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling.planner import Topology
from extender.plugins.coscheduling.planner.domains import DomainCache
from extender.plugins.coscheduling.scheduling.group_topology import confining_level
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.places import places_of, position_in
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.units import unit_of


class UnitDomains:
    """Everything here runs under the manager's lock. topology: the levels that are configured."""

    def __init__(self, manager: PodGroupManager, topology: Topology) -> None:
        self._manager = manager
        self._topology = topology
        self._domains = DomainCache(topology.levels)

    def left(self, group: Group, uid: str, node_name: str, snapshot: NodeInfoLister) -> str:
        """The level of which the member would leave the domain that those it has to be with are in; empty if it would not."""
        planned = self._manager.ledger.get(uid) is not None
        unit = unit_of(self._manager, group) if planned else (group,)
        specs = [self._manager.spec(each) for each in unit]
        level = confining_level(self._topology, [spec.topology for spec in specs if spec is not None])
        if level is None:
            return ""
        position = position_in(snapshot)
        here = position(node_name)
        if here is None:
            return ""
        domains = self._domains.of(snapshot)
        others = [at for name in self._places(unit, uid) if (at := position(name)) is not None]
        own = domains.with_nodes(level, others)
        return domains.levels[level].name if own and domains.ids[level][here] not in own else ""

    def _places(self, unit: Sequence[Group], uid: str) -> Iterator[str]:
        """The nodes of everybody else of the unit that has one."""
        for group in unit:
            yield from places_of(self._manager, group, but=uid)
