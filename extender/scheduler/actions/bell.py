"""One event that wakes every pod which an extender has refused and kube-scheduler has parked.

kube-scheduler tries such pods again after events of nearly every kind that it watches. The cheapest that is ours to make is
the change of an annotation on a CSIStorageCapacity in our own namespace: of a storage class that does not exist, on no node,
so that it means nothing to any controller. It is made when it is needed first. Where that is not permitted, the pods that are
known to wait are woken one by one.
kube-scheduler: pkg/scheduler/scheduler.go (the events that extenders' refusals are registered for)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import count

from extender.api import corev1
from extender.client.errors import ApiError, NotFoundError
from extender.client.interface import API, CSI_STORAGE_CAPACITIES
from extender.client.status_patch import now_text

log = logging.getLogger(__name__)

NAME = "gang-extender-bell"
ANNOTATION = "gang-extender.dev/rung"
DEFAULT_NAMESPACE = "kube-system"


class Bell:
    """background: runs a job on another thread. one_by_one: wakes each of these pods."""

    def __init__(
        self,
        api: API,
        namespace: str,
        leading: Callable[[], bool],
        background: Callable[[Callable[[], None]], None],
        one_by_one: Callable[[Sequence[corev1.Pod]], None],
    ) -> None:
        self._api = api
        self._namespace = namespace or DEFAULT_NAMESPACE
        self._leading = leading
        self._background = background
        self._one_by_one = one_by_one
        self._rings = count(1)  # next() is atomic: the planner's thread rings, and the ticks

    def activate_all(self, pods: Sequence[corev1.Pod]) -> None:
        """Returns at once. pods: those that are known to wait for it."""
        if not self._leading():
            return
        value = f"{now_text()}/{next(self._rings)}"  # an event only if it differs from the last
        self._background(lambda: self._ring(value, pods))

    def _ring(self, value: str, pods: Sequence[corev1.Pod]) -> None:
        try:
            try:
                body = {"metadata": {"annotations": {ANNOTATION: value}}}
                self._api.patch(CSI_STORAGE_CAPACITIES, NAME, body, namespace=self._namespace)
            except NotFoundError:
                self._api.create(CSI_STORAGE_CAPACITIES, _object(value), self._namespace)
        except ApiError as error:
            log.info(
                "event that wakes all pods not written, pods are woken one by one pods=%d error=%s", len(pods), error
            )
            self._one_by_one(pods)


def _object(value: str) -> dict[str, object]:
    return {
        "apiVersion": CSI_STORAGE_CAPACITIES.api_version,
        "kind": CSI_STORAGE_CAPACITIES.kind,
        "metadata": {"name": NAME, "annotations": {ANNOTATION: value}},
        "storageClassName": NAME,
    }
