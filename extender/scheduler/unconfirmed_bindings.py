"""Pods that were bound by our word and that no watch shows: the API server is asked whether they are there.

A pod that the watch has not shown yet is bound as the API server has it (Scheduler._pod). Where it is deleted before the watch
shows it, as in the gap of a relist, no event ever tells of its end, and the cache would keep its room until a restart. It is not let
go by time alone: a watch may be behind, and the pod on its node. The background's tick calls.
kube-scheduler asks about no pod that its own informer has not shown, and needs none of this
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.client.errors import ApiError, NotFoundError
from extender.client.interface import API, PODS
from extender.crash import guarded

log = logging.getLogger(__name__)

ASKED_AFTER_SECONDS = 30.0  # since the binding; and once more after each answer
AT_ONCE = 20


class UnconfirmedBindings:
    """shown: the pod of that key as the watch has it; None where it has shown none. background: runs a job on another thread.

    gone: told of each pod that is not there any more, as by a watch.
    """

    def __init__(
        self,
        cache: Cache,
        api: API,
        shown: Callable[[str], corev1.Pod | None],
        background: Callable[[Callable[[], None]], None],
        gone: Callable[[corev1.Pod], None],
        clock: Callable[[], float],
    ) -> None:
        self._cache = cache
        self._api = api
        self._shown = shown
        self._background = background
        self._gone = gone
        self._clock = clock
        self._again: dict[str, float] = {}  # UID -> when it is asked about once more; the tick's alone
        self._asking = threading.Lock()  # held while a job asks: it is let go by that job

    def tick(self) -> None:
        """About once a second."""
        now = self._clock()
        unconfirmed = {pod.uid: pod for pod in self._cache.bound_before(now - ASKED_AFTER_SECONDS)}
        self._again = {uid: at for uid, at in self._again.items() if uid in unconfirmed}
        due = [pod for uid, pod in unconfirmed.items() if self._again.get(uid, now) <= now and not self._is_shown(pod)]
        if due and self._asking.acquire(blocking=False):
            asked = due[:AT_ONCE]
            self._again |= {pod.uid: now + ASKED_AFTER_SECONDS for pod in asked}
            self._background(lambda: self._ask(asked))

    def _is_shown(self, pod: corev1.Pod) -> bool:
        """Then the watch tells of its end as well."""
        shown = self._shown(pod.key)
        return shown is not None and shown.uid == pod.uid

    def _ask(self, pods: Sequence[corev1.Pod]) -> None:
        try:
            for pod in pods:
                guarded("unconfirmed-binding", lambda pod=pod: self._ask_about(pod))  # type: ignore[misc]
        finally:
            self._asking.release()

    def _ask_about(self, pod: corev1.Pod) -> None:
        try:
            there = self._api.get(PODS, pod.name, pod.namespace).uid == pod.uid
        except NotFoundError:
            there = False
        except ApiError as error:
            log.info("bound pod not looked up pod=%s error=%s", pod.key, error)
            return
        if not there:
            log.info("bound pod is gone and was never shown pod=%s node=%s", pod.key, pod.node_name)
            self._gone(pod)
