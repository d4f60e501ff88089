"""One pod on its way to its node: assume, Reserve, Permit, wait, PreBind, Bind, PostBind, and how all of it is taken back.

The steps of every binding cycle, in the order in which they are called:

    begin ------------> run_pre_flights --> wait_on_permit --> bind ----------> run_post_bind
    (assume, Reserve,   (in-process only)                      (PreBind, Bind)
    Permit)  |                 |                  |               |
             +-----------------+------------------+---------------+----> take_back (Unreserve, forget)

Only wait_on_permit waits, and only while the pod's wait in Permit is not decided. The drivers differ in where that is:
the bind verb (bind_verb.py) waits on the thread of its call; the in-process scheduler (in_process/pod_cycles.py) gives
each cycle a thread of its own, and the simulation calls wait_on_permit once the wait is decided.
kube-scheduler: pkg/scheduler/schedule_one.go (prepareForBindingCycle, bindingCycle, unreserveAndForget)
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack

from extender import failpoints
from extender.api import corev1
from extender.backend.cache.cache import Cache, CacheError
from extender.framework.binding_deadline import binding_ends_by
from extender.framework.cycle_state import CycleState
from extender.framework.permit_rejection import note_rejection
from extender.framework.runtime.framework import Framework
from extender.framework.status import SUCCESS, Status
from extender.scheduler.gang_settings import hold_seconds_left

log = logging.getLogger(__name__)


class BindingCycle:
    """One cycle, of one thread at a time.

    pod: as it is assumed, with its node. status: how Reserve and Permit ended: SUCCESS, WAIT (the pod is in the waiting
    pods), or why they failed; then everything is taken back already.
    """

    __slots__ = ("_cache", "_forgotten", "_undo", "framework", "pod", "runs_pre_bind", "state", "status")

    def __init__(self, cache: Cache, framework: Framework, state: CycleState, pod: corev1.Pod) -> None:
        self._cache = cache
        self._undo = ExitStack()
        self._forgotten = False
        self.framework = framework
        self.state = state
        self.pod = pod
        self.status = SUCCESS
        self.runs_pre_bind = True

    @property
    def node_name(self) -> str:
        return self.pod.spec.node_name

    def run_pre_flights(self) -> Status:
        """Asks the PreBind plugins whether they have anything to do; SKIP if none has. bind then leaves out those that have not.

        A driver that does not call it has all PreBind plugins run.
        """
        status = self.framework.run_pre_bind_pre_flights(self.state, self.pod, self.node_name)
        self.runs_pre_bind = status.success
        return status

    def wait_on_permit(self) -> Status:
        """Blocks while the pod's wait is undecided; SUCCESS at once where Permit did not ask it to wait."""
        status = self.framework.wait_on_permit(self.pod)
        if not status.success:
            note_rejection(self.state, status.message)
        return status

    def bind(self, run_bind: Callable[[], Status] | None = None) -> Status:
        """PreBind and Bind. After SUCCESS nothing can be taken back any more.

        run_bind: in place of the framework's Bind plugins.
        """
        status = SUCCESS
        if self.runs_pre_bind:
            status = self.framework.run_pre_bind_plugins(self.state, self.pod, self.node_name)
        if status.success:
            status = self._run_bind_plugins() if run_bind is None else run_bind()
        if status.success:
            failpoints.reached("binding-written")
            self._undo.pop_all()
            self._cache.finish_binding(self.pod)
        return status

    def run_post_bind(self) -> None:
        self.framework.run_post_bind_plugins(self.state, self.pod, self.node_name)

    def take_back(self) -> bool:
        """Takes back what was done, the last first. Nothing for a pod that is bound, or the second time.

        Returns whether the cache has forgotten the pod: not if the watch has confirmed it meanwhile. Go: unreserveAndForget
        """
        self._undo.close()
        return self._forgotten

    def _run_bind_plugins(self) -> Status:
        failpoints.reached("before-binding")
        return self.framework.run_bind_plugins(self.state, self.pod, self.node_name)

    def _forget(self) -> None:
        try:
            self._cache.forget_pod(self.pod)
            self._forgotten = True
        except CacheError as failed:
            log.info("assumed pod was not forgotten pod=%s reason=%s", self.pod.key, failed)

    # What begins it: called by BindingCycles

    def reserve_and_permit(self, permitting: threading.Lock) -> None:
        with self._undo:
            self._undo.callback(self._forget)
            self.framework.nominator.delete_nominated_pod_if_exists(self.pod)
            self._undo.callback(self.framework.run_reserve_plugins_unreserve, self.state, self.pod, self.node_name)
            self.status = self.framework.run_reserve_plugins_reserve(self.state, self.pod, self.node_name)
            if self.status.success:
                with permitting:
                    self.status = self._permit()
            if self.status.success or self.status.wait:
                self._undo = self._undo.pop_all()

    def _permit(self) -> Status:
        status, timeouts = self.framework.run_permit_plugins(self.state, self.pod, self.node_name)
        if status.wait:
            left = hold_seconds_left(binding_ends_by(self.state), self.framework.clock())
            at_most = {plugin: min(left, wait) for plugin, wait in timeouts.items()}
            self._undo.callback(self.framework.add_waiting_pod(self.pod, self.node_name, at_most))
        return status


class BindingCycles:
    """Begins the binding cycles of one scheduler, of all its profiles."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        # Permit and the adding of the waiting pod are one step, as in kube-scheduler's serial scheduling cycle: the member
        # that completes a gang must find the waiting pod of every other. Taken before the plugins' own locks.
        self._permitting = threading.Lock()

    def begin(self, framework: Framework, state: CycleState, pod: corev1.Pod, node_name: str) -> BindingCycle:
        """Assume, Reserve, Permit: does not wait. A binding deadline in the state bounds the wait in Permit.

        Raises CacheError for a pod that is assumed or bound already. Go: prepareForBindingCycle
        """
        cycle = BindingCycle(self._cache, framework, state, self._cache.assume_pod(pod, node_name))
        cycle.reserve_and_permit(self._permitting)
        return cycle
