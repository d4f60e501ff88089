"""What the Coscheduling plugin needs of the scheduler around it, besides the framework's handle.

Handed in when a scheduler is put together. Behind kube-scheduler steering is a patch of the pod's status, and eviction a call of the
API server (scheduler/actions); in-process steering is a move in the queue.
kube-scheduler: pkg/scheduler/framework/interface.go (Handle)
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Protocol, Self

from extender.api import corev1, policyv1
from extender.api.corev1.pod import DEFAULT_SCHEDULER_NAME
from extender.client.interface import OwnPodGroup
from extender.config.types import ExtenderConfiguration
from extender.framework.hint_rows import HintRow
from extender.framework.listers import NodeInfoLister
from extender.framework.runtime.framework import Framework
from extender.plugins.coscheduling.plan_call import Wait
from extender.plugins.coscheduling.planner import Judge, Topology

UNTOLD = Topology()
COMMIT_SECONDS = 5.0  # what a commit may take before the caller's own timeout, and 10 ms more a member
COMMIT_SECONDS_PER_MEMBER = 0.01


class Steering(Protocol):
    """Moves parked pods. Returns at once; the work is done in the background. Silent where we do not lead.

    Of several wishes for one pod the last counts, so that what is decided of members comes by OrderedSteering.
    """

    def nominate(self, places: Sequence[tuple[corev1.Pod, str]]) -> None:
        """Nominates each pod to its node, and wakes it; one that our gate holds loses the gate after that."""
        ...

    def clear_nominations(self, pods: Sequence[corev1.Pod]) -> None:
        """Takes our nominations back."""
        ...

    def clear_foreign_nominations(self, pods: Sequence[corev1.Pod]) -> None:
        """Takes back nominations that kube-scheduler has made, and keeps up though they are good for nothing."""
        ...

    def activate_by_nomination(self, places: Sequence[tuple[corev1.Pod, str]]) -> None:
        """Requeues pods rejected by in-tree filters: sets a nomination and clears it at once, which fires AssignedPodDelete."""
        ...

    def activate(self, pods: Sequence[corev1.Pod]) -> None:
        """Has each pod tried again, with no nomination."""
        ...

    def ungate(self, pods: Sequence[corev1.Pod]) -> None:
        """Takes our gate off, with no nomination: for others to see that the pods find no room."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided of a gang, for its users. The message is constant for one cause.

    reason: of the event, one of those below. why: of the condition, one of UnschedulableReason; empty: the event's.
    event_only: a thing that has happened; what was decided last still holds. disrupted: the gang runs, and is preempted; that stands
    beside what was decided of its start.
    """

    scheduled: bool
    reason: str
    message: str
    why: str = ""
    event_only: bool = False
    disrupted: bool = False


SCHEDULED = "GangScheduled"
REJECTED = "GangRejected"
TIMED_OUT = "GangTimeout"
WAITING = "GangWaiting"
PREEMPTING = "GangPreempting"
PARTLY_BOUND = "GangPartlyBound"
QUARANTINED = "GangQuarantined"
BROKEN = "GangBroken"
GAVE_UP = "GangGaveUp"
PREEMPTED = "GangPreempted"


class Verdicts(Protocol):
    """Tells users: events and conditions, in the background, only when something changes."""

    def decided(
        self, pod_group: OwnPodGroup | None, key: str, verdict: Verdict, member: corev1.Pod | None = None
    ) -> None:
        """pod_group is None for a group that is labels only, or another system's; then a member that our gate holds may hear of it."""
        ...

    def forget(self, key: str) -> None:
        """The group is gone: another of that name is told all anew."""
        ...


@dataclass(frozen=True, slots=True)
class BackfillRules:
    """When the first gang in line that finds no room has nodes kept free for it, for how long, and how many at most."""

    after_seconds: float = 0.0
    max_seconds: float = 0.0
    max_nodes_percent: int = 0

    @property
    def on(self) -> bool:
        return self.max_seconds > 0 and self.max_nodes_percent > 0


