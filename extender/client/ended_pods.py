"""The pods of a namespace that have ended, which no informer keeps.

Both factories hand those that have Succeeded to Coscheduling; the statuses of PodGroups count all of them. kube-scheduler has no
counterpart: its informer leaves such pods out, and nothing asks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from extender.api import corev1
from extender.client.errors import ApiError
from extender.client.interface import API, PODS, list_all

log = logging.getLogger(__name__)

SUCCEEDED_PODS = "status.phase=Succeeded"
ENDED_PODS = "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown"
PAGE = 500


def hand_over_ended_pods(
    selector: str, api: API, namespace: str, found: Callable[[Iterable[corev1.Pod]], None]
) -> None:
    """selector: one of those above. Where they cannot be listed nothing is handed over, and the caller asks again in its time."""
    try:
        found(list_all(api, PODS, namespace=namespace, field_selector=selector, limit=PAGE))
    except ApiError as error:
        log.info("pods that have ended could not be listed namespace=%s error=%s", namespace, error)
