"""What is true of the books that are kept of gangs, whatever has happened: every field of a Group, every map of the manager.

The machines ask after each step, the stories at their end. A field that is in no table here is a mistake: a new one brings
its rule. The manager's lock is held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter

from extender import metrics
from extender.framework.hypothetical import with_pods
from extender.plugins.coscheduling.planner import looks_at_others
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.plugins.coscheduling.pod_conditions import was_sent
from extender.plugins.coscheduling.scheduling.overlay import BELOW_ANY_PRIORITY
from extender.plugins.coscheduling.spec.membership import foreign_gates
from extender.plugins.coscheduling.spec.pod_group import GroupSpec, too_many_together
from extender.plugins.coscheduling.spec.roles import role_of
from extender.plugins.coscheduling.spec.sources.steps import step_of
from extender.plugins.coscheduling.state.counts.sayings import Sayings, said_of, wish_of
from extender.plugins.coscheduling.state.counts.standing import standing_of
from extender.plugins.coscheduling.state.group import HOLDING, Group
from extender.plugins.coscheduling.state.manager.specs import spec_of
from extender.plugins.coscheduling.state.member import MemberState
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import Needs, in_phase, is_broken, needs, unmade
from extender.plugins.coscheduling.state.slots import Slot, Slots
from extender.plugins.coscheduling.waits_for import WaitIndex, WaitsFor

BOUND = MemberState.BOUND
Rule = Callable[[PodGroupManager, Group], Iterable[str]]
"""What is wrong with one field of a group."""


def wrong_entries(plugin: Coscheduling) -> Iterator[str]:
    """Each entry that should not be there, or is missing, in words; none at any time."""
    manager = plugin.manager
    with manager.lock:
        for key, group in manager.groups.items():
            for name, rule in GROUP_RULES.items():
                yield from (f"{key}: {name}: {wrong}" for wrong in rule(manager, group))
            if not (group.members or group.held or group.pod_group or group.in_tree):
                yield f"{key}: nothing is left of it"
        for name, check in MANAGER_RULES.items():
            yield from (f"{name}: {wrong}" for wrong in check(manager))
        for metric in metrics.impossible_transitions.collect():
            yield from (f"impossible: {each.labels}" for each in metric.samples if each.value)
        yield from (f"seen of {key}, which is gone" for key in plugin.observer._seen.keys() - manager.groups.keys())
        gathers = {key for key, group in manager.groups.items() if group.gathering is not None}
        if gathers != plugin.early_starts._keys.keys():
            yield f"{gathers} gather, {plugin.early_starts._keys} are noted"
        yield from _overlays(plugin)
        yield from _taken_for_settled(plugin)


def _overlays(plugin: Coscheduling) -> Iterator[str]:
    """Each is the newest snapshot and the places that hold at its priority."""
    overlays, snapshot = plugin.rounds.requests.overlays, plugin.dependencies.newest_snapshot()
    overlays.against(BELOW_ANY_PRIORITY)
    for overlay in list(overlays):
        places = [place for place in plugin.manager.slots if place.holds_against(overlay.priority)]
        made_anew = with_pods(snapshot, [(place.node_name, place.pod_info) for place in places])
        for known, expected in zip(overlay.over(snapshot).list(), made_anew.list(), strict=True):
            pods, others = ({info.pod.uid for info in node.pods} for node in (known, expected))
            if (known.name, pods, known.requested) != (expected.name, others, expected.requested):
                yield f"overlay from {overlay.priority} on: {sorted(pods)} on {known.name}, where {sorted(others)} should be"


def _taken_for_settled(plugin: Coscheduling) -> Iterator[str]:
    """Gangs that the observer would not look at though something is new of them."""
    for key, seen in list(plugin.observer._seen.items()):
        group = plugin.manager.groups.get(key)
        if group is not None and plugin.observer.is_settled(group) and plugin.observer.see(group) is not seen:
            yield f"{key} is not as it was seen: {seen}"


# Fields of a group


def _nothing(manager: PodGroupManager, group: Group) -> Iterable[str]:
    """Of a field that is not about single members."""
    return ()


def _of_members(name: str) -> Rule:
    """UIDs of members alone."""

    def rule(manager: PodGroupManager, group: Group) -> Iterable[str]:
        return (f"{uid} is no member" for uid in sorted(set(getattr(group, name)) - group.members.keys()))

    return rule


def _of_pending(name: str) -> Rule:
    """UIDs of members that are on no node yet."""

    def rule(manager: PodGroupManager, group: Group) -> Iterable[str]:
        yield from _of_members(name)(manager, group)
        yield from (f"{uid} is on its node" for uid in sorted(set(getattr(group, name)) & group.assigned))

    return rule


def _exactly(name: str, recount: Callable[[PodGroupManager, Group], object]) -> Rule:
    def rule(manager: PodGroupManager, group: Group) -> Iterable[str]:
        known, counted = getattr(group, name), recount(manager, group)
        if known != counted:
            yield f"{known} is noted, {counted} counted"

    return rule


def _members(manager: PodGroupManager, group: Group) -> Iterable[str]:
    for uid, member in group.members.items():
        pod = member.pod
        if member.ref.key != group.key:
            yield f"{uid} is of {member.ref.key}"
        if pod.uid != uid or manager._pods.group_of(uid) != group.key:
            yield f"{uid} is not found by its UID"
        if pod.deleting or pod.terminal or uid in manager.terminating or manager._pods.is_gone(uid):
            yield f"{uid} is gone, or going"
    yield from _way(manager, group)


def _way(manager: PodGroupManager, group: Group) -> Iterable[str]:
    """Of a member that is on its node nothing of its way there is left."""
    for uid, member in group.members.items():
        on_its_way = member.nomination, member.rejected_in_tree, member.last_rejection or None
        if member.pod.node_name and (member.ungated_without_nomination or set(on_its_way) != {None}):
            yield f"{uid} is on its node"


def _of_scheduler(manager: PodGroupManager, group: Group) -> Mapping[str, set[str]]:
    counted: dict[str, set[str]] = {}
    for uid, member in group.members.items():
        counted.setdefault(member.pod.spec.scheduler_name, set()).add(uid)
    return counted


def _held(manager: PodGroupManager, group: Group) -> Iterable[str]:
    """A member that is gone may be held until its call ends; the stories look at the calls that wait."""
    known = {uid: node_name for uid, node_name in group.held.items() if uid in group.members}
    counted = {uid: group.members[uid].node for uid in group.waiting()}
    if known != counted:
        yield f"{known} is noted, {counted} counted"


def _by_state(manager: PodGroupManager, group: Group) -> Iterable[str]:
    """Each member is in one state, and what is known of it is what that state says."""
    counted: dict[MemberState, set[str]] = {}
    for uid, member in group.members.items():
        counted.setdefault(member.state, set()).add(uid)
        holding, bound = member.state in HOLDING, member.state is MemberState.BOUND
        if bound != bool(member.pod.node_name or (member.node and not holding)):
            yield f"{uid} is {member.state}, and on {member.pod.node_name or 'no node'}"
        if bool(member.node) != holding and not bound:
            yield f"{uid} is {member.state}, and is held on {member.node or 'no node'}"
        if member.state is MemberState.GATED and uid not in group.gated:
            yield f"{uid} is Gated, and our gate alone does not hold it"
        of_an_earlier_run = member.nomination == "" and was_sent(member.pod)  # until its gang is planned anew
        if member.state is MemberState.DISPATCHED and manager.slots.get(uid) is None and not of_an_earlier_run:
            yield f"{uid} is Dispatched, and has no place"
    if (noted := {state: uids for state, uids in group._by_state.items() if uids}) != counted:
        yield f"{noted} is noted, {counted} counted"


def _in_state(state: MemberState) -> Rule:
    """The field is the set of `_by_state`, under a name of its own."""
    field = {BOUND: "assigned", MemberState.UNSCHEDULABLE: "refused", MemberState.WAITING: "in_permit"}.get(
        state, state.lower()
    )
    return lambda _, group: () if getattr(group, field) is group._by_state[state] else (f"{field} is a set of its own",)


def _gated(manager: PodGroupManager, group: Group) -> object:
    return {
        uid
        for uid, member in group.members.items()
        if member.pod.gated and not member.pod.node_name and not foreign_gates(member.pod, (manager.gate,))
    }


def _on_waiting(manager: PodGroupManager, group: Group) -> Iterable[str]:
    if (group.key in manager.queue.waiting) != group.waits_for_room():
        yield f"{'waits' if group.waits_for_room() else 'does not wait'}, and the queue does not know it"


def _errors(manager: PodGroupManager, group: Group) -> Iterable[str]:
    uids = group.errors._errors.keys() | group.errors._due.keys()
    return (f"{uid} is no member" for uid in sorted(uids - group.members.keys()))


def _refuted(manager: PodGroupManager, group: Group) -> Iterable[str]:
    refuted = group.refuted
    uids = (
        {uid for uid, _ in refuted._pairs}
        | refuted._confined.keys()
        | refuted._asleep.keys()
        | refuted._candidates.keys()
    )
    return (f"{uid} is no member" for uid in sorted(uids - group.members.keys()))


def _recounted(manager: PodGroupManager, group: Group, spec: GroupSpec) -> Needs:
    """What is missing by the slots themselves, and by the members on nodes and in holds."""
    slots = [slot for slot in manager.slots if slot.group == group.key]
    having = {slot.uid for slot in slots if not slot.to_come} | group.waiting() | group.assigned
    to_come = [slot.pod for slot in slots if slot.to_come]
    return needs(group, spec, having, to_come[: unmade(group, spec)])


def _asked(manager: PodGroupManager, group: Group) -> GroupSpec | None:
    """By its object, less the members that have been and those that are made later."""
    spec = spec_of(group, manager.specs.foreign_of(group))
    if spec is not None and not spec.invalid and (wrong := manager.composites.problem(group.key)):
        spec = replace(spec, invalid=wrong)
    if (
        spec is None
        or group.pod_group is None
        or not manager.to_come_seconds
        or not manager.specs.may_come_in_phases(group)
    ):
        return spec
    return in_phase(cloned(group), spec)


def cloned(group: Group) -> Group:
    """Of which nothing is remembered."""
    return Group(
        group.key,
        members=group.members,
        steps=group.steps,
        early=group.early,
        in_part=group.in_part,
        assigned=group.assigned,  # it has begun
    )


def _current(manager: PodGroupManager, group: Group) -> Iterable[str]:
    """What is remembered of the members as they are is what would be found now."""
    if group.current is not None and group.spec is not None and group.current != (found := _in_phase(manager, group)):
        yield f"{group.current} is noted, {found} found"


def _in_phase(manager: PodGroupManager, group: Group) -> GroupSpec | None:
    anew = cloned(group)
    anew.spec, anew.pod_group, anew.in_tree, anew.sayings = group.spec, group.pod_group, group.in_tree, group.sayings
    return manager.specs.of(anew)


def _gathering(manager: PodGroupManager, group: Group) -> Iterable[str]:
    """Only a gang that lacks members gathers, and room for members to come is kept for none that has gathered."""
    spec = group.spec
    if group.gathering is not None and spec is not None and not needs(group, spec, group.members.keys()):
        yield "it is complete"
    if group.gathering is None and group.gathered and manager.slots.to_come(group.key):
        yield "it gathers no more, and room is kept for its members"


def _planned(manager: PodGroupManager, group: Group) -> Iterable[str]:
    """Planned is a group with places for as many as it needs."""
    spec = _asked(manager, group)
    if group.planned and spec is not None and not spec.invalid and (lacks := _recounted(manager, group, spec)):
        yield f"{lacks.total} places are missing"


def _spec(manager: PodGroupManager, group: Group) -> Iterable[str]:
    asked = spec_of(group, manager.specs.foreign_of(group))
    if asked is not None and not asked.invalid and (wrong := manager.composites.problem(group.key)):
        asked = replace(asked, invalid=wrong)
    if asked is not None and (number := manager.gang_set_index.refused(group.key)):
        asked = too_many_together(asked, number)
    if group.spec is not None and group.spec != asked:
        yield f"{group.spec} is noted, {asked} asked for"


def _start(manager: PodGroupManager, group: Group) -> Iterable[str]:
    """It is of members alone, and those places are firm that it takes to finish it; till they have come, while they are bound."""
    if group.start is not None:
        yield from (f"{uid} is no member" for uid in sorted(group.start.members - group.members.keys()))
    behind = manager.begun.left_behind(group)
    for place in manager.slots.of_group(group.key):
        if place.firm != (place.uid in behind) and not (place.firm and place.uid in group.starting):
            yield f"the place of {place.uid} is {'' if place.firm else 'not '}firm"


def _roles(manager: PodGroupManager, group: Group) -> Iterable[str]:
    """Under the label that was asked for last, if roles were asked for."""
    if group.roles is None:
        return
    counted = Counter(role_of(each.pod, group.roles._label) for each in group.members.values())
    if group.roles._counts != counted:
        yield f"{group.roles._counts} is noted, {counted} counted"


def _standing(manager: PodGroupManager, group: Group) -> Iterable[str]:
    found = standing_of(group.members, group.priorities, _asked(manager, group))
    if group.standing is not None and group.spec is not None and group.standing != found:
        yield f"{group.standing} is noted, {found} counted"


def _whole_of(manager: PodGroupManager, group: Group) -> Iterable[str]:
    """Of a gang that runs: with none left it starts anew."""
    if group.whole_of and not (group.assigned or group.starting):
        yield f"{group.whole_of} members are said to have run, and none does"


GROUP_RULES: Mapping[str, Rule] = {
    "key": _exactly("key", lambda manager, group: next(k for k, v in manager.groups.items() if v is group)),
    "pod_group": _nothing,
    "in_tree": _nothing,
    "members": _members,
    "of_scheduler": _exactly("of_scheduler", _of_scheduler),
    "held": _held,
    "_by_state": _by_state,
    "assigned": _in_state(BOUND),
    "refused": _in_state(MemberState.UNSCHEDULABLE),
    "admitted": _in_state(MemberState.ADMITTED),
    "starting": _in_state(MemberState.STARTING),
    "in_permit": _in_state(MemberState.WAITING),
    "unconfirmed": _exactly(
        "unconfirmed",
        lambda _, group: {u for u, each in group.members.items() if each.state is BOUND and not each.pod.node_name},
    ),
    "ending": lambda _, group: (f"{uid} is not held" for uid in sorted(group.ending - group.held.keys())),
    "gated": _exactly("gated", _gated),
    "on_waiting": _on_waiting,
    "changes": _nothing,
    "calls": _of_pending("calls"),
    "claiming": _of_members("claiming"),
    "errors": _errors,
    "refuted": _refuted,
    "planned": _planned,
    "preempting": _nothing,
    "started": _of_pending("started"),
    "start": _start,
    "once_whole": _nothing,
    "whole_of": _whole_of,
    "ran": _nothing,
    "ended": lambda _, group: (f"{uid} has ended and is a member" for uid in group.ended.keys() & group.members.keys()),
    "last_diagnosis": _nothing,
    "spec": _spec,
    "priorities": _exactly(
        "priorities", lambda _, group: Counter(each.pod.priority for each in group.members.values())
    ),
    "roles": _roles,
    "steps": _exactly(
        "steps", lambda _, group: Counter(filter(None, (step_of(each.pod) for each in group.members.values())))
    ),
    "early": _nothing,
    "ended_phase": _nothing,
    "in_part": _nothing,
    "gathering": _gathering,
    "gathered_in_vain": lambda _, group: (
        ("it has not gathered",)
        if group.gathered_in_vain and (group.gathering is not None or not group.gathered)
        else ()
    ),
    "gathered": lambda _, group: ("it has no member",) if group.gathered and not group.members else (),
    "current": _current,
    "sayings": _exactly(
        "sayings",
        lambda _, group: Sayings(
            Counter(filter(None, (wish_of(each.pod, each.ref) for each in group.members.values()))),
            Counter(filter(None, (said_of(each.pod, each.ref) for each in group.members.values()))),
        ),
    ),
    "standing": _standing,
}


# What the manager keeps


def _no_rule(manager: PodGroupManager) -> Iterable[str]:
    return ()


def _of_groups(keys: Callable[[PodGroupManager], Iterable[str]]) -> Callable[[PodGroupManager], Iterable[str]]:
    """Notes of groups that are there."""
    return lambda manager: (
        f"a note of {key}, which is gone" for key in sorted(set(keys(manager)) - manager.groups.keys())
    )


def _slots(manager: PodGroupManager) -> Iterable[str]:
    """Filled one to one: each is for one member of its group, or for one to come; those of single pods have no group."""
    slots = manager.slots
    members = {uid for group in manager.groups.values() for uid in group.members}
    for place in slots:
        group = manager.groups.get(place.group)
        if place.to_come:
            if group is None or place.uid in members or place.firm:
                yield f"{place.id} of {place.group} is for a member to come, and for {place.uid}"
        elif place.group and (group is None or place.uid not in group.members):
            yield f"{place.uid} of {place.group} has a place and is no member"
        elif group is not None and place.uid in group.on_node():
            yield f"{place.uid} has a place and is on its node"
    yield from _indexes(slots)


def _indexes(slots: Slots) -> Iterable[str]:
    places = list(slots)
    if Counter(place.uid for place in places) != Counter(slots._by_uid.keys()):
        yield "a place is not found by its UID"
    if len({place.id for place in places} - {0}) != len(places):
        yield "two slots are one"
    if slots.waves != Counter(place.group for place in places if place.wave):
        yield f"{slots.waves} slots of later waves are noted"
    if slots.looking != Counter(place.group for place in places if looks_at_others(place.pod_info)):
        yield f"{slots.looking} slots are noted to be for pods that look at others"
    to_come = [place for place in places if place.to_come]
    for name, index, key, these in (
        ("node", slots._by_node, _node_of, places),
        ("group", slots._by_group, _group_of, places),
        ("group, to come", slots._to_come, _group_of, to_come),
        ("group, firm", slots._firm, _group_of, [place for place in places if place.firm]),
    ):
        counted: dict[str, dict[str, Slot]] = {}
        for place in these:
            counted.setdefault(key(place), {})[place.uid] = place
        if counted != index:
            yield f"by {name}: {index} is noted, {counted} counted"
    if slots._counted.keys() != slots._by_uid.keys():
        yield "what slots are counted by is kept of others"
    if slots._priorities != Counter(place.priority for place in places if not place.firm):
        yield f"priorities {slots._priorities}"


def _node_of(place: Slot) -> str:
    return place.node_name


def _group_of(place: Slot) -> str:
    return place.group


def _gang_groups(manager: PodGroupManager) -> Iterable[str]:
    """Where pods name the other groups, the index may follow a moment later, when the group's spec is asked for."""
    named = manager.gang_set_index.named
    for key, group in manager.groups.items():
        spec = spec_of(group, manager.specs.foreign_of(group))
        asked = spec.groups if spec is not None else ()
        if named.get(key, ()) != asked and (group.spec is not None or key in named):
            yield f"{key}: {named.get(key)} is noted, {asked} asked for"
    yield from (f"a note of {key}, which is gone" for key in sorted(named.keys() - manager.groups.keys()))
    gang_sets = {manager.gang_set_index.gang_set(key) for key in named}
    yield from (f"{gang_set} has been whole, and is no unit" for gang_set in manager.gang_set_index._whole - gang_sets)


