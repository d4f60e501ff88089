"""Whether kube-scheduler says on pods that its calls do not come through, while none comes: then it should leave the Lease to another.

By the probes all is well: both processes live, and the Lease is renewed. But the path between the two is cut, and every pod is an error of
kube-scheduler's. Its words are Go's, of net/http. kube-scheduler has no counterpart: it writes the error on the pod, and tries again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from extender.api import corev1
from extender.api.corev1.pod import POD_SCHEDULED

SCHEDULER_ERROR = "SchedulerError"
CALL_FAILED = ('Post "', '/filter": ')  # how it begins, and what it has besides
SHOWN = 200


class Unreached:
    """leading: whether calls should come here. clock: monotonic seconds.

    At most one entry for each pod that waits with such an error; the next call that comes clears all.
    """

    def __init__(self, leading: Callable[[], bool], serves: Callable[[str], bool], clock: Callable[[], float]) -> None:
        self._leading, self._serves, self._clock = leading, serves, clock
        self._lock = threading.Lock()  # guards both below; the innermost
        self._errors: dict[str, str] = {}  # UID -> what kube-scheduler says
        self._since = clock()  # from when on there was such an error, no call, and we led

    def asked(self) -> None:
        """A filter call has come."""
        if self._errors:
            with self._lock:
                self._errors.clear()

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """As the watch has it."""
        pod = new or old
        error = _error_of(new) if new is not None and not new.node_name else ""
        if pod is None or (not error and pod.uid not in self._errors):
            return
        with self._lock:
            if not error or not self._serves(pod.spec.scheduler_name):
                self._errors.pop(pod.uid, None)
                return
            if not self._errors:
                self._since = self._clock()
            self._errors[pod.uid] = error

    def trouble(self, seconds: float) -> str:
        """Why the probe that fails after so many seconds does so; empty while it does not. To be asked regularly."""
        now = self._clock()
        with self._lock:
            if not self._errors or not self._leading():
                self._since = now
                return ""
            waited = now - self._since
            error = next(iter(self._errors.values()))
        return f"kube-scheduler has not reached the extender for {waited:.0f}s: {error}" if waited >= seconds else ""


def _error_of(pod: corev1.Pod) -> str:
    """What kube-scheduler says of a call that failed; empty where it says nothing of the kind."""
    begins, has = CALL_FAILED
    for each in pod.status.conditions:
        if each.type == POD_SCHEDULED and each.status == "False" and each.reason == SCHEDULER_ERROR:
            text = each.message
            return text[:SHOWN] if text.startswith(begins) and has in text else ""
    return ""
