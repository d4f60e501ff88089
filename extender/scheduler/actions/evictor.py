"""Evicts the victims of whole gangs: all tried on the server first, then marked, then told, several at a time.

Each gets the condition DisruptionTarget and is deleted with its UID as precondition, as kube-scheduler does it; by
configuration it is evicted through the Eviction API, where budgets may forbid what the dry run has just allowed. The rest of a gang
that kube-scheduler has begun to evict is deleted all the same, as far as we may delete.
kube-scheduler: pkg/scheduler/framework/preemption/executor.go (PreemptPod)
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from extender import failpoints
from extender.api import corev1, policyv1
from extender.client.errors import ApiError, ConflictError, NotFoundError, TooManyRequestsError, is_transient
from extender.client.interface import API, PODS, EventRecorder, Preconditions, pod_reference
from extender.client.status_patch import patch_pod_status
from extender.crash import crashed
from extender.framework.pod_info import PodInfo
from extender.framework.preemption.disruption_budgets import budgets_of, split_by_violation
from extender.framework.preemption.executor import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER
from extender.plugins.coscheduling.dependencies import Done, Eviction
from extender.retry import Retry
from extender.scheduler.background import WorkerPool

log = logging.getLogger(__name__)

T = TypeVar("T")

AT_A_TIME = 8  # calls for the victims of one preemption
ASK_AGAIN_SECONDS = 60.0  # how often permissions are asked for anew
ASK_SOON_SECONDS = 5.0  # while there are none
RETRY = Retry(0.1, 2.0, factor=5.0, steps=3)  # of a call that may yet succeed
DELETING = (("delete", ""), ("patch", "status"))  # what it takes to evict as kube-scheduler does
AGAIN = Retry(2.0, 8.0, steps=3)  # until victims that could not be told with the others are told once more


class ApiEvictor:
    """Fulfils coscheduling's Evictor. One eviction of many victims at a time, on a thread of its own."""

    def __init__(
        self,
        api: API,
        recorder: EventRecorder,
        leading: Callable[[], bool],
        clock: Callable[[], float],
        *,
        by_eviction_api: bool = False,
        pdbs: Callable[[], Sequence[policyv1.PodDisruptionBudget]] = tuple,
        run: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        """pdbs: all that there are. run: where it all happens; by default on a thread of its own."""
        self._api = api
        self._recorder = recorder
        self._leading = leading
        self._clock = clock
        self._by_eviction_api = by_eviction_api
        self._pdbs = pdbs
        self._pool = WorkerPool("evictor", 1)
        self._helpers = WorkerPool("evictions", AT_A_TIME - 1)
        self._run = run if run is not None else self._pool.submit
        self._stopping = threading.Event()
        self._lock = threading.Lock()  # guards the three below
        self._allowed = False
        self._may_delete = False
        self._ask_at = 0.0

    def allowed(self) -> bool:
        with self._lock:
            return self._allowed

    def allowed_despite_budgets(self) -> bool:
        with self._lock:
            return self._may_delete

    def tick(self) -> None:
        """Asks for our permissions when it is time; `told` of a change is not needed: gangs are looked at again anyway."""
        with self._lock:
            if self._clock() < self._ask_at:
                return
            self._ask_at = self._clock() + (ASK_AGAIN_SECONDS if self._allowed else ASK_SOON_SECONDS)
        self._run(self.ask)

    def ask(self) -> None:
        """At once."""
        try:
            may_delete = all(self._api.may(verb, PODS, subresource) for verb, subresource in DELETING)
            allowed = self._api.may("create", PODS, "eviction") if self._by_eviction_api else may_delete
        except ApiError as error:
            log.info("permissions could not be asked for error=%s", error)
            with self._lock:
                self._ask_at = self._clock() + 1.0
            return
        with self._lock:
            changed, self._allowed, self._may_delete = allowed != self._allowed, allowed, may_delete
        if changed:
            log.info("preemption for whole gangs is %s", "on" if allowed else "off: no permission to evict pods")

    def evict(self, eviction: Eviction, done: Done) -> None:
        self._run(lambda: done(self._attempt(eviction)))

    def stop(self) -> None:
        """Returns when an eviction that has begun is at its end; others do not begin any more."""
        self._stopping.set()
        self._pool.stop()
        self._helpers.stop()

    def _attempt(self, eviction: Eviction) -> str:
        """Always reports the result, even after an unexpected error."""
        try:
            return self._evict(eviction)
        except Exception as error:
            crashed("evictor")
            return f"{type(error).__name__}: {error}"

    def _evict(self, eviction: Eviction) -> str:
        """Why no victim was told to go; empty if they were.

        All are marked before the first goes. On SIGTERM the rest is told without pauses, and the worker waits for that as long as
        for commits (drain_seconds); it is told where the Lease has gone meanwhile, too. What is left undone by then, or by a
        crash, the next leader finds by the marks and finishes: plugins/coscheduling/preemption/rest_of_gangs.py.
        """
        if not self._leading():
            return "not the leader"
        victims = self._those_that_are_there(eviction)
        if isinstance(victims, str):
            return victims
        if not eviction.wanted():
            return f"{eviction.on_behalf_of} needs the room no longer"
        if not self._evicts(eviction):  # the Eviction API marks them itself
            self._for_each(eviction, victims, lambda victim: self._mark(victim, eviction))
        for pause in (0.0, *AGAIN.pauses()):
            if not victims or not self._leading():
                break
            self._stopping.wait(pause)
            failed = self._for_each(eviction, victims, lambda victim: self._failed(victim, eviction))
            victims = [victim for victim, again in zip(victims, failed, strict=True) if again]
        return ""

    def _failed(self, victim: corev1.Pod, eviction: Eviction) -> bool:
        """The others are told all the same: without them those that were have gone for nothing."""
        try:
            failure = self._tell(victim, eviction)
        except Exception as error:
            crashed("evictor")
            failure = f"{type(error).__name__}: {error}"
        if failure:
            log.error("victim was not evicted victim=%s error=%s", victim.key, failure)
        failpoints.reached("victim-told")
        return bool(failure)

    def _evicts(self, eviction: Eviction) -> bool:
        """Whether through the Eviction API."""
        return eviction.within_budgets or (
            self._by_eviction_api and not (eviction.despite_budgets and self.allowed_despite_budgets())
        )

    def _those_that_are_there(self, eviction: Eviction) -> list[corev1.Pod] | str:
        """A dry run of all: one that is gone by now needs no eviction; where one may not go none does.

        The dry run counts each by itself. Where budgets count, they are enough for all of them together, or none goes; a pod that is not
        ready uses none up where the dry run lets it go.
        """
        there = []
        tried = self._for_each(eviction, eviction.victims, lambda victim: self._tried(victim, eviction))
        for victim, error in zip(eviction.victims, tried, strict=True):
            match error:
                case None:
                    there.append(victim)
                case NotFoundError() | ConflictError():
                    continue
                case TooManyRequestsError():
                    return f'pod "{victim.key}" may not be evicted: {error}'
                case _:
                    return f'pod "{victim.key}" cannot be deleted: {error}'
        if self._evicts(eviction) and not eviction.despite_budgets:  # else what is left is a fraction already
            beyond, _ = split_by_violation([PodInfo(victim) for victim in there if _is_ready(victim)], self._pdbs())
            if beyond:
                return f'pod "{beyond[0].pod.key}" may not be evicted with the others: a disruption budget does not allow all of them'
        return there

    def _tried(self, victim: corev1.Pod, eviction: Eviction) -> ApiError | None:
        """Of a dry run."""
        try:
            self._removed(victim, eviction, dry_run=True)
        except ApiError as error:
            return error
        return None

    def _for_each(self, eviction: Eviction, victims: Sequence[corev1.Pod], act: Callable[[corev1.Pod], T]) -> list[T]:
        """Several at a time, as kube-scheduler does it, begun in their order: what is left of a gang meanwhile is a fraction. One after the
        other, and after these, where a budget counts them: the API server has it changed by one eviction at a time, and lets the others
        wait for longer.
        """
        pdbs = self._pdbs() if self._evicts(eviction) else ()
        together = [victim for victim in victims if not budgets_of(victim, pdbs)]
        uids = [victim.uid for victim in together]
        found = dict(zip(uids, self._helpers.share_out(together, act), strict=True))
        return [found[victim.uid] if victim.uid in found else act(victim) for victim in victims]

    def _tell(self, victim: corev1.Pod, eviction: Eviction) -> str:
        try:
            self._removed(victim, eviction)
        except (NotFoundError, ConflictError):
            return ""  # gone, or another pod of that name
        except ApiError as error:
            return str(error)
        where = f" on node {victim.node_name}" if victim.node_name else ""  # it may go before its binding is written
        note = eviction.note or f"Preempted by {eviction.on_behalf_of}{where}"
        self._recorder.event(pod_reference(victim), "Normal", eviction.event, "Preempting", note, eviction.preemptor)
        return ""

    def _mark(self, victim: corev1.Pod, eviction: Eviction) -> None:
        """As kube-scheduler does. One that cannot be marked goes all the same."""
        message = f"{eviction.scheduler_name}: preempting to accommodate a higher priority pod"
        condition = corev1.PodCondition(
            type=DISRUPTION_TARGET, status="True", reason=PREEMPTION_BY_SCHEDULER, message=message
        )
        try:
            self._retried(lambda: patch_pod_status(self._api, victim, condition=condition))
        except ApiError as error:
            log.info("victim was not marked victim=%s error=%s", victim.key, error)

    def _removed(self, victim: corev1.Pod, eviction: Eviction, *, dry_run: bool = False) -> None:
        if self._evicts(eviction):
            self._retried(lambda: self._api.evict(victim, dry_run=dry_run), of_budgets=True)
            return
        held = Preconditions(uid=victim.uid)
        name, namespace = victim.name, victim.namespace
        self._retried(lambda: self._api.delete(PODS, name, namespace, preconditions=held, dry_run=dry_run))

    def _retried(self, call: Callable[[], object], *, of_budgets: bool = False) -> None:
        """What the server refuses is refused; what did not come through is tried again. 429 is either: of a budget, where the
        call is one that budgets may forbid, or too much at once."""
        for pause in (*RETRY.pauses(), None):
            try:
                call()
                break
            except ApiError as error:
                of_a_budget = of_budgets and isinstance(error, TooManyRequestsError)
                if pause is None or of_a_budget or not is_transient(error):
                    raise
                self._stopping.wait(pause)


def _is_ready(pod: corev1.Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)
