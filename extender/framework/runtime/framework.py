"""A profile's plugins, built and put in order: what a scheduler runs, and the handle that its plugins get.

kube-scheduler: pkg/scheduler/framework/runtime/framework.go (NewFramework, frameworkImpl)
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from extender.api import corev1
from extender.client.interface import API, EventRecorder
from extender.config.types import EXTENSION_POINTS, KubeSchedulerProfile
from extender.framework.handle import Clock
from extender.framework.interface import (
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
)
from extender.framework.listers import Lister, NodeInfoLister, Nominator
from extender.framework.preemption.interface import PreemptionExtender
from extender.framework.runtime.binding_points import BindingPoints
from extender.framework.runtime.plugin_calls import Recorder
from extender.framework.runtime.plugin_sets import check, expand, needed_plugins, score_weights
from extender.framework.runtime.pods_in_pre_bind import PodsInPreBindMap
from extender.framework.runtime.registry import Registry, RegistryError
from extender.framework.runtime.scheduling_points import SchedulingPoints
from extender.framework.runtime.scoring_points import ScoringPoints
from extender.framework.runtime.waiting_pods import WaitingPodsMap


def _activate_none(pods: Iterable[corev1.Pod]) -> None:
    """Where there is no queue."""


def _on_a_thread(job: Callable[[], None]) -> None:
    threading.Thread(target=job, name="preemption", daemon=True).start()


@dataclass(frozen=True, slots=True)
class FrameworkDependencies:
    """What a framework is given. newest_snapshot: the cluster now. lister: an informer's objects of one struct type.

    spawn: runs a job beside the cycles. sleep: how a plugin waits; on virtual time the cluster moves on meanwhile.
    rng: for choices among equals. waiting_pods and pods_in_pre_bind are shared by the profiles of one scheduler. record
    is told of each run of an extension point; it must be safe on every thread that the framework is used on.
    """

    api: API
    events: EventRecorder
    newest_snapshot: Callable[[], NodeInfoLister]
    lister: Callable[[type[Any]], Lister[Any]]
    nominator: Nominator
    clock: Clock = time.monotonic
    activate: Callable[[Iterable[corev1.Pod]], None] = _activate_none
    extenders: Sequence[PreemptionExtender] = ()
    spawn: Callable[[Callable[[], None]], None] = _on_a_thread
    sleep: Callable[[float], None] = time.sleep
    rng: random.Random = field(default_factory=random.Random)
    waiting_pods: WaitingPodsMap = field(default_factory=WaitingPodsMap)
    pods_in_pre_bind: PodsInPreBindMap = field(default_factory=PodsInPreBindMap)
    record: Recorder | None = None


@dataclass(slots=True)
class _Cycle:
    """The scheduling cycle that is under way, or the last one."""

    snapshot: NodeInfoLister | None = None


class Framework(SchedulingPoints, ScoringPoints, BindingPoints):
    """Fulfils framework.handle.Handle. Scheduling cycles come one at a time; binding cycles run side by side."""

    def __init__(
        self,
        profile: KubeSchedulerProfile,
        registry: Registry,
        dependencies: FrameworkDependencies,
        *,
        shared: Mapping[str, Plugin] | None = None,
        beside: Framework | None = None,
    ) -> None:
        """shared: plugins that this profile has in common with others instead of one of its own. beside: another profile of the scheduler,
        whose cycles and this one's come one after the other: they have one snapshot, as in kube-scheduler, also for shared plugins.

        Raises RegistryError for an unknown plugin, PluginSetError for a set that makes no sense.
        """
        self.profile = profile
        self.profile_name = profile.scheduler_name
        self.record = dependencies.record
        self._dependencies = dependencies
        self._cycle: _Cycle = beside._cycle if beside is not None else _Cycle()
        self.nominator = dependencies.nominator
        self.clock = dependencies.clock
        self.waiting_pods = dependencies.waiting_pods
        self.pods_in_pre_bind = dependencies.pods_in_pre_bind
        self.rng = dependencies.rng
        self.plugins = self._build(registry, shared or {})
        points = expand(profile.plugins, self.plugins)
        check(points, profile.scheduler_name)
        for point in EXTENSION_POINTS:
            setattr(self, f"{point}_plugins", points[point])
        self._points = points
        self.score_weights = score_weights(profile.plugins, self.plugins)

    def _build(self, registry: Registry, shared: Mapping[str, Plugin]) -> dict[str, Plugin]:
        plugins: dict[str, Plugin] = {}
        for name in needed_plugins(self.profile.plugins):
            if name in shared:
                plugins[name] = shared[name]
                continue
            factory = registry.get(name)
            if factory is None:
                raise RegistryError(f'profile {self.profile.scheduler_name}: plugin "{name}" does not exist')
            try:
                plugins[name] = factory(self.profile.plugin_config.get(name), self)
            except Exception as error:
                raise RegistryError(f'initializing plugin "{name}": {error}') from error
        return plugins

    @property
    def percentage_of_nodes_to_score(self) -> int | None:
        return self.profile.percentage_of_nodes_to_score

    @property
    def api(self) -> API:
        return self._dependencies.api

    @property
    def events(self) -> EventRecorder:
        return self._dependencies.events

    @property
    def extenders(self) -> Sequence[PreemptionExtender]:
        return self._dependencies.extenders

    def spawn(self, job: Callable[[], None]) -> None:
        self._dependencies.spawn(job)

    def sleep(self, seconds: float) -> None:
        self._dependencies.sleep(seconds)

    def set_snapshot(self, snapshot: NodeInfoLister | None) -> None:
        """The snapshot of the cycle that begins; None between cycles."""
        self._cycle.snapshot = snapshot

    def snapshot(self) -> NodeInfoLister:
        snapshot = self._cycle.snapshot
        return snapshot if snapshot is not None else self._dependencies.newest_snapshot()

    def lister(self, type_: type[Any]) -> Lister[Any]:
        return self._dependencies.lister(type_)

    def activate(self, pods: Iterable[corev1.Pod]) -> None:
        self._dependencies.activate(pods)

    @property
    def enqueue_plugins(self) -> list[Plugin]:
        """Those that can refuse a pod, and so say which events may help it. Go: shouldHaveEnqueueExtensions."""
        refusing = (PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, ReservePlugin, PermitPlugin)
        return [plugin for plugin in self.plugins.values() if isinstance(plugin, refusing)]

    def close(self) -> None:
        """Closes the plugins that have something to close."""
        for plugin in self.plugins.values():
            close = getattr(plugin, "close", None)
            if close is not None:
                close()

    def list_plugins(self) -> Mapping[str, list[Plugin]]:
        """Extension point -> plugins in order."""
        return self._points
