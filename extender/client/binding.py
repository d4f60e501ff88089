"""The Binding POST, and what is known after it: bound, or provably not.

DefaultBinder calls it on the thread of the bind call.
kube-scheduler: pkg/scheduler/framework/plugins/defaultbinder/default_binder.go
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from extender import metrics
from extender.api import corev1
from extender.api.metav1 import ObjectMeta
from extender.client.errors import ApiError, ConflictError, NotFoundError, is_transient
from extender.client.interface import API, PODS
from extender.client.time_limit import within
from extender.retry import Retry

RETRY_SECONDS = 5.0  # how long a binding is pursued, its calls included; the commit budget leaves room for it
READ_SECONDS = 1.0  # of what is left, kept for the read that tells what came of a binding whose answer did not come
RETRY = Retry(0.05, 1.0)
NO_TIME = "no time was left to bind the pod before kube-scheduler gives up on the call"


@dataclass(frozen=True, slots=True)
class BindOutcome:
    """reason: why not, in the API server's words."""

    bound: bool
    reason: str = ""


def bind_pod(
    api: API,
    pod: corev1.Pod,
    node_name: str,
    *,
    annotations: Mapping[str, str] | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    retry_seconds: float = RETRY_SECONDS,
) -> BindOutcome:
    """Binds, retrying on the same node while that can help. A 409 for the same UID and node is success.

    annotations: what the pod is to have besides. retry_seconds: for all of it; each call gets what is left. A failure is only
    reported where a read has shown the pod unbound, or where nothing could be learnt in time.
    """
    if retry_seconds <= 0:
        return BindOutcome(False, NO_TIME)
    binding = corev1.Binding(
        metadata=ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid, annotations=dict(annotations or {})),
        target=corev1.ObjectReference(kind="Node", name=node_name),
    )
    deadline = clock() + retry_seconds
    failures = 0
    while True:
        try:
            left = deadline - clock()
            with within(left - min(READ_SECONDS, left / 3)):
                api.bind(binding)
            return BindOutcome(True)
        except ApiError as error:
            if isinstance(error, ConflictError):
                metrics.bind_conflicts.inc()
            elif not is_transient(error):
                return BindOutcome(False, error.message)
            with within(deadline - clock()):
                settled = _look(api, pod, node_name, error)
            if settled is not None:
                return settled
            failures += 1
            wait = max(RETRY.seconds(failures), error.retry_after or 0.0)
            if clock() + wait >= deadline:
                return BindOutcome(False, error.message)
            sleep(wait)


def _look(api: API, pod: corev1.Pod, node_name: str, error: ApiError) -> BindOutcome | None:
    """What a read shows; None where trying again is right: nothing could be read, or the pod is unbound and that is no
    conflict, which it would stay."""
    try:
        outcome = _outcome(api.get(PODS, pod.name, pod.namespace), pod, node_name)
    except NotFoundError as gone:
        return BindOutcome(False, gone.message)
    except ApiError:
        return None
    if outcome is None and isinstance(error, ConflictError):
        return BindOutcome(False, error.message)
    return outcome


def _outcome(seen: corev1.Pod, pod: corev1.Pod, node_name: str) -> BindOutcome | None:
    if seen.uid != pod.uid:
        return BindOutcome(False, f'pod "{pod.key}" has another UID now: {seen.uid}')
    if seen.node_name == node_name:
        return BindOutcome(True)
    if seen.node_name:
        return BindOutcome(False, f'pod {pod.name} is already assigned to node "{seen.node_name}"')
    return None
