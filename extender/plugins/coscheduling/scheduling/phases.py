"""How far a gang has come, in one word: for metrics and pages. Read off its state, never stored.

Gathering (quorum missing, or not tried yet) -> Planned -> Assembling (members held) -> Committing -> Bound. Denied (no plan
was found), TimedOut (a hold or a plan ended without a start) and BackingOff lead back to Gathering, or on to Planned. From any of
them a gang comes to Quarantined where an unexpected exception was raised, and back to where it then is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from functools import partial

from extender.plugins.coscheduling.state.diagnosis import AFTER_A_HOLD
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager, by_turns
from extender.plugins.coscheduling.state.quorum import is_running, needs


class Phase(Enum):
    GATHERING = "Gathering"
    DENIED = "Denied"
    TIMED_OUT = "TimedOut"
    BACKING_OFF = "BackingOff"
    QUARANTINED = "Quarantined"
    PLANNED = "Planned"
    ASSEMBLING = "Assembling"
    COMMITTING = "Committing"
    BOUND = "Bound"


def phase_of(manager: PodGroupManager, group: Group) -> Phase:
    """The manager's lock is held."""
    if group.key in manager.quarantine:
        return Phase.QUARANTINED
    if group.starting:
        return Phase.COMMITTING
    spec = manager.specs.of(group)
    if spec is not None and not spec.invalid and is_running(group, spec):
        return Phase.BOUND
    if group.held:
        return Phase.ASSEMBLING
    if group.planned:
        return Phase.PLANNED
    if manager.queue.backs_off(group.key):
        return Phase.BACKING_OFF
    if spec is not None and needs(group, spec, group.members.keys()):
        return Phase.GATHERING
    if group.last_diagnosis is not None:
        return Phase.TIMED_OUT if group.last_diagnosis.reason in AFTER_A_HOLD else Phase.DENIED
    return Phase.DENIED if group.key in manager.denied else Phase.GATHERING


Situation = tuple[object, ...]


def situation(manager: PodGroupManager, group: Group) -> Situation | None:
    """All that the phase and the checks of a gang are read off: while it is equal, so are they.

    None where the state of other gangs plays a part. The manager's lock is held.
    """
    return None if others_count(manager, group) else own_situation(manager, group)


def others_count(manager: PodGroupManager, group: Group) -> bool:
    """Whether the state of other gangs plays a part in the group's phase and checks. The manager's lock is held."""
    stop, sets = group.last_diagnosis, manager.gang_set_index
    linked = sets.names(group.key) or len(sets.gang_set(group.key)) > 1 or manager.composites.root_of(group.key)
    return bool(linked or (stop is not None and stop.in_the_way))


def own_situation(manager: PodGroupManager, group: Group) -> Situation:
    """The group's own part of its situation. The manager's lock is held."""
    stop = group.last_diagnosis
    return (
        group.changes,
        group.spec,
        group.early,
        group.pod_group,
        group.in_tree,
        stop,
        group.planned,
        group.preempting,
        group.once_whole,
        group.whole_of,
        group.gathering is not None,
        len(group.ended),
        manager.line.has_given_up(group),
        len(group.held),
        len(group.started),
        group.start,
        bool(group.calls),
        group.key in manager.quarantine,
        group.key in manager.denied,
        manager.queue.backs_off(group.key),
        group.errors.away(manager.clock()),
    )


def count_phases(manager: PodGroupManager) -> Mapping[Phase, int]:
    """Every phase is there, with 0 where no group is in it. Takes the lock, some groups at a time."""
    with manager.lock:
        keys = list(manager.groups)
    found: Counter[Phase] = Counter()
    for some in by_turns(keys):
        with manager.lock:
            found.update(
                manager.quarantine.for_gang(
                    key, "metrics", partial(phase_of, manager, group), otherwise=Phase.QUARANTINED
                )
                for key in some
                if (group := manager.groups.get(key)) is not None
            )
    return {phase: found[phase] for phase in Phase}
