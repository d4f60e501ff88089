"""Runs the in-process scheduler on one thread and virtual time, until nothing moves any more.

    do what can be done now: changes seen -> tasks and jobs -> decided waits in Permit -> the next pod of the queue
        nothing? the controllers (volumes) have their turn
        nothing? time goes on: end of a back-off, of a wait in Permit, a plan's lease, the gangs' tick, the 5-minute flush
        nothing new for longer than the flush? over

kube-scheduler has no counterpart; the order of events is one that could have been there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from extender.backend.queue.queued_pod import QueuedPod
from extender.client.embedded.feed import Feed
from extender.framework.runtime.waiting_pods import PendingPod
from extender.plugins import names
from extender.scheduler.in_process.factory import InProcessParts
from extender.scheduler.in_process.pod_cycles import Attempt
from extender.simulation.clock import VirtualClock, VirtualTime
from extender.simulation.progress import Progress
from extender.simulation.sleeper import Sleeper

BIND_SECONDS = 600.0  # VolumeBinding's default bindTimeoutSeconds: the first such wait is news for so long
TICK_SECONDS = 1.0  # how often gangs look at the clock while something happens


class Controller(Protocol):
    """Another program of a cluster, as far as scheduling needs it."""

    def sync(self) -> bool:
        """Does what it would do now. False if there was nothing."""
        ...


class Driver:
    """One run. `attempts` and `bound_at` are by UID, for the report."""

    def __init__(
        self,
        parts: InProcessParts,
        feed: Feed,
        clock: VirtualClock,
        time: VirtualTime,
        progress: Progress,
        controllers: Sequence[Controller] = (),
        watched: Callable[[Driver], None] = lambda driver: None,
    ) -> None:
        """watched: called after each attempt, for a progress bar."""
        self._parts = parts
        self._feed = feed
        self._clock = clock
        self._time = time
        self._progress = progress
        self._controllers = controllers
        self._watched = watched
        self._parked: dict[str, tuple[Attempt, PendingPod]] = {}
        self._asleep: dict[str, Sleeper] = {}  # UID -> a binding that waits in PreBind
        self._tried: dict[str, int] = {}  # UID -> the progress' version at its last attempt
        self._ticked = True
        self.attempts: dict[str, int] = {}
        self.bound_at: dict[str, float] = {}

    @property
    def held(self) -> Iterable[str]:
        """UIDs of the pods that wait in Permit."""
        return self._parked.keys()

    def run(self, until: float) -> bool:
        """False if virtual time ran out before everything was quiet."""
        self._feed.start()
        while True:
            while self._act():
                self._ticked = False
            synced = [controller.sync() for controller in self._controllers]  # each of them
            if any(synced):
                continue
            at = self._next()
            if at is None or at > self._progress.ends:
                return True
            if at > until:
                return False
            self._pass_time(at)

    def close(self) -> None:
        """Ends the bindings that still wait."""
        for sleeper in self._asleep.values():
            sleeper.abandon()

    # What can be done now

    def _act(self) -> bool:
        """One step. False if there is nothing to do."""
        seen = self._feed.pump()
        return self._run_handed_in() or self._wake() or self._finish_decided() or self._schedule_one() or seen > 0

    def _run_handed_in(self) -> bool:
        if self._time.jobs:
            self._time.jobs.popleft()()
            return True
        if self._time.tasks:
            name = next(iter(self._time.tasks))
            self._time.tasks.pop(name)()
            return True
        return False

    def _wake(self) -> bool:
        due = [uid for uid, sleeper in self._asleep.items() if sleeper.until <= self._clock.now]
        for uid in due:
            if self._asleep[uid].go_on():
                del self._asleep[uid]
        return bool(due)

    def _finish_decided(self) -> bool:
        decided = [uid for uid, (_, waiting) in self._parked.items() if waiting.decision is not None]
        for uid in decided:
            attempt, _ = self._parked.pop(uid)
            self._finish(attempt)
        return bool(decided)

    def _schedule_one(self) -> bool:
        entry = self._parts.queue.pop_ready()
        if entry is None:
            return False
        self._attempt(entry)
        self._tried[entry.uid] = self._progress.version
        self._watched(self)
        return True

    def _attempt(self, entry: QueuedPod) -> None:
        self.attempts[entry.uid] = entry.attempts
        attempt = self._parts.cycles.schedule_one(entry)
        if attempt is None or not self._parts.cycles.begin_binding(attempt):
            return
        self._feed.pump()  # its expected node is seen, as it would be before anything slow ends
        waiting = attempt.cycle.framework.waiting_pods.get(entry.uid) if attempt.cycle.status.wait else None
        if waiting is None or waiting.decision is not None:
            self._finish(attempt)
            return
        self._parked[entry.uid] = attempt, waiting
        self._progress.held(entry.uid, waiting.deadline or self._clock.now)

    def _finish(self, attempt: Attempt) -> None:
        if not _may_sleep(attempt):
            self._bind(attempt)
            return
        sleeper = Sleeper(lambda: self._bind(attempt))
        if not sleeper.go_on():
            self._asleep[attempt.cycle.pod.uid] = sleeper
            self._progress.held(attempt.cycle.pod.uid, self._clock.now + BIND_SECONDS)

    def _bind(self, attempt: Attempt) -> None:
        if self._parts.cycles.finish_binding(attempt):
            self.bound_at[attempt.cycle.pod.uid] = self._clock.now

    # Time

    def _next(self) -> float | None:
        """When something can happen next by itself; None for never."""
        times = [waiting.deadline for _, waiting in self._parked.values()]
        times += [sleeper.until for sleeper in self._asleep.values()]
        times.append(self._parts.queue.next_wakeup(leftovers=self._flush_may_help()))
        times += self._gang_times()
        return min((at for at in times if at is not None), default=None)

    def _gang_times(self) -> Iterable[float]:
        coscheduling, now = self._parts.coscheduling, self._clock.now
        if coscheduling is None:
            return []
        leases = [slot.expires for slot in coscheduling.manager.slots if slot.expires > now]
        return leases if self._ticked else [*leases, now + TICK_SECONDS]

    def _flush_may_help(self) -> bool:
        """The flush tries pods again that nothing has happened for. With gangs and extenders time itself may be what helps."""
        if self._parts.extenders or (self._parts.coscheduling is not None and self._parts.coscheduling.manager.groups):
            return True
        pods = self._parts.queue.pending_pods().pods
        return any(self._tried.get(pod.uid) != self._progress.version for pod in pods)

    def _pass_time(self, at: float) -> None:
        self._clock.advance(at)
        self._parts.tick()
        self._ticked = True


def _may_sleep(attempt: Attempt) -> bool:
    """Whether a plugin has something to do in PreBind that can take its time."""
    cycle = attempt.cycle
    skipped = cycle.state.skip_pre_bind_plugins | {names.COSCHEDULING}
    return cycle.runs_pre_bind and any(plugin.name not in skipped for plugin in cycle.framework.pre_bind_plugins)
