"""One group's state: its members, where each is on its way to a node, and what was decided of all of them.

PodGroupManager keeps it, and says which state of a member counts; everybody else reads it under the manager's lock.
scheduler-plugins: pkg/coscheduling/core/core.go has the like in its caches
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from extender.api.schedulingv1alpha1 import PodGroup
from extender.api.schedulingv1alpha2 import PodGroup as InTreePodGroup
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.commit import Commit, Start
from extender.plugins.coscheduling.state.error_back_off import ErrorBackOffs
from extender.plugins.coscheduling.state.member import Member
from extender.plugins.coscheduling.state.plan_call import PlanCall
from extender.plugins.coscheduling.state.preempting import Preempting
from extender.plugins.coscheduling.state.refutations import Refutations
from extender.plugins.coscheduling.state.standing import Standing
from extender.plugins.coscheduling.state.stops import Stop


@dataclass(slots=True)
class Group:
    """One group's state. The manager's lock guards it."""

    key: str
    pod_group: PodGroup | None = None
    members: dict[str, Member] = field(default_factory=dict)  # by UID
    on_node: set[str] = field(default_factory=set)  # UIDs of the members that the API shows on a node
    of_scheduler: dict[str, set[str]] = field(default_factory=dict)  # scheduler name -> UIDs of its members
    held: dict[str, str] = field(default_factory=dict)  # UID -> node, while the bind call waits
    committed: dict[str, str] = field(default_factory=dict)  # UID -> node, from our binding to the watch's word
    commits: dict[str, Commit] = field(default_factory=dict)  # UID -> the start it is part of
    refused: set[str] = field(default_factory=set)  # parked in kube-scheduler by our word
    answered: set[str] = field(default_factory=set)  # UIDs: given their place by our filter, and not at bind yet
    gated: set[str] = field(default_factory=set)  # held back by our gate alone
    waves: list[frozenset[str]] = field(default_factory=list)  # of a plan: who is sent once those before are in place
    moved: bool = False  # a place has changed hands since members were last sent
    claiming: set[str] = field(default_factory=set)  # UIDs of members with claims for volumes
    errors: ErrorBackOffs = field(default_factory=ErrorBackOffs)  # members that kube-scheduler has in error back-off
    refuted: Refutations = field(default_factory=Refutations)  # places that kube-scheduler did not take
    calls: dict[str, PlanCall] = field(default_factory=dict)  # UID -> the filter call that needs a plan
    planned: bool = False
    preempting: Preempting | None = None  # planned too, but somebody has to go first
    in_tree: InTreePodGroup | None = None
    started: set[str] = field(default_factory=set)  # UIDs: their start has begun, and they are not on a node yet
    start: Start | None = None  # the last one, while it may yet turn out to have been cut short
    batch: str = ""  # with only-waiting: the name of the batch that started last
    earlier: set[str] = field(default_factory=set)  # UIDs on a node that are of no batch which a restart cut short
    once_whole: bool = False  # minMember of them have run since the first came to a node
    stopped: Stop | None = None  # what the last attempt came to, if that was nothing; None after a plan
    spec: GroupSpec | None = None  # None: not computed since the last change
    priorities: Counter[int] = field(default_factory=Counter)  # how many members have each
    standing: Standing | None = None  # None: not computed since the last change of a member or of the spec

    def assigned(self) -> set[str]:
        """Members on a node: by the API's word or by our own binding."""
        return self.on_node | self.committed.keys()

    def waiting(self) -> set[str]:
        """Held members; the hold of one that has gone ends of itself."""
        return self.held.keys() & self.members.keys()

    def pending(self) -> list[PodInfo]:
        return [
            member.info
            for uid, member in self.members.items()
            if not member.pod.node_name and uid not in self.committed
        ]

    def nominated(self) -> list[str]:
        """UIDs of the members that we have sent to a place, and not withdrawn since."""
        return [uid for uid, each in self.members.items() if each.nomination is not None]

    def rejected_in_tree(self) -> dict[str, int]:
        """UID -> the cluster epoch: members that kube-scheduler refused before it asked us."""
        return {uid: each.rejected_in_tree for uid, each in self.members.items() if each.rejected_in_tree is not None}

    def stop(self, stop: Stop) -> None:
        self.stopped = stop.after(self.stopped)
