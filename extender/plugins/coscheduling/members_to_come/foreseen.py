"""What is known of members that are still to be made, from minMember and minResources, and the room for them that is needed no more.

PlanRequests asks what room a plan has to find beside the members'; GroupEvents gives back what too much is kept.
Palantir's spark-scheduler-extender reserves an application's executors with its driver
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.framework.resource import Resource
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.sources.ended_phase import size_of
from extender.plugins.coscheduling.spec.sources.steps import Step, step_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

MOST_PIECES = planner.MOST_PIECES


def foreseen(manager: PodGroupManager, group: Group) -> planner.Foreseen | None:
    """The room that is still to be found; None where no member comes later, or all the room is kept. Lock held.

    Of the shape of a member to come nothing is known but the average: what minResources asks for beyond the members that there are.
    """
    spec = manager.specs.valid(group)
    if spec is None or not group.members:
        return None
    return _room(manager, group, spec, [member.info for member in group.members.values()], spec.to_come)


def foreseen_anew(manager: PodGroupManager, group: Group) -> planner.Foreseen | None:
    """What is to be kept again when we begin to lead: no room is, and only the pods say how far the job is. Lock held.

    1. No member has a place, and none has Succeeded: None, nothing has begun.
    2. A phase waits after which others come: None, its own plan looks for their room.
    3. It runs as a whole, or has been whole: None, what is missing now is not of a later phase. Spark's executors may be.
    4. Else the room of all members without a place, those that wait among them; members that have Succeeded say what their phase was.
    """
    spec = manager.specs.valid(group)
    placed = manager.places.placed(group) & group.members.keys()
    known, ended = [group.members[uid].info for uid in sorted(placed)], group.ended_phase
    if spec is None or not (known or ended):
        return None  # 1
    waiting = len(group.members) - len(placed)
    to_come = spec.min_member + spec.to_come - len(placed)
    if not spec.been:
        to_come = min(to_come, spec.to_come + waiting)
    if spec.to_come and waiting:
        return None  # 2
    if Step.DRIVER not in group.steps and (to_come <= 0 or group.whole_of >= spec.min_member + spec.to_come):
        return None  # 3
    return _room(manager, group, spec, known, to_come)


def _room(
    manager: PodGroupManager, group: Group, spec: GroupSpec, known: Sequence[PodInfo], to_come: int
) -> planner.Foreseen | None:
    """known: the members that have their part of it. to_come: how many others there are to be."""
    if to_come <= 0 and Step.DRIVER not in group.steps:
        return None  # as for nearly every gang: no likeness is made for it
    slots = [slot.pod_info for slot in manager.slots.to_come(group.key)]
    ended, been = group.ended_phase, spec.been
    largest = max(known, key=size_of) if known else ended.like if ended is not None else None
    if largest is None:
        return None
    like = PodInfo(_bare(largest.pod, f"to-come/{group.key}/{manager.slots.next_number()}"))
    left = _beyond(spec, (*known, *slots))
    if to_come > 0:
        count = to_come - len(slots) if to_come <= MOST_PIECES else to_come * (not slots)
        if count <= 0:
            return None
        if left is not None and ended is not None and ended.number == been:
            left.subtract(ended.requests)
            been = 0
        total = left if left is not None else _times(largest.requests, to_come, 1)
        return planner.Foreseen(like, _times(total, count, count + been), count)
    if left is None:
        return None
    if not any(left.amount(name) > len(slots) for name in _names(left)):
        return None
    return planner.Foreseen(like, left)


def give_back(manager: PodGroupManager, group: Group) -> bool:
    """Ends the slots for members to come that none will come for any more. Returns whether there were any. Lock held."""
    if group.members and not (group.steps or group.early or group.in_part):
        return False
    slots = list(manager.slots.to_come(group.key))
    if not slots:
        return False
    spec = manager.specs.valid(group)
    surplus = []
    if spec is None or not (group.members or group.early):
        surplus = slots
    elif Step.DRIVER in group.steps:
        drivers = {uid for uid, member in group.members.items() if step_of(member.pod) is Step.DRIVER}
        placed = manager.places.placed(group) & group.members.keys()
        taken = {group.members[uid].pod.node_name for uid in placed - drivers}
        slots.sort(key=lambda slot: slot.node_name not in taken)  # first those on nodes where an executor is
        there = (group.members[uid].info for uid in placed | drivers)
        left = _beyond(spec, (*there, *(slot.pod_info for slot in slots))) or Resource()
        for slot in slots:  # as long as the others are all that it takes
            left.add(slot.pod_info.requests)
            if all(left.amount(name) <= 0 for name in _names(left)):
                surplus.append(slot)
            else:
                left.subtract(slot.pod_info.requests)
    else:
        surplus = slots[spec.to_come or max(0, spec.min_member - len(group.members)) :]
    if surplus:
        manager.places.release(group, [slot.uid for slot in surplus])
        manager.notes.on_capacity_freed([group.key])
    return bool(surplus)


def _beyond(spec: GroupSpec, known: Iterable[PodInfo]) -> Resource | None:
    """What minResources asks for beyond these, members and room that is kept; less than nothing where they ask for more. None: it asks for
    nothing."""
    if spec.min_resources is None:
        return None
    left = spec.min_resources.clone()
    for info in known:
        left.subtract(info.requests)
    return left


def _names(resource: Resource) -> tuple[str, ...]:
    return (*planner.NATIVE, *resource.scalar)


def _times(resource: Resource, number: int, of: int) -> Resource:
    """Rounded up."""
    return Resource.from_amounts({name: -(-max(0, resource.amount(name)) * number // of) for name in _names(resource)})


def _bare(pod: corev1.Pod, uid: str) -> corev1.Pod:
    """Without what is a member's own: its volumes, its ports, its looking at others."""
    affinity = pod.spec.affinity
    spec = corev1.PodSpec(
        scheduler_name=pod.spec.scheduler_name,
        node_selector=pod.spec.node_selector,
        affinity=corev1.Affinity(node_affinity=affinity.node_affinity) if affinity is not None else None,
        tolerations=pod.spec.tolerations,
        priority=pod.spec.priority,
        preemption_policy=pod.spec.preemption_policy,
    )
    metadata = structs.replace(pod.metadata, uid=uid, name="to-come", labels={}, annotations={})
    return corev1.Pod(metadata=metadata, spec=spec)
