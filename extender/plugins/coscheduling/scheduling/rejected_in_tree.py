"""Plain members that kube-scheduler's own filters rejected before it asked us about a node: whether they will come.

No patch of ours wakes such a pod, only an event that its filters wait for. GangSetPlanning asks before it keeps places for them.
Where we would find a node for one alone, and nothing has changed since, kube-scheduler knows something that we do not, and
the pod will not come. Its own reasons are read off the pod's condition.
kube-scheduler: pkg/scheduler/framework/types.go (FitError.Error)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from extender.api import corev1
from extender.api.corev1.pod import POD_SCHEDULED, UNSCHEDULABLE
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.refutations import QUOTED_AFTER
from extender.plugins.coscheduling.state.slots import Slot

_FIT_ERROR = re.compile(r"\d+/\d+ nodes are available: (?P<reasons>.*)", re.DOTALL)
_SENTENCE_END = re.compile(r"\.(?:\s|$)")
_NEXT_REASON = re.compile(r", (?=\d+(?: |$))")
_COUNT = re.compile(r"^\d+ ?")


def quote(group: Group) -> str:
    """kube-scheduler's reasons for the member whose slot it refuted last, else for one that it rejected in-tree; empty until it has refuted
    several slots, or rejected a member in-tree. Lock held.
    """
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


LEASE_SECONDS = 30.0  # kube-scheduler's longest back-off is 10 s, and it may have others to try first

Fits = Callable[[planner.Request], bool]


def refused_unasked(pod: corev1.Pod) -> bool:
    """Whether its condition is of kube-scheduler's own filters alone. They are asked before us: of one of us it has none then.

    The condition is that of the last attempt, whenever it was: another text would have been patched.
    """
    reasons = in_tree_reasons(pod, "")
    return bool(reasons) and not pod.status.nominated_node_name and not messages.may_be_ours(reasons)


def mark_rejections_current(manager: PodGroupManager) -> None:
    """On taking leadership, recorded in-tree rejections count as current. Lock held.

    A kube-scheduler that has just started tries all pods. A kube-scheduler that kept running has already requeued those pods.
    """
    for group in manager.groups.values():
        for uid in group.rejected_in_tree():
            group.members[uid].rejected_in_tree = manager.notes.cluster_epoch


def exclude_members_that_will_not_return(
    manager: PodGroupManager, gang_set: Sequence[Group], request: planner.Request, nodes: Mapping[str, str], fits: Fits
) -> bool:
    """Confines those to nowhere, until the cluster changes or kube-scheduler asks about them, that were given nodes and will
    not come. Returns whether there are any: then the plan is void.

    The manager's lock is not held; fits runs the planner.
    """
    with manager.lock:
        epoch = manager.notes.cluster_epoch
        refused = {
            uid for group in gang_set for uid, at in group.rejected_in_tree().items() if at == epoch and uid in nodes
        }
    if not refused:
        return False
    silent: set[str] = set()
    alike: dict[object, bool] = {}
    for info in request.members:
        if info.pod.uid not in refused:
            continue
        shape = planner.shape_of(info)
        if shape not in alike:
            alike[shape] = fits(request.for_one_of([info]))
        if alike[shape]:
            silent.add(info.pod.uid)
    with manager.lock:
        for group in gang_set:
            for uid in silent & group.rejected_in_tree().keys():
                group.refuted.stays_out(uid, epoch)
    return bool(silent)


def note_refused(manager: PodGroupManager, group: Group, place: Slot) -> None:
    """It was refused after its gang was planned: no patch wakes it, but an event may that we have not seen. Lock held."""
    member = group.members[place.uid]
    if not messages.may_be_ours(in_tree_reasons(member.pod, "")):
        member.rejected_in_tree = manager.notes.cluster_epoch
        until = min(place.expires, manager.clock() + LEASE_SECONDS)
        manager.slots.reserve(replace(place, expires=until))


def lease_of(gang_set: Sequence[Group], nodes: Collection[str], seconds: float) -> float:
    """How long places are kept: not as long as usual where none of those that have them has ever come. Lock held."""
    unasked = {uid for group in gang_set for uid in group.rejected_in_tree()}
    return min(seconds, LEASE_SECONDS) if nodes and unasked.issuperset(nodes) else seconds
