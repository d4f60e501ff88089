"""CPU of the bookkeeping that goes with each member of a gang: the least of nine rounds, so that a busy machine matters little.

A gang of 512 of which all members are held, one of which half is still to come, and 64 gangs of 16 that were let in to bind. None of the
steps may grow with the members or the gangs (docs/design/0058-lean-plumbing.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.dispatch.bind_slots import BindSlots
from extender.plugins.coscheduling.state.gang_sets import update_once_satisfied
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.redaction import redacted
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group
from tests.unit.plugins.coscheduling.managing import place

ROUNDS, CALLS = 9, 200
MEMBERS = 512
GANGS, OF = 64, 16
LINE = "I1124 02:10:00.123 extender.scheduler.bind_verb] pod bound pod=default/gang-0-1 node=node-1"


def _row(what: str, step: Callable[[], object]) -> None:
    least = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(CALLS):
            step()
        least = min(least, (time.process_time() - began) / CALLS)
    print(f"  {what:58s} {least * 1e6:7.1f} us", flush=True)


def _planned(manager: PodGroupManager, name: str, min_member: int, members: int) -> Group:
    """All members have a slot."""
    group = manager.objects.pod_group_changed(pod_group(name, min_member))
    for number in range(members):
        member = pod(f"{name}{number}", name)
        manager.pod_changed(member)
        place(manager, member)
    group.planned = True
    return group


def run() -> None:
    manager = World([node("n1", "64")]).plugin.manager
    held = _planned(manager, "held", MEMBERS, MEMBERS)
    for uid in list(held.members):
        held.happened(uid, MemberEvent.HELD, "n1")
    _row(f"a member of {MEMBERS} is bound: are there enough places", lambda: manager.places.follow(held))
    _row(f"a member of {MEMBERS} is bound: all that follows", lambda: update_once_satisfied(manager, held))

    half = _planned(manager, "half", MEMBERS, MEMBERS // 2)
    to_come = [("n1", PodInfo(pod(f"to-come{number}", "half"))) for number in range(MEMBERS // 2)]
    manager.places.keep_for_members_to_come(half, to_come, float("inf"))
    spec = manager.specs.of(half)
    _row(
        "a member comes, half are to come: may its gang start",
        lambda: manager.places.lacks(half, spec, half.members.keys()),
    )

    bind_slots = BindSlots(manager, 5000.0)
    gangs = [_planned(manager, f"gang{number}x", OF, OF) for number in range(GANGS)]
    for gang in gangs:
        bind_slots.lets_in(gang)
    member = next(iter(gangs[0].members))
    _row(
        f"a member is asked about, {GANGS} gangs come: is it let in",
        lambda: bind_slots.lets_in_member(gangs[0], member),
    )
    _row(f"a member is held, {GANGS} gangs come: which others may", lambda: list(bind_slots.next_extras()))
    _row("a line of the log is searched for secrets", lambda: redacted(LINE))


if __name__ == "__main__":
    run()
