"""Which pods on nodes a gang may evict, and of which running gangs they are.

The search for victims and the guard ask. The state is read under the manager's lock.
kube-scheduler: pkg/scheduler/framework/preemption (SelectVictimsOnNode)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import TypeVar

from extender.api import corev1
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.preemption.ordering import sort_by_importance
from extender.plugins.coscheduling.dependencies import GangVictims
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.counts.standing import counts_at
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager


class Kind(IntEnum):
    """In the order in which they are taken."""

    LONE = 0  # of no gang
    SURPLUS = 1  # its gang has members to spare
    BREAKING = 2  # without it its gang cannot run, or has less of itself than it had: all of it goes, or none


@dataclass(frozen=True, slots=True)
class RunningGang:
    """minMember, and the members that run or begin to: UID -> the pod and its node.

    minima, role_of: of the roles, and the role of each member that has one (by UID). standing_priority: the gang's one
    priority; None: that of its least important member here.
    """

    key: str
    min_member: int
    running: Mapping[str, tuple[PodInfo, str]]
    minima: Mapping[str, int] = field(default_factory=dict)
    role_of: Mapping[str, str] = field(default_factory=dict)
    standing_priority: int | None = None

    @property
    def priority(self) -> int:
        if self.standing_priority is not None:
            return self.standing_priority
        return min((info.pod.priority for info, _ in self.running.values()), default=0)

    @property
    def complete(self) -> bool:
        return self.whole_with(self.running)

    @property
    def to_spare(self) -> int:
        """How many can go with the gang still whole, whichever those would be; 0 where it is not whole."""
        return len(self.running) - max(self.min_member, sum(self.minima.values())) if self.complete else 0

    def whole_with(self, uids: Collection[str]) -> bool:
        """Whether it can run with these members."""
        if not 0 < self.min_member <= len(uids):
            return False
        there = Counter(self.role_of.get(uid, "") for uid in uids)
        return all(there[role] >= minimum for role, minimum in self.minima.items())


@dataclass(frozen=True, slots=True)
class Evictable:
    """A pod that may be evicted. gang: the running one that it is of, empty for none; gang_priority: that gang's."""

    info: PodInfo
    node_name: str
    kind: Kind
    gang: str = ""
    gang_priority: int | None = None

    @property
    def pod(self) -> corev1.Pod:
        return self.info.pod

    @property
    def uid(self) -> str:
        return self.info.pod.metadata.uid

    @property
    def priority(self) -> int:
        """What its eviction costs: a gang that goes whole counts at its one priority, whichever of its members are here."""
        own = self.info.pod.priority
        if self.gang_priority is None:
            return own
        return self.gang_priority if self.kind is Kind.BREAKING else counts_at(own, self.gang_priority)

    @property
    def importance(self) -> tuple[int, float]:
        """Ascending: of lower priority, then running for less long. A pod without a start time counts as started now."""
        started = self.info.pod.status.start_time
        return self.priority, -started.timestamp() if started is not None else float("-inf")


K = TypeVar("K")
T = TypeVar("T")