NO_BACKFILL = BackfillRules()


def hold_limit(bind_timeout_seconds: float, members: int) -> float:
    """The longest hold, in seconds, that leaves a gang of so many its commit before kube-scheduler gives up on the call."""
    return max(1.0, bind_timeout_seconds - COMMIT_SECONDS - COMMIT_SECONDS_PER_MEMBER * members)


def here(function: Callable[..., Any], *args: Any) -> Any:
    """`offload` where there is no event loop to keep free: runs it at once."""
    return function(*args)


class GangVictims(Enum):
    """The configuration's `gangVictims`: what of a running gang may go. ANY: gangs are nothing special."""

    WHOLE_OR_SURPLUS = "wholeOrSurplus"
    SURPLUS_ONLY = "surplusOnly"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class PreemptionRules:
    """minimum_run_seconds: how long a pod has to have run to be a victim of a gang. delay_seconds: how long a gang has to
    have found no room before it evicts any pod, so that an autoscaler can win."""

    enabled: bool = True
    gang_victims: GangVictims = GangVictims.WHOLE_OR_SURPLUS
    minimum_run_seconds: float = 0.0
    delay_seconds: float = 0.0

    @classmethod
    def of(cls, configuration: ExtenderConfiguration) -> Self:
        return cls(
            configuration.gang_preemption,
            GangVictims(configuration.gang_victims),
            configuration.victim_minimum_run_seconds,
            configuration.preemption_delay_seconds,
        )


@dataclass(frozen=True, slots=True)
class Eviction:
    """victims: the least important first. on_behalf_of: the gang or pod that needs the room, in words and as an object.

    despite_budgets: as kube-scheduler evicts, for which a budget comes last and forbids nothing: the rest of a gang that it has
    begun to evict. within_budgets: by the Eviction API, however else we evict. event, note: of the event on each victim; without a
    note it says for which pod or gang the victim was preempted. wanted: asked before the first victim is told, which may be a while after
    the decision: where it says no, no victim goes.
    """

    victims: Sequence[corev1.Pod]
    on_behalf_of: str
    preemptor: corev1.ObjectReference
    scheduler_name: str
    despite_budgets: bool = False
    within_budgets: bool = False
    event: str = "Preempted"
    note: str = ""
    wanted: Callable[[], bool] = lambda: True


Done = Callable[[str], None]
"""Called once from another thread: with why no pod was evicted, or empty when all have been told to go."""


class Evictor(Protocol):
    def allowed(self) -> bool:
        """Whether we have the permissions, as far as is known."""
        ...

    def allowed_despite_budgets(self) -> bool:
        """Whether we may delete pods, as kube-scheduler does, however else we evict."""
        ...

    def evict(self, eviction: Eviction, done: Done) -> None:
        """Returns at once. All are tried on the server first: where one may not go, none does."""
        ...


@dataclass(frozen=True, slots=True)
class PreemptionDependencies:
    """What preemption needs of the scheduler around it. wall: seconds since 1970.

    assumed: UIDs of the pods that are on their node by our word only, not by the API's.
    """

    evictor: Evictor
    rules: PreemptionRules
    pdbs: Callable[[], Sequence[policyv1.PodDisruptionBudget]]
    assumed: Callable[[], Collection[str]]
    wall: Callable[[], float] = time.time


SucceededPods = Callable[[str, Callable[[Iterable[corev1.Pod]], None]], None]


def not_listed(namespace: str, found: Callable[[Iterable[corev1.Pod]], None]) -> None:
    """Where there is no API server that could be asked for pods that have Succeeded: nothing is handed over."""


class Judges(Protocol):
    """In-tree filters on clusters that are not so yet."""

    @property
    def plans(self) -> Judge:
        """The plans' own, for one at a time."""
        ...

    def new(self) -> Judge:
        """For one caller at a time beside the plans: the search for victims and pages have one each."""
        ...

    def hint_rows(self) -> Sequence[HintRow]:
        """What the plugins that judge registered for events; none: every event may help every gang that waits."""
        ...

    def in_tree(self) -> Framework:
        """A framework of these filters, for the guard alone."""
        ...


