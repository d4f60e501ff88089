"""Whether a parked pod is woken by a patch of its status, or only by one of its annotations.

kube-scheduler before 1.33 does not look at the status of a pod that it has parked. `wakeBy` in the configuration says
which to use. `auto` goes by the API server's version, and by what kube-scheduler itself writes: one that is much older
than its API server (a second scheduler that was not upgraded) refuses pods without saying which generation it saw.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from extender.api import corev1
from extender.api.corev1.pod import POD_SCHEDULED, SCHEDULING_GATED
from extender.client.errors import ApiError
from extender.client.interface import API

log = logging.getLogger(__name__)

STATUS_WAKES_SINCE = (1, 33)
FORBIDDEN_RECHECK_SECONDS = 60.0


class WakeBy:
    """Thread-safe: what is learnt is the same in each thread. Asks the API server once, in the caller's thread."""

    def __init__(self, api: API, setting: str = "auto", clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._lock = threading.Lock()  # guards what follows
        self._annotation: bool | None = None if setting == "auto" else setting == "annotation"
        self._settled = setting != "auto"  # by the configuration, or an old API server: nothing is to be learnt
        self._not_before = 0.0  # on the clock: an annotation was forbidden

    def annotation(self, pod: corev1.Pod) -> bool:
        """pod: as the API server shows it now."""
        if self._annotation is None and not self._ask():
            return False
        with self._lock:
            if not self._settled:
                self._learn(pod)
            return bool(self._annotation) and self._clock() >= self._not_before

    def forbidden(self) -> bool:
        """We may not annotate. Whether that can be let pass: a kube-scheduler of 1.33, which looks older than it is, has
        heard of the status already.
        """
        with self._lock:
            if self._settled:
                return False
            self._not_before = self._clock() + FORBIDDEN_RECHECK_SECONDS
        log.warning(
            "pods may not be annotated: if kube-scheduler is older than 1.33, apply manifests/wake-by-annotation"
        )
        return True

    def _ask(self) -> bool:
        """Whether the API server has told its version."""
        try:
            version = self._api.version()
        except ApiError as error:
            log.info("version of the API server not known yet error=%s", error)
            return False
        with self._lock:
            if self._annotation is None:
                self._annotation = self._settled = (0, 0) < version < STATUS_WAKES_SINCE
                log.info("parked pods are woken by %s", "annotation" if self._annotation else "status")
        return True

    def _learn(self, pod: corev1.Pod) -> None:
        """Lock held."""
        older = refused_by_an_older_scheduler(pod)
        if older is None or older is self._annotation:
            return
        self._annotation = older
        log.info("parked pods are woken by %s, by the age of kube-scheduler", "annotation too" if older else "status")


def refused_by_an_older_scheduler(pod: corev1.Pod) -> bool | None:
    """By the generation in the condition that refuses it: kube-scheduler writes it from 1.34 on. None: it does not show.

    An older one leaves standing what the API server wrote there while the pod had gates.
    """
    for condition in pod.status.conditions:
        if condition.type != POD_SCHEDULED or condition.status != "False" or condition.reason == SCHEDULING_GATED:
            continue
        if pod.metadata.generation and condition.observed_generation in (0, pod.metadata.generation):
            return condition.observed_generation == 0
    return None
