"""What operators ask besides the list of gangs: of a pod, of a node that is to be drained, of a gang that is not there yet.

Scheduler.pages hands them to the server. No counterpart in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Callable

from extender.api import codec, corev1
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.plugins.coscheduling.questions import asked, one_at_a_time
from extender.plugins.coscheduling.report.outlook import DrainOutlook, PodStatus, WhatIf
from extender.scheduler.interface import BusyError, QuestionError


def pod_status(watched: Callable[[str], corev1.Pod | None], coscheduling: Coscheduling, key: str) -> PodStatus | None:
    """key: `namespace/name`. None for a pod that the watch does not show."""
    pod = watched(key)
    if pod is None:
        return None
    group = coscheduling.manager.key_of(pod)
    condition = next((each for each in pod.status.conditions if each.type == corev1.pod.POD_SCHEDULED), None)
    return PodStatus(
        pod=key,
        scheduler_name=pod.spec.scheduler_name,
        node=pod.node_name,
        phase=pod.status.phase,
        message=condition.message if condition is not None else "",
        group=group,
        gang=coscheduling.report.status(group) if group else None,
    )


def drain(coscheduling: Coscheduling, node_name: str) -> DrainOutlook | None:
    """Raises BusyError."""
    try:
        return coscheduling.drain.ask(node_name)
    except one_at_a_time.BusyError as error:
        raise BusyError(str(error)) from error


def what_if(coscheduling: Coscheduling, body: bytes, namespace: str = "") -> WhatIf:
    """body: JSON of a Question. namespace: the only one that the caller may see; empty for all. Raises QuestionError, BusyError."""
    questions = coscheduling.what_if
    try:
        if not namespace:
            return questions.ask(codec.decode(body, asked.Question))
        with questions.one_at_a_time.turn_of_tenant(namespace):
            question = codec.decode(body, asked.Question)
            asked.check_namespace(question, namespace)
            return questions.ask(question).within_namespace(namespace)
    except (codec.DecodeError, asked.QuestionError) as error:
        raise QuestionError(str(error)) from error
    except one_at_a_time.BusyError as error:
        raise BusyError(str(error)) from error
