"""Groups that start together, taken as one: planned in one plan, refused for one cause, started by one commit.

Admission, GangPermit, Dispatcher and the guard of preemption ask here for the groups of a gang set, nearly always one.
Everything runs under the manager's lock.
Koordinator: pkg/scheduler/plugins/coscheduling/core/gang_group.go
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from extender.api import corev1
from extender.plugins.coscheduling.spec.named_groups import MAX_GROUPS
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import minima_missed, needs, schedules_alone, update_once_whole


def gang_set_of(manager: PodGroupManager, group: Group) -> Sequence[Group]:
    """The group, and the others that have to start with it. A gang set that has been whole once is none any more.

    In a tree of composites: the chosen groups; all, while none are chosen. One that was not chosen is alone, and waits.
    """
    if group.key in manager.composites.parents:
        return _in_tree(manager, group, manager.composites.root_of(group.key))
    keys = manager.gang_set_index.sets.get(group.key)
    if keys is None:
        return (group,)
    groups = [manager.groups[key] for key in keys if key in manager.groups]
    if manager.gang_set_index.was_whole(keys):
        if any(each.assigned or each.starting for each in groups):
            return (group,)
        manager.gang_set_index.start_anew(keys)
    return (group, *(each for each in groups if each is not group))


def is_linked(manager: PodGroupManager, group: Group) -> bool:
    """Whether other groups have a say in its start: it names some, or some name it, or it is in a tree of composites."""
    key, index = group.key, manager.gang_set_index
    return key in index.sets or key in index.named or key in manager.composites.parents


def _in_tree(manager: PodGroupManager, group: Group, root: str) -> Sequence[Group]:
    groups = [each for key in manager.composites.groups_of(root) if (each := manager.groups.get(key)) is not None]
    if len(groups) > MAX_GROUPS or manager.composites.problem(group.key):
        return (group,)
    if manager.composites.has_started(root):
        if any(each.assigned or each.starting for each in groups):
            return (group,)
        manager.composites.start_anew(root)
    if chosen := choice(manager, root):
        groups = [each for each in groups if each.key in chosen] if group.key in chosen else []
    return (group, *(each for each in groups if each is not group))


def choice(manager: PodGroupManager, root: str) -> Collection[str]:
    """The keys of the groups of the tree that start together; empty where none are chosen, or nothing is left of what was planned."""
    chosen = manager.composites.chosen(root)
    groups = [each for key in chosen if (each := manager.groups.get(key)) is not None]
    if len(groups) == len(chosen) and any(each.planned or each.held or each.assigned for each in groups):
        return chosen
    return ()


def chosen_groups(manager: PodGroupManager, gang_set: Sequence[Group], uids: Collection[str]) -> list[Group]:
    """Those of the gang set that have all that they need once these members have places: all, where all have to start."""
    placed = frozenset(uids)
    return [
        group
        for group in gang_set
        if (spec := manager.specs.valid(group)) is not None
        and not needs(group, spec, manager.places.placed(group) | (group.members.keys() & placed))
    ]


def missing_group(manager: PodGroupManager, group: Group) -> str:
    """The key of a group that the gang set needs and that is not there, that does not name this one back, or that starts with its tree of
    composites instead; or empty."""
    if group.key in manager.composites.parents or not is_linked(manager, group):
        return ""
    gang_set = gang_set_of(manager, group)
    if len(gang_set) == 1 and manager.gang_set_index.was_whole(manager.gang_set_index.gang_set(group.key)):
        return ""
    for each in gang_set:
        if other := manager.gang_set_index.unanswered(each.key):
            return other
    keys = manager.gang_set_index.gang_set(group.key)
    return next((key for key in keys if key not in manager.groups or key in manager.composites.parents), "")


def is_complete(manager: PodGroupManager, group: Group) -> bool:
    """Whether the group has its minMember with those on nodes and those that are held."""
    spec = manager.specs.valid(group)
    if spec is None:
        return False
    at_most = len(group.assigned) + len(group.held) + len(group.ended)
    if at_most < spec.min_member and not group.whole_of:
        return False  # counting will do: asked for each member that arrives, this is to cost the same for all of them
    return not needs(group, spec, group.assigned | group.in_permit | group.starting).total


def is_whole(manager: PodGroupManager, group: Group) -> bool:
    """Whether its minMember is on nodes: with only-waiting too, where those of earlier starts count for no other."""
    spec = manager.specs.valid(group)
    return spec is not None and not minima_missed(group, spec, group.assigned)


def update_once_satisfied(manager: PodGroupManager, group: Group) -> None:
    """A member came to a node, or left: notes what of match policy and gang set follows from it."""
    spec = manager.specs.of(group)
    update_once_whole(group, spec)
    if spec is not None and group.whole_of >= spec.min_member:
        manager.starts.is_whole(group.key)
    manager.begun.follow(group, spec)
    manager.places.follow(group)
    manager.begun.follow_broken(group, spec)
    if group.key in manager.composites.parents:
        _start_tree(manager, manager.composites.root_of(group.key))
        return
    keys = manager.gang_set_index.sets.get(group.key)
    if keys is None or manager.gang_set_index.was_whole(keys):
        return
    if all(key in manager.groups and is_whole(manager, manager.groups[key]) for key in keys):
        manager.gang_set_index.mark_whole(keys)


def _start_tree(manager: PodGroupManager, root: str) -> None:
    """Where as many groups as the tree asks for are on nodes, the others are planned by themselves from now on."""
    composites = manager.composites
    if composites.has_started(root):
        return
    groups = [each for key in composites.groups_of(root) if (each := manager.groups.get(key)) is not None]
    if composites.satisfied(root, {each.key for each in groups if is_whole(manager, each)}):
        composites.start(root)
        manager.notes.wake([each.key for each in groups if each.waits_for_room()])


def waits_for_start(manager: PodGroupManager, pod: corev1.Pod) -> bool:
    """Whether the pod is of a gang that has not started, with a plan or without: room for this one alone helps no gang.

    That holds for a gang that is set aside, too. The manager's lock is held.
    """
    key = manager.key_of(pod)
    return manager.quarantine.for_gang(key, "guard", partial(_waits_for_start, manager, pod), otherwise=bool(key))


def _waits_for_start(manager: PodGroupManager, pod: corev1.Pod) -> bool:
    group = manager.group_of(pod)
    if group is None:
        return False
    spec = manager.specs.valid(group)
    if spec is None:
        return True
    return not schedules_alone(group, spec, pod.uid) and not all(
        has_started(manager, each) for each in gang_set_of(manager, group)
    )


def may_preempt(manager: PodGroupManager, pod: corev1.Pod) -> bool:
    """Whether a pod may be evicted for this one alone: it waits for no gang, and no place is promised to it. Lock held."""
    return manager.slots.get(pod.uid) is None and not waits_for_start(manager, pod)


def has_started(manager: PodGroupManager, group: Group) -> bool:
    """Whether its minMember runs, or begins to. The manager's lock is held."""
    spec = manager.specs.of(group)
    return spec is not None and not needs(group, spec, group.assigned | group.started)
