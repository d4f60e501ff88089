"""A cluster in which DefaultPreemption runs for real: embedded API, cache, nominator, and a framework of a few plugins.

Evictions wait in `jobs` until the test runs them, so that what is true meanwhile can be looked at.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from extender.api import corev1, policyv1
from extender.api.codec import convert
from extender.backend.cache.cache import Cache
from extender.backend.queue.nominator import Nominator
from extender.client.embedded import EmbeddedAPI
from extender.client.interface import NODES, PODS
from extender.client.store import Store
from extender.config.plugin_args import DefaultPreemptionArgs
from extender.config.types import KubeSchedulerProfile, PluginRef, Plugins, PluginSet
from extender.framework.cycle_state import CycleState
from extender.framework.interface import NodeToStatus, PostFilterResult
from extender.framework.preemption.interface import PreemptionExtender
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.framework.status import Status, unresolvable
from extender.plugins import names
from extender.plugins.default_preemption import DefaultPreemption
from extender.plugins.registry import new_in_tree_registry
from tests.objects import NodeBuilder, PodBuilder, PodDisruptionBudgetBuilder

PLUGINS = (
    "PrioritySort",
    "NodeUnschedulable",
    "NodeResourcesFit",
    "InterPodAffinity",
    "DefaultPreemption",
    "DefaultBinder",
)


class Events:
    """Notes (regarding, reason, note)."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def event(self, regarding: Any, event_type: str, reason: str, action: str, note: str, related: Any = None) -> None:
        self.seen.append((regarding.name, reason, note))


class PreemptionWorld:
    def __init__(
        self,
        nodes: Sequence[NodeBuilder],
        pods: Sequence[PodBuilder],
        *,
        pdbs: Sequence[PodDisruptionBudgetBuilder] = (),
        extenders: Sequence[PreemptionExtender] = (),
        args: DefaultPreemptionArgs | None = None,
    ) -> None:
        self.api = EmbeddedAPI()
        self.cache = Cache()
        self.events = Events()
        self.jobs: list[Callable[[], None]] = []
        self.activated: list[str] = []
        self.pods: Store[corev1.Pod] = Store()
        budgets: Store[Any] = Store()
        for node in nodes:
            self.cache.add_node(self.api.create(NODES, node.json()))
        for pod in pods:
            self.add(pod)
        for pdb in pdbs:
            budgets.put(pdb.obj())
        stores: dict[type[Any], Store[Any]] = {corev1.Pod: self.pods, policyv1.PodDisruptionBudget: budgets}
        self.nominator = Nominator(self.pods)
        refs = tuple(PluginRef(name) for name in PLUGINS)
        config = {"DefaultPreemption": args} if args is not None else {}
        self.framework = Framework(
            KubeSchedulerProfile("default-scheduler", Plugins(PluginSet(enabled=refs)), config),
            new_in_tree_registry(),
            FrameworkDependencies(
                api=self.api,
                events=self.events,
                newest_snapshot=self.cache.snapshot,
                lister=lambda type_: stores.get(type_, Store()),
                nominator=self.nominator,
                activate=lambda pods: self.activated.extend(pod.name for pod in pods),
                extenders=extenders,
                spawn=self.jobs.append,
                rng=random.Random(0),
            ),
        )

    @property
    def plugin(self) -> DefaultPreemption:
        plugin = self.framework.plugins[names.DEFAULT_PREEMPTION]
        assert isinstance(plugin, DefaultPreemption)
        return plugin

    def add(self, pod: PodBuilder) -> corev1.Pod:
        """Into the API, as the API server stores it, with the node and the status that the builder says."""
        value = pod.json()
        made = self.api.create(PODS, {**value, "spec": {**value["spec"], "nodeName": ""}}, "default")
        full = {**value, "metadata": {**value["metadata"], "uid": made.uid, "namespace": "default"}}
        stored = convert(full, corev1.Pod)
        if stored.node_name:
            self.cache.add_pod(stored)
        self.pods.put(stored)
        return stored

    def pod(self, name: str) -> corev1.Pod:
        """As it was stored."""
        found = self.pods.get(f"default/{name}")
        assert found is not None
        return found

    def post_filter(self, pod: corev1.Pod) -> tuple[PostFilterResult | None, Status]:
        """A cycle that finds no node, up to its PostFilter."""
        snapshot = self.cache.snapshot()
        self.framework.set_snapshot(snapshot)
        state = CycleState()
        _, status, _ = self.framework.run_pre_filter_plugins(state, pod, snapshot.list())
        assert status.success
        statuses = {}
        for node in snapshot.list():
            status = self.framework.run_filter_plugins_with_nominated_pods(state, pod, node)
            assert not status.success, "the pod fits without preemption"
            statuses[node.name] = status
        return self.framework.run_post_filter_plugins(state, pod, NodeToStatus(statuses, unresolvable()))

    def run_jobs(self) -> None:
        while self.jobs:
            self.jobs.pop(0)()

    def alive(self) -> set[str]:
        return {pod.name for pod in self.api.list_page(PODS).items}
