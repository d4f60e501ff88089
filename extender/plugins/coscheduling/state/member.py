"""A member's way to its node: its states, what can happen to it, and the state that it is in afterwards.

docs/architecture.md draws the table, docs/design/0028 says how it was found. Pure: no clock, no I/O, no lock.
A gang starts under one hold of the manager's lock: Permit of the member that completes the quorum makes all Starting and lifts
every hold; a hold that was decided otherwise in between calls the whole thing off. PreBind looks at the state of each.
kube-scheduler: pkg/scheduler/backend/queue (activeQ, backoffQ, unschedulablePods) and framework/runtime/waiting_pods_map.go;
where it has a pod is not said in one word, but by its calls and by the pod's conditions and nominations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.membership import GroupRef
from extender.plugins.coscheduling.spec.start_record import StartRecord


@dataclass(frozen=True, slots=True)
class Start:
    """What is remembered of one, until its quorum is on nodes. members: UIDs of those that it was decided for."""

    record: StartRecord
    members: frozenset[str]


class MemberState(StrEnum):
    """A member is in exactly one; docs/design/0028 says which holds where two seem to."""

    GATED = "Gated"  # our scheduling gate alone keeps it from kube-scheduler
    QUEUED = "Queued"  # kube-scheduler may ask about it at any time; also what other gates than ours hold
    UNSCHEDULABLE = "Unschedulable"  # refused, or without the place it relied on: it is sent when it has one
    DISPATCHED = "Dispatched"  # freed of our gate, nominated, or both, for its place, and on its way
    ADMITTED = "Admitted"  # our filter has named its node, and its bind call has not come
    WAITING = "Waiting"  # its bind call is held in Permit
    BACKING_OFF = "BackingOff"  # its bind call was answered with an error: kube-scheduler brings it back by itself
    STARTING = "Starting"  # its gang's start is decided, and its binding under way
    BOUND = "Bound"  # on a node, by the API server's word or our own


class MemberEvent(StrEnum):
    """What can happen to a member. The words are those of the metric's label `event`, and of the drawing."""

    GATE_SEEN = "GateSeen"  # the watch shows that our gate alone holds it
    GATE_GONE = "GateGone"  # the watch shows it without our gate, or with another's beside it
    DISPATCHED = "Dispatched"  # we send it to its place: its gate goes, it is nominated, or both
    NOMINATION_WITHDRAWN = "NominationWithdrawn"  # by us: no place stands behind it, or its wave has not come
    NOMINATION_CLEARED = "NominationCleared"  # by kube-scheduler or another writer
    PARKED = "Parked"  # kube-scheduler has refused it without our filter's word, as its condition or nomination shows
    ASKED = "Asked"  # a filter call has come
    ADMITTED = "Admitted"  # the filter call is answered with the node of its place
    PASSED = "Passed"  # the filter call is answered: it needs no place, and may go to any node
    REFUSED = "Refused"  # the filter call is answered with a refusal
    PLACE_LOST = "PlaceLost"  # the place that was kept for it is given up
    HELD = "Held"  # its bind call has come to Permit, and waits
    START_BEGUN = "StartBegun"  # its gang's start is being decided
    START_CALLED_OFF = "StartCalledOff"  # another hold had ended first
    BINDING_CONFIRMED = "BindingConfirmed"  # the API server has taken our binding
    BIND_FAILED = "BindFailed"  # its bind call is answered with an error: rejected, hung up, timed out, or not bound
    SEEN_BOUND = "SeenBound"  # the watch shows it on a node
    SEEN_UNBOUND = "SeenUnbound"  # the watch shows it on no node any more: etcd was restored
    GONE = "Gone"  # deleted, finished, or of another group now


class Effect(StrEnum):
    """What follows for others than the member."""

    RELEASE_PLACE = "ReleasePlace"  # it needs none any more
    KEEP_PLACE = "KeepPlace"  # at the node that it was to be bound to: a start that is cut short is finished there


@dataclass(frozen=True, slots=True)
class Transition:
    """state: afterwards; None for a member that is gone. possible: whether the event can happen in the state it was in."""

    state: MemberState | None
    effects: tuple[Effect, ...] = ()
    possible: bool = True


G, Q, U, D, A, W, K, S, B = MemberState
x, gone = "impossible", "gone"

