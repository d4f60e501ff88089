"""A whole scheduler on the embedded API, started, and its verbs as stories call them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest

from extender.api import corev1
from extender.api.extenderv1 import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    HostPriority,
    MetaPod,
    MetaVictims,
)
from extender.client.embedded import EmbeddedAPI
from extender.client.interface import NODES, POD_GROUPS, PODS
from extender.client.status_patch import patch_pod_status
from extender.config.types import ExtenderConfiguration
from extender.plugins.coscheduling.dependencies import here
from extender.scheduler import factory
from extender.scheduler.scheduler import Scheduler
from tests.unit.plugins.coscheduling.bookkeeping import wrong_entries

GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
SECONDS = 5.0


class Peer:
    """A caller that can hang up."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []

    def on_gone(self, callback: Callable[[], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: None

    def hang_up(self) -> None:
        for callback in self._callbacks:
            callback()


class Bench:
    """What happens in the cluster is awaited, never slept for."""

    def __init__(
        self,
        configuration: ExtenderConfiguration | None = None,
        api: EmbeddedAPI | None = None,
        offload: Callable[..., Any] = here,
    ) -> None:
        self.api = api or EmbeddedAPI()
        self.scheduler: Scheduler = factory.build(configuration or ExtenderConfiguration(), self.api, offload=offload)
        self.scheduler.start()
        assert self.scheduler._dependencies.informers.wait_for_sync(SECONDS)
        self._threads: list[threading.Thread] = []

    def stop(self) -> None:
        self.scheduler.stop()
        for thread in self._threads:
            thread.join(SECONDS)
            assert not thread.is_alive()
        assert list(wrong_entries(self.scheduler._dependencies.coscheduling)) == []

    def node(self, name: str, cpu: str = "4", labels: Mapping[str, str] | None = None, **spec: Any) -> None:
        room = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
        metadata = {"name": name, "labels": dict(labels or {})}
        self.api.create(NODES, {"metadata": metadata, "spec": spec, "status": {"allocatable": room}})
        self.until(lambda: self.store(NODES).get(name) is not None, f"node {name} is seen")

    def pod_group(self, name: str, min_member: int, **spec: Any) -> None:
        self.api.create(POD_GROUPS, {"metadata": {"name": name}, "spec": {"minMember": min_member, **spec}})
        key = f"default/{name}"
        self.until(lambda: self.store(POD_GROUPS).get(key) is not None, f"group {name} is seen")

    def pod(
        self,
        name: str,
        group: str = "",
        cpu: str = "1",
        node: str = "",
        labels: Mapping[str, str] | None = None,
        namespace: str = "default",
        **spec: Any,
    ) -> corev1.Pod:
        labels = {**(labels or {}), **({GROUP_LABEL: group} if group else {})}
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        body = {
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"containers": [container], "nodeName": node, **spec},
        }
        made = self.api.create(PODS, body)
        self.until(lambda: self.store(PODS).get(made.key) is not None, f"pod {name} is seen")
        if group:
            manager = self.scheduler._dependencies.coscheduling.manager
            self.until(lambda: made.uid in manager.groups[f"{namespace}/{group}"].members, f"pod {name} is a member")
        return made

    def store(self, resource: Any) -> Any:
        return self.scheduler._dependencies.informers.informer(resource).store

    @staticmethod
    def until(true: Callable[[], bool], what: str) -> None:
        """The watches are threads: their events are waited for on the API's own condition."""
        tick = threading.Event()
        for _ in range(int(SECONDS / 0.005)):
            try:
                if true():
                    return
            except KeyError:
                pass
            tick.wait(0.005)
        raise AssertionError(f"not within {SECONDS:g} s: {what}")

    def filter(self, pod: corev1.Pod, *nodes: str) -> ExtenderFilterResult:
        return self.scheduler.filter(ExtenderArgs(pod=pod, node_names=nodes))

    def prioritize(self, pod: corev1.Pod, *nodes: str) -> Sequence[HostPriority]:
        return self.scheduler.prioritize(ExtenderArgs(pod=pod, node_names=nodes))

    def bind(self, pod: corev1.Pod, node: str, peer: Peer | None = None) -> Future[str]:
        """The answer's Error, when it comes."""
        answer: Future[str] = Future()
        args = ExtenderBindingArgs(pod_name=pod.name, pod_namespace=pod.namespace, pod_uid=pod.uid, node=node)

        def call() -> None:
            answer.set_result(self.scheduler.bind(args, peer or Peer()).error)

        thread = threading.Thread(target=call)
        thread.start()
        self._threads.append(thread)
        return answer

    def held(self, *pods: corev1.Pod) -> None:
        waiting = self.scheduler._dependencies.default_profile.waiting_pods
        for pod in pods:
            self.until(lambda pod=pod: waiting.get(pod.uid) is not None, f"{pod.name} is held")  # type: ignore[misc]

    def preempt(self, pod: corev1.Pod, offered: Mapping[str, list[corev1.Pod]]) -> dict[str, set[str]]:
        """Node -> names of the victims that are left."""
        victims = {n: MetaVictims(pods=tuple(MetaPod(uid=p.uid) for p in pods)) for n, pods in offered.items()}
        answer = self.scheduler.preempt(ExtenderPreemptionArgs(pod=pod, node_name_to_meta_victims=victims))
        names = {p.uid: p.name for p in self.api.list_page(PODS).items}
        return {n: {names[victim.uid] for victim in left.pods} for n, left in answer.node_name_to_meta_victims.items()}

    def preempted(self, victim: corev1.Pod) -> None:
        """What kube-scheduler does to a victim."""
        condition = corev1.PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
        patch_pod_status(self.api, victim, condition=condition)
        self.api.delete(PODS, victim.name, victim.namespace)

    def there(self, pod: corev1.Pod) -> bool:
        return any(each.uid == pod.uid for each in self.api.list_page(PODS).items)

    def flush(self) -> None:
        """All that was asked of the threads beside the verbs by now has been done."""
        parts = self.scheduler._dependencies
        for thread in (parts.planning, parts.background, parts.planning):  # each may ask the other
            done = threading.Event()
            thread.submit("flush", done.set)
            assert done.wait(SECONDS)

    def may_evict(self) -> bool:
        return self.scheduler._dependencies.evictor.allowed()

    def has_noticed_that_it_leads(self) -> bool:
        """Which the first tick does: every gang that waits is planned then."""
        return self.scheduler._dependencies.coscheduling.lead_changes._planning

    def node_of(self, pod: corev1.Pod) -> str:
        return self.api.get(PODS, pod.name, pod.namespace).node_name

    def nomination_of(self, pod: corev1.Pod) -> str:
        return self.api.get(PODS, pod.name, pod.namespace).status.nominated_node_name

    def node_of_seen(self, pod: corev1.Pod) -> str:
        """As the groups know it."""
        groups = self.scheduler._dependencies.coscheduling.manager.groups
        return groups[f"default/{pod.labels[GROUP_LABEL]}"].members[pod.uid].pod.node_name


@contextmanager
def running(
    configuration: ExtenderConfiguration | None = None,
    api: EmbeddedAPI | None = None,
    offload: Callable[..., Any] = here,
) -> Iterator[Bench]:
    made = Bench(configuration, api, offload)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def bench() -> Iterator[Bench]:
    """With permissions known: they are asked for in the background."""
    with running() as made:
        made.until(made.may_evict, "evictions are allowed")
        yield made