def _victims(manager: PodGroupManager) -> Iterable[str]:
    counted: dict[str, dict[str, str]] = {}
    for uid, (pod, key, _) in manager.terminating.items():
        if key:
            counted.setdefault(key, {})[uid] = pod.node_name
    if manager.nodes_of_victims != counted:
        yield f"victims of groups: {manager.nodes_of_victims} are noted, {counted} counted"


def _pods(manager: PodGroupManager) -> Iterable[str]:
    counted = Counter(uid for group in manager.groups.values() for uid in group.members)
    yield from (f"{uid} is in {count} groups" for uid, count in counted.items() if count > 1)
    yield from (f"{uid} is in no group" for uid in sorted(manager._pods.groups.keys() - counted.keys()))
    held = {uid: key for key, group in manager.groups.items() for uid in group.held.keys() - group.members.keys()}
    if manager._pods._left_held != held:
        yield f"{manager._pods._left_held} have left their holders, {held} counted"
    unseen = manager._pods._unseen
    yield from (f"{uid} has been shown by a call alone, and is in no group" for uid in sorted(unseen.keys() - counted))


def _queue(manager: PodGroupManager) -> Iterable[str]:
    """Each gang that waits is in one place of the queue, and the index has those that are unschedulable, by what they wait for."""
    queue = manager.queue
    places = Counter([*queue.active, *queue.backing_off, *queue.unschedulable])
    yield from (f"a note of {key}, which is gone" for key in sorted({*places, *queue.waiting} - manager.groups.keys()))
    yield from (f"{key} is in {number} places" for key, number in places.items() if number > 1)
    yield from (f"{key} waits, and is in no place" for key in sorted(queue.waiting - places.keys()))
    idle = {key for key, found in queue.unschedulable.items() if not found.known} - queue.waiting
    yield from (f"{key} is unschedulable, and does not wait" for key in sorted(idle))
    yield from wrong_in_index(queue.index, {key: found.waits_for for key, found in queue.unschedulable.items()})


