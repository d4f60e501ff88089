"""Makes the room that a candidate promises: evicts the victims, clears nominations that no longer hold.

| victim                       | how it goes                                                     |
| being deleted already        | nothing to do                                                   |
| waits on Permit              | preempted in memory: it is tried again after its back-off        |
| in PreBind, not bound yet    | its binding is cancelled in memory                              |
| anything else                | condition DisruptionTarget, then deleted through the API        |
kube-scheduler: pkg/scheduler/framework/preemption/executor.go
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from extender import metrics
from extender.api import corev1
from extender.client.errors import ApiError, NotFoundError
from extender.client.interface import PODS, Preconditions, pod_reference
from extender.client.status_patch import patch_pod_status
from extender.crash import crashed
from extender.framework.handle import Handle
from extender.framework.preemption.candidate import Candidate
from extender.framework.status import SUCCESS, Status, error

log = logging.getLogger(__name__)

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"


class Executor:
    """`_lock` guards _preempting and _last_victims; no call of the API is made under it."""

    def __init__(self, handle: Handle, *, asynchronous: bool = True) -> None:
        """asynchronous: kube-scheduler's SchedulerAsyncPreemption, on by default; the preemptor is gated meanwhile."""
        self._handle = handle
        self._asynchronous = asynchronous
        self._lock = threading.Lock()
        self._preempting: set[str] = set()
        self._last_victims: dict[str, corev1.Pod] = {}

    def actuate(self, candidate: Candidate, preemptor: corev1.Pod, plugin_name: str) -> Status:
        """At once, or begun: then SUCCESS says no more than that. Go: actuatePodPreemption."""
        if self._asynchronous:
            self._prepare_in_background(candidate, preemptor, plugin_name)
            return SUCCESS
        metrics.preemption_victims.observe(len(candidate.victims.pods))
        try:
            for victim in _to_delete(candidate):
                self.preempt_pod(candidate, preemptor, victim, plugin_name)
        except ApiError as failure:
            return error(str(failure))
        self._clear_nominations(candidate, preemptor)
        return SUCCESS

    def is_running_preemption(self, uid: str) -> bool:
        """Whether victims of this preemptor are still to be told. Once the last is going, its event may wake the preemptor."""
        with self._lock:
            if uid not in self._preempting:
                return False
            last = self._last_victims.get(uid)
        if last is None:
            return True
        seen = self._handle.lister(corev1.Pod).get(last.key)
        return isinstance(seen, corev1.Pod) and not seen.deleting

    def _prepare_in_background(self, candidate: Candidate, preemptor: corev1.Pod, plugin_name: str) -> None:
        victims = _to_delete(candidate)
        if not victims:
            return
        metrics.preemption_victims.observe(len(candidate.victims.pods))
        with self._lock:
            self._preempting.add(preemptor.uid)
        self._handle.spawn(lambda: self._prepare(candidate, victims, preemptor, plugin_name))

    def _prepare(
        self, candidate: Candidate, victims: Sequence[corev1.Pod], preemptor: corev1.Pod, plugin_name: str
    ) -> None:
        """The last victim goes last, so that nothing wakes the preemptor while others are not told yet."""
        log.info("start the preemption preemptor=%s node=%s victims=%d", preemptor.key, candidate.name, len(victims))
        complete = False
        try:
            cleared = self._clear_nominations(candidate, preemptor)
            for victim in victims[:-1]:
                self.preempt_pod(candidate, preemptor, victim, plugin_name)
            with self._lock:
                self._last_victims[preemptor.uid] = victims[-1]
            self.preempt_pod(candidate, preemptor, victims[-1], plugin_name)
            complete = cleared
        except ApiError as failure:
            log.error("preemption failed preemptor=%s error=%s", preemptor.key, failure)
        except Exception:
            crashed("preempt")
        finally:
            with self._lock:
                self._preempting.discard(preemptor.uid)
                self._last_victims.pop(preemptor.uid, None)
            if not complete:  # nothing else would bring it back: its victims' deletion is what it waits for
                self._handle.activate([preemptor])

    def preempt_pod(self, candidate: Candidate, preemptor: corev1.Pod, victim: corev1.Pod, plugin_name: str) -> None:
        """One victim. Raises ApiError; a victim that is gone already is no error. Go: PreemptPod."""
        note = f"Preempted by pod {preemptor.uid} on node {candidate.name}"
        if self._preempted_in_memory(victim, plugin_name):
            note += " (in kube-scheduler memory)."
        else:
            try:
                self._evict(preemptor, victim)
            except NotFoundError:
                log.info("victim is already deleted preemptor=%s victim=%s", preemptor.key, victim.key)
                return
        self._handle.events.event(
            pod_reference(victim), "Normal", "Preempted", "Preempting", note, pod_reference(preemptor)
        )

    def _preempted_in_memory(self, victim: corev1.Pod, plugin_name: str) -> bool:
        waiting = self._handle.get_waiting_pod(victim.uid)
        if waiting is not None:
            return waiting.preempt(plugin_name, "preempted")
        in_pre_bind = self._handle.get_pod_in_pre_bind(victim.uid)
        return in_pre_bind is not None and in_pre_bind.cancel_pod(f"preempted by {plugin_name}")

    def _evict(self, preemptor: corev1.Pod, victim: corev1.Pod) -> None:
        condition = corev1.PodCondition(
            type=DISRUPTION_TARGET,
            status="True",
            reason=PREEMPTION_BY_SCHEDULER,
            message=f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod",
        )
        if not _has(victim, condition):
            patch_pod_status(self._handle.api, victim, condition=condition)
        self._handle.api.delete(PODS, victim.name, victim.namespace, preconditions=Preconditions(uid=victim.uid))

    def _clear_nominations(self, candidate: Candidate, preemptor: corev1.Pod) -> bool:
        """Pods of lower priority that count on the node look elsewhere, and sooner. False if one could not be told."""
        complete = True
        for pod in self._handle.nominator.nominated_pods_for_node(candidate.name):
            if pod.priority >= preemptor.priority or not pod.status.nominated_node_name:
                continue
            try:
                patch_pod_status(self._handle.api, pod, nominated_node_name="")
            except NotFoundError:
                continue
            except ApiError as failure:
                log.error("cannot clear nominatedNodeName pod=%s error=%s", pod.key, failure)
                complete = False
        return complete


def _to_delete(candidate: Candidate) -> list[corev1.Pod]:
    return [victim for victim in candidate.victims.pods if not victim.deleting]


def _has(pod: corev1.Pod, condition: corev1.PodCondition) -> bool:
    wanted = (condition.type, condition.status, condition.reason, condition.message)
    return any((known.type, known.status, known.reason, known.message) == wanted for known in pod.status.conditions)
