"""What is known of members that are still to be made, from minMember and minResources, and the room for them that is needed no more.

PlanRequests asks what room a plan has to find beside the members'; GroupEvents gives back what too much is kept.
Palantir's spark-scheduler-extender reserves an application's executors with its driver
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.framework.resource import Resource
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.sources.steps import Step
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

MOST_PIECES = planner.MOST_PIECES


def foreseen(manager: PodGroupManager, group: Group) -> planner.Foreseen | None:
    """The room that is still to be found; None where no member comes later, or all the room is kept. Lock held.

    Of the shape of a member to come nothing is known but the average: what minResources asks for beyond the members that there are.
    """
    spec = manager.spec(group)
    if spec is None or spec.invalid or not group.members:
        return None
    slots = list(manager.slots.to_come(group.key))
    like = PodInfo(_bare(_largest(group).pod, f"to-come/{group.key}/{manager.slots.next_number()}"))
    if spec.to_come:
        count = spec.to_come - len(slots) if spec.to_come <= MOST_PIECES else spec.to_come * (not slots)
        if count <= 0:
            return None
        left = _beyond(spec, group, (slot.pod_info for slot in slots))
        total = left if left is not None else _times(_largest(group).requests, spec.to_come, 1)
        return planner.Foreseen(like, _times(total, count, count + spec.been), count)
    left = _beyond(spec, group, (slot.pod_info for slot in slots)) if Step.DRIVER in group.steps else None
    if left is None or not any(left.amount(name) > len(slots) for name in _names(left)):
        return None
    return planner.Foreseen(like, left)


def give_back(manager: PodGroupManager, group: Group) -> bool:
    """Ends the slots for members to come that none will come for any more. Returns whether there were any. Lock held."""
    slots = list(manager.slots.to_come(group.key))
    if not slots or not (group.steps or group.early or group.in_part or not group.members):
        return False
    spec = manager.spec(group)
    surplus = []
    if spec is None or spec.invalid or not (group.members or group.early):
        surplus = slots
    elif Step.DRIVER in group.steps:
        left = _beyond(spec, group, (slot.pod_info for slot in slots)) or Resource()
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


def _beyond(spec: GroupSpec, group: Group, kept: Iterable[PodInfo]) -> Resource | None:
    """What minResources asks for beyond the members and what is kept; less than nothing where that is more. None: it asks for nothing."""
    if spec.min_resources is None:
        return None
    left = spec.min_resources.clone()
    for info in (*(member.info for member in group.members.values()), *kept):
        left.subtract(info.requests)
    return left


def _names(resource: Resource) -> tuple[str, ...]:
    return (*planner.NATIVE, *resource.scalar)


def _times(resource: Resource, number: int, of: int) -> Resource:
    """Rounded up."""
    return Resource.from_amounts({name: -(-max(0, resource.amount(name)) * number // of) for name in _names(resource)})


def _largest(group: Group) -> PodInfo:
    def size(info: PodInfo) -> tuple[int, int, int, str]:
        asked = info.requests
        return sum(asked.scalar.values()), asked.milli_cpu, asked.memory, info.pod.name

    return max((member.info for member in group.members.values()), key=size)


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
