"""kube-scheduler itself, in-process: the loop around the pods' cycles, on threads and real time.

The demo lets it call our own verbs over HTTP. The simulation drives the same cycles on virtual time.
kube-scheduler: pkg/scheduler/scheduler.go (Run), pkg/scheduler/schedule_one.go (ScheduleOne)
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from extender import metrics
from extender.backend.queue.queued_pod import QueuedPod
from extender.client.events import Recorder
from extender.client.interface import API
from extender.config.types import KubeSchedulerConfiguration
from extender.crash import guarded
from extender.framework.handle import Clock
from extender.framework.interface import WaitingPod
from extender.framework.runtime.metrics_recorder import record
from extender.framework.runtime.plugin_calls import Recorder as MetricsRecorder
from extender.framework.runtime.registry import Registry
from extender.scheduler.actions.verdicts import GroupVerdicts
from extender.scheduler.background import Background, WorkerPool
from extender.scheduler.in_process.factory import InProcessParts, build_parts
from extender.scheduler.in_process.pod_cycles import Attempt
from extender.scheduler.live_metrics import Gauge, LiveMetrics, of_cache, of_gangs, of_informers, of_queue

log = logging.getLogger(__name__)

POP_SECONDS = 0.5
LET_GO_SECONDS = 0.1  # a binding may have come to its wait after it was looked for
JOBS_AT_A_TIME = 16


@dataclass(frozen=True, slots=True)
class _RealTime:
    """Fulfils InProcessDependencies."""

    clock: Clock
    recorder: Recorder
    verdicts: GroupVerdicts
    background: Background
    jobs: WorkerPool = field(default_factory=lambda: WorkerPool("jobs", JOBS_AT_A_TIME))
    rng: random.Random = field(default_factory=random.Random)
    record: MetricsRecorder | None = record

    def spawn(self, job: Callable[[], None]) -> None:
        self.jobs.submit(job)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def submit(self, name: str, task: Callable[[], None]) -> None:
        self.background.submit(name, task)


class InProcessScheduler:
    """Threads come with start and go with stop; binding cycles run each on a thread of its own."""

    def __init__(
        self,
        api: API,
        configuration: KubeSchedulerConfiguration,
        registry: Registry,
        clock: Clock = time.monotonic,
    ) -> None:
        """Raises as build_parts does."""
        recorder = Recorder(api, clock=clock)
        self._dependencies = _RealTime(
            clock, recorder, GroupVerdicts(api, recorder, lambda: True, clock), Background({"scheduler": self._tick})
        )
        self._parts: InProcessParts = build_parts(api, configuration, registry, self._dependencies)
        self._live_metrics = LiveMetrics(_gauges(self._parts))
        self._stopping = threading.Event()
        self._threads: set[threading.Thread] = set()
        self._loop: threading.Thread | None = None

    def start(self) -> None:
        self._live_metrics.start()
        self._dependencies.recorder.start()
        self._dependencies.background.start()
        self._parts.informers.start()
        self._loop = threading.Thread(target=self._run, name="schedule-one", daemon=True)
        self._loop.start()

    def stop(self) -> None:
        """Bindings that are still held end first: their extender has to let them go, or their wait in Permit ends."""
        self._stopping.set()
        self._parts.queue.close()
        if self._loop is not None:
            self._loop.join()
        self._let_go()
        for thread in list(self._threads):
            while thread.is_alive():
                thread.join(LET_GO_SECONDS)
                self._let_go()
        self._parts.informers.stop()
        self._dependencies.background.stop()
        self._dependencies.jobs.stop()
        self._dependencies.verdicts.stop()
        self._dependencies.recorder.stop()
        for framework in self._parts.profiles.values():
            framework.close()
        for extender in self._parts.extenders:
            extender.close()
        self._live_metrics.stop()

    def _let_go(self) -> None:
        def reject(waiting: WaitingPod) -> None:
            waiting.reject("", "the scheduler stops")

        for framework in self._parts.profiles.values():
            framework.iterate_over_waiting_pods(reject)
            framework.pods_in_pre_bind.cancel_all("the scheduler stops")

    def _tick(self) -> None:
        self._parts.tick()
        self._dependencies.verdicts.tick()

    def _run(self) -> None:
        while not self._stopping.is_set() and not self._parts.informers.wait_for_sync(POP_SECONDS):
            pass
        while not self._stopping.is_set():
            if not guarded("schedule-one", self._next):
                self._stopping.wait(POP_SECONDS)

    def _next(self) -> None:
        entry = self._parts.queue.pop(POP_SECONDS)
        if entry is not None:
            self._schedule_one(entry)

    def _schedule_one(self, entry: QueuedPod) -> None:
        try:
            attempt = self._parts.cycles.schedule_one(entry)
        except Exception:
            log.exception("scheduling cycle failed pod=%s", entry.key)
            self._parts.queue.done(entry.uid)
            return
        if attempt is not None:
            thread = threading.Thread(target=self._bind, args=(attempt,), name="bind", daemon=True)
            self._threads.add(thread)
            thread.start()

    def _bind(self, attempt: Attempt) -> None:
        cycles = self._parts.cycles
        try:
            with metrics.goroutines.labels("binding").track_inprogress():
                if cycles.begin_binding(attempt):
                    cycles.finish_binding(attempt)
        except Exception:
            log.exception("binding cycle failed pod=%s", attempt.cycle.pod.key)
            cycles.abandon(attempt)
        finally:
            self._threads.discard(threading.current_thread())


def _gauges(parts: InProcessParts) -> list[Gauge]:
    gangs = () if parts.coscheduling is None else of_gangs(parts.coscheduling.report)
    return [*of_queue(parts.queue), *of_cache(parts.cache), *of_informers(parts.informers), *gangs]
