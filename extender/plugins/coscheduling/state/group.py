"""One group's state: its members, how many are in each state and role, and what was decided of all of them.

PodGroupManager keeps it under its lock. `Group.happened` is the one place that moves a member from state to state.
scheduler-plugins: pkg/coscheduling/core/core.go has the like in its caches
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from extender import metrics
from extender.api.schedulingv1alpha1 import PodGroup
from extender.api.schedulingv1alpha2 import PodGroup as InTreePodGroup
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.commit import Start
from extender.plugins.coscheduling.state.error_back_off import ErrorBackOffs
from extender.plugins.coscheduling.state.member import Effect, Member, MemberEvent, MemberState, transition
from extender.plugins.coscheduling.state.plan_call import PlanCall
from extender.plugins.coscheduling.state.preempting import Preempting
from extender.plugins.coscheduling.state.refutations import Refutations
from extender.plugins.coscheduling.state.role_counts import RoleCounts
from extender.plugins.coscheduling.state.standing import Standing
from extender.plugins.coscheduling.state.stops import Stop

log = logging.getLogger(__name__)

NONE: frozenset[str] = frozenset()
HOLDING = frozenset((MemberState.WAITING, MemberState.STARTING))
WITH_NODE = HOLDING | {MemberState.BOUND}


@dataclass(slots=True)
class Group:
    """One group's state. The manager's lock guards it."""

    key: str
    pod_group: PodGroup | None = None
    members: dict[str, Member] = field(default_factory=dict)  # by UID
    of_scheduler: dict[str, set[str]] = field(default_factory=dict)  # scheduler name -> UIDs of its members
    # UID -> node, of members that are Waiting or Starting, and of those that went while they were Waiting, until their call ends
    held: dict[str, str] = field(default_factory=dict)
    unconfirmed: set[str] = field(default_factory=set)  # UIDs of members that are Bound by our word alone
    gated: set[str] = field(default_factory=set)  # held back by our gate alone, as the watch shows them
    waves: list[frozenset[str]] = field(
        default_factory=list
    )  # of a plan: UIDs that are sent once those of the waves before are in place
    moved: bool = False  # a place has changed hands since members were last sent
    claiming: set[str] = field(default_factory=set)  # UIDs of members with claims for volumes
    errors: ErrorBackOffs = field(default_factory=ErrorBackOffs)  # members that kube-scheduler has in error back-off
    refuted: Refutations = field(default_factory=Refutations)  # places that kube-scheduler did not take
    calls: dict[str, PlanCall] = field(default_factory=dict)  # UID -> the filter call that needs a plan
    planned: bool = False
    preempting: Preempting | None = None  # planned too, but victims have to go first
    in_tree: InTreePodGroup | None = None
    started: set[str] = field(default_factory=set)  # UIDs: their start has begun, and they are not on a node yet
    start: Start | None = None  # the last one, while it may yet turn out to have been cut short
    batch: str = ""  # with only-waiting: the name of the batch that started last
    earlier: set[str] = field(default_factory=set)  # UIDs on a node that are of no batch which a restart cut short
    once_whole: bool = False  # minMember of them have run since the first came to a node
    stopped: Stop | None = None  # what the last attempt came to, if that was nothing; None after a plan
    spec: GroupSpec | None = None  # None: not computed since the last change
    priorities: Counter[int] = field(default_factory=Counter)  # how many members have each
    roles: RoleCounts = field(default_factory=RoleCounts)  # how many members have each
    standing: Standing | None = None  # None: not computed since the last change of a member or of the spec
    _by_state: dict[MemberState, set[str]] = field(default_factory=dict)  # UIDs; without states that no member is in

    def add(self, uid: str, member: Member) -> None:
        """A member that was not known. One that is held, since it had left and is back, is Waiting."""
        if node_name := self.held.get(uid):
            member.state, member.node = MemberState.WAITING, node_name
        self.members[uid] = member
        self._by_state.setdefault(member.state, set()).add(uid)

    def happened(self, uid: str, event: MemberEvent, node_name: str = "") -> tuple[Effect, ...]:
        """Applies the table to a member, and returns what follows for others; nothing for a pod that is no member.

        node_name: where it is held, or was bound.
        """
        member = self.members.get(uid)
        if member is None:
            return ()
        found = transition(member.state, event)
        if not found.possible:
            metrics.impossible_transitions.labels(member.state, event).inc()
            log.warning("impossible transition pod=%s state=%s event=%s", member.pod.key, member.state, event)
            return ()
        if found.state is not member.state or node_name:
            self._move(uid, member, found.state, node_name)
        return found.effects

    def _move(self, uid: str, member: Member, to: MemberState | None, node_name: str) -> None:
        uids = self._by_state[member.state]
        uids.discard(uid)
        if not uids:
            del self._by_state[member.state]
        self.unconfirmed.discard(uid)
        if to is None:
            del self.members[uid]
            if member.state is not MemberState.WAITING:
                self.held.pop(uid, None)
            return
        member.state = to
        self._by_state.setdefault(to, set()).add(uid)
        member.node = node_name or (member.node if to in WITH_NODE else "")
        if to is not MemberState.STARTING:
            member.commit = None
        if to in HOLDING:
            self.held[uid] = member.node
        else:
            self.held.pop(uid, None)
        if to is MemberState.BOUND and not member.pod.node_name:
            self.unconfirmed.add(uid)

    def in_state(self, state: MemberState) -> AbstractSet[str]:
        """UIDs, as they are now; a caller that moves members meanwhile takes a copy."""
        return self._by_state.get(state, NONE)

    @property
    def refused(self) -> AbstractSet[str]:
        return self.in_state(MemberState.UNSCHEDULABLE)

    @property
    def answered(self) -> AbstractSet[str]:
        return self.in_state(MemberState.ADMITTED)

    @property
    def starting(self) -> AbstractSet[str]:
        return self.in_state(MemberState.STARTING)

    def assigned(self) -> AbstractSet[str]:
        """Members on a node: by the API's word or by our own binding."""
        return self.in_state(MemberState.BOUND)

    def waiting(self) -> AbstractSet[str]:
        """Held members, those that start among them; the hold of one that has gone ends of itself."""
        return self.in_state(MemberState.WAITING) | self.in_state(MemberState.STARTING)

    def pending(self) -> list[PodInfo]:
        return [each.info for each in self.members.values() if each.state is not MemberState.BOUND]

    def on_node(self) -> AbstractSet[str]:
        """UIDs of the members that the API shows on a node."""
        return self.assigned() - self.unconfirmed

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

    def stop(self, stop: Stop) -> None:
        self.stopped = stop.after(self.stopped)
