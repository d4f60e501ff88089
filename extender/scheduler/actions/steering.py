"""Moves pods that wait, by patches: nominations on the status of all, and after these the removal of our scheduling gate.

A nomination is tried first and alone, counts against pods of equal or lower priority, and its patch wakes a parked pod in
some 10 ms; the condition GangReady tells the user. The creation of a sibling wakes no pod, hence all this. A gated pod
enters kube-scheduler's queue when its gate goes; nominated before, it is asked about on its own node alone. Before 1.33
a patch of the status wakes no pod: there an annotation does (wakeBy).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from cachetools import LRUCache, TTLCache

from extender import failpoints, metrics
from extender.api import corev1
from extender.api.schedulingv1alpha1 import GANG_GATE, GANG_READY
from extender.client.errors import ApiError, ForbiddenError, is_transient
from extender.client.interface import API
from extender.client.status_patch import annotate_pod, now_text, patch_pod_status, remove_scheduling_gate
from extender.crash import crashed
from extender.retry import Retry
from extender.scheduler.actions.wake_by import WakeBy
from extender.scheduler.background import WorkerPool

log = logging.getLogger(__name__)

PATCHES_AT_A_TIME = 16
AT_ONCE = Retry(0.05, 2.0, factor=4.0, steps=4)  # of a patch that may yet succeed, while its worker waits
LATER = Retry(2.0, 60.0)  # after these
REMEMBERED = 50_000
UNGATED = 10_000  # pods that the watch may still show with their gate
SAME_TIME_SECONDS = 2.0  # after which a condition's time has changed in any case
WAKE_ANNOTATION = "gang-extender.dev/wake"


@dataclass(frozen=True, slots=True)
class _Wish:
    """node_name: "" clears the nomination, None leaves it. condition None: the status stays as it is. for_a_moment: the
    nomination is taken back at once. failures: so far."""

    pod: corev1.Pod
    node_name: str | None
    condition: corev1.PodCondition | None
    ungate: bool = False
    wake: bool = True
    for_a_moment: bool = False
    failures: int = 0

    @property
    def only_wakes(self) -> bool:
        """Whether it says nothing of where the pod may go: it takes the place of no other wish."""
        return self.node_name is None and not self.ungate


class StatusSteering:
    """Fulfils coscheduling's Steering behind a kube-scheduler. Patches of one pod go out one after the other.

    A wish that was not fulfilled, and is not refused, is tried again until there is a newer one: a nomination that is not taken
    back keeps room from others for as long as the pod waits.
    """

    def __init__(
        self,
        api: API,
        leading: Callable[[], bool],
        *,
        gate: str = GANG_GATE,
        wake_by: WakeBy | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._clock = clock
        self._leading = leading
        self._gate = gate
        self._wake_by = wake_by or WakeBy(api, "status")
        self._pool = WorkerPool("steering", PATCHES_AT_A_TIME)
        self._stopping = threading.Event()
        self._serial = count(1)
        self._lock = threading.Lock()  # guards the five below; innermost but for the pool's own
        self._wishes: dict[str, _Wish] = {}  # UID -> what is to be done next
        self._unfulfilled: dict[str, tuple[_Wish, float]] = {}  # UID -> what has failed, and when it is tried again
        self._busy: dict[str, _Wish | None] = {}  # UID -> what a worker does for it now; None: it will get one
        # UID -> the last condition that was written
        self._said: TTLCache[str, corev1.PodCondition] = TTLCache(REMEMBERED, SAME_TIME_SECONDS, timer=clock)
        self._free_of_gates: LRUCache[str, bool] = LRUCache(UNGATED)  # UIDs, by the API server's own word

    def nominate(self, places: Sequence[tuple[corev1.Pod, str]]) -> None:
        for pod, node_name in places:
            condition = _ready("True", "GangPlanned", f"planned for node {node_name}")
            self._wish(_Wish(pod, node_name, condition, ungate=True))

    def clear_nominations(self, pods: Sequence[corev1.Pod]) -> None:
        for pod in pods:
            self._wish(_Wish(pod, "", _ready("False", "PlanDropped", "the gang has to be planned again")))

    def clear_foreign_nominations(self, pods: Sequence[corev1.Pod]) -> None:
        for pod in pods:
            self._wish(_Wish(pod, "", None, wake=False))

    def activate_by_nomination(self, places: Sequence[tuple[corev1.Pod, str]]) -> None:
        """kube-scheduler before 1.33 does not hear of it, but of the annotation, whichever plugin has refused the pod."""
        for pod, node_name in places:
            self._wish(_Wish(pod, node_name, None, for_a_moment=True), only_if_none=True)

    def activate(self, pods: Sequence[corev1.Pod]) -> None:
        for pod in pods:
            self._wish(_Wish(pod, None, _ready("Unknown", "GangChanged", "the gang has changed")), only_if_none=True)

    def ungate(self, pods: Sequence[corev1.Pod]) -> None:
        for pod in pods:
            self._wish(_ungating(pod))

    def background(self, work: Callable[[], None]) -> None:
        """Runs it on one of the threads that patch."""
        self._pool.submit(work)

    def tick(self) -> None:
        """About once a second: what has failed is tried again in its time."""
        if not self._unfulfilled:
            return
        leading, now = self._leading(), self._clock()
        with self._lock:
            if not leading:  # the new leader has wishes of its own
                self._unfulfilled.clear()
            due = [uid for uid, (_, at) in self._unfulfilled.items() if at <= now]
            idle = [uid for uid in due if self._takes(uid, self._unfulfilled.pop(uid)[0])]
        for uid in idle:
            self._submit(uid)

    def has_ungated(self, pod: corev1.Pod) -> bool:
        """The API server has shown the pod without any gate; gates never come back. The watch may say so later."""
        with self._lock:
            return pod.uid in self._free_of_gates

    def stop(self) -> None:
        self._stopping.set()
        self._pool.stop()

    def _wish(self, wish: _Wish, *, only_if_none: bool = False) -> None:
        """The newest wish for a pod takes the place of one that has not begun, or has failed.

        only_if_none: what has failed is tried at once instead.
        """
        if not self._leading():
            return
        uid = wish.pod.uid
        with self._lock:
            at_work = self._busy.get(uid)
            if only_if_none and uid in self._wishes:
                return
            if wish.for_a_moment and at_work is not None and not at_work.only_wakes:
                return  # its patch wakes the pod, and is not to be taken back
            unfulfilled, _ = self._unfulfilled.pop(uid, (wish, 0.0))
            idle = self._takes(uid, unfulfilled if only_if_none else wish)
        if idle:
            self._submit(uid)

    def _takes(self, uid: str, wish: _Wish) -> bool:
        """It is the pod's next. Returns whether no worker has the pod yet. Lock held."""
        self._wishes[uid] = wish
        idle = uid not in self._busy
        self._busy.setdefault(uid, None)
        return idle

    def _submit(self, uid: str) -> None:
        self._pool.submit(lambda: self._work(uid))

    def _work(self, uid: str) -> None:
        """The pod's next wish. What it leaves to do goes to the end of the line: gates go when all siblings are nominated.

        The API server patches what its watch cache shows. Right behind the nomination that is out of date every few times,
        and all the work is done twice.
        """
        leading = self._leading()
        with self._lock:
            wish = self._busy[uid] = self._wishes.pop(uid)
            if not leading:  # it was wished for while we led, and the new leader has wishes of its own
                del self._busy[uid]
                return
        rest = None
        try:
            rest = self._fulfil(wish)
        except ApiError as error:
            metrics.steering_failures.inc()
            log.info("pod not steered pod=%s node=%s error=%s", wish.pod.key, wish.node_name, error)
            if is_transient(error):
                self._later(wish)
        except Exception:
            metrics.steering_failures.inc()
            crashed("steering")  # and the pod's next wish is heard all the same
            self._later(wish)
        with self._lock:
            if rest is not None and self._leading() and not self._has_newer(uid):
                self._wishes[uid] = rest
            if uid not in self._wishes:
                del self._busy[uid]
                return
        self._submit(uid)

    def _has_newer(self, uid: str) -> bool:
        """Whether what a worker does for the pod is out of date. Lock held."""
        newer = self._wishes.get(uid)
        return newer is not None and not newer.only_wakes

    def _is_out_of_date(self, uid: str) -> bool:
        with self._lock:
            return self._has_newer(uid)

    def _later(self, wish: _Wish) -> None:
        """What has failed is tried again in its time; at once where the pod was to be woken meanwhile, and not where there is
        something newer."""
        seconds = LATER.seconds(wish.failures + 1)
        uid, again = wish.pod.uid, replace(wish, failures=wish.failures + 1)
        with self._lock:
            if uid not in self._wishes:
                self._unfulfilled[uid] = again, self._clock() + seconds
            elif not self._has_newer(uid):
                self._wishes[uid] = again

    def _fulfil(self, wish: _Wish) -> _Wish | None:
        """Nominate, then take the gate off: in this order kube-scheduler asks about the planned node alone.

        Returns what is left to do, unless something newer is wished for the pod by then.
        """
        pod = wish.pod
        gated = any(gate.name == self._gate for gate in pod.spec.scheduling_gates) and not self.has_ungated(pod)
        shown = pod
        if wish.condition is not None or wish.node_name is not None:
            condition = self._unlike_the_last(pod.uid, wish.condition)
            shown = self._patched(
                pod.uid,
                lambda: patch_pod_status(self._api, pod, condition=condition, nominated_node_name=wish.node_name),
            )
        if wish.for_a_moment:
            self._patched(pod.uid, lambda: patch_pod_status(self._api, pod, nominated_node_name=""))
        if gated and wish.ungate:
            if wish.condition is not None:
                failpoints.reached("nominated")
                return _ungating(pod)
            self._patched(pod.uid, lambda: remove_scheduling_gate(self._api, pod, self._gate), final=True)
        elif not gated and wish.wake and self._wake_by.annotation(shown):
            self._annotate(pod)
        return None

    def _unlike_the_last(self, uid: str, condition: corev1.PodCondition | None) -> corev1.PodCondition | None:
        """A patch that changes nothing is no event, and wakes no pod; and the time in a condition is in whole seconds."""
        if condition is None:
            return None
        with self._lock:
            if condition == self._said.get(uid):
                condition = _ready(condition.status, condition.reason, f"{condition.message}, once more")
            self._said[uid] = condition
        return condition

    def _annotate(self, pod: corev1.Pod) -> None:
        value = f"{now_text()}/{next(self._serial)}"  # never the same, over restarts either
        try:
            self._patched(pod.uid, lambda: annotate_pod(self._api, pod, WAKE_ANNOTATION, value))
        except ForbiddenError:
            if not self._wake_by.forbidden():
                raise

    def _patched(self, uid: str, patch: Callable[[], corev1.Pod], *, final: bool = False) -> corev1.Pod:
        """Again while that may help; raises the last error. final: no newer wish could take it back, so not where there is one."""
        for pause in (*AT_ONCE.pauses(), None):
            try:
                pod = patch()
            except ApiError as error:
                if (
                    pause is None
                    or not is_transient(error)
                    or not self._leading()
                    or (final and self._is_out_of_date(uid))
                ):
                    raise
                if self._stopping.wait(max(pause, error.retry_after or 0.0)):
                    raise
                continue
            if not pod.gated:  # a plain pod too: it costs less than to tell them apart
                with self._lock:
                    self._free_of_gates[uid] = True
            return pod
        raise AssertionError("the last try returns or raises")


def _ungating(pod: corev1.Pod) -> _Wish:
    return _Wish(pod, None, None, ungate=True, wake=False)


def _ready(status: str, reason: str, message: str) -> corev1.PodCondition:
    return corev1.PodCondition(type=GANG_READY, status=status, reason=reason, message=message)
