"""The binding cycle behind the bind verb: it waits in Permit on the thread of the call, and its outcome is the answer.

kube-scheduler's own binding cycle ends with this call: pkg/scheduler/schedule_one.go (bindingCycle, extendersBinding)
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from extender.api import corev1
from extender.backend.cache.cache import Cache, CacheError
from extender.crash import guarded
from extender.framework.binding_deadline import end_binding_by
from extender.framework.runtime.framework import Framework
from extender.framework.runtime.metrics_recorder import sampled_state
from extender.framework.status import Status, error
from extender.scheduler.binding_cycle import BindingCycle, BindingCycles
from extender.scheduler.in_flight import BindCall

log = logging.getLogger(__name__)


class BindVerb:
    def __init__(self, cache: Cache, on_forgotten: Callable[[corev1.Pod], None] = lambda assumed: None) -> None:
        """on_forgotten: told each pod, with its node, whose binding has failed, once the cache counts it there no longer."""
        self._cache = cache
        self._on_forgotten = on_forgotten
        self._cycles = BindingCycles(cache)

    def is_assumed(self, pod: corev1.Pod) -> bool:
        """Between two calls for a pod: it was bound, and the watch has not said so yet."""
        return self._cache.is_assumed_pod(pod)

    def run(self, framework: Framework, pod: corev1.Pod, node_name: str, call: BindCall) -> Status:
        """Blocks until the pod is bound or the binding has failed and everything is taken back."""
        state = sampled_state()
        end_binding_by(state, call.deadline)
        try:
            cycle = self._cycles.begin(framework, state, pod, node_name)
        except CacheError as failed:
            return error(str(failed))
        try:
            status = _finish(cycle, call)
        finally:
            if cycle.take_back():
                guarded("forgotten", partial(self._on_forgotten, cycle.pod))
        if status.success:
            cycle.run_post_bind()
            log.info("pod bound pod=%s node=%s", pod.key, node_name)
        return status


def _finish(cycle: BindingCycle, call: BindCall) -> Status:
    """From Permit to Bind."""
    if cycle.status.wait:
        call.on_abort(lambda reason: _reject(cycle, reason))
    elif not cycle.status.success:
        return cycle.status
    status = cycle.wait_on_permit()
    if not status.success:
        return _while_waiting(cycle.pod, status)
    return cycle.bind()


def _reject(cycle: BindingCycle, reason: str) -> None:
    waiting = cycle.framework.get_waiting_pod(cycle.pod.uid)
    if waiting is not None:
        waiting.reject("", reason)


def _while_waiting(pod: corev1.Pod, status: Status) -> Status:
    """The text that kube-scheduler's users know, kept from the releases in which it was the event's."""
    return replace(status, reasons=(f'pod "{pod.name}" rejected while waiting on permit: {status.message}',))
