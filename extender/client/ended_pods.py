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
LIST_SECONDS = 5.0  # between two lists of one namespace, where they are asked for all the time
LISTS_AT_ONCE = 3  # that may come sooner, where none came for long


class ListPace:
    """How often one asker lists each namespace: a list is of all that have ended there, and each of its gangs may ask for one at any
    time. times: seconds of one clock. The caller keeps it to one thread at a time."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}  # namespaces -> up to when the lists so far count, each for LIST_SECONDS

    def permits(self, namespace: str, now: float) -> bool:
        return self._until.get(namespace, now) <= now + (LISTS_AT_ONCE - 1) * LIST_SECONDS

    def note(self, namespace: str, now: float) -> None:
        """One list, now."""
        self._until[namespace] = max(now, self._until.get(namespace, now)) + LIST_SECONDS

    def forget(self, now: float) -> None:
        """Namespaces that none was asked of for long: it costs as much as there are namespaces."""
        self._until = {namespace: until for namespace, until in self._until.items() if until > now}


def hand_over_ended_pods(
    selector: str, api: API, namespace: str, found: Callable[[Iterable[corev1.Pod]], None]
) -> None:
    """selector: one of those above. Where they cannot be listed nothing is handed over, and the caller asks again in its time."""
    try:
        found(list_all(api, PODS, namespace=namespace, field_selector=selector, limit=PAGE))
    except ApiError as error:
        log.info("pods that have ended could not be listed namespace=%s error=%s", namespace, error)
