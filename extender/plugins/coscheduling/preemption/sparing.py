"""Whom a placement can do without evicting: pods are put back beside the placed gang, one by one, for as long as it fits.

kube-scheduler: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (reprievePod), for a whole gang
"""

from __future__ import annotations

from collections.abc import Sequence

from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.planner import Judge, Placement, Request, insufficient
from extender.plugins.coscheduling.planner.members import looks_at_others
from extender.plugins.coscheduling.planner.request import Deadline
from extender.plugins.coscheduling.preemption.evictable import Evictable


class Sparing:
    """The cluster without the victims and with the gang in place; `spare` changes it."""

    def __init__(self, nodes: list[NodeInfo], request: Request, judge: Judge, placement: Placement) -> None:
        """nodes: without whoever may have to go, and with whom a place is promised. Its list is this object's from now on."""
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

        When the time is up nobody else is spared: the gang's places are sure, and that is what counts.
        """
        index = self._at[victim.node_name]
        before = self._nodes[index]
        node = before.clone()
        node.add_pod(victim.info)
        if self._has_room(node, self._on.get(victim.node_name, ())):
            self._nodes[index] = node
            if not self._minds(victim.info) or self._all_pass():
                return True
            self._nodes[index] = before
        return False

    def _has_room(self, node: NodeInfo, members: Sequence[PodInfo]) -> bool:
        for info in members:
            without = node.clone()
            without.remove_pod(info.pod)
            if insufficient(without, info.requests):
                return False
        return True

    def _minds(self, info: PodInfo) -> bool:
        """Whether more than room is between the gang and this pod."""
        return self._looking or bool(info.required_anti_affinity_terms) or bool(info.host_ports)

    def _all_pass(self) -> bool:
        """Each member by the profile's own filters, with everybody else in place."""
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
