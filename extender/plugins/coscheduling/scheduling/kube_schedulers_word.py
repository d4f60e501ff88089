"""Why kube-scheduler's own filters refuse a pod, read off the pod's PodScheduled condition.

Quoted by the verdict on a gang whose places were refuted again and again.
kube-scheduler: pkg/scheduler/framework/types.go (FitError.Error)
"""

from __future__ import annotations

import re

from extender.api import corev1
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_conditions import POD_SCHEDULED, UNSCHEDULABLE
from extender.plugins.coscheduling.state.refutations import QUOTED_AFTER

_FIT_ERROR = re.compile(r"\d+/\d+ nodes are available: (?P<reasons>.*)", re.DOTALL)
_SENTENCE_END = re.compile(r"\.(?:\s|$)")
_NEXT_REASON = re.compile(r", (?=\d+(?: |$))")
_COUNT = re.compile(r"^\d+ ?")


def quote(group: Group) -> str:
    """What it says of the member whose place it refuted last, or that it refused before it asked us about any; empty before
    it has refuted a few. Lock held."""
    unasked = group.rejected_in_tree()
    if group.refuted.times < QUOTED_AFTER and not unasked:
        return ""
    members = (group.members.get(uid) for uid in (*group.refuted.uids(), *unasked))
    found = (in_tree_reasons(each.pod, each.last_rejection) for each in members if each is not None)
    return next(filter(None, found), "")


def in_tree_reasons(pod: corev1.Pod, said: str) -> str:
    """Without the numbers of nodes, which change; empty where they have refused none. said: what our filter has said."""
    for condition in pod.status.conditions:
        if condition.type == POD_SCHEDULED and condition.status == "False" and condition.reason == UNSCHEDULABLE:
            return _reasons(condition.message, said)
    return ""


def _reasons(message: str, said: str) -> str:
    found = _FIT_ERROR.match(message.replace(said, "") if said else message)
    if found is None:
        return ""
    first = _SENTENCE_END.split(found["reasons"], maxsplit=1)[0]
    reasons = {_COUNT.sub("", each).strip() for each in _NEXT_REASON.split(first)}
    return ", ".join(sorted(reasons - {""}))
