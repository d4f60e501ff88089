"""One simulation from a cluster to its report: the in-process scheduler on virtual time.

The command simulate and the benchmark call it; the same cluster, configuration and seed give the same report.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from extender.api import corev1
from extender.client.embedded.feed import Feed
from extender.client.interface import PERSISTENT_VOLUME_CLAIMS, PODS
from extender.config.types import ExtenderConfiguration, KubeSchedulerConfiguration
from extender.framework.runtime.registry import Registry
from extender.plugins.registry import new_registry
from extender.scheduler.in_process.factory import InProcessParts, build_parts
from extender.simulation.clock import VirtualClock, VirtualTime
from extender.simulation.cluster import Cluster, some, unserved
from extender.simulation.driver import Controller, Driver
from extender.simulation.journal import Journal
from extender.simulation.progress import Progress
from extender.simulation.report import Report, gang_reports, pod_reports
from extender.simulation.volume_controller import VolumeController
from extender.simulation.workload_controller import WorkloadController

DAY = 86_400.0
_EVERYTHING = 10**9


class Simulation:
    """Built once, run once. Raises for a configuration that makes no sense as build_parts does."""

    def __init__(
        self,
        cluster: Cluster,
        configuration: KubeSchedulerConfiguration,
        clock: VirtualClock,
        *,
        seed: int = 0,
        registry: Registry | None = None,
        extender: ExtenderConfiguration | None = None,
        warnings: Sequence[str] = (),
        watched: Callable[[Driver], None] = lambda driver: None,
    ) -> None:
        """clock: the one that the cluster was loaded by. registry: the plugins there are; by default all that are installed.

        extender: the settings of the extender that Coscheduling stands for; None where it is a plugin as any other.
        warnings: for the report, beside its own.
        """
        self._cluster = cluster
        self._warnings = (*cluster.warnings, *warnings, *unserved(cluster, configuration))
        self._seed = seed
        self._clock = clock
        self._progress = progress = Progress(clock, _patience(extender))
        self._journal = Journal(progress.note)
        time = VirtualTime(clock, self._journal, random.Random(seed))
        self._parts: InProcessParts = build_parts(
            cluster.api, configuration, registry or new_registry(), time, extender, clock.wall
        )
        self._workloads = WorkloadController(cluster.api, cluster.later)
        feed = Feed(cluster.api, self._parts.informers, progress.seen)
        self.driver = Driver(self._parts, feed, clock, time, progress, self._controllers(), watched)

    def _controllers(self) -> Sequence[Controller]:
        """Only where there is something for them to do: each pass of the volumes' looks at every object."""
        api = self._cluster.api
        controllers: list[Controller] = [self._workloads] if self._cluster.later else []
        with_volumes = any(volume.ephemeral is not None for pod in self._cluster.pods for volume in pod.spec.volumes)
        with_volumes = with_volumes or bool(api.list_page(PERSISTENT_VOLUME_CLAIMS, limit=1).items)
        return [*controllers, VolumeController(api)] if with_volumes else controllers

    def run(self, until: float = DAY) -> Report:
        try:
            quiet = self.driver.run(until)
            gangs = gang_reports(self._parts.coscheduling, self._journal)
        finally:
            self.close()
        after = {pod.uid: pod for pod in self._cluster.api.list_page(PODS, limit=_EVERYTHING).items}
        served = frozenset(self._parts.profiles)
        before = [*self._cluster.pods, *self._workloads.made]
        pods = pod_reports(before, after, served, self.driver, self._journal, self._group_of)
        return Report(
            seed=self._seed,
            settled_at=self._progress.since,
            quiet=quiet,
            summary=dict(sorted(Counter(pod.state for pod in pods).items())),
            pods=pods,
            gangs=gangs,
            warnings=(*self._warnings, *_never_made(self._workloads)),
        )

    def _group_of(self, pod: corev1.Pod) -> str:
        coscheduling = self._parts.coscheduling
        ref = coscheduling.manager.labels.group_of(pod) if coscheduling is not None else None
        return ref.key.partition("/")[2] if ref is not None else ""

    def close(self) -> None:
        self.driver.close()
        for framework in self._parts.profiles.values():
            framework.close()
        for extender in self._parts.extenders:
            extender.close()


def _never_made(workloads: WorkloadController) -> Iterator[str]:
    if refused := workloads.refused:
        yield f"cannot be made: {some(refused)}"
    if left := workloads.left:
        yield f"made only once other pods of their workload run, which they do not: {some(left)}"


def _patience(settings: ExtenderConfiguration | None) -> float:
    """How long a gang may have to wait until it may preempt."""
    if settings is None or not settings.gang_preemption:
        return 0.0
    return settings.preemption_delay_seconds + settings.victim_minimum_run_seconds
