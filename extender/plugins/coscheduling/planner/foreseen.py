"""Room for members that are still to be made, found beside the members' places: one plan of all of it.

Of the room nothing is known but how much it is together, and perhaps for how many: it is divided into equal pieces, each of which is
placed as a member is. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import msgspec

from extender.api import corev1
from extender.api.quantity import MAX_INT64, Quantity
from extender.framework.pod_info import PodInfo
from extender.framework.resource import CPU, EPHEMERAL_STORAGE, MEMORY
from extender.plugins.coscheduling.planner.request import (
    Cause,
    Deadline,
    Foreseen,
    Minimum,
    NoPlacement,
    Placement,
    Request,
)
from extender.plugins.coscheduling.planner.room import Room, asked_of

PlanOne = Callable[[Request], Placement | NoPlacement]
"""A plan of a request that foresees nothing."""

NATIVE = (CPU, MEMORY, EPHEMERAL_STORAGE)
MOST_PIECES = 256  # of the room for members that are still to be made, whatever their number
NUMBERS_OF_PIECES = (1, 2, 4, 8, 16, 32, 64)  # that are tried where it is not known


def plan_foreseen(request: Request, foreseen: Foreseen, plan: PlanOne, room: Room) -> Placement | NoPlacement:
    """The members, and the room for those that are still to be made beside them; the verdict is that of the smallest pieces. Where their
    number is not known those are not tried for which counting alone shows that there is no room. room: what all nodes have left.
    """
    deadline = Deadline.of(request)
    result: Placement | NoPlacement | None = None
    numbers = (min(foreseen.pieces, MOST_PIECES),) if foreseen.pieces else NUMBERS_OF_PIECES
    for number in numbers:
        if result is not None and deadline.spent(1.0):
            break
        pieces = list(_pieces(foreseen, number))
        if number != numbers[-1] and room.capacity(asked_of(pieces[0].requests)).sum() < number:
            continue
        uids = {info.pod.uid for info in request.members}
        minima = request.minima or (Minimum(frozenset(uids), request.needed),)
        kept = Minimum(frozenset(info.pod.uid for info in pieces), number, "members that come later", number)
        asked = replace(
            request,
            foreseen=None,
            members=[*request.members, *pieces],
            needed=request.needed + number,
            minima=(kept, *minima) if request.minima or request.needed < len(uids) else (),
            budget_seconds=deadline.left,
        )
        result = plan(asked)
        if isinstance(result, Placement):
            return result.keeping(pieces)
        if result.cause is not Cause.ROOM:
            break
    return result if result is not None else Placement({})


def _pieces(foreseen: Foreseen, number: int) -> Iterator[PodInfo]:
    """Each asks for its part of the whole, rounded up."""
    total = foreseen.total
    part = {name: -(-max(0, total.amount(name)) // number) for name in (*NATIVE, *total.scalar)}
    for at in range(number):
        yield asking_for(foreseen.like.pod, f"{foreseen.like.pod.uid}/{at}", part)


def asking_for(like: corev1.Pod, uid: str, amounts: Mapping[str, int]) -> PodInfo:
    """Such a pod that asks for these amounts, cpu in milliCPU, and tolerates the taints that are named after what it asks for."""
    asked = {name: amount for name, amount in amounts.items() if amount > 0}
    requests = {
        name: Quantity(f"{amount}m", -(-amount // 1000), amount)
        if name == CPU
        else Quantity(f"{amount}", amount, min(amount * 1000, MAX_INT64))
        for name, amount in asked.items()
    }
    named_after = tuple(corev1.Toleration(key=name, operator="Exists") for name in asked if "/" in name)
    spec = msgspec.structs.replace(
        like.spec,
        containers=(corev1.Container(resources=corev1.ResourceRequirements(requests=requests)),),
        tolerations=(*like.spec.tolerations, *(each for each in named_after if each not in like.spec.tolerations)),
    )
    return PodInfo(msgspec.structs.replace(like, metadata=msgspec.structs.replace(like.metadata, uid=uid), spec=spec))
