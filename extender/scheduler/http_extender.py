"""kube-scheduler's own side of the extender protocol: calls the verbs of a configured extender, and reads what it answers.

The in-process scheduleOne and the demo use it; its strictness and its leniency are kube-scheduler's.
kube-scheduler: pkg/scheduler/extender.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import urllib3

from extender.api import codec, corev1
from extender.api.extenderv1 import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
    MetaVictims,
    Wire,
)
from extender.config.types import ExtenderConfig


class ExtenderError(Exception):
    """The call failed, or its answer cannot be read. Go's text."""


class FilterAnswer(Wire, frozen=True, gc=False, rename="pascal"):
    """As lenient as Go's decoder: everything may be missing or null."""

    node_names: tuple[str, ...] | None = None
    failed_nodes: dict[str, str] | None = None
    failed_and_unresolvable_nodes: dict[str, str] | None = None
    error: str = ""


class HTTPExtender:
    """One entry of `extenders:`. Thread-safe: binds run side by side, each on a connection of its own."""

    def __init__(self, config: ExtenderConfig) -> None:
        self.config = config
        self._pool = urllib3.PoolManager(maxsize=64, block=False, retries=False, timeout=config.http_timeout_seconds)

    @property
    def name(self) -> str:
        return self.config.url_prefix

    @property
    def ignorable(self) -> bool:
        return self.config.ignorable

    @property
    def is_filter(self) -> bool:
        return bool(self.config.filter_verb)

    @property
    def is_prioritizer(self) -> bool:
        return bool(self.config.prioritize_verb)

    @property
    def is_binder(self) -> bool:
        return bool(self.config.bind_verb)

    @property
    def supports_preemption(self) -> bool:
        return bool(self.config.preempt_verb)

    def is_interested(self, pod: corev1.Pod) -> bool:
        """Every pod, or with managedResources those that request or limit one of them. Go: IsInterested."""
        managed = self.config.managed_resources
        if not managed:
            return True
        return any(
            name in managed
            for container in pod.all_containers()
            for resources in (container.resources.requests, container.resources.limits)
            for name in resources
        )

    def filter(self, pod: corev1.Pod, names: Sequence[str]) -> tuple[list[str], Mapping[str, str], Mapping[str, str]]:
        """(passed, failed, failed and unresolvable). Raises ExtenderError, also for a node that was not asked about."""
        answer = self._send(self.config.filter_verb, ExtenderArgs(pod=pod, node_names=tuple(names)), FilterAnswer)
        if answer.error:
            raise ExtenderError(answer.error)
        passed = list(answer.node_names or ())
        asked = set(names)
        for name in passed:
            if name not in asked:
                raise ExtenderError(
                    f'extender "{self.name}" claims a filtered node "{name}" which is not found in the input node list'
                )
        return passed, answer.failed_nodes or {}, answer.failed_and_unresolvable_nodes or {}

    def prioritize(self, pod: corev1.Pod, names: Sequence[str]) -> list[HostPriority]:
        args = ExtenderArgs(pod=pod, node_names=tuple(names))
        return list(self._send(self.config.prioritize_verb, args, tuple[HostPriority, ...]))

    def process_preemption(self, pod: corev1.Pod, victims: Mapping[str, MetaVictims]) -> Mapping[str, MetaVictims]:
        args = ExtenderPreemptionArgs(pod=pod, node_name_to_meta_victims=dict(victims))
        answer: ExtenderPreemptionResult = self._send(self.config.preempt_verb, args, ExtenderPreemptionResult)
        return answer.node_name_to_meta_victims

    def bind(self, pod: corev1.Pod, node_name: str) -> None:
        """Blocks as long as the extender holds the call. Raises ExtenderError with the answer's Error."""
        args = ExtenderBindingArgs(pod_name=pod.name, pod_namespace=pod.namespace, pod_uid=pod.uid, node=node_name)
        answer = self._send(self.config.bind_verb, args, ExtenderBindingResult)
        if answer.error:
            raise ExtenderError(answer.error)

    def _send(self, verb: str, body: object, type_: Any) -> Any:
        url = f"{self.config.url_prefix.rstrip('/')}/{verb}"
        try:
            answer = self._pool.request(
                "POST", url, body=codec.encode(body), headers={"Content-Type": "application/json"}
            )
        except urllib3.exceptions.HTTPError as error:
            raise ExtenderError(f'Post "{url}": {error}') from error
        if answer.status != 200:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {answer.status}")
        try:
            return codec.decode(answer.data, type_)
        except codec.DecodeError as error:
            raise ExtenderError(str(error)) from error

    def close(self) -> None:
        self._pool.clear()


MAX_WEIGHT_SCALE = 10  # MaxNodeScore / MaxExtenderPriority


def weighted(extenders: Sequence[tuple[HTTPExtender, Sequence[HostPriority]]]) -> dict[str, int]:
    """What extenders add to each node's total: score * weight * (100 / 10)."""
    totals: dict[str, int] = {}
    for extender, priorities in extenders:
        for entry in priorities:
            added = entry.score * extender.config.weight * MAX_WEIGHT_SCALE
            totals[entry.host] = totals.get(entry.host, 0) + added
    return totals
