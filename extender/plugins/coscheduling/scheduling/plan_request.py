"""What the planner is asked for a gang set: its members without a place, and the cluster with the places of others in it.

GangSetPlanning and GangPreemption ask it, and so do the pages that say why a gang waits. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from extender.framework.listers import NodeInfoLister, Nominator
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.resource import Resource
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.members_to_come.foreseen import foreseen
from extender.plugins.coscheduling.members_to_come.likenesses import likenesses
from extender.plugins.coscheduling.planner.trees import least_needed
from extender.plugins.coscheduling.scheduling.overlay import Overlays
from extender.plugins.coscheduling.scheduling.topology import places_of, sliced_of, topology_of
from extender.plugins.coscheduling.scheduling.tree_request import tree_of
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import Needs, schedules_alone, settled_members
from extender.plugins.coscheduling.state.slots import Slot

Place = tuple[str, PodInfo]
"""A node's name, and the pod that is to come there."""


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """The request, and what it is asked of: `cluster`, the snapshot with the places in it that hold against the gang set.

    The request's `promised` are what is not in there: own places that any gang may take, and what other schedulers nominated.
    own: the places of the gang set itself. others: whether any place or nomination of others counts.
    """

    request: planner.Request
    cluster: NodeInfoLister
    snapshot: NodeInfoLister
    own: Sequence[Place] = ()
    others: bool = False

    def asking(self, request: planner.Request) -> PlanQuestion:
        """Something else of the same cluster."""
        return replace(self, request=request)

    def without_others(self) -> PlanQuestion:
        """The same, as if no place were promised but the gang set's own."""
        return replace(self, request=replace(self.request, promised=self.own), cluster=self.snapshot, others=False)


