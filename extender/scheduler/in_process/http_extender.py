"""kube-scheduler's own side of the extender protocol: calls the verbs of a configured extender, and reads what it answers.

The in-process scheduleOne, the simulation and the demo use it; its strictness and its leniency are kube-scheduler's.
kube-scheduler: pkg/scheduler/extender.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import urllib3

from extender.api import codec, corev1
from extender.api.extenderv1 import ExtenderBindingArgs, HostPriority, MetaPod
from extender.config.types import ExtenderConfig
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.preemption.candidate import Victims
from extender.framework.preemption.interface import ExtenderCallError
from extender.scheduler.in_process import extender_transport, extender_wire

A = TypeVar("A")

MAX_WEIGHT_SCALE = 10  # MaxNodeScore / MaxExtenderPriority


class ExtenderError(ExtenderCallError):
    """The call failed, or its answer cannot be read or makes no sense. Go's text."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """Node names that passed, and the others with what the extender says of them."""

    passed: Sequence[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


class HTTPExtender:
    """One entry of `extenders:`. Thread-safe: binds run side by side, each on a connection of its own.

    Fulfils framework.preemption.interface.PreemptionExtender.
    """

    def __init__(self, config: ExtenderConfig) -> None:
        """Raises ExtenderError for TLS options that make no sense."""
        self.config = config
        with _named(config):
            self._pool = extender_transport.pool(config)

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

    def filter(self, pod: corev1.Pod, nodes: Sequence[corev1.Node]) -> Filtered:
        """Raises ExtenderError, also for a node that was not asked about. Without the verb all pass."""
        if not self.is_filter:
            return Filtered([node.name for node in nodes])
        names_only = self.config.node_cache_capable
        body = extender_wire.args(pod, nodes, names_only=names_only)
        answer = self._send(self.config.filter_verb, body, extender_wire.filter_answer)
        if answer.error:
            raise ExtenderError(answer.error)
        passed: Sequence[str] = ()
        if names_only and answer.node_names is not None:
            passed = answer.node_names
        elif answer.nodes is not None:
            passed = [node.name for node in answer.nodes.items]
        asked = {node.name for node in nodes}
        for name in passed:
            if name not in asked:
                raise ExtenderError(
                    f'extender "{self.name}" claims a filtered node "{name}" which is not found in the input node list'
                )
        return Filtered(passed, answer.failed_nodes, answer.failed_and_unresolvable_nodes)

    def prioritize(self, pod: corev1.Pod, nodes: Sequence[corev1.Node]) -> list[HostPriority]:
        body = extender_wire.args(pod, nodes, names_only=self.config.node_cache_capable)
        return self._send(self.config.prioritize_verb, body, extender_wire.priorities)

    def process_preemption(
        self, pod: corev1.Pod, victims: Mapping[str, Victims], nodes: NodeInfoLister
    ) -> dict[str, Victims]:
        """What is left of the candidates. The answer names victims by UID, which have to be on their nodes."""
        if not self.supports_preemption:
            raise ExtenderError(f"preempt verb is not defined for extender {self.name} but run into ProcessPreemption")
        body = extender_wire.preemption_args(pod, victims, names_only=self.config.node_cache_capable)
        answer = self._send(self.config.preempt_verb, body, extender_wire.preemption_answer)
        return {
            name: Victims(self._found(left.pods, name, nodes), left.num_pdb_violations)
            for name, left in answer.victims.items()
        }

    def _found(self, victims: Iterable[MetaPod], name: str, nodes: NodeInfoLister) -> tuple[corev1.Pod, ...]:
        """Go: convertPodUIDToPod."""
        try:
            node: NodeInfo = nodes.get(name)
        except KeyError:
            raise ExtenderError(f'nodeinfo not found for node name "{name}"') from None
        here = {info.pod.uid: info.pod for info in node.pods}
        pods = []
        for victim in victims:
            if victim.uid not in here:
                raise ExtenderError(
                    f"extender: {self.name} claims to preempt pod (UID: {victim.uid}) on node: {name}, "
                    "but the pod is not found on that node"
                )
            pods.append(here[victim.uid])
        return tuple(pods)

    def bind(self, pod: corev1.Pod, node_name: str) -> None:
        """Blocks as long as the extender holds the call. Raises ExtenderError with the answer's Error."""
        args = ExtenderBindingArgs(pod_name=pod.name, pod_namespace=pod.namespace, pod_uid=pod.uid, node=node_name)
        answer = self._send(self.config.bind_verb, codec.encode(args), extender_wire.binding_answer)
        if answer.error:
            raise ExtenderError(answer.error)

    def _send(self, verb: str, body: bytes, read: Callable[[bytes], A]) -> A:
        url = f"{self.config.url_prefix.rstrip('/')}/{verb}"
        try:
            answer = self._pool.request("POST", url, body=body, headers={"Content-Type": "application/json"})
        except urllib3.exceptions.HTTPError as error:
            raise ExtenderError(f'Post "{url}": {_in_go_words(error)}') from error
        if answer.status != 200:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {answer.status}")
        try:
            return read(answer.data)
        except codec.DecodeError as error:
            raise ExtenderError(str(error)) from error

    def close(self) -> None:
        self._pool.clear()


def _in_go_words(error: urllib3.exceptions.HTTPError) -> str:
    """The usual ones as kube-scheduler has them; constant for one cause, as every text in a pod's condition."""
    if isinstance(error, urllib3.exceptions.NewConnectionError):  # which is a TimeoutError, too
        refused = isinstance(error.__cause__, ConnectionRefusedError)
        return f"dial tcp {error.conn.host}:{error.conn.port}: connect: connection refused" if refused else str(error)
    if isinstance(error, urllib3.exceptions.TimeoutError):
        return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    return str(error)


def check(config: ExtenderConfig) -> None:
    """Of an entry that is not to be called. Raises ExtenderError for TLS options that make no sense; files are not read."""
    with _named(config):
        extender_transport.check(config)


@contextmanager
def _named(config: ExtenderConfig) -> Iterator[None]:
    try:
        yield
    except extender_transport.TransportError as error:
        raise ExtenderError(f'extender "{config.url_prefix}": {error}') from error


def in_calling_order(extenders: Iterable[HTTPExtender]) -> tuple[HTTPExtender, ...]:
    """Those that may be ignored come last. Go: buildExtenders."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def weighted(extenders: Sequence[tuple[HTTPExtender, Sequence[HostPriority]]]) -> dict[str, int]:
    """What extenders add to each node's total: score * weight * (100 / 10)."""
    totals: dict[str, int] = {}
    for extender, priorities in extenders:
        for entry in priorities:
            added = entry.score * extender.config.weight * MAX_WEIGHT_SCALE
            totals[entry.host] = totals.get(entry.host, 0) + added
    return totals