# The state afterwards, by the state before (the columns) and the event (the rows).
_TABLE: tuple[tuple[str | MemberEvent, ...], ...] = (
    # Gated, Queued, Unschedulable, Dispatched, Admitted, Waiting, BackingOff (K), Starting, Bound
    (G, G, G, D, A, W, K, S, B, MemberEvent.GATE_SEEN),
    (Q, Q, U, D, A, W, K, S, B, MemberEvent.GATE_GONE),
    (D, D, D, D, A, x, D, x, B, MemberEvent.DISPATCHED),
    (G, Q, U, Q, A, x, K, x, B, MemberEvent.NOMINATION_WITHDRAWN),
    (G, Q, U, Q, A, x, K, x, B, MemberEvent.NOMINATION_CLEARED),
    (G, U, U, U, U, W, U, S, B, MemberEvent.PARKED),
    (Q, Q, U, D, Q, W, Q, S, B, MemberEvent.ASKED),
    (A, A, A, A, A, W, A, S, B, MemberEvent.ADMITTED),
    (Q, Q, Q, Q, Q, W, Q, S, B, MemberEvent.PASSED),
    (U, U, U, U, U, W, U, S, B, MemberEvent.REFUSED),
    (G, U, U, U, U, x, U, x, B, MemberEvent.PLACE_LOST),
    (W, W, W, W, W, W, W, W, x, MemberEvent.HELD),
    (x, x, x, x, x, S, x, x, x, MemberEvent.START_BEGUN),
    (x, x, x, x, x, x, x, W, x, MemberEvent.START_CALLED_OFF),
    (B, B, B, B, B, B, B, B, B, MemberEvent.BINDING_CONFIRMED),
    (K, K, U, K, K, K, K, K, B, MemberEvent.BIND_FAILED),
    (B, B, B, B, B, B, B, B, B, MemberEvent.SEEN_BOUND),
    (x, x, x, x, x, x, x, x, Q, MemberEvent.SEEN_UNBOUND),
    (gone, gone, gone, gone, gone, gone, gone, gone, gone, MemberEvent.GONE),
)

_EFFECTS: Mapping[tuple[MemberState, MemberEvent], tuple[Effect, ...]] = {
    **{(state, MemberEvent.SEEN_BOUND): (Effect.RELEASE_PLACE,) for state in MemberState},
    **{(state, MemberEvent.GONE): (Effect.RELEASE_PLACE,) for state in MemberState},
    (S, MemberEvent.BIND_FAILED): (Effect.KEEP_PLACE,),
}


def _transitions() -> Iterator[tuple[tuple[MemberState, MemberEvent], Transition]]:
    for *cells, last in _TABLE:
        event = MemberEvent(last)
        for state, cell in zip(MemberState, cells, strict=True):
            effects = _EFFECTS.get((state, event), ())
            match cell:
                case "impossible":
                    yield (state, event), Transition(state, possible=False)
                case "gone":
                    yield (state, event), Transition(None, effects)
                case _:
                    yield (state, event), Transition(MemberState(cell), effects)


TRANSITIONS: Mapping[tuple[MemberState, MemberEvent], Transition] = dict(_transitions())
"""What becomes of a member that is in the state. Total."""


@dataclass(slots=True)
class Member:
    """What is known of one member. The manager's lock guards it; Group.happened alone writes the state."""

    info: PodInfo
    ref: GroupRef
    state: MemberState = MemberState.QUEUED
    node: str = ""  # where it is held, is being bound, or was bound by us
    nomination: str | None = None  # the node of ours; empty if it may be out of date; None if we have made none
    ungated_without_nomination: bool = False  # and on its way since
    turn: int | None = (
        None  # the wave of the slot that it has lost, until it has another: those of later waves wait for it
    )
    renominated: bool = False  # a nomination that was lost was made once more for this plan
    last_rejection: str = ""  # the text of our last refusal
    rejection_facts: str = ""  # what of that refusal may become untrue
    rejected_in_tree: int | None = None  # the cluster epoch at which kube-scheduler refused it before it asked us
    no_candidate_with: str = ""  # its nomination in kube-scheduler's last preempt call that we left no candidate

    @property
    def pod(self) -> corev1.Pod:
        return self.info.pod

    @property
    def node_name(self) -> str:
        """Where it is, or is held; empty for one that is on its way, or waits."""
        return self.pod.node_name or self.node

    @property
    def is_nominated(self) -> bool:
        """Whether it was sent with a nomination: kube-scheduler, once it knows, asks about that node first."""
        return self.nomination is not None and not self.ungated_without_nomination

    def is_nominated_since(self, asked: corev1.Pod) -> bool:
        """Whether kube-scheduler asks in a scheduling cycle that began before it knew the nomination to where the member is to go now.

        asked: the pod of the call. Its snapshot is as old: what it says of the nodes may be over.
        """
        return self.is_nominated and self.nomination not in ("", asked.status.nominated_node_name)

    def forget_dispatch(self) -> None:
        """It is on its way no more: it has come, or its nomination is withdrawn."""
        self.nomination = None
        self.ungated_without_nomination = False

    def doubt_nomination(self) -> None:
        """kube-scheduler clears it with a refusal."""
        if self.nomination is not None:
            self.nomination = ""