class PlanRequests:
    """topology: the levels that are configured."""

    def __init__(self, manager: PodGroupManager, nominator: Nominator, topology: planner.Topology) -> None:
        self._manager = manager
        self._nominator = nominator
        self.topology = topology
        self.overlays = Overlays(manager.slots)

    def lacks(self, group: Group, without: str = "") -> Needs:
        """How many members the group still needs a place for, if one of them (a UID) has none."""
        places = self._manager.places
        return places.lacks(group, self._manager.specs.of(group), places.placed(group) - {without})

    def needs_plan(self, group: Group, uid: str) -> bool:
        """Whether the member has to have a place in a plan; an extra one of a gang that has its quorum passes as a single pod."""
        spec = self._manager.specs.of(group)
        if spec is None or schedules_alone(group, spec, uid):
            return False
        return any(self.lacks(each, uid) for each in gang_set_of(self._manager, group))

    def question(
        self,
        gang_set: Sequence[Group],
        scheduler_name: str,
        snapshot: NodeInfoLister,
        allowed: Mapping[str, frozenset[str]] | None = None,
        *,
        caller: str = "",
        evicting: bool = False,
    ) -> PlanQuestion:
        """What is to be planned for the gang set now. It costs the gang set's own members and places, and what has changed.

        evicting: pods may be evicted for it."""
        priority = self._priority(gang_set)
        overlay = self.overlays.against(priority)
        own = [place for group in gang_set for place in self._manager.slots.of_group(group.key)]
        beside = [_place(place) for place in own if not place.holds_against(priority)]
        nominated = self.nominated(gang_set, priority)
        confined = self.confined(gang_set, evicting=evicting)
        request = self._request(gang_set, scheduler_name, {**confined, **(allowed or {})}, caller)
        return PlanQuestion(
            replace(request, promised=[*beside, *nominated]),
            overlay.over(snapshot),
            snapshot,
            [_place(place) for place in own],
            bool(nominated) or any(True for _ in self.places_of_others(gang_set)),
        )

    def places_of_others(self, gang_set: Sequence[Group]) -> Iterator[Slot]:
        """Those that hold against the gang set."""
        keys = {group.key for group in gang_set}
        places = self.overlays.against(self._priority(gang_set)).places()
        return (place for place in places if place.group not in keys)

    def _priority(self, gang_set: Sequence[Group]) -> int:
        return min(map(self._manager.line.priority_of, gang_set))

    def _request(
        self, gang_set: Sequence[Group], scheduler_name: str, allowed: Mapping[str, frozenset[str]], caller: str
    ) -> planner.Request:
        members: list[PodInfo] = []
        minima: list[planner.Minimum] = []
        sliced: list[planner.Sliced] = []
        needed = 0
        for group in gang_set:
            unplaced, own = self._of_group(group, scheduler_name, alone=len(gang_set) == 1)
            sliced += sliced_of(self._manager, group, unplaced, group.key if len(gang_set) > 1 else "")
            members += unplaced
            minima += own
            needed += own[-1].needed if own else 0
        members.sort(key=lambda info: (info.pod.uid != caller, info.pod.name))
        alone = gang_set[0] if needed and len(gang_set) == 1 else None
        tree = tree_of(self._manager, gang_set, self.topology, partial(self._leaf, scheduler_name), self._nodes)
        return planner.Request(
            members=members,
            needed=needed if tree is None else least_needed(tree),
            tree=tree,
            allowed=allowed,
            excluded=self._excluded(gang_set),
            topology=topology_of(
                self.topology, [spec.topology for spec in map(self._manager.specs.of, gang_set) if spec]
            ),
            placed=[node for group in gang_set for node in self._nodes(group)],
            minima=minima if len(minima) > 1 or any(len(each.uids) < len(members) for each in minima) else (),
            foreseen=foreseen(self._manager, alone) if alone is not None and tree is None else None,
            sliced=sliced,
        )

    def _leaf(self, scheduler_name: str, group: Group) -> planner.Leaf:
        spec = self._manager.specs.valid(group)
        unplaced, minima = self._of_group(group, scheduler_name, alone=False)
        uids = frozenset(info.pod.uid for info in unplaced)
        if spec is None:
            return planner.Leaf(group.key, uids, len(uids) + 1)  # more than there are
        topology = topology_of(self.topology, [spec.topology])
        return planner.Leaf(group.key, uids, minima[-1].needed if minima else 0, minima, topology, self._nodes(group))

    def _of_group(
        self, group: Group, scheduler_name: str, *, alone: bool
    ) -> tuple[list[PodInfo], list[planner.Minimum]]:
        """Members without a place, and the minima that they have to meet: the roles', then the whole group's."""
        spec = self._manager.specs.of(group)
        placed = self._manager.places.placed(group)
        unplaced = [info for info in self._manager.plannable(group, scheduler_name) if info.pod.uid not in placed]
        if spec is None:
            return unplaced, []
        missing, asked = self._manager.places.lacks(group, spec, placed), dict(spec.roles.minima)
        settled = settled_members(group, spec)
        counted = [info for info in unplaced if info.pod.uid not in settled]
        to_come = likenesses(self._manager, group, missing, counted) if missing else ()
        counted += to_come
        unplaced += to_come
        of = "" if alone else f" of {group.key}"
        minima = [
            planner.Minimum(
                frozenset(info.pod.uid for info in counted if spec.roles.role_of(info.pod) == role),
                number,
                f"role {role}{of}",
                asked[role],
            )
            for role, number in missing.roles
        ]
        if missing.total:
            all_members = frozenset(info.pod.uid for info in counted)
            minima.append(planner.Minimum(all_members, missing.total, f"minMember{of}", spec.min_member))
        return unplaced, minima

    def _nodes(self, group: Group) -> list[str]:
        return list(places_of(self._manager, group))

    def _excluded(self, gang_set: Iterable[Group]) -> frozenset[tuple[str, str]]:
        now = self._manager.clock()
        return frozenset(pair for group in gang_set for pair in group.refuted.left_out(now))

    def confined(self, gang_set: Iterable[Group], *, evicting: bool) -> dict[str, frozenset[str]]:
        """UID -> the only nodes that a member may have. Lock held."""
        now, epoch = self._manager.clock(), self._manager.notes.cluster_epoch
        found = (group.refuted.confined(now, epoch, evicting=evicting) for group in gang_set)
        return {uid: nodes for each in found for uid, nodes in each.items()}

    def nominated(self, gang_set: Sequence[Group], priority: int) -> list[tuple[str, PodInfo]]:
        """Nominations made by others; ours are slots."""
        slots = self._manager.slots
        return [
            (node_name, PodInfo(pod))
            for node_name, pod in self._nominator.nominated_pods_but(slots.uids())
            if pod.priority >= priority
            and not self._manager.is_nominated(pod.uid)
            and not any(pod.uid in group.members for group in gang_set)
        ]

    def resource_gap(self, group: Group, spec: GroupSpec, snapshot: NodeInfoLister) -> tuple[str, ...]:
        """The names of what the whole cluster has too little of for minResources, less what placed members hold."""
        if spec.min_resources is None:
            return ()
        required = spec.min_resources.clone()
        for uid in self._manager.places.placed(group):
            required.subtract(group.members[uid].info.requests)
        for slot in self._manager.slots.to_come(group.key):
            required.subtract(slot.pod_info.requests)
        free = _free(snapshot.list())
        names = ["cpu", "memory", "ephemeral-storage", *required.scalar]
        return tuple(name for name in names if required.amount(name) > max(0, free.amount(name)))


def _place(slot: Slot) -> Place:
    return slot.node_name, slot.pod_info


def _free(nodes: Sequence[NodeInfo]) -> Resource:
    """What all nodes together have left; an over-committed node does not count against the others."""
    total = Resource()
    for node in nodes:
        if node.unschedulable:
            continue
        left = node.allocatable.clone()
        left.subtract(node.requested)
        total.milli_cpu += max(0, left.milli_cpu)
        total.memory += max(0, left.memory)
        total.ephemeral_storage += max(0, left.ephemeral_storage)
        for name, amount in left.scalar.items():
            total.scalar[name] = total.scalar.get(name, 0) + max(0, amount)
    return total
