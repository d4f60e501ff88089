"""The conditions of a PodGroup that follow from a verdict: of the CRD, or of kube-scheduler's own kind as kube-scheduler writes them.

GroupVerdicts writes them. Of kube-scheduler's own kind "has been scheduled" is final, whatever becomes of the members; a gang that
waits for members has no condition; and a preempted one is a DisruptionTarget, until it starts again.
kube-scheduler: pkg/scheduler/schedule_one_podgroup.go (updatePodGroupCondition)
"""

from __future__ import annotations

from extender.api import schedulingv1alpha1
from extender.api.metav1 import Condition
from extender.client.interface import OwnPodGroup
from extender.client.status_patch import now
from extender.framework.preemption.executor import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER
from extender.plugins.coscheduling.dependencies import WAITING, Verdict

SCHEDULED, UNSCHEDULABLE, SCHEDULER_ERROR = "Scheduled", "Unschedulable", "SchedulerError"
ERRORS = frozenset(("InvalidPodGroup", "InternalError"))  # of UnschedulableReason


def says(pod_group: OwnPodGroup, verdict: Verdict) -> bool:
    """Whether the group's conditions tell it already."""
    wanted = _wanted(pod_group, verdict)
    known = _known(pod_group, wanted.type)
    if known is None:
        return False
    return (known.status, known.reason, known.message) == (wanted.status, wanted.reason, wanted.message)


def changes(pod_group: OwnPodGroup, verdict: Verdict, *, has_started: bool = False) -> list[Condition]:
    """The conditions to write. has_started: we have said so, though the object as we know it may not show it yet."""
    wanted = _wanted(pod_group, verdict)
    if verdict.disrupted:
        return [wanted]
    known, target = _known(pod_group, wanted.type), _known(pod_group, DISRUPTION_TARGET)
    found = [wanted]
    if not isinstance(pod_group, schedulingv1alpha1.PodGroup):
        final = has_started or (known is not None and known.status == "True")
        found = [] if final or (known is None and verdict.reason == WAITING) else [wanted]
    if verdict.scheduled and target is not None and target.status == "True":
        found.append(_condition(pod_group, DISRUPTION_TARGET, "False", SCHEDULED, verdict.message))
    return found


def _wanted(pod_group: OwnPodGroup, verdict: Verdict) -> Condition:
    status = "True" if verdict.scheduled else "False"
    if verdict.disrupted:
        return _condition(pod_group, DISRUPTION_TARGET, "True", PREEMPTION_BY_SCHEDULER, verdict.message)
    if isinstance(pod_group, schedulingv1alpha1.PodGroup):
        return _condition(pod_group, pod_group.scheduled, status, verdict.why or verdict.reason, verdict.message)
    reason = SCHEDULED if verdict.scheduled else SCHEDULER_ERROR if verdict.why in ERRORS else UNSCHEDULABLE
    return _condition(pod_group, pod_group.scheduled, status, reason, verdict.message)


def _condition(pod_group: OwnPodGroup, type_: str, status: str, reason: str, message: str) -> Condition:
    known = _known(pod_group, type_)
    since = known.last_transition_time if known is not None and known.status == status else None
    return Condition(
        type=type_,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since or now(),
        observed_generation=pod_group.metadata.generation,
    )


def _known(pod_group: OwnPodGroup, type_: str) -> Condition | None:
    return next((known for known in pod_group.status.conditions if known.type == type_), None)
