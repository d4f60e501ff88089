"""Likenesses of the members that a gang which is still being made lacks: what its early start plans with in their place.

EarlyStarts asks whether they tell enough, PlanRequests puts them beside the members, GangSetPlanning makes slots of their places.
No counterpart upstream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from msgspec import structs

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.framework.resource import Resource
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import Member
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import Needs, needs

FEW = 8  # members, of which what minResources asks for beside them is judged
LIKENESS = "to-come/"  # what the UIDs of likenesses begin with, and no pod's


def with_room_to_come(placement: planner.Placement, request: planner.Request) -> planner.Placement:
    """What was found for likenesses is room that is kept for members to come."""
    return placement.keeping(info for info in request.members if info.pod.uid.startswith(LIKENESS))


def likenesses(
    manager: PodGroupManager, group: Group, missing: Needs, unplaced: Iterable[PodInfo] = ()
) -> Sequence[PodInfo]:
    """The members that are still to be made of those that have no place: of each role that is short like the newest of that role, the rest
    like the newest that there is, of the ranks that are missing. Nothing where it does not gather. Lock held.

    unplaced: the members that are there of those that are missing.
    """
    spec = manager.specs.of(group)
    if group.gathering is None or not group.members or spec is None:
        return ()
    found: list[PodInfo] = []
    for like, number in _wanted(group, spec, missing, [info.pod for info in unplaced]):
        ranks = _missing_ranks(manager, group, spec)
        for _ in range(number):
            found.append(_likeness(f"{LIKENESS}{group.key}/{manager.slots.next_number()}", like, spec, next(ranks)))
    return found


def _wanted(
    group: Group, spec: GroupSpec, missing: Needs, unplaced: Sequence[corev1.Pod]
) -> Iterator[tuple[corev1.Pod, int]]:
    """Which member others are to be like, and how many."""
    left = missing.total - len(unplaced)
    there = Counter(map(spec.roles.role_of, unplaced)) if missing.roles else Counter[str]()
    for role, short in missing.roles:
        number = short - there[role]
        like = next((each.pod for each in _newest_first(group) if spec.roles.role_of(each.pod) == role), None)
        if number > 0 and like is not None:
            yield like, number
            left -= number
    if left > 0:
        yield next(_newest_first(group)).pod, left


def _newest_first(group: Group) -> Iterator[Member]:
    return reversed(group.members.values())


def _missing_ranks(manager: PodGroupManager, group: Group, spec: GroupSpec) -> Iterator[int]:
    pods = (*(each.pod for each in group.members.values()), *(slot.pod for slot in manager.slots.to_come(group.key)))
    there = {spec.rank_of(pod) for pod in pods}
    return (rank for rank in count() if (0, rank) not in there)


def _likeness(uid: str, pod: corev1.Pod, spec: GroupSpec, rank: int) -> PodInfo:
    index = spec.index_key_of(pod)
    labels = {**pod.metadata.labels, **({str(index): str(rank)} if index is not None else {})}
    if spec.roles.minima:
        labels[spec.roles.label] = spec.roles.role_of(pod)  # which an annotation may have said
    metadata = structs.replace(pod.metadata, name="to-come", uid=uid, labels=labels, annotations={})
    return PodInfo(structs.replace(pod, metadata=metadata))


def has_each_role(group: Group, spec: GroupSpec) -> bool:
    """Whether a member of each role with a minimum is there. Lock held."""
    there = group.role_counts().among(group.members.keys(), group.members, spec.roles)
    return all(there.get(role) for role, _ in spec.roles.minima)


def asks_for_no_more(group: Group, spec: GroupSpec, min_resources: Resource) -> bool:
    """Whether minResources is no more than all members ask for, if those that are missing are like those that there are. Judged by the
    first few members alone, since it is asked whenever one comes. Lock held."""
    if len(group.members) > FEW:
        return False
    total = Resource()
    for member in group.members.values():
        total.add(member.info.requests)
    for like, number in _wanted(group, spec, needs(group, spec, group.members.keys()), ()):
        requests = PodInfo(like).requests
        total.add(Resource.from_amounts({name: requests.amount(name) * number for name in names_of(requests)}))
    return all(total.amount(name) >= min_resources.amount(name) for name in names_of(min_resources))


def names_of(requests: Resource) -> tuple[str, ...]:
    """Of the resources that it may ask for."""
    return (*planner.NATIVE, *requests.scalar)
