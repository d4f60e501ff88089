"""The pods of a namespace that have Succeeded, which no informer keeps.

Both factories hand it to Coscheduling. kube-scheduler has no counterpart: its informer leaves such pods out, and nothing asks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from extender.api import corev1
from extender.client.errors import ApiError
from extender.client.interface import API, PODS, list_all

log = logging.getLogger(__name__)

SUCCEEDED_PODS = "status.phase=Succeeded"
PAGE = 500


def hand_over_succeeded_pods(api: API, namespace: str, found: Callable[[Iterable[corev1.Pod]], None]) -> None:
    """Where they cannot be listed nothing is handed over, and the caller asks again in its time."""
    try:
        found(list_all(api, PODS, namespace=namespace, field_selector=SUCCEEDED_PODS, limit=PAGE))
    except ApiError as error:
        log.info("pods that have Succeeded could not be listed namespace=%s error=%s", namespace, error)
