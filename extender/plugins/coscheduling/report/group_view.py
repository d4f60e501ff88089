"""One group's state as the pages show it: its members, what it asks for, what kube-scheduler refused, what is kept free for it.

GangReport puts these into a GangStatus. Everything reads under the manager's lock and changes nothing.
No counterpart upstream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime

from extender.plugins.coscheduling.report.gang_status import KeptFree, RoleCount, RoomKept, ShownMember, ShownState
from extender.plugins.coscheduling.scheduling.backfill_reservation import BackfillReservation
from extender.plugins.coscheduling.state.gang_sets import gang_set_of, missing_group
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager


def member_state(manager: PodGroupManager, group: Group, uid: str) -> ShownState:
    """The strongest that holds."""
    if uid in group.assigned:
        return ShownState.BOUND
    if uid in group.held:
        return ShownState.HELD
    if manager.slots.get(uid) is not None:
        return ShownState.PLANNED
    return ShownState.GATED if group.members[uid].pod.gated else ShownState.WAITING


def count_members(manager: PodGroupManager, group: Group) -> dict[str, int]:
    """Every state is there, with 0 where no member is in it."""
    states = Counter(member_state(manager, group, uid) for uid in group.members)
    return {state.value: states[state] for state in ShownState}


def members_by_name(manager: PodGroupManager, group: Group) -> tuple[ShownMember, ...]:
    """By their rank in the gang, where they have one, else by name."""
    spec = manager.specs.of(group)
    found = sorted(_members(manager, group), key=lambda member: member.name)
    if spec is None:
        return tuple(found)
    ranks = {each.pod.name: spec.rank_of(each.pod) for each in group.members.values()}
    return tuple(sorted(found, key=lambda member: (ranks[member.name] is None, ranks[member.name] or (0, 0))))


def _members(manager: PodGroupManager, group: Group) -> Iterator[ShownMember]:
    for uid, member in group.members.items():
        place = manager.slots.get(uid)
        yield ShownMember(
            name=member.pod.name,
            state=member_state(manager, group, uid),
            node=member.node_name or (place.node_name if place is not None else ""),
            gates=tuple(gate.name for gate in member.pod.spec.scheduling_gates),
        )


def starts_with(manager: PodGroupManager, group: Group) -> tuple[str, ...]:
    """The keys of the others of its gang set, of one that is not there too."""
    if manager.specs.of(group) is None:
        return ()
    missing = missing_group(manager, group)
    others = {each.key for each in gang_set_of(manager, group)[1:]} | ({missing} if missing else set())
    return tuple(sorted(others))


def role_counts(manager: PodGroupManager, group: Group) -> tuple[RoleCount, ...]:
    spec = manager.specs.of(group)
    if spec is None:
        return ()
    there = Counter(spec.roles.role_of(info.pod) for info in group.members.values())
    return tuple(RoleCount(role, minimum, there[role]) for role, minimum in spec.roles.minima)


def refuted_places(manager: PodGroupManager, group: Group) -> tuple[tuple[str, str], ...]:
    """(member, node) that kube-scheduler refused and that no plan uses for now."""
    left_out = group.refuted.left_out(manager.clock())
    return tuple(sorted((group.members[uid].pod.name, node) for uid, node in left_out if uid in group.members))


def oldest_waiting(group: Group) -> datetime | None:
    """When the oldest member that has no node was created."""
    stamps = [stamp for info in group.pending() if (stamp := info.pod.metadata.creation_timestamp) is not None]
    return min(stamps, default=None)


def room_kept(manager: PodGroupManager, group: Group, at: Callable[[float], datetime]) -> RoomKept | None:
    """For members to come. at: from the clock's seconds to a time of day."""
    slots = list(manager.slots.to_come(group.key))
    if not slots:
        return None
    return RoomKept(tuple(sorted(slot.node_name for slot in slots)), at(min(slot.expires for slot in slots)))


def kept_free(
    group: Group, reservation: BackfillReservation | None, at: Callable[[float], datetime]
) -> KeptFree | None:
    """The group's own reservation. at: from the clock's seconds to a time of day."""
    if reservation is None or group.key not in reservation.keys:
        return None
    return KeptFree(reservation.domain, tuple(sorted(reservation.nodes)), at(reservation.since), at(reservation.until))
