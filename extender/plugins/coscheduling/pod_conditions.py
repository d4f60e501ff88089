"""What a pod's conditions say of its way so far: tried and refused by kube-scheduler, sent by us, or told to go.

Used by PodGroupManager, GroupEvents, Dispatcher, preemption, and the verdicts that quote kube-scheduler.
Kubernetes: k8s.io/api/core/v1 (PodScheduled and its reasons)
"""

from __future__ import annotations

from extender.api import corev1
from extender.api.corev1.pod import POD_SCHEDULED, SCHEDULING_GATED, UNSCHEDULABLE
from extender.api.schedulingv1alpha1 import GANG_READY
from extender.framework.preemption.executor import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER

NO_CANDIDATE = "no candidate node for preemption"  # kube-scheduler's words for: an extender has left none
CALL_FAILED = ('preemption: Post "', "preemption: failed preempt with extender")  # Go's words, and kube-scheduler's


def was_sent(pod: corev1.Pod) -> bool:
    """Its nomination is ours: made before a restart, it holds room until a plan renews it or we take it back."""
    return any(condition.type == GANG_READY and condition.status == "True" for condition in pod.status.conditions)


def was_refused(pod: corev1.Pod) -> bool:
    """kube-scheduler has tried it, and parked it. One that is gated has not been tried."""
    return any(
        condition.type == POD_SCHEDULED and condition.status == "False" and condition.reason != SCHEDULING_GATED
        for condition in pod.status.conditions
    )


def same_refusal(old: corev1.Pod, new: corev1.Pod) -> bool:
    """Whether both tell of the same refusal: a newer one has another text."""
    told = [[each for each in pod.status.conditions if each.type == POD_SCHEDULED] for pod in (old, new)]
    return was_refused(old) and told[0] == told[1]


def taken_back(old: corev1.Pod, new: corev1.Pod) -> bool:
    """Whether this is our own patch, which says so in the condition that goes with it."""
    ready = [condition for condition in new.status.conditions if condition.type == GANG_READY]
    return any(condition.status == "False" and condition not in old.status.conditions for condition in ready)


def was_gated(pod: corev1.Pod) -> bool:
    """Whether kube-scheduler had not tried it yet, and could not have."""
    return any(each.type == POD_SCHEDULED and each.reason == SCHEDULING_GATED for each in pod.status.conditions)


def refused_in_tree(old: corev1.Pod, new: corev1.Pod, said: str) -> bool:
    """Whether kube-scheduler's own filters let no node pass, so that ours was not asked. said: what ours has said last."""
    return any(
        condition.type == POD_SCHEDULED
        and condition.status == "False"
        and condition.reason == UNSCHEDULABLE
        and condition not in old.status.conditions
        and not (said and said in condition.message)
        for condition in new.status.conditions
    )


def refusal_says(pod: corev1.Pod, *texts: str) -> bool:
    """Whether one of these is in what kube-scheduler has said of its last attempt."""
    return any(
        each.type == POD_SCHEDULED and any(text in each.message for text in texts) for each in pod.status.conditions
    )


def no_candidate_was_left(pod: corev1.Pod) -> bool:
    """Whether its last attempt to preempt ended with no candidate after our verb; a nomination that it has is kept then."""
    return refusal_says(pod, NO_CANDIDATE)


def preempt_call_failed(pod: corev1.Pod) -> bool:
    """Whether its last attempt to preempt met no extender, or one that was not ready."""
    return refusal_says(pod, *CALL_FAILED)


def was_preempted(pod: corev1.Pod) -> bool:
    """Whether it was chosen for a victim, by kube-scheduler or by us."""
    return any(
        known.type == DISRUPTION_TARGET and known.status == "True" and known.reason == PREEMPTION_BY_SCHEDULER
        for known in pod.status.conditions
    )
