"""Where a gang's members are, which topology the gang asks for, and the domains that further members have to stay in.

PlanRequests uses it for the planner's requests, Permit and SinglePods for members that are scheduled after their gang. The planner
refuses a gang that asks for an unknown level, and names the level. No counterpart upstream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from extender.api import corev1
from extender.config.types import TopologyLevel
from extender.framework.columnar import table_of
from extender.framework.listers import NodeInfoLister
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.planner import Sliced, Topology
from extender.plugins.coscheduling.planner.domains import NONE, DomainCache, Domains, UnknownLevelError, level_of
from extender.plugins.coscheduling.spec.topology import AskedTopology, Slicing, is_elsewhere, layer_name, tier_number
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.group_members import controller_of
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

Rank = tuple[int, int]
"""(Number of the member's Job in its JobSet, 0 without a JobSet; index in that Job.)"""
Position = Callable[[str], int | None]
"""The row of a node in a snapshot, by the node's name; None where the snapshot does not have it."""


def places_of(manager: PodGroupManager, group: Group, but: str = "") -> Iterator[str]:
    """The node of each member that is bound, held or has a slot, and of each victim that may yet stay. but: UID of a member to leave
    out. Lock held."""
    seen, to_go = {but}, manager.nodes_of_victims.get(group.key, {}).items()
    for uid, node_name in chain(_places_by_uid(manager, group), to_go):
        if uid not in seen:
            seen.add(uid)
            yield node_name


def sliced_of(manager: PodGroupManager, group: Group, unplaced: Iterable[PodInfo], name: str) -> list[Sliced]:
    """The group's members with slices or ranks, one Sliced for each role, slicing, and presence of a rank; for each controller too where
    the controllers give the same ranks. name: the group's name in verdicts, where it is one of several. Lock held.
    """
    spec = manager.specs.valid(group)
    if spec is None:
        return []
    known = {info.pod.metadata.uid: info.pod for info in unplaced}
    places = {uid: node for uid, node in _places_by_uid(manager, group) if uid in group.members and uid not in known}
    pods = {**known, **{uid: group.members[uid].pod for uid in places}}
    kinds: dict[tuple[str, Slicing | None, bool], dict[str, Rank]] = {}
    for uid, pod in pods.items():
        rank, slicing = spec.rank_of(pod), spec.slicing_of(pod)
        if rank is not None or slicing is not None:
            kinds.setdefault((spec.roles.role_of(pod), slicing, rank is not None), {})[uid] = rank or (0, 0)
    apart = [
        (role, slicing, ranked, controller, ranks)
        for (role, slicing, ranked), together in kinds.items()
        for controller, ranks in (_by_controller(together, pods) if ranked else {"": together}).items()
    ]
    found = []
    for role, slicing, ranked, controller, ranks in apart:
        jobs = 1 + max(index for _, index in ranks.values())
        sizes, balanced = (slicing.sizes, slicing.balanced) if slicing is not None else ((), False)
        owner = pods[next(iter(ranks))].metadata.controller if controller else None
        owners = (f"role {role}" if role else "", owner.name if owner is not None else "", name)
        numbers = {uid: job * jobs + index for uid, (job, index) in ranks.items()} if ranked else {}
        placed = [(uid, places[uid]) for uid in ranks if uid in places]
        kind = (role, controller) if len(apart) > 1 else None
        uids = frozenset(ranks.keys() & known.keys())
        found.append(Sliced(uids, sizes, numbers, placed, balanced, " of ".join(filter(None, owners)), kind))
    return found


def _by_controller(ranks: Mapping[str, Rank], pods: Mapping[str, corev1.Pod]) -> dict[str, dict[str, Rank]]:
    """Ranks by the UID of the members' controller; all under "" where no two controllers give the same rank.

    Those of one JobSet or LeaderWorkerSet do not: each goes on counting where the one before ended.
    """
    found: dict[str, dict[str, Rank]] = {}
    controller_of_rank: dict[Rank, str] = {}
    distinct = True
    for uid, rank in ranks.items():
        controller = controller_of(pods[uid])
        found.setdefault(controller, {})[uid] = rank
        distinct = distinct and controller_of_rank.setdefault(rank, controller) == controller
    return {"": dict(ranks)} if distinct else found


def _places_by_uid(manager: PodGroupManager, group: Group) -> Iterator[tuple[str, str]]:
    """(UID, node) of each member with a node, each held member and each slot."""
    yield from ((uid, member.node_name) for uid, member in group.members.items() if member.node_name)
    yield from group.held.items()
    yield from ((slot.uid, slot.node_name) for slot in manager.slots.of_group(group.key))


def position_in(snapshot: NodeInfoLister) -> Position:
    table = table_of(snapshot)
    if table is not None:
        return table.position
    return {node.name: at for at, node in enumerate(snapshot.list())}.get


def topology_of(configured: Topology, asked: Iterable[AskedTopology]) -> Topology:
    """The topology that a gang set asks for: the narrowest required, and the narrowest preferred, level of all its groups."""
    known = list(asked)
    slicings = [slicing for each in known for slicing in (each.slicing, *dict(each.by_pods).values()) if slicing]
    labels = [label for each in known for label in (each.node_label, each.preferred_label)]
    labels += [label for each in slicings for label in each.node_labels]
    configured = _with_labels(configured, dict.fromkeys(label for label in labels if label))
    needed = (level for each in known for level in (_named(configured, each.required), each.node_label))
    required = _narrowest(configured, needed)
    preferred = _narrowest(configured, (_preferred(configured, each.preferred) for each in known))
    return replace(configured, required=required, preferred=preferred) if required or preferred else configured


def _with_labels(configured: Topology, labels: Iterable[str]) -> Topology:
    """Adds a level for each of these node labels that no configured level has, the first label as the widest.

    Added levels are wider than all configured ones: the label's value alone determines the domain. The configured levels still
    determine how the gang is packed inside it.
    """
    known = {level.key for level in configured.levels}
    unknown = [label for label in labels if label not in known]
    if not unknown:
        return configured
    return replace(configured, levels=(*(TopologyLevel(label, label) for label in unknown), *configured.levels))


def confining_level(configured: Topology, asked: Iterable[AskedTopology]) -> tuple[Topology, int] | None:
    """(Topology, number of the required level), within one domain of which all members have to be.

    None if no level is required, or the level is unknown: then the gang is not planned, and its running members may be anywhere.
    """
    topology = topology_of(configured, asked)
    try:
        level = level_of(topology, topology.required)
    except UnknownLevelError:
        return None
    return (topology, level) if level is not None else None


def _narrowest(configured: Topology, levels: Iterable[str]) -> str:
    return max({level for level in levels if level}, key=lambda name: (_depth(configured, name), name), default="")


def _named(configured: Topology, level: str) -> str:
    """The name of the level, which may be asked for by its tier's number; the name as asked for if it is not configured."""
    number = tier_number(level)
    return configured.levels[-number].name if 0 < number <= len(configured.levels) else layer_name(level)


def _preferred(configured: Topology, level: str) -> str:
    """Likewise, for a preferred level; empty for another system's level that is not configured."""
    name = _named(configured, level)
    return "" if is_elsewhere(level) and _depth(configured, name) == len(configured.levels) else name


def _depth(configured: Topology, name: str) -> int:
    """The level's number from the widest; an unknown level counts as narrower than all, so that it is chosen, and refused."""
    levels = enumerate(configured.levels)
    return next((index for index, level in levels if name in (level.name, level.key)), len(configured.levels))


def shared_topologies(
    manager: PodGroupManager, group: Group
) -> Iterator[tuple[Sequence[AskedTopology], Sequence[Group]]]:
    """(Topologies asked for, the groups whose members have to share one domain): first for the gang set, then for each composite above
    the group. In a tree of composites the group stands for itself, in place of its gang set.

    A gang set that has been whole is none any more. Until then a member beyond the minima stays with it, too: in another domain it would
    draw those there that are planned after it. Lock held.
    """
    composites = manager.composites
    above = composites.ancestors(group.key) if group.key in composites.parents else ()
    gang_set = (group,) if above else gang_set_of(manager, group)
    yield [spec.topology for each in gang_set if (spec := manager.specs.of(each)) is not None], gang_set
    for composite in above:
        if composite.node_label:
            keys = composites.groups_of(composite.key)
            known = [manager.groups[key] for key in keys if key in manager.groups]
            yield [AskedTopology(node_label=composite.node_label)], known


@dataclass(frozen=True, slots=True)
class Confinement:
    """A member has to be in a domain of this level that has at least one of these nodes.

    size: of a slice, for members without a rank: the member goes to a domain with an incomplete slice, if there is one; else 0.
    """

    topology: Topology
    level: int
    nodes: Sequence[str]
    size: int = 0

    def domains(self, domains: Domains, position: Position) -> frozenset[int]:
        """The domains that the member may go to; empty if it may go to any."""
        at = [row for name in self.nodes if (row := position(name)) is not None]
        if not self.size:
            return domains.with_nodes(self.level, at)
        there = Counter(int(domains.ids[self.level][row]) for row in at)
        return frozenset(domain for domain, count in there.items() if count % self.size) - {NONE}


def confinements(manager: PodGroupManager, configured: Topology, group: Group, uid: str) -> Iterator[Confinement]:
    """The domains that a member has to stay in when it is scheduled alone, from wide to narrow. Lock held."""
    for asked, groups in shared_topologies(manager, group):
        confining = confining_level(configured, asked)
        nodes = [name for each in groups for name in places_of(manager, each, but=uid)] if confining else []
        if confining is not None and nodes:
            yield Confinement(*confining, nodes)
    spec, member = manager.specs.valid(group), group.members.get(uid)
    if spec is None or member is None or spec.slicing_of(member.pod) is None:
        return
    topology = topology_of(configured, [spec.topology])
    for sliced in sliced_of(manager, group, [member.info], ""):
        if uid in sliced.uids:
            yield from _of_slices(topology, sliced, uid)


def _of_slices(topology: Topology, sliced: Sliced, uid: str) -> Iterator[Confinement]:
    for name, size in sliced.sizes:
        try:
            level = level_of(topology, name)
        except UnknownLevelError:
            return
        own = sliced.ranks.get(uid)
        if own is None or not size:
            nodes = [node for _, node in sliced.placed]
        else:
            nodes = [node for other, node in sliced.placed if sliced.ranks[other] // size == own // size]
        if level is not None and nodes:
            yield Confinement(topology, level, nodes, size if own is None else 0)


class GangSetDomains:
    """Finds members that would leave their gang set's domain. All callers hold the manager's lock. topology: the configured levels."""

    def __init__(self, manager: PodGroupManager, topology: Topology) -> None:
        self._manager = manager
        self._topology = topology
        self._domains = DomainCache(topology.levels)

    def left(self, group: Group, uid: str, node_name: str, snapshot: NodeInfoLister) -> str:
        """The name of the level whose domain the member would leave on this node; empty if it stays with its siblings."""
        position = position_in(snapshot)
        here = position(node_name)
        if here is None:
            return ""
        for confinement in confinements(self._manager, self._topology, group, uid):
            level, domains = confinement.level, self._domains.of(snapshot, confinement.topology.levels)
            own = confinement.domains(domains, position)
            if own and domains.ids[level][here] not in own:
                return domains.levels[level].name
        return ""
