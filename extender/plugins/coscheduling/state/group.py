"""One group's state: its members, its priority and age, its preemption, and what was decided of all members.

PodGroupManager keeps it, and says which state of a member counts; all other code reads it under the manager's lock. Priority and
age are read off the quorum, so that a gang is planned, preempts and is preempted at one priority.
scheduler-plugins: pkg/coscheduling/core/core.go has the like in its caches
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from extender import metrics
from extender.api import corev1
from extender.api.metav1 import Condition
from extender.api.schedulingv1alpha1 import PodGroup
from extender.api.schedulingv1alpha2 import PodGroup as InTreePodGroup
from extender.client.interface import OwnPodGroup
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.plan_call import PlanCall
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.sources.ended_phase import EndedPhase
from extender.plugins.coscheduling.spec.sources.steps import Step
from extender.plugins.coscheduling.state.counts.role_counts import RoleCounts
from extender.plugins.coscheduling.state.counts.sayings import Sayings
from extender.plugins.coscheduling.state.counts.standing import Standing
from extender.plugins.coscheduling.state.diagnosis import Diagnosis
from extender.plugins.coscheduling.state.member import TRANSITIONS, Effect, Member, MemberEvent, MemberState, Start
from extender.plugins.coscheduling.state.refutations import ErrorBackOffs, Refutations

log = logging.getLogger(__name__)

HOLDING = frozenset((MemberState.WAITING, MemberState.STARTING))
WITH_NODE = HOLDING | {MemberState.BOUND}


@dataclass(slots=True)
class Preempting:
    """waits_for: UIDs of victims, and of pods that go anyway. until: when it is given up, in seconds of the clock.

    victims: their names (`namespace/name`), for users.
    """

    waits_for: set[str]
    victims: tuple[str, ...]
    until: float


@dataclass(slots=True)
class Gathering:
    """A gang that is still being made, and has room meanwhile (members_to_come/early_start). since, newest: when its first and its
    newest member came, in seconds of the clock. came: how many have since the first. over: it has ended before the gang was complete."""

    since: float
    newest: float
    came: int = 0
    over: bool = False


@dataclass(slots=True)
class Group:
    """One group's state. The manager's lock guards it."""

    key: str
    pod_group: PodGroup | None = None
    members: dict[str, Member] = field(default_factory=dict)  # by UID
    of_scheduler: dict[str, set[str]] = field(default_factory=dict)  # scheduler name -> UIDs of its members
    # UID -> node, of members that are Waiting or Starting, and of those that went while they were Waiting, until their call ends
    held: dict[str, str] = field(default_factory=dict)
    ending: set[str] = field(default_factory=set)  # held members that were rejected, until their bind calls end
    unconfirmed: set[str] = field(default_factory=set)  # UIDs of members that are Bound by our word alone
    gated: set[str] = field(default_factory=set)  # held back by our gate alone, as the watch shows them
    claiming: set[str] = field(default_factory=set)  # UIDs of members with claims for volumes
    errors: ErrorBackOffs = field(default_factory=ErrorBackOffs)  # members that kube-scheduler has in error back-off
    refuted: Refutations = field(default_factory=Refutations)  # places that kube-scheduler did not take
    calls: dict[str, PlanCall] = field(default_factory=dict)  # UID -> the filter call that needs a plan
    planned: bool = False
    preempting: Preempting | None = None  # planned too, but victims have to go first
    in_tree: InTreePodGroup | None = None
    started: set[str] = field(default_factory=set)  # UIDs: their start has begun, and they are not on a node yet
    start: Start | None = None  # the last one, while it may yet turn out to have been cut short
    once_whole: bool = False  # minMember of them have run since the first came to a node
    whole_of: int = 0  # as once_whole, whatever the match policy: the largest minMember that was met
    ran: bool = False  # members of it have been on nodes
    # UID -> a member that has Succeeded, and counts as a sibling
    ended: dict[str, corev1.Pod] = field(default_factory=dict)
    last_diagnosis: Diagnosis | None = None  # what the last attempt came to, if that was nothing; None after a plan
    spec: GroupSpec | None = None  # None: not computed since the last change
    priorities: Counter[int] = field(default_factory=Counter)  # how many members have each
    sayings: Sayings = field(default_factory=Sayings)
    roles: RoleCounts | None = None  # how many members have each; None until that is asked
    # how many members say that they are at each step of their job
    steps: Counter[Step] = field(default_factory=Counter)
    early: int = 0  # how many initializers have started
    ended_phase: EndedPhase | None = None  # initializers that have Succeeded, once the API server was asked for them
    in_part: bool = False  # no member has come for so long that those which are missing are taken to be made later
    gathering: Gathering | None = None
    gathered: bool = False  # it has gathered since it was empty
    gathered_in_vain: bool = False  # and that has ended before all its members were there
    # what it asks for in its present phase: `spec`, without members that have ended or are made later; None: not computed since a change
    current: GroupSpec | None = None
    changes: int = 0  # grows with each change of a member
    standing: Standing | None = None  # None: not computed since the last change of a member or of the spec
    # told whether the gang waits whenever that may have changed
    on_waiting: Callable[[bool], None] = lambda waits: None
    # UIDs of the members in each state, as they are now: a caller that moves members meanwhile takes a copy
    assigned: set[str] = field(default_factory=set)  # members on a node: by the API's word or by our own binding
    refused: set[str] = field(default_factory=set)
    admitted: set[str] = field(default_factory=set)
    starting: set[str] = field(default_factory=set)
    in_permit: set[str] = field(default_factory=set)  # held, and their start has not begun
    _by_state: dict[MemberState, set[str]] = field(init=False)

    def __post_init__(self) -> None:
        named = {
            MemberState.BOUND: self.assigned,
            MemberState.UNSCHEDULABLE: self.refused,
            MemberState.ADMITTED: self.admitted,
            MemberState.STARTING: self.starting,
            MemberState.WAITING: self.in_permit,
        }
        self._by_state = {state: set() for state in MemberState} | named

    @property
    def object(self) -> OwnPodGroup | None:
        """The PodGroup whose conditions we write: the CRD's, else kube-scheduler's own."""
        return self.pod_group or self.in_tree

    @property
    def told(self) -> Condition | None:
        """The condition of the object that says whether the gang has started."""
        known = self.object
        return next((each for each in known.status.conditions if each.type == known.scheduled), None) if known else None

    def put(self, pod_group: OwnPodGroup) -> None:
        if isinstance(pod_group, PodGroup):
            self.pod_group = pod_group
        else:
            self.in_tree = pod_group

    def take(self, pod_group: OwnPodGroup) -> None:
        """The object of this kind is gone."""
        if isinstance(pod_group, PodGroup):
            self.pod_group = None
        else:
            self.in_tree = None

    def add(self, uid: str, member: Member) -> None:
        """A member that was not known. One that is held, since it had left and is back, is Waiting."""
        if node_name := self.held.get(uid):
            member.state, member.node = MemberState.WAITING, node_name
        self.members[uid] = member
        self.changed()
        self._by_state[member.state].add(uid)

    def take_out(self, uid: str) -> None:
        """As if it had not been added; what holds it holds it still. It need not have been."""
        member = self.members.pop(uid, None)
        if member is not None:
            self._by_state[member.state].discard(uid)
        self.unconfirmed.discard(uid)
        self.claiming.discard(uid)
        self.set_gated(uid, False)
        self.changed()

    def changed(self) -> None:
        """It has another member, one of its members counts otherwise, or its phases are known better: what it asks for in its phase may be
        another. A member that changes and counts as before (`counts_alike`), or moves to another state, is not told here."""
        self.changes += 1
        self.current = None

    def asks_anew(self) -> None:
        """What its object or its pods ask for may be another."""
        self.spec = self.current = self.standing = None

    def taken_for_in_part(self, in_part: bool) -> None:
        """Whether the members that are missing are taken to be made later: fewer are its quorum then."""
        self.in_part = in_part
        self.standing = None
        self.changed()

    def role_counts(self) -> RoleCounts:
        """Counted with each change of a member from now on."""
        if self.roles is None:
            self.roles = RoleCounts()
            for member in self.members.values():
                self.roles.add(member.info.pod)
        return self.roles

    def happened(self, uid: str, event: MemberEvent, node_name: str = "") -> tuple[Effect, ...]:
        """Applies the table to a member, and returns what follows for others; nothing for a pod that is no member.

        node_name: where it is held, or was bound.
        """
        member = self.members.get(uid)
        if member is None:
            return ()
        found = TRANSITIONS[member.state, event]
        if not found.possible:
            metrics.impossible_transitions.labels(member.state, event).inc()
            log.warning("impossible transition pod=%s state=%s event=%s", member.pod.key, member.state, event)
            return ()
        if found.state is not member.state or node_name:
            self._move(uid, member, found.state, node_name)
        return found.effects

    def _move(self, uid: str, member: Member, to: MemberState | None, node_name: str) -> None:
        self.changes += 1
        had_begun = bool(self.assigned)
        self._by_state[member.state].discard(uid)
        self.unconfirmed.discard(uid)
        if member.state is MemberState.UNSCHEDULABLE:
            self.on_waiting(self.waits_for_room())
        if to is None:
            del self.members[uid]
            self.current = None
            if member.state is not MemberState.WAITING:
                self.end_hold(uid)
            return
        member.state = to
        self._by_state[to].add(uid)
        if bool(self.assigned) is not had_begun:
            self.current = self.standing = None  # once it has begun, a gang that others name may come in phases too
        if to is MemberState.UNSCHEDULABLE:
            self.on_waiting(True)
        member.node = node_name or (member.node if to in WITH_NODE else "")
        if to in HOLDING:
            self.held[uid] = member.node
        elif uid in self.held:
            self.end_hold(uid)
        if to is MemberState.BOUND and not member.info.pod.node_name:
            self.unconfirmed.add(uid)

    def end_hold(self, uid: str) -> None:
        self.held.pop(uid, None)
        self.ending.discard(uid)

    def set_gated(self, uid: str, gated: bool) -> None:
        """Whether our gate alone holds the member back, as the watch shows it."""
        (self.gated.add if gated else self.gated.discard)(uid)
        self.on_waiting(self.waits_for_room())

    def waiting(self) -> AbstractSet[str]:
        """Held members, those that start among them; the hold of one that has gone ends of itself."""
        return self.in_permit | self.starting

    def siblings(self, scheduler_name: str) -> AbstractSet[str]:
        """UIDs of the members that count towards the quorum: those on a node, and those that will come to this scheduler."""
        return self.assigned | self.of_scheduler.get(scheduler_name, set())

    def pending(self) -> list[PodInfo]:
        return [each.info for each in self.members.values() if each.state is not MemberState.BOUND]

    def on_node(self) -> AbstractSet[str]:
        """UIDs of the members that the API shows on a node."""
        return self.assigned - self.unconfirmed

    def place_lost(self, uid: str) -> None:
        """The place that was kept for it is given up."""
        self.happened(uid, MemberEvent.PLACE_LOST)
        if uid in self.gated:
            self.happened(uid, MemberEvent.GATE_SEEN)

    def nominated(self) -> list[str]:
        """UIDs of the members that we have sent to a place, and not withdrawn since."""
        return [uid for uid, each in self.members.items() if each.nomination is not None]

    def rejected_in_tree(self) -> dict[str, int]:
        """UID -> the cluster epoch: members that kube-scheduler refused before it asked us."""
        return {uid: each.rejected_in_tree for uid, each in self.members.items() if each.rejected_in_tree is not None}

    def waits_for_room(self) -> bool:
        """Whether room that comes free may be what it waits for."""
        return bool(self.refused or self.gated)

    def stop(self, stop: Diagnosis) -> None:
        self.last_diagnosis = stop.after(self.last_diagnosis)
