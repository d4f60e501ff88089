"""What stops a gang: a reason out of a closed list, and the constant text that goes with it.

Noted on the group where it is decided (Admission, GangPermit, the plugin's tick), shown by everything that tells users: the
PodGroup's condition, events, pages, `explain`. `FailedCheck` is what can be said without a plan.
Kubernetes: the reasons of conditions are CamelCase words that programs may rely on
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.planner.request import Cause, NoPlacement


class UnschedulableReason(StrEnum):
    """Each has an entry in docs/troubleshooting.md."""

    NOT_TRIED = (
        "NotTried"  # kube-scheduler has not asked about a member yet, or the gang is about to be looked at again
    )
    INTERNAL_ERROR = "InternalError"  # an unexpected exception was raised, and the gang is set aside: quarantine.py
    POD_GROUP_NOT_FOUND = "PodGroupNotFound"
    INVALID_POD_GROUP = "InvalidPodGroup"
    QUORUM_MISSING = "QuorumMissing"
    COMPANION_NOT_READY = "CompanionNotReady"  # a group that is to start together is not there, or lacks members
    GATED = "Gated"
    BACKING_OFF = "BackingOff"
    MIN_RESOURCES = "MinResources"
    INSUFFICIENT_RESOURCES = "InsufficientResources"
    NO_SUITABLE_NODE = "NoSuitableNode"
    AFFINITY_UNSATISFIABLE = "AffinityUnsatisfiable"
    TOPOLOGY_UNSATISFIABLE = "TopologyUnsatisfiable"
    RESERVED_FOR_OTHERS = "ReservedForOthers"
    ORDERED_AFTER_OTHERS = "OrderedAfterOthers"
    BUDGET_EXCEEDED = "BudgetExceeded"
    EXCEEDS_HELD_BINDS = "ExceedsMaxHeldBinds"  # it could not be held whole, however long it waited
    NEEDS_GATE = "NeedsGate"
    REFUTED_BY_SCHEDULER = "RefutedByScheduler"
    MEMBERS_DID_NOT_COME = "MembersDidNotCome"
    PREEMPTING = "Preempting"  # it has its slots, and its victims are terminating
    PREEMPTION_FAILED = "PreemptionFailed"
    HOLD_TIMED_OUT = "HoldTimedOut"
    EXTRA_MEMBERS_WAIT = "ExtraMembersWait"  # the gang runs; members beyond minMember, held by our gate, find no room
    PARTLY_BOUND = "PartlyBound"  # a binding failed while the gang was starting: it is tried again at its place
    MEMBERS_TO_COME = (
        "MembersToCome"  # the members that there are have started, and its controller makes the others later
    )
    # no member is left to come to us: the others name another scheduler, or something else has bound them
    FOREIGN_SCHEDULER = "ForeignScheduler"
    HOLD_ENDED = "HoldEnded"  # a member, a node or the caller went while members were held


OF_CAUSE: Mapping[Cause, UnschedulableReason] = {
    Cause.MEMBERS: UnschedulableReason.QUORUM_MISSING,
    Cause.ROOM: UnschedulableReason.INSUFFICIENT_RESOURCES,
    Cause.NODES: UnschedulableReason.NO_SUITABLE_NODE,
    Cause.AFFINITY: UnschedulableReason.AFFINITY_UNSATISFIABLE,
    Cause.TOPOLOGY: UnschedulableReason.TOPOLOGY_UNSATISFIABLE,
    Cause.BUDGET: UnschedulableReason.BUDGET_EXCEEDED,
}

AFTER_A_HOLD = frozenset(
    (UnschedulableReason.HOLD_TIMED_OUT, UnschedulableReason.HOLD_ENDED, UnschedulableReason.MEMBERS_DID_NOT_COME)
)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """message: constant for one cause. since: seconds of the clock. verdict: the planner's, where a plan was made.

    quote: kube-scheduler's own reasons, which may change: for verdicts on the gang, never in a pod's message.
    in_the_way: UIDs of members of other gangs whose slots are the reason that there is no room.
    """

    reason: UnschedulableReason
    message: str
    since: float = 0.0
    verdict: NoPlacement | None = None
    quote: str = ""
    in_the_way: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """For a user that asks about the gang."""
        return messages.with_quote(self.message, self.quote) if self.quote else self.message

    def after(self, before: Diagnosis | None) -> Diagnosis:
        """The same stop once more is as old as the first."""
        return replace(self, since=before.since) if before is not None and self.says_the_same_as(before) else self

    def says_the_same_as(self, other: Diagnosis | None) -> bool:
        return other is not None and (other.reason, other.message) == (self.reason, self.message)


def diagnosis_of_hold(cause: str, since: float) -> Diagnosis:
    """Why a hold ended, in WaitOnPermit's words."""
    return Diagnosis(
        UnschedulableReason.HOLD_TIMED_OUT if "timeout" in cause else UnschedulableReason.HOLD_ENDED, cause, since
    )


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A check of PreFilter that failed. cause: constant for the gang; refusal: what the pod is told.

    told: what of the refusal may become untrue while the check still fails; empty where nothing may.
    """

    reason: UnschedulableReason
    cause: str
    refusal: str
    told: str = ""


SET_ASIDE = FailedCheck(
    UnschedulableReason.INTERNAL_ERROR, messages.INTERNAL_ERROR, messages.INTERNAL_ERROR, told=messages.INTERNAL_ERROR
)
NOT_FOUND = FailedCheck(
    UnschedulableReason.POD_GROUP_NOT_FOUND, messages.POD_GROUP_NOT_FOUND, messages.POD_GROUP_NOT_FOUND
)


def diagnosis_of_plan(keys: Sequence[str], min_member: int, result: object) -> Diagnosis:
    """What the planner said of a gang, or of groups that start together, that it could not place."""
    if not isinstance(result, NoPlacement):
        return Diagnosis(UnschedulableReason.NOT_TRIED, "no plan")
    if result.composite:
        text = messages.composite_does_not_fit(result.composite, result.reason)
    elif len(keys) == 1:
        text = f"minMember of {min_member} does not fit: {result.reason}"
    else:
        text = messages.gang_set_does_not_fit(keys, result.reason)
    return Diagnosis(OF_CAUSE.get(result.cause, UnschedulableReason.INSUFFICIENT_RESOURCES), text, verdict=result)
