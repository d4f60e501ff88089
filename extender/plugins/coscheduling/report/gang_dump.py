"""The state of gangs as it is kept: members with their states and nominations, slots, holds.

Served at /debug/gangs. `gang_report` says what it means, this what there is. Nothing is computed, so that it answers where a plan cannot.
kube-scheduler: pkg/scheduler/backend/cache/debugger/dumper.go
"""

from __future__ import annotations

from collections.abc import Iterable

from extender.client.short_steps import pause
from extender.plugins.coscheduling.report.gang_status import Shown
from extender.plugins.coscheduling.scheduling.phases import phase_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import Member
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager, in_parts
from extender.plugins.coscheduling.state.slots import Slot


class MemberDump(Shown, frozen=True):
    """state: of the machine in docs/architecture.md. node: where it is or is held. nomination: the node of ours, empty if it may be out of
    date, None if there is none. rejection: the text of our last refusal."""

    name: str
    uid: str
    state: str
    node: str = ""
    nomination: str | None = None
    ungated_without_nomination: bool = False
    rejection: str = ""


class SlotDump(Shown, frozen=True):
    """pod: the member that it is for, empty for one to come. expires_in: seconds until it is given up. firm: of a start that has begun."""

    id: int
    node: str
    pod: str
    wave: int
    expires_in: float
    firm: bool


class GangDump(Shown, frozen=True):
    """held: how many bind calls wait; calls: how many filter calls do. changes: grows with each change of a member."""

    group: str
    phase: str
    planned: bool
    preempting: bool
    quarantined: bool
    held: int
    ending: int
    calls: int
    changes: int
    members: tuple[MemberDump, ...] = ()
    slots: tuple[SlotDump, ...] = ()


def all_gangs(manager: PodGroupManager) -> list[GangDump]:
    """By name. The lock is held for some gangs at a time."""
    with manager.lock:
        keys = sorted(manager.groups)
    found: list[GangDump] = []
    for some in in_parts(keys):
        found += _dumps(manager, some)
        pause()
    return found


def one_gang(manager: PodGroupManager, key: str) -> GangDump | None:
    """None for a group that is not there."""
    return next(iter(_dumps(manager, (key,))), None)


def _dumps(manager: PodGroupManager, keys: Iterable[str]) -> list[GangDump]:
    with manager.lock:
        groups = [manager.groups[key] for key in keys if key in manager.groups]
        return [_dump(manager, group) for group in groups]


def _dump(manager: PodGroupManager, group: Group) -> GangDump:
    """Lock held. Of a gang that is set aside nothing is asked that may raise."""
    aside = manager.quarantine.since(group.key) is not None
    now = manager.clock()
    return GangDump(
        group=group.key,
        phase="" if aside else phase_of(manager, group).value,
        planned=group.planned,
        preempting=group.preempting is not None,
        quarantined=aside,
        held=len(group.held),
        ending=len(group.ending),
        calls=sum(call.waiting for call in group.calls.values()),
        changes=group.changes,
        members=tuple(_member(each) for each in sorted(group.members.values(), key=lambda member: member.pod.name)),
        slots=tuple(_slot(each, now) for each in manager.slots.of_group(group.key)),
    )


def _member(member: Member) -> MemberDump:
    return MemberDump(
        name=member.pod.name,
        uid=member.pod.uid,
        state=member.state.value,
        node=member.node_name,
        nomination=member.nomination,
        ungated_without_nomination=member.ungated_without_nomination,
        rejection=member.last_rejection,
    )


def _slot(slot: Slot, now: float) -> SlotDump:
    return SlotDump(
        id=slot.id,
        node=slot.node_name,
        pod="" if slot.to_come else slot.pod.key,
        wave=slot.wave,
        expires_in=round(slot.expires - now, 3),
        firm=slot.firm,
    )
