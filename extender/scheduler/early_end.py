"""Whether this extender runs in place of one that did not last, or was killed: then kube-scheduler should leave the Lease to another.

One that ends with each call (a memory limit that is too low, a fault below Python), or hangs with each, is well after each restart: a
probe passes in between, and kube-scheduler's patience begins anew. One that hung has cost half a minute by then, and the next call
would cost as much again. How the container ended before is in the pod's status, where the kubelet writes it. kube-scheduler has no
counterpart: where it ends it loses the Lease.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

from extender.api.metav1 import Int32, Object, ObjectMeta, Time
from extender.client.errors import ApiError, ForbiddenError, NotFoundError
from extender.client.interface import API, ResourceType
from extender.config.types import NamespacedName

log = logging.getLogger(__name__)

CONTAINER = "extender"  # as manifests/sidecar names it
SOON_SECONDS = 60.0  # after its start: one that has lived for longer has done its work meanwhile
UNKNOWN_SECONDS = (
    10.0  # for which it counts as such a one where the API server has not said yet; a probe may take one failure more
)
KILLED = 137  # the exit code where the kernel had no memory left, or the kubelet no patience with one that hung
REASON = 100  # characters of it


class Terminated(Object, frozen=True, gc=False):
    started_at: Time | None = None
    finished_at: Time | None = None
    reason: str = ""
    exit_code: Int32 = 0


class ContainerState(Object, frozen=True, gc=False):
    terminated: Terminated | None = None


class ContainerEnds(Object, frozen=True, gc=False):
    name: str = ""
    last_state: ContainerState = ContainerState()


class OwnStatus(Object, frozen=True, gc=False):
    container_statuses: tuple[ContainerEnds, ...] = ()


class OwnPod(Object, frozen=True, gc=False):
    """What corev1.Pod, of which there are many, does not keep."""

    metadata: ObjectMeta
    status: OwnStatus = OwnStatus()


OWN_PODS = ResourceType("v1", "pods", "Pod", OwnPod)


class EarlyEnd:
    """Asks once, for our pod: that of our host name, in the Lease's namespace. Without a Lease, or such a pod, there is no trouble.

    run: has it done on another thread. clock: monotonic seconds.
    """

    def __init__(
        self,
        api: API,
        lease: NamespacedName | None,
        host_name: str,
        run: Callable[[Callable[[], None]], None],
        clock: Callable[[], float],
    ) -> None:
        self._api, self._run, self._clock = api, run, clock
        self._pod = NamespacedName(lease.namespace, host_name) if lease is not None else None
        self._began = clock()
        self._lock = threading.Lock()  # guards both below; the innermost
        self._asking = False
        self._found: _End | None = _End() if lease is None else None  # None while the API server has not said

    def tick(self) -> None:
        """About once a second; returns at once."""
        with self._lock:
            if self._found is not None or self._asking:
                return
            self._asking = True
        self._run(self._ask)

    @property
    def reason(self) -> str:
        """Why another extender should lead, as far as it is known; empty from a minute after our own start on. Of one that did not
        last alone: where there is no other, one that was killed once goes on at once."""
        found = self._newly()
        return found.said if found is not None and found.early else ""

    def trouble(self) -> str:
        """For a probe of kube-scheduler: before it is known one that passes would begin its patience anew. Meanwhile calls are answered."""
        found = self._newly()
        if found is None and self._clock() - self._began < UNKNOWN_SECONDS:
            return "how the extender ended before is not known yet"
        return found.said if found is not None else ""

    def _newly(self) -> _End | None:
        with self._lock:
            return self._found if self._clock() - self._began < SOON_SECONDS else _End()

    def _ask(self) -> None:
        found: _End | None = None
        try:
            found = self._last_end()
            if found.said:
                log.warning("started in place of an extender that did not last reason=%r", found.said)
        except ApiError as error:
            log.info("own pod could not be read error=%s", error)
        finally:
            with self._lock:
                self._found, self._asking = found, False

    def _last_end(self) -> _End:
        """What the status says of the container that was here before us. Raises ApiError."""
        if self._pod is None:
            return _End()
        try:
            pod = self._api.get(OWN_PODS, self._pod.name, self._pod.namespace)
        except (NotFoundError, ForbiddenError):  # no pod runs us, or not under this name
            return _End()
        for container in pod.status.container_statuses:
            if container.name == CONTAINER and container.last_state.terminated is not None:
                return _end(container.last_state.terminated)
        return _End()


@dataclass(frozen=True, slots=True)
class _End:
    """said: empty where it is no reason for anything. early: it did not last."""

    said: str = ""
    early: bool = False


def _end(ended: Terminated) -> _End:
    """Times are in whole seconds, both of the node's clock."""
    how = f"{ended.reason[:REASON] or 'no reason'}, exit code {ended.exit_code}"
    lived = math.inf
    if ended.started_at is not None and ended.finished_at is not None:
        lived = (ended.finished_at - ended.started_at).total_seconds()
    if 0 <= lived < SOON_SECONDS:
        return _End(f"the extender before this one ended {lived:.0f}s after its start: {how}", early=True)
    return _End(f"the extender before this one was killed: {how}") if ended.exit_code == KILLED else _End()
