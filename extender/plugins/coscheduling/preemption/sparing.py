"""Which pods a placement can do without evicting, and how many alike members fit once some pods are gone.

Pods are put back beside the placed gang, one by one, for as long as it fits. The estimate adds up in place of a plan; it holds for
gangs whose members mind nothing but room, and the planner confirms what the search for victims found by it.
kube-scheduler: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (reprievePod), for a whole gang
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from extender.framework.hypothetical import with_pods
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.resource import PODS
from extender.plugins.coscheduling.planner import Judge, Placement, Request, shape_of
from extender.plugins.coscheduling.planner.members import MemberClass, judged, looks_at_others
from extender.plugins.coscheduling.planner.request import Deadline
from extender.plugins.coscheduling.planner.room import Room, asked_of, free
from extender.plugins.coscheduling.planner.slicing.slice_count import SliceCount
from extender.plugins.coscheduling.preemption.evictable import Evictable

_MOST = 2**61


class RoomEstimate:
    """Columns: what is free on each node, and what each victim would give back. Of a gang in slices whole slices count."""

    def __init__(
        self, cluster: NodeInfoLister, request: Request, judge: Judge, all_evictable: Sequence[Evictable]
    ) -> None:
        promised = with_pods(cluster, request.promised)
        member = request.members[0]
        self._slices = SliceCount.of(request, promised)
        shape, _ = judged(MemberClass((member,), None), promised, judge)
        self._asked = shape.asked
        self._needed = request.needed
        self._eligible = shape.but_for_room
        self._room = Room.of(promised, self._asked)
        at = {node.name: index for index, node in enumerate(promised.list())}
        self._number = {victim.uid: number for number, victim in enumerate(all_evictable)}
        self._node = np.array([at[victim.node_name] for victim in all_evictable], dtype=np.intp)
        self._gives = {
            name: np.array([min(_amount(victim, name), _MOST) for victim in all_evictable], dtype=np.int64)
            for name in (*self._asked, PODS)
        }

    @staticmethod
    def applies(request: Request) -> bool:
        """Whether members are alike, mind nothing but room, and may go anywhere."""
        if request.allowed or request.excluded or request.topology.required or request.minima or not request.members:
            return False
        if any(looks_at_others(member) for member in request.members) or not SliceCount.applies(request):
            return False
        return len({shape_of(member) for member in request.members}) == 1

    def fits(self, victims: Iterable[Evictable]) -> bool:
        """Whether the gang would, if these went."""
        gone = np.array([self._number[victim.uid] for victim in victims], dtype=np.intp)
        room = self._room.copy()
        room.give(self._node[gone], {name: amounts[gone] for name, amounts in self._gives.items()})
        holds = np.minimum(room.capacity(self._asked) * self._eligible, self._needed)
        return (int(holds.sum()) if self._slices is None else self._slices.members(holds)) >= self._needed


def _amount(victim: Evictable, name: str) -> int:
    return 1 if name == PODS else victim.info.requests.amount(name)


class Sparing:
    """The cluster without the victims and with the gang in place; `spare` changes it."""

    def __init__(self, nodes: list[NodeInfo], request: Request, judge: Judge, placement: Placement) -> None:
        """nodes: without the pods that may have to go, and with those that have a promised place. Its list is this object's from now on."""
        self._nodes = nodes
        self._at = {node.name: index for index, node in enumerate(nodes)}
        self._judge = judge
        self._deadline = Deadline.of(request)
        self._on: dict[str, list[PodInfo]] = {}
        for info in request.members:
            name = placement.nodes.get(info.pod.metadata.uid)
            if name is not None:
                self._on.setdefault(name, []).append(info)
        for name, members in self._on.items():
            node = nodes[self._at[name]].clone()
            for info in members:
                node.add_pod(info)
            nodes[self._at[name]] = node
        self._looking = any(looks_at_others(info) for members in self._on.values() for info in members)

    def spare(self, victim: Evictable) -> bool:
        """Whether the gang keeps its places with this pod back on its node; then it stays there.

        When the time is up no other pod is spared: the gang's places are sure, and that is what counts.
        """
        index = self._at[victim.node_name]
        before = self._nodes[index]
        node = before.clone()
        node.add_pod(victim.info)
        members = self._on.get(victim.node_name, ())
        if all(free(node, name) >= 0 for info in members for name in (PODS, *asked_of(info.requests))):
            self._nodes[index] = node
            if not self._minds(victim.info) or self._all_pass():
                return True
            self._nodes[index] = before
        return False

    def _minds(self, info: PodInfo) -> bool:
        """Whether more than room is between the gang and this pod."""
        return self._looking or bool(info.required_anti_affinity_terms) or bool(info.host_ports)

    def _all_pass(self) -> bool:
        """Each member by the profile's own filters, with all others in place."""
        for name, members in self._on.items():
            index = self._at[name]
            for info in members:
                if self._deadline.spent(1.0):
                    return False
                node = self._nodes[index]
                without = node.clone()
                without.remove_pod(info.pod)
                nodes = list(self._nodes)
                nodes[index] = without
                if not self._judge.begin(info.pod, nodes).filter(without).success:
                    return False
        return True
