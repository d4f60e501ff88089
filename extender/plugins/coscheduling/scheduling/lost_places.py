"""Slots that have no room any more, and what becomes of their members: they alone are planned again.

ReservedRoom asks after a pod came to a node or the node changed, GangSetPlanning after a gang of higher priority took places;
SchedulerFeedback and Admission tell of those that kube-scheduler did not take.
kube-scheduler: pkg/scheduler/framework/preemption (prepareCandidate clears nominations of lower priority likewise)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial

from extender.framework.interface import MIN_FEASIBLE_NODES_TO_FIND
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.resource import PODS, Resource
from extender.plugins.coscheduling.planner.room import Amounts, asked_of, free
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.refutations import NOWHERE, How
from extender.plugins.coscheduling.state.slots import Slot
from extender.plugins.node_unschedulable import tolerates_cordon


def fits_beside(asked: Amounts, node: NodeInfo, coming: Iterable[PodInfo]) -> bool:
    """Whether the node has room for a pod beside these, which are to come."""
    total, count = Resource(), 0
    for info in coming:
        total.add(info.requests)
        count += 1
    return free(node, PODS) > count and all(
        amount + total.amount(name) <= free(node, name) for name, amount in asked.items()
    )


def no_longer_fit(node: NodeInfo, places: Iterable[Slot]) -> list[Slot]:
    """Those for which the node has no room left; what is firm and the higher priority keep theirs, of equal ones the older place.

    A place that never expires is one whose room is still to come free, by preemption.
    """
    here = {info.pod.uid for info in node.pods}
    kept: list[PodInfo] = []
    lost = []
    for place in sorted(places, key=lambda place: (not place.firm, -place.priority)):
        if place.uid in here or place.expires == math.inf:
            continue
        closed = node.unschedulable and not tolerates_cordon(place.pod)
        if closed or not fits_beside(asked_of(place.pod_info.requests), node, kept):
            lost.append(place)
        else:
            kept.append(place.pod_info)
    return lost


def refute(manager: PodGroupManager, group: Group, place: Slot, how: How, offered: frozenset[str] = NOWHERE) -> None:
    """kube-scheduler did not take the place. The manager's lock is held.

    It has tried every node, and said all that passed if they are so few that it did not stop early. So the member may go to
    what was offered, and where siblings are in its way: their nodes were not judged for it alone. Where none has passed another
    place is of no use: no patch wakes a pod that kube-scheduler's own filters refused, but room that comes free may.
    """
    group.refuted.add(place.uid, place.node_name, how, manager.clock())
    if how is How.REFUSED:
        group.refuted.sleeps(place.uid, manager.cluster_epoch)
    elif len(offered) < MIN_FEASIBLE_NODES_TO_FIND:
        gang_set = gang_set_of(manager, group)
        taken = {node_name for each in gang_set for node_name in _nodes_of_others(manager, each, place.uid)}
        group.refuted.confine(place.uid, place.node_name, offered | taken, manager.cluster_epoch)


def _nodes_of_others(manager: PodGroupManager, group: Group, uid: str) -> Iterator[str]:
    yield from (place.node_name for place in manager.slots.of_group(group.key) if place.uid != uid)
    yield from (each.node_name for other, each in group.members.items() if other != uid and each.node_name)


def lose_place(manager: PodGroupManager, place: Slot) -> bool:
    """One member is to be planned again, beside the places of its gang that are still good. The manager's lock is held.

    A gang that is set aside keeps none.
    """
    return manager.quarantine.for_gang(place.group, "places", partial(_lose_place, manager, place), otherwise=True)


def _lose_place(manager: PodGroupManager, place: Slot) -> bool:
    group = manager.groups.get(place.group)
    if group is None or place.uid in group.held:
        return False
    manager.lose_places(group, [place.uid])
    group.place_lost(place.uid)
    return True


def recheck(manager: PodGroupManager, node_names: Iterable[str], snapshot: NodeInfoLister) -> bool:
    """Gives up the places on these nodes that are good no more. Returns whether there were any."""
    lost = False
    with manager.lock:
        for name in node_names:
            places = list(manager.slots.on_node(name))
            try:
                node = snapshot.get(name) if places else None
            except KeyError:
                continue
            for place in no_longer_fit(node, places) if node is not None else ():
                lost = lose_place(manager, place) or lost
    return lost
