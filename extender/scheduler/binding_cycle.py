"""One pod from its node to its binding: assume, Reserve, Permit, wait, PreBind, Bind, PostBind.

Runs on the thread of the bind call, or of the in-process loop. What fails halfway is taken back in reverse, and the
reason is the answer. kube-scheduler: pkg/scheduler/schedule_one.go (assume, runBindingCycle, handleBindingCycleError)
"""

from __future__ import annotations

import logging
import threading
from contextlib import ExitStack
from dataclasses import replace

from extender.api import corev1
from extender.backend.cache.cache import Cache, CacheError
from extender.framework.binding_deadline import end_binding_by
from extender.framework.cycle_state import CycleState
from extender.framework.runtime.framework import Framework
from extender.framework.runtime.metrics_recorder import sampled_state
from extender.framework.status import Status, error
from extender.plugins.coscheduling.plugin import REJECTION
from extender.scheduler.gang_settings import hold_seconds_left
from extender.scheduler.in_flight import BindCall

log = logging.getLogger(__name__)


class BindingCycle:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        # Permit and the adding of the waiting pod are one step, as in kube-scheduler's serial scheduling cycle: the member
        # that completes a gang must find the waiting pod of every other. Taken before the plugins' own locks.
        self._permitting = threading.Lock()

    def is_assumed(self, pod: corev1.Pod) -> bool:
        """Between two calls for a pod: it was bound, and the watch has not said so yet."""
        return self._cache.is_assumed_pod(pod)

    def run(self, framework: Framework, pod: corev1.Pod, node_name: str, call: BindCall) -> Status:
        """Blocks until the pod is bound or the binding has failed and everything is taken back."""
        state = sampled_state()
        end_binding_by(state, call.deadline)
        with ExitStack() as undo:
            try:
                assumed = self._cache.assume_pod(pod, node_name)
            except CacheError as failed:
                return error(str(failed))
            undo.callback(self._forget, assumed)
            framework.nominator.delete_nominated_pod_if_exists(assumed)
            status = self._reserve_and_permit(framework, state, assumed, node_name, call, undo)
            if status.success or status.wait:
                status = framework.wait_on_permit(assumed)
                if not status.success:
                    state.write(REJECTION, status.message)
                    return _while_waiting(pod, status)
            if status.success:
                status = framework.run_pre_bind_plugins(state, assumed, node_name)
            if status.success:
                status = framework.run_bind_plugins(state, assumed, node_name)
            if not status.success:
                return status
            undo.pop_all()
        self._cache.finish_binding(assumed)
        framework.run_post_bind_plugins(state, assumed, node_name)
        log.info("pod bound pod=%s node=%s", pod.key, node_name)
        return status

    def _reserve_and_permit(
        self,
        framework: Framework,
        state: CycleState,
        pod: corev1.Pod,
        node_name: str,
        call: BindCall,
        undo: ExitStack,
    ) -> Status:
        undo.callback(framework.run_reserve_plugins_unreserve, state, pod, node_name)
        status = framework.run_reserve_plugins_reserve(state, pod, node_name)
        if not status.success:
            return status
        with self._permitting:
            status, timeouts = framework.run_permit_plugins(state, pod, node_name)
            if status.wait:
                left = hold_seconds_left(call.deadline, framework.clock())
                framework.add_waiting_pod(pod, node_name, {name: min(left, wait) for name, wait in timeouts.items()})
        if status.wait:
            call.on_abort(lambda reason: _reject(framework, pod.uid, reason))
        return status

    def _forget(self, pod: corev1.Pod) -> None:
        try:
            self._cache.forget_pod(pod)
        except CacheError as failed:  # the watch has confirmed or removed it meanwhile
            log.info("assumed pod was not forgotten pod=%s reason=%s", pod.key, failed)


def _reject(framework: Framework, uid: str, reason: str) -> None:
    waiting = framework.get_waiting_pod(uid)
    if waiting is not None:
        waiting.reject("", reason)


def _while_waiting(pod: corev1.Pod, status: Status) -> Status:
    """The text that kube-scheduler's users know, kept from the releases in which it was the event's."""
    return replace(status, reasons=(f'pod "{pod.name}" rejected while waiting on permit: {status.message}',))
