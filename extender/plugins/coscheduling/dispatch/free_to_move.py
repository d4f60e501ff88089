"""Slots that will do on any node with room: nothing else is promised of where they are.

MovedSlots moves such a slot to a node that is offered, and so Dispatcher frees its member without a nomination. No counterpart upstream.
"""

from __future__ import annotations

import math

from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.state.gang_sets import is_linked
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import schedules_alone
from extender.plugins.coscheduling.state.slots import Slot


def is_free_to_move(manager: PodGroupManager, group: Group, slot: Slot) -> bool:
    """Whether a plan of the slot's member alone might give it any node with room. Lock held.

    Not where a topology or slices, siblings, groups that start together, phases to come or pods that have to go first have a say.
    """
    spec, uid = manager.specs.of(group), slot.uid
    if (
        spec is None
        or spec.invalid
        or schedules_alone(group, spec, uid)
        or uid in group.held
        or uid not in group.members
    ):
        return False
    if slot.firm or slot.expires == math.inf or slot.ranks is not None or slot.kind is not None:
        return False
    if spec.topology.required or spec.topology.node_label or spec.slicing_of(group.members[uid].pod) is not None:
        return False
    if group.key in manager.slots.waves or group.key in manager.slots.looking:
        return False
    if group.steps or group.early or group.in_part or spec.to_come or group.preempting is not None:
        return False
    return not is_linked(manager, group) and not planner.looks_at_others(group.members[uid].info)
