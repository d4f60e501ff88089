"""The nodes that members are on or are to come to, and the rows of those nodes in a snapshot.

What is packed, confined to a domain or measured asks here. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from extender.framework.columnar import table_of
from extender.framework.listers import NodeInfoLister
from extender.framework.pod_info import PodInfo
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
        *((reservation.uid, reservation.node_name) for reservation in manager.ledger.of_group(group.key)),
    ]
    for uid, node_name in places:
        if uid not in seen:
            seen.add(uid)
            yield node_name


def promised_to_others(manager: PodGroupManager, uid: str, position: Position) -> Iterator[tuple[int, PodInfo]]:
    """Places of pods that are not on their node yet, nor assumed there. Lock held."""
    for reservation in manager.ledger:
        group = manager.groups.get(reservation.group)
        there = group is not None and (reservation.uid in group.held or reservation.uid in group.assigned())
        at = position(reservation.node_name)
        if at is not None and not there and reservation.uid != uid:
            yield at, reservation.pod_info


def position_in(snapshot: NodeInfoLister) -> Position:
    table = table_of(snapshot)
    if table is not None:
        return table.position
    return {node.name: at for at, node in enumerate(snapshot.list())}.get
