"""The texts of refusals: the seeds' and kube-scheduler's own words.

One cause has always the same text: kube-scheduler retries at once a pod whose refusal reads differently from the last,
so no counter, time, free amount or random order belongs here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

POD_GROUP_NOT_FOUND = "PodGroup not found"
ROOM_RESERVED = "node(s) had their room reserved for a gang"
NODES_RESERVED = "node(s) were kept free for a gang that waits for room"
OPTIMISTIC_REJECTION = "optimistic rejection in PostFilter"
REJECTION_IN_UNRESERVE = "rejection in Unreserve"
MEMBER_GONE = "the pod is not a member of the PodGroup any more"
ALREADY_BOUND = "the pod is on a node already"
MEMBER_DELETED = "a member of the PodGroup was deleted while waiting"
GROUP_DELETED = "the PodGroup was deleted while waiting"
LEADS_NO_MORE = "not the leader any more: another replica starts the gang"
NOT_ENOUGH_LEFT = "the PodGroup fell below its minMember while waiting"
PLACE_NOT_OFFERED = "planned node was not among the nodes that passed kube-scheduler's filters"
PLAN_PENDING = "the gang is being planned: its members are woken when it has a place"
NOT_SHOWN = "the API server's watch has not shown the pod yet, and its group with it"
BEGUN_FIRST = "gangs that began to start before a restart are planned first"
MEMBERS_DID_NOT_COME = "planned members did not come to bind in time"
TURN_NOT_COME = "planned members that are to come before it are not in place yet"
INTERNAL_ERROR = "the gang met an internal error and is set aside for a while; see the extender's log"
CHANGED_MEANWHILE = "the PodGroup has changed while it was planned"
BIND_CALLS_TAKEN = "the gang waits for others to start: maxHeldBinds bind calls are taken or promised"
EXCEEDS_HELD_BINDS = "minMember exceeds maxHeldBinds, the most bind calls that the extender holds at a time"
PREEMPTED = "preempting to accommodate a higher priority pod"
PREEMPTING = "the gang waits for pods of lower priority to go from its nodes"
PREEMPTION_OFF = "preemption for whole gangs is switched off (gangPreemption)"
PREEMPTION_NEVER = "a member has preemptionPolicy Never"
PREEMPTION_NOT_PERMITTED = "preemption for whole gangs is off: no permission to evict pods"
PREEMPTION_DELAYED = "the gang waits first for an autoscaler (preemptionDelaySeconds)"
PREEMPTION_OUT_OF_TIME = "the search for pods to evict took longer than its time budget: it is made again"
NO_VICTIMS_HELP = "the gang would not fit even without all pods of lower priority"
PRIORITIES_DIFFER = "its members' priorities differ: it counts at the highest that minMember of them have"
GAVE_UP = "it has waited for longer than its give-up-after, and comes behind others of its priority"
VICTIMS_DID_NOT_GO = "victims of the gang's preemption did not terminate in time"


ENOUGH_SIBLINGS = "cannot find enough sibling pods"


def not_enough_siblings(pod_name: str, current: int, minimum: int) -> str:
    return f"pre-filter pod {pod_name} {ENOUGH_SIBLINGS}, current pods number: {current}, minMember of group: {minimum}"


LEADER_ALONE = "; the leader alone is there: with startupPolicy LeaderReady its workers are made only once it runs"  # LeaderWorkerSet


def gated_siblings(pod_name: str) -> str:
    return f"pre-filter pod {pod_name} cannot proceed due to gated pods in the same PodGroup"


def waiting_for_members(minimum: int, strangers: int = 0) -> str:
    """strangers: pods of the group that name another scheduler."""
    return f"fewer pods exist than minMember of {minimum}{_not_counted(strangers)}"


def not_enough_of_role(pod_name: str, role: str, current: int, minimum: int) -> str:
    return (
        f"pre-filter pod {pod_name} cannot find enough sibling pods of role {role}, "
        f"current pods number: {current}, minimum of role: {minimum}"
    )


def waiting_for_role(role: str, minimum: int, strangers: int = 0) -> str:
    return f"fewer pods of role {role} exist than its minimum of {minimum}{_not_counted(strangers)}"


def _not_counted(strangers: int) -> str:
    return f"; not counted: {strangers} with another schedulerName" if strangers else ""


def planned_elsewhere(level: str) -> str:
    return f"the gang has been planned in another {level} meanwhile"


def waiting_for_group(key: str) -> str:
    return f"PodGroup {key}, which it is to start together with, is not found or does not name it"


def is_of_a_composite(key: str, composite: str) -> str:
    return (
        f"PodGroup {key}, which it is to start together with, is a group of CompositePodGroup {composite}, "
        "and starts with that one's groups alone"
    )


def waiting_for_composite(key: str) -> str:
    return f"CompositePodGroup {key}, which it is a group of, is not found"


def waiting_for_chosen(key: str) -> str:
    return f"it waits until other groups of CompositePodGroup {key} have started"


def composite_does_not_fit(key: str, reason: str) -> str:
    return f"CompositePodGroup {key} does not fit: {reason}"


def companion_waits(key: str, cause: str) -> str:
    return f"PodGroup {key}, which it is to start together with, cannot start: {cause}"


def gang_set_does_not_fit(keys: Iterable[str], reason: str) -> str:
    return f"PodGroups that start together ({', '.join(sorted(keys))}) do not fit: {reason}"


def refuted(minimum: int) -> str:
    return f"minMember of {minimum} does not fit on the nodes that kube-scheduler's own filters accept"


def no_room_for_extra_members(minimum: int, reason: str) -> str:
    return f"members beyond minMember of {minimum} find no room: {reason}"


def with_quote(text: str, reasons: str) -> str:
    return f"{text}; kube-scheduler says: {reasons}"


def kept_free(minimum: int) -> str:
    return f"minMember of {minimum} does not fit: nodes are kept free for a gang that is first in line"


def reservation_begins(domain: str, nodes: int) -> str:
    return f"the gang is first in line: room that comes free on {nodes} node(s) of {domain} is kept for it"


def with_priorities(text: str) -> str:
    return f"{text}; {PRIORITIES_DIFFER}"


def not_honoured(fields: Collection[str]) -> str:
    """fields: of the PodGroup of another system, or annotations."""
    return f"not honoured: {', '.join(fields)}" if fields else ""


def waiting_for_gates(minimum: int) -> str:
    return f"scheduling gates of others leave fewer pods than minMember of {minimum}"


def needs_gate(gate: str) -> str:
    return (
        "members with required affinity to other members have to be created with the scheduling gate "
        f"{gate}: kube-scheduler's own filters refuse them until those are bound"
    )


def evicts(count: int) -> str:
    pods = "1 pod" if count == 1 else f"{count} pods"
    return f"evicting {pods} of lower priority; the gang starts when their room is free"


def preemption_failed(cause: str) -> str:
    return f"no pod was evicted for the gang: {cause}"


def complete(minimum: int) -> str:
    """The number is read again after a restart: `steps.size_told`."""
    return f"minMember of {minimum} is complete: the gang starts"


def started_in_part(number: int, minimum: int, *, initializers: bool) -> str:
    """The first words are read again after a restart: `steps.started_early`."""
    return f"{_early(number, minimum, initializers)} have started: room is kept for the members that come later"


def complete_at_last(initializers: int, minimum: int) -> str:
    return f"{_early(initializers, minimum, True)} have ended, the others are complete: the gang starts"


def _early(number: int, minimum: int, initializers: bool) -> str:
    return f"{number} {'initializers' if initializers else 'members'} of minMember {minimum}"


def not_bound(pod_name: str, node_name: str) -> str:
    return f"the gang has started, but {pod_name} could not be bound to {node_name}: its place is kept, and it is tried again"


def failed_recently(key: str) -> str:
    return f"podGroup {key} failed recently"


def denied(key: str, seconds: float, cause: str) -> str:
    return f"pod with pgName: {key} last failed in {seconds:g}s, deny: {cause}"


def resource_gap(names: Iterable[str]) -> str:
    return f"resource gap: {' '.join(sorted(names))}"


def rejected_after_post_filter(key: str, pod_name: str) -> str:
    return f"PodGroup {key} gets rejected due to Pod {pod_name} is unschedulable even after PostFilter"


_OUR_WORDS = ("pgName", "pre-filter pod", "odGroup", " gang", "planned ", "resource gap", "minMember")


def may_be_ours(text: str) -> bool:
    """Whether a refusal may have words of an extender's in it, of another replica's too, or of ours before a restart."""
    return any(word in text for word in _OUR_WORDS)


def broken(minimum: int, seconds: str, restarts: bool) -> str:
    """seconds: a duration, as the owner may write it."""
    then = "the rest is evicted, so that it starts anew" if restarts else "the rest is kept"
    return f"fewer than minMember of {minimum} members have run for {seconds}: {then}"