@dataclass(frozen=True, slots=True)
class CoschedulingDependencies:
    """What Coscheduling needs of the scheduler around it; made by its factory."""

    # the cluster now, assumed pods included
    newest_snapshot: Callable[[], NodeInfoLister]
    judges: Judges
    steering: Steering
    verdicts: Verdicts
    # runs a task of that name in the background; asked for again before it starts, it runs once
    submit: Callable[[str, Callable[[], None]], None]
    # runs a pure function off the event loop, and returns its result
    offload: Callable[..., Any]
    # whether we lead
    may_commit: Callable[[], bool]
    # the longest that members of a gang of so many may be held, in seconds
    hold_limit: Callable[[int], float] = lambda members: math.inf
    # whether we lead and have seen the whole cluster
    may_plan: Callable[[], bool] = lambda: True
    # whether a pod is of a scheduler that we serve
    ours: Callable[[corev1.Pod], bool] = lambda pod: True
    # one of these schedulers
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    # whether gated members are freed of our gate once their gang is refused, for autoscalers to see
    ungate_refused: bool = False
    # the levels that are configured
    topology: Topology = UNTOLD
    # whether prioritize keeps single pods off free domains
    pack_single_pods: bool = False
    # when nodes are kept free for the gang that waits longest
    backfill: BackfillRules = NO_BACKFILL
    # whether a pod has volumes that kube-scheduler is still to bind
    has_unbound_claims: Callable[[corev1.Pod], bool] = lambda pod: False
    # whether a failed bind call sends the pod into an error back-off, as kube-scheduler's does
    errors_back_off: bool = False
    # whether kube-scheduler offers us all nodes that pass its filters, and judging them all costs it less than a nomination
    offers_all: Callable[[], bool] = lambda: False
    # whether judging the sample of nodes that it offers costs less than a nomination; the sample need not have the member's slot
    offers_few: Callable[[], bool] = lambda: False
    # runs a turn of planning on a thread of its own, so that filter calls wait for plans only for a moment; asked for again before it
    # starts, it runs once. None: the caller that needs a plan makes it
    plan_beside: Callable[[Callable[[], None]], None] | None = None
    # waits for an event, for so many seconds
    wait: Wait = threading.Event.wait
    # the most bind calls that are held at a time
    max_held_binds: float = math.inf
    # lists the pods of a namespace that have Succeeded, in the background, and hands them over; nothing where they cannot be listed
    succeeded_pods: SucceededPods = not_listed
    # requeues all parked pods that we have refused by one event, these among them. None: each is activated by itself
    ring: Callable[[Sequence[corev1.Pod]], None] | None = None
    # None where no pod is evicted for gangs
    preemption: PreemptionDependencies | None = None
    # what other schedulers do with the group of that key, in words; empty for nothing
    foreign: Callable[[str], str] = lambda key: ""

    def configured(self, configuration: ExtenderConfiguration) -> Self:
        """With what the extender's own configuration says, behind a kube-scheduler and in-process alike."""
        return replace(
            self,
            hold_limit=partial(hold_limit, configuration.bind_timeout_seconds),
            topology=Topology(configuration.topology, packing=configuration.packing),
            pack_single_pods=True,
            ours=lambda pod: configuration.serves(pod.spec.scheduler_name),
            scheduler_name=next(iter(configuration.scheduler_names), DEFAULT_SCHEDULER_NAME),
            ungate_refused=configuration.ungate_refused,
            backfill=BackfillRules(
                configuration.shadow_after_seconds,
                configuration.shadow_max_seconds,
                configuration.shadow_max_nodes_percent,
            ),
        )

    def wake_refused(self, pods: Sequence[corev1.Pod]) -> None:
        (self.ring or self.steering.activate)(pods)
