"""Which groups are to be looked at: now, since something has happened to them, or at a time though nothing does.

PodGroupManager keeps it. The watch's events and decisions about a group put it in; PlanningRounds takes it out and plans it, in
the manager's order; the plugin's tick moves those over whose time has come. kube-scheduler: pkg/scheduler/backend/queue,
active_queue.go and backoff_queue.go
"""

from __future__ import annotations

from collections.abc import Callable

from extender.plugins.coscheduling.planner.waits_for import WaitsFor


class GangQueue:
    """Keys of groups. Not locked: the manager's lock guards it. clock: monotonic seconds, in which all times here are."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.active: set[str] = set()  # something has happened to them since they were last looked at
        self.later: dict[str, float] = {}  # key -> when it is to be looked at though nothing happens
        self.backed_off: dict[str, float] = {}  # key -> until when it may not be planned
        self.unschedulable: dict[
            str, WaitsFor
        ] = {}  # key -> what a plan found it to lack: a gang that is in none waits for anything

    def back_off(self, key: str, seconds: float) -> None:
        self.backed_off[key] = self._clock() + seconds
        self.later[key] = self.backed_off[key]

    def backing_off(self, key: str) -> bool:
        until = self.backed_off.get(key)
        if until is not None and until <= self._clock():
            del self.backed_off[key]
            return False
        return until is not None

    def flush(self) -> bool:
        """Groups whose time has come are active now. Returns whether there is one."""
        now = self._clock()
        keys = [key for key, at in self.later.items() if at <= now]
        for key in keys:
            del self.later[key]
        self.active.update(keys)
        return bool(keys)

    def forget(self, key: str) -> None:
        """The group is gone."""
        self.active.discard(key)
        self.later.pop(key, None)
        self.backed_off.pop(key, None)
        self.unschedulable.pop(key, None)
