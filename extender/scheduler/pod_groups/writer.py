"""Writes statuses of PodGroups, one after the other: what a verdict and what the pods show go in one patch.

A custom resource has no merge of conditions: each patch has all of them, as we know the object by then, so that there is one writer,
and it remembers what the API server has answered. kube-scheduler: pkg/scheduler/schedule_one_podgroup.go (updatePodGroupCondition)
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cachetools import LRUCache

from extender.api.metav1 import Condition
from extender.api.schedulingv1alpha1 import PodGroup
from extender.client.interface import API, POD_GROUPS, OwnPodGroup, resource_of
from extender.client.status_patch import NO_FIELDS, merged, patch_pod_group_status
from extender.scheduler.background import WorkerPool
from extender.scheduler.pod_groups.status import reason_of

log = logging.getLogger(__name__)

REMEMBERED = 10_000
Fields = Mapping[str, Any]
"""Of a status, by their names on the wire; None for one that is taken out."""


def nothing(pod_group: PodGroup) -> Fields:
    """Where nothing is counted."""
    return NO_FIELDS


def unknown(pod_group: OwnPodGroup) -> bool:
    """Where nothing is counted: what is to be written is, when its time has come."""
    return False


class PodGroupStatusWriter:
    """`pool` has one thread, on which all is written. shown: what the pods of a group show, which every patch of its status brings along.
    whole: whether minMember of them have a node. growing: whether members of it are still being made.

    awaited: UIDs of PodGroups of which a verdict is written soon, and brings along what the pods show; others look, verdicts changes it.
    conditions_kept: whether the CRD has status.conditions, as far as its answers show: scheduler-plugins' own has none.
    """

    def __init__(self, api: API) -> None:
        self.pool = WorkerPool("verdicts", 1)
        self.shown: Callable[[PodGroup], Fields] = nothing
        self.whole: Callable[[OwnPodGroup], bool] = unknown
        self.growing: Callable[[OwnPodGroup], bool] = unknown
        self.awaited: set[str] = set()
        self.conditions_kept = True
        self._api = api
        self._lock = threading.Lock()  # guards both below
        self._newest: LRUCache[str, OwnPodGroup] = LRUCache(REMEMBERED)  # by UID: what the API server answered last
        self._written: LRUCache[str, Fields] = LRUCache(REMEMBERED)  # by UID

    def newest(self, pod_group: OwnPodGroup) -> OwnPodGroup:
        """As the API server answered last, where the watch has not shown something later."""
        with self._lock:
            known = self._newest.get(pod_group.metadata.uid)
        return known if known is not None and _version(known) > _version(pod_group) else pod_group

    def written(self, pod_group: PodGroup) -> Fields | None:
        """What we have written last; None where that is nothing that is remembered."""
        with self._lock:
            return self._written.get(pod_group.metadata.uid)

    def write(self, pod_group: OwnPodGroup, conditions: Sequence[Condition]) -> OwnPodGroup:
        """Raises ApiError. pod_group: as `newest` has it."""
        of_crd = resource_of(pod_group) is POD_GROUPS
        shown = self.shown(pod_group) if of_crd and isinstance(pod_group, PodGroup) else NO_FIELDS
        known = self.written(pod_group) if isinstance(pod_group, PodGroup) else None
        kept = () if of_crd and not self.conditions_kept else conditions
        if not kept and shown == known:
            return pod_group
        fields = dict(NO_FIELDS if shown == known else shown)
        if of_crd and isinstance(pod_group, PodGroup) and self.conditions_kept:
            reason = reason_of(merged(pod_group, kept), pod_group.scheduled)
            fields |= {"reason": reason} if reason != pod_group.status.reason else {}
        answer = patch_pod_group_status(self._api, pod_group, kept, fields)
        with self._lock:
            self._newest[answer.metadata.uid] = answer
            if shown:
                self._written[answer.metadata.uid] = shown
        if of_crd and kept and not answer.status.conditions:
            log.warning("the PodGroup CRD has no status.conditions: verdicts are events only")
            self.conditions_kept = False
        return answer

    def gone(self, uid: str) -> None:
        """The PodGroup has been deleted."""
        with self._lock:
            self._newest.pop(uid, None)
            self._written.pop(uid, None)
        self.awaited.discard(uid)

    def forget(self) -> None:
        """Another replica may write from now on."""
        with self._lock:
            self._newest.clear()
            self._written.clear()
        self.awaited.clear()


def _version(pod_group: OwnPodGroup) -> int:
    """0 where it is no number, which the API server's always are."""
    text = pod_group.metadata.resource_version
    return int(text) if text.isdecimal() else 0
