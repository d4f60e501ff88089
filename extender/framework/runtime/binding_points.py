"""The extension points from Reserve to PostBind, and the pods that wait in Permit.

| caller           | Skip        | Unschedulable, ...Unresolvable, Pending | Wait             | Error |
| Reserve          | error       | returned                                | error            | error |
| Permit           | error       | returned at once                        | noted, others run | error |
| PreBindPreFlight | PreBind off | error                                   | error            | error |
| PreBind          | error       | returned                                | error            | error |
| Bind             | next plugin | returned                                | error            | error |
These run on many threads side by side, one for each pod.
kube-scheduler: pkg/scheduler/framework/runtime/framework.go
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.handle import Clock
from extender.framework.interface import (
    BindPlugin,
    PermitPlugin,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
    WaitingPod,
)
from extender.framework.runtime.plugin_calls import Recorder, as_is, broken_promise, called, plugin_error, timed, why
from extender.framework.runtime.pods_in_pre_bind import PodInPreBind, PodsInPreBindMap
from extender.framework.runtime.waiting_pods import PendingPod, WaitingPodsMap
from extender.framework.status import SKIP, SUCCESS, Code, Status

MAX_PERMIT_TIMEOUT_SECONDS = 15 * 60.0
WAIT_ON_PERMIT = "WaitOnPermit"  # how a recorder is told of the wait itself
ASKED_TO_WAIT = "one or more plugins asked to wait and no plugin rejected pod"


class BindingPoints:
    """Part of Framework; the attributes are set there."""

    record: Recorder | None
    profile_name: str
    clock: Clock
    waiting_pods: WaitingPodsMap
    pods_in_pre_bind: PodsInPreBindMap
    reserve_plugins: list[ReservePlugin]
    permit_plugins: list[PermitPlugin]
    pre_bind_plugins: list[PreBindPlugin]
    bind_plugins: list[BindPlugin]
    post_bind_plugins: list[PostBindPlugin]

    @timed("Reserve")
    def run_reserve_plugins_reserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        for plugin in self.reserve_plugins:
            status = called("Reserve", plugin.name, partial(plugin.reserve, state, pod, node_name), as_is, state)
            if not status.success:
                if status.rejected:
                    return status.with_plugin(plugin.name)
                return plugin_error(f'running Reserve plugin "{plugin.name}": {why(status)}')
        return SUCCESS

    @timed("Unreserve")
    def run_reserve_plugins_unreserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> None:
        """In reverse order, every one of them, whatever fails."""
        for plugin in reversed(self.reserve_plugins):
            try:
                plugin.unreserve(state, pod, node_name)
            except Exception as exception:
                broken_promise("Unreserve", plugin.name, exception)

    @timed("Permit")
    def run_permit_plugins(
        self, state: CycleState, pod: corev1.Pod, node_name: str
    ) -> tuple[Status, Mapping[str, float]]:
        """All of them, unless one refuses. WAIT comes with the longest wait of each plugin that asked for one, in seconds."""
        timeouts: dict[str, float] = {}
        asked = SUCCESS
        for plugin in self.permit_plugins:
            status, seconds = called(
                "Permit",
                plugin.name,
                partial(plugin.permit, state, pod, node_name),
                lambda status: (status, 0.0),
                state,
            )
            if status.success:
                continue
            if status.rejected:
                return status.with_plugin(plugin.name), {}
            if not status.wait:
                return plugin_error(f'running Permit plugin "{plugin.name}": {why(status)}', plugin.name), {}
            timeouts[plugin.name] = min(seconds, MAX_PERMIT_TIMEOUT_SECONDS)
            asked = status
        if timeouts:
            return Status(Code.WAIT, (*asked.reasons, ASKED_TO_WAIT)), timeouts
        return SUCCESS, {}

    def add_waiting_pod(self, pod: corev1.Pod, node_name: str, timeouts: Mapping[str, float]) -> Callable[[], None]:
        """Returns what takes it out again, for an attempt that ends before `wait_on_permit`: the next would find it, and be refused."""
        waiting = PendingPod(pod, node_name, timeouts, self.clock)
        self.waiting_pods.add(waiting)
        return partial(self.waiting_pods.remove, waiting)

    def will_wait_on_permit(self, pod: corev1.Pod) -> bool:
        return self.waiting_pods.get(pod.uid) is not None

    def wait_on_permit(self, pod: corev1.Pod) -> Status:
        """Blocks while the pod waits; SUCCESS at once for one that does not."""
        waiting = self.waiting_pods.get(pod.uid)
        if waiting is None:
            return SUCCESS
        started = time.perf_counter()
        try:
            status = waiting.await_decision()
        finally:
            self.waiting_pods.remove(waiting)
        if self.record is not None:
            self.record(WAIT_ON_PERMIT, str(status.code), self.profile_name, time.perf_counter() - started)
        if status.success or status.rejected:
            return status
        return plugin_error(f"waiting on permit for pod: {status.message}", status.plugin)

    @timed("PreBindPreFlight")
    def run_pre_bind_pre_flights(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        """SKIP if no PreBind plugin has anything to do."""
        skipped: set[str] = set()
        for plugin in self.pre_bind_plugins:
            status = called(
                "PreBindPreFlight",
                plugin.name,
                partial(plugin.pre_bind_pre_flight, state, pod, node_name),
                as_is,
                state,
            )
            if status.skip:
                skipped.add(plugin.name)
            elif status.code is Code.ERROR:
                return plugin_error(f'running PreBindPreFlight "{plugin.name}": {why(status)}')
            elif not status.success:
                return plugin_error(
                    f'PreBindPreFlight {plugin.name} returned "{status.code}", which is unsupported. '
                    "It is supposed to return Success, Skip, or Error status"
                )
        state.skip_pre_bind_plugins = frozenset(skipped)
        return SKIP if len(skipped) == len(self.pre_bind_plugins) else SUCCESS

    @timed("PreBind")
    def run_pre_bind_plugins(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        """Until it ends, a preemptor of the pod cancels it."""
        with self.pods_in_pre_bind.running(pod.uid) as running:
            status = self._pre_bind(state, pod, node_name)
            cancelled = running.finish()
        return status if cancelled is None else plugin_error(cancelled)

    def _pre_bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        for plugin in self.pre_bind_plugins:
            if plugin.name in state.skip_pre_bind_plugins:
                continue
            status = called("PreBind", plugin.name, partial(plugin.pre_bind, state, pod, node_name), as_is, state)
            if not status.success:
                if status.rejected:
                    return status.with_plugin(plugin.name)
                return plugin_error(f'running PreBind plugin "{plugin.name}": {why(status)}')
        return SUCCESS

    @timed("Bind")
    def run_bind_plugins(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        """The first that does not hand on decides; SKIP if all hand on."""
        for plugin in self.bind_plugins:
            status = called("Bind", plugin.name, partial(plugin.bind, state, pod, node_name), as_is, state)
            if status.skip:
                continue
            if status.success:
                return status
            if status.rejected:
                return status.with_plugin(plugin.name)
            return plugin_error(f'running Bind plugin "{plugin.name}": {why(status)}')
        return SKIP

    @timed("PostBind")
    def run_post_bind_plugins(self, state: CycleState, pod: corev1.Pod, node_name: str) -> None:
        for plugin in self.post_bind_plugins:
            try:
                plugin.post_bind(state, pod, node_name)
            except Exception as exception:
                broken_promise("PostBind", plugin.name, exception)

    def iterate_over_waiting_pods(self, callback: Callable[[WaitingPod], None]) -> None:
        self.waiting_pods.iterate(callback)

    def get_waiting_pod(self, uid: str) -> WaitingPod | None:
        return self.waiting_pods.get(uid)

    def get_pod_in_pre_bind(self, uid: str) -> PodInPreBind | None:
        return self.pods_in_pre_bind.get(uid)

    def reject_waiting_pod(self, uid: str) -> bool:
        """Go: RejectWaitingPod, for a pod that is gone."""
        waiting = self.waiting_pods.get(uid)
        return waiting is not None and waiting.reject("", "removed")