def wrong_in_index(index: WaitIndex, waiting: Mapping[str, WaitsFor]) -> Iterator[str]:
    """waiting: what each gang waits for that the index is to hold."""
    counted = WaitIndex()
    for key, waits_for in waiting.items():
        counted.add(key, waits_for)
    for name in ("anything", "room_anywhere", "_of_level"):
        if getattr(index, name) != getattr(counted, name):
            yield f"{name}: {getattr(index, name)} is noted, {getattr(counted, name)} counted"
    known, found = (
        {shape: (each.keys, set(each.traits())) for shape, each in of._demands.items()} for of in (index, counted)
    )
    if known != found:
        yield f"demands: {known} are noted, {found} counted"
    for demand in index.demands():
        line = index._room[demand.priority][demand.kind.selected][demand.kind.scarce]
        if sum(each is demand for _, _, each in line) != 1 or line != sorted(line, key=itemgetter(0, 1)):
            yield f"the demand of {demand.keys} is not in its line for room"
        if not all(demand in index.with_trait(trait) for trait in demand.traits()):
            yield f"the demand of {demand.keys} is not found by its traits"
    in_lines = sum(len(line) for labels in index._room.values() for by in labels.values() for line in by.values())
    with_trait = sum(len(each) for each in index._with_trait.values())
    if (in_lines, with_trait) != (len(index.demands()), sum(len(set(each.traits())) for each in index.demands())):
        yield "the index has demands of no gang"


