"""When a pod refused for its neighbours is worth another try.

A neighbour that it wants came, one that it or that hates went or changed its labels, or a node is in another domain.
kube-scheduler: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go (isSchedulableAfter...)
"""

from __future__ import annotations

from collections.abc import Sequence

from extender.api import corev1
from extender.framework.events import NODE, POD, ActionType
from extender.framework.interface import ClusterEvent, ClusterEventWithHint, QueueingHint
from extender.framework.pod_info import PodInfo
from extender.plugins.hints import QUEUE, QUEUE_SKIP, modified, pair, placed
from extender.plugins.inter_pod_affinity.topology_counts import matches_all


def events_to_register() -> Sequence[ClusterEventWithHint]:
    pods = ClusterEvent(POD, ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.DELETE)
    nodes = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
    return [ClusterEventWithHint(pods, after_pod_change), ClusterEventWithHint(nodes, after_node_change)]


def after_pod_change(pod: corev1.Pod, old: object, new: object) -> QueueingHint:
    """Terms count together: one existing pod has to meet all of them. Selected namespaces are not looked up here, as in
    kube-scheduler, so a term that only selects namespaces by label hears of no pod of them."""
    before, after = pair(corev1.Pod, old, new)
    if before is not None and after is not None and after.uid == pod.uid:
        return QUEUE  # its own labels have changed: others' anti-affinity may no longer mean it
    if any(other is not None and not placed(other) for other in (before, after)):
        return QUEUE_SKIP
    info = PodInfo(pod)
    if before is None:
        return QUEUE if after is not None and matches_all(info.required_affinity_terms, after) else QUEUE_SKIP
    if after is None:
        return QUEUE if _hated(info, before) else QUEUE_SKIP
    wanted, hated = info.required_affinity_terms, info.required_anti_affinity_terms
    became_wanted = matches_all(wanted, after) and not matches_all(wanted, before)
    no_longer_hated = matches_all(hated, before) and not matches_all(hated, after)
    return QUEUE if became_wanted or no_longer_hated else QUEUE_SKIP


def _hated(info: PodInfo, gone: corev1.Pod) -> bool:
    """By the refused pod, or the other way round."""
    return matches_all(info.required_anti_affinity_terms, gone) or matches_all(
        PodInfo(gone).required_anti_affinity_terms, info.pod
    )


def after_node_change(pod: corev1.Pod, old: object, new: object) -> QueueingHint:
    before, after = modified(corev1.Node, old, new)
    info = PodInfo(pod)
    wanted = {term.topology_key for term in info.required_affinity_terms}
    hated = {term.topology_key for term in info.required_anti_affinity_terms}
    if before is None:  # hated neighbours may be in no domain that it joins: worth a look
        return QUEUE if hated or wanted & after.labels.keys() else QUEUE_SKIP
    entered = any(key in after.labels and before.labels.get(key) != after.labels[key] for key in wanted)
    left = any(key in before.labels and after.labels.get(key) != before.labels[key] for key in hated)
    return QUEUE if entered or left else QUEUE_SKIP