def grouped(things: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Victims by node, gang or domain."""
    found: dict[K, list[T]] = {}
    for thing in things:
        found.setdefault(key(thing), []).append(thing)
    return found


@dataclass(frozen=True, slots=True)
class Rules:
    """protected: UIDs that are never evicted (held in our bind, or on a node by our word only).
    started_before: a pod that runs for less long is left alone; None for no such rule. In seconds since 1970."""

    priority: int
    gang_victims: GangVictims = GangVictims.WHOLE_OR_SURPLUS
    protected: Collection[str] = ()
    started_before: float | None = None

    def may_go(self, pod: corev1.Pod, priority: int | None = None) -> bool:
        """priority: at which the pod counts; None: its own."""
        if (pod.priority if priority is None else priority) >= self.priority:
            return False
        if pod.metadata.uid in self.protected or pod.deleting or pod.terminal:
            return False
        if self.started_before is None:
            return True
        started = pod.status.start_time
        return started is not None and started.timestamp() <= self.started_before


def evictable_pods(nodes: Iterable[NodeInfo], gangs: Iterable[RunningGang], rules: Rules) -> list[Evictable]:
    """Of these nodes, and all members of gangs of which one is there. A gang of which one member may not go is not broken;
    its surplus may go all the same."""
    gang_of = {uid: gang for gang in gangs for uid in gang.running}
    found: list[Evictable] = []
    touched: dict[str, RunningGang] = {}
    for node in nodes:
        for info in node.pods:
            uid = info.pod.metadata.uid
            gang = gang_of.get(uid)
            if gang is not None and rules.gang_victims is not GangVictims.ANY:
                touched[gang.key] = gang
            elif rules.may_go(info.pod):
                found.append(Evictable(info, node.name, Kind.LONE, gang.key if gang else ""))
    for gang in touched.values():
        found += _of_gang(gang, rules)
    return found


def _of_gang(gang: RunningGang, rules: Rules) -> list[Evictable]:
    """The least important members are the ones to spare."""
    all_evictable = [info.pod for info, _ in gang.running.values()]
    breakable = rules.gang_victims is GangVictims.WHOLE_OR_SURPLUS or not gang.complete
    whole = breakable and all(rules.may_go(pod, gang.priority) for pod in all_evictable)
    pods = [pod for pod in all_evictable if rules.may_go(pod, counts_at(pod.priority, gang.priority))]
    sort_by_importance(pods)
    spare = _spare(gang, pods)
    return [
        Evictable(*gang.running[pod.uid], Kind.SURPLUS if pod.uid in spare else Kind.BREAKING, gang.key, gang.priority)
        for pod in pods
        if pod.uid in spare or whole
    ]


def _spare(gang: RunningGang, pods: Sequence[corev1.Pod]) -> set[str]:
    """The members that may go with the gang still whole: of those that may go at all, the least important."""
    if not gang.whole_with(gang.running.keys()):
        return set()
    left = Counter(gang.role_of.get(uid, "") for uid in gang.running)
    to_spare, spare = len(gang.running) - gang.min_member, set[str]()
    for pod in reversed(pods):
        role = gang.role_of.get(pod.uid, "")
        if len(spare) < to_spare and left[role] > gang.minima.get(role, 0):
            left[role] -= 1
            spare.add(pod.uid)
    return spare


def with_their_gangs(victims: Collection[Evictable], all_evictable: Iterable[Evictable]) -> list[Evictable]:
    """With the rest of each gang that breaks."""
    broken = {victim.gang for victim in victims if victim.kind is Kind.BREAKING}
    chosen = {victim.uid: victim for victim in victims}
    for other in all_evictable:
        if other.gang in broken and other.gang:
            chosen.setdefault(other.uid, other)
    return list(chosen.values())


def running_gangs(manager: PodGroupManager, groups: Iterable[Group]) -> list[RunningGang]:
    """Those that run whole, and those of which a part runs."""
    found = (running_gang(manager, group) for group in groups)
    return [gang for gang in found if gang is not None]


def running_gang(manager: PodGroupManager, group: Group) -> RunningGang | None:
    """None where no member runs, or none needs the others: no longer, or never, as with a minMember of 1.

    Members of a start that has begun count: in the middle of a commit the gang is no fraction. Of a gang that is set aside all
    members need each other: what it asks for is not known.
    """
    step = partial(_by_what_it_asks_for, manager, group)
    found = manager.quarantine.for_gang(group.key, "guard", lambda: (step(),), None)
    if found is not None:
        return found[0]
    running = _running(group)
    return RunningGang(group.key, len(running), running) if running else None


def _running(group: Group) -> dict[str, tuple[PodInfo, str]]:
    """By UID: the member, and its node."""
    uids = group.assigned | group.starting
    return {uid: (member.info, member.node_name) for uid, member in group.members.items() if uid in uids}


def _by_what_it_asks_for(manager: PodGroupManager, group: Group) -> RunningGang | None:
    spec = manager.specs.valid(group)
    if spec is None:
        return None
    if together := _disrupted_together(manager, group, spec):  # no member is to spare
        running = {uid: on_node for each in together for uid, on_node in _running(each).items()}
        return RunningGang(together[0].key, len(running), running, standing_priority=manager.line.priority_of(group))
    running = _running(group)
    if spec.min_member <= 1 or not running:
        return None
    role_of = {uid: spec.roles.role_of(info.pod) for uid, (info, _) in running.items()} if spec.roles.minima else {}
    priority = manager.line.priority_of(group)
    gang = RunningGang(group.key, spec.min_member, running, dict(spec.roles.minima), role_of, priority)
    loose = spec.match_policy is MatchPolicy.ONCE_SATISFIED and group.once_whole
    return gang if gang.complete or not loose else None


def _disrupted_together(manager: PodGroupManager, group: Group, spec: GroupSpec) -> list[Group]:
    """The groups that run and that go whole with this one, by the widest composite above it that says so, or by itself."""
    above = [composite.key for composite in manager.composites.ancestors(group.key) if composite.disrupted_whole]
    if not above and not spec.disrupted_whole:
        return []
    keys = manager.composites.groups_of(above[-1]) if above else (group.key,)
    groups = [each for key in sorted(keys) if (each := manager.groups.get(key)) is not None]
    return [each for each in groups if each.assigned or each.starting] if _running(group) else []


def starting_members(groups: Iterable[Group]) -> set[str]:
    """UIDs of those that are being bound, or have been and the watch has not shown it yet: as good as running."""
    return {uid for group in groups for uid in (*group.unconfirmed, *group.starting)}


def unbound_members(manager: PodGroupManager, groups: Iterable[Group], assumed: Iterable[str]) -> set[str]:
    """UIDs of members that are held, or whose holds were just rejected; not of members whose start has begun. Lock held.

    assumed: UIDs of pods whose binding the watch has not shown yet. A pod of no gang is among them only while it is being bound.
    """
    known = list(groups)
    held = {uid for group in known for uid in group.held}
    return (held | {uid for uid in assumed if manager.is_member(uid)}) - starting_members(known)


def running_members(manager: PodGroupManager, keys: Iterable[str]) -> dict[str, PodInfo]:
    """By UID: the members of these groups that run, or begin to."""
    groups = (group for key in keys if (group := manager.groups.get(key)) is not None)
    return {uid: info for gang in running_gangs(manager, groups) for uid, (info, _) in gang.running.items()}


def releasable(manager: PodGroupManager, groups: Iterable[Group], priority: int) -> dict[str, str]:
    """Held members that can be let go for a preemptor of this priority, UID -> key of the group.

    No start of theirs has begun, and their gang is not the rest of one that was cut short: it would stay a fraction.
    """
    return {
        uid: group.key
        for group in groups
        if group.held
        and group.members
        and manager.quarantine.for_gang(
            group.key, "guard", partial(_may_let_go, manager, group, priority), otherwise=False
        )
        for uid in group.held
        if uid not in group.starting
    }


def _may_let_go(manager: PodGroupManager, group: Group, priority: int) -> bool:
    return not manager.begun.was_cut_short(group) and manager.line.priority_of(group) < priority
