"""The pods of a namespace that have Succeeded, which no informer keeps.

Both factories hand it to Coscheduling. kube-scheduler has no counterpart: its informer leaves such pods out, and nothing asks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

from extender.api import corev1
from extender.client.errors import ApiError
from extender.client.interface import API, PODS

log = logging.getLogger(__name__)

SUCCEEDED_PODS = "status.phase=Succeeded"
PAGE = 500


def succeeded_pods(api: API, namespace: str) -> Iterator[corev1.Pod]:
    """Page by page. Raises ApiError."""
    token = ""
    while True:
        page = api.list_page(PODS, namespace=namespace, field_selector=SUCCEEDED_PODS, limit=PAGE, continue_token=token)
        yield from page.items
        token = page.next
        if not token:
            return


def hand_over_succeeded_pods(api: API, namespace: str, found: Callable[[Iterable[corev1.Pod]], None]) -> None:
    """Where they cannot be listed nothing is handed over, and the caller asks again in its time."""
    try:
        found(succeeded_pods(api, namespace))
    except ApiError as error:
        log.info("pods that have Succeeded could not be listed namespace=%s error=%s", namespace, error)