def _composites(manager: PodGroupManager) -> Iterator[str]:
    """The groups in trees are those whose specs name a composite; what is chosen, or has started, is of a tree that has groups."""
    named = {
        key: group.spec.parent for key, group in manager.groups.items() if group.spec is not None and group.spec.parent
    }
    kept = {key: parent for key, parent in manager.composites.parents.items() if manager.groups[key].spec is not None}
    if named != kept:
        yield f"{kept} are in trees, and {named} should be"
    for root in manager.composites.decided():
        groups = manager.composites.groups_of(root)
        if not groups or not manager.composites.chosen(root) <= set(groups):
            yield f"{root}: {sorted(manager.composites.chosen(root))} were chosen of {groups}"


def _broken(manager: PodGroupManager) -> Iterable[str]:
    """Those that ask what becomes of them then, and no others; what was set aside is noted once it is looked at again."""
    yield from _of_groups(lambda manager: manager.begun.broken)(manager)
    for key, group in manager.groups.items():
        spec = group.spec
        if spec is None or spec.invalid or key in manager.quarantine._faults:
            continue
        if (key in manager.begun.broken) != (spec.patience.broken_after is not None and is_broken(group, spec)):
            yield f"{key} is noted as broken, or is and is not"


MANAGER_RULES: Mapping[str, Callable[[PodGroupManager], Iterable[str]]] = {
    "lock": _no_rule,
    "labels": _no_rule,
    "gate": _no_rule,
    "clock": _no_rule,
    "wall": _no_rule,
    "max_held_binds": _no_rule,
    "to_come_seconds": _no_rule,
    "in_part_after_seconds": _no_rule,
    "_quiet_at": _no_rule,
    "groups": _no_rule,  # their own rules
    "slots": _slots,
    **dict.fromkeys(("queue", "denied", "permitted", "gang_set_index", "composites"), _no_rule),  # of the parts below
    "quarantine": _no_rule,  # a fault of a group that never came to be is forgotten when it is forgiven
    "terminating": _no_rule,  # victims; that they are no members is checked there
    "nodes_of_victims": _victims,
    "_pods": _pods,
    # Parts of the manager, and what each keeps itself
    **dict.fromkeys(("notes", "specs", "begun", "line", "places", "registry", "objects"), _no_rule),
    "notes.queue": _queue,
    "notes.denied": _of_groups(lambda manager: manager.denied),
    "notes.permitted": _of_groups(lambda manager: manager.permitted),
    "notes.epoch": _no_rule,
    "notes.cluster_epoch": _no_rule,
    "specs.foreign": _no_rule,  # every object of those kinds, whether a group is made of it or not
    "specs.gang_set_index": _gang_groups,
    "specs.composites": _composites,
    "begun.broken": _broken,
    "starts": _of_groups(lambda manager: manager.starts._since),
    "registry.on_dropped": _no_rule,
    "registry.on_changed": _no_rule,
}


def fields_of(manager: PodGroupManager) -> set[str]:
    """Of the manager, and of each part what it keeps itself and shows to others: `notes.denied`."""
    parts = {name: part for name, part in vars(manager).items() if ".state.manager." in type(part).__module__}
    own = {f"{name}.{field}" for name, part in parts.items() for field in vars(part) if not field.startswith("_")}
    return own | vars(manager).keys()
