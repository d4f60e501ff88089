"""An in-process scheduler taken step by step, with a plugin that does what a test tells it at each extension point."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from extender.api import corev1
from extender.client.binding import bind_pod
from extender.client.embedded import EmbeddedAPI
from extender.client.embedded.feed import Feed
from extender.client.interface import NODES, PODS
from extender.config.types import (
    ExtenderConfig,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginRef,
    Plugins,
    PluginSet,
)
from extender.framework.cycle_state import CycleState
from extender.framework.interface import (
    BindPlugin,
    EnqueueExtensions,
    FilterPlugin,
    NodeToStatus,
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
)
from extender.framework.node_info import NodeInfo
from extender.framework.status import SKIP, SUCCESS, Status, error, unschedulable
from extender.plugins.registry import new_in_tree_registry
from extender.scheduler.in_process.factory import build_parts
from extender.scheduler.in_process.pod_cycles import Attempt
from extender.simulation.clock import VirtualClock, VirtualTime
from extender.simulation.journal import Journal

NAME = "Scripted"
Answer = Status | Exception


class Scripted(
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    ReservePlugin,
    PermitPlugin,
    PreBindPlugin,
    BindPlugin,
    PostBindPlugin,
    EnqueueExtensions,
):
    """`script`: extension point -> its answer, SUCCESS where there is none. `called` has the points in order."""

    name = NAME

    def __init__(self, api: Any) -> None:
        self._api = api
        self.script: dict[str, Answer] = {}
        self.called: list[str] = []
        self.nominating: PostFilterResult | None = None
        self.wait_seconds = 30.0

    def events_to_register(self) -> Sequence[Any]:
        return ()

    def _says(self, point: str, otherwise: Status = SUCCESS) -> Status:
        self.called.append(point)
        answer = self.script.get(point, otherwise)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        return None, self._says("PreFilter")

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        return self._says("Filter")

    def post_filter(
        self, state: CycleState, pod: corev1.Pod, node_statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        return self.nominating, self._says("PostFilter", unschedulable())

    def reserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        return self._says("Reserve")

    def unreserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> None:
        self.called.append("Unreserve")

    def permit(self, state: CycleState, pod: corev1.Pod, node_name: str) -> tuple[Status, float]:
        return self._says("Permit"), self.wait_seconds

    def pre_bind_pre_flight(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        return self._says("PreBindPreFlight", SKIP)

    def pre_bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        return self._says("PreBind")

    def bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        status = self._says("Bind")
        if status.success:
            outcome = bind_pod(self._api, pod, node_name)
            return SUCCESS if outcome.bound else error(outcome.reason)
        return status

    def post_bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> None:
        self.called.append("PostBind")


class Bench:
    """One or several profiles of Scripted alone. Nothing happens but by `see`, `attempt` and the attempt's halves."""

    def __init__(
        self,
        extenders: Sequence[ExtenderConfig] = (),
        scheduler_names: Sequence[str] = ("default-scheduler",),
        percentages: Sequence[int | None] = (None,),
        percentage: int = 0,
    ) -> None:
        self.api = EmbeddedAPI()
        self.plugins: dict[str, Scripted] = {}
        self.clock = VirtualClock()
        self.said: list[tuple[str, str]] = []  # (reason, note) of every event
        journal = Journal(lambda news: self.said.append((str(news[1]), str(news[2]))))  # type: ignore[index]
        registry = new_in_tree_registry()
        registry.register(NAME, self._scripted)
        refs = tuple(PluginRef(name) for name in ("PrioritySort", NAME))
        profiles = tuple(
            KubeSchedulerProfile(name, Plugins(PluginSet(refs)), percentage_of_nodes_to_score=share)
            for name, share in zip(scheduler_names, [*percentages, *[None] * len(scheduler_names)])
        )
        configuration = KubeSchedulerConfiguration(profiles, tuple(extenders), percentage)
        self.time = VirtualTime(self.clock, journal, random.Random(0))
        self.parts = build_parts(self.api, configuration, registry, self.time)
        self.feed = Feed(self.api, self.parts.informers, lambda resource, old, new: None)
        self.feed.start()

    def _scripted(self, args: Any, handle: Any) -> Scripted:
        plugin = self.plugins[handle.profile_name] = Scripted(handle.api)
        return plugin

    @property
    def plugin(self) -> Scripted:
        return next(iter(self.plugins.values()))

    def node(self, *names: str) -> None:
        for name in names:
            self.api.create(NODES, {"metadata": {"name": name}, "status": {"allocatable": {"pods": "110"}}})
        self.see()

    def pod(self, name: str = "p", **spec: Any) -> corev1.Pod:
        made = self.api.create(PODS, {"metadata": {"name": name}, "spec": {"containers": [{"name": "c"}], **spec}})
        self.see()
        return made

    def see(self) -> None:
        """What has happened in the API is brought to the scheduler."""
        self.feed.pump()

    def schedule(self) -> Attempt | None:
        """The scheduling cycle of the next pod."""
        entry = self.parts.queue.pop_ready()
        assert entry is not None, "no pod is ready"
        return self.parts.cycles.schedule_one(entry)

    def attempt(self, between: Callable[[Attempt], None] = lambda attempt: None) -> bool:
        """Both cycles of the next pod; `between` them something may happen. Whether it is bound."""
        attempt = self.schedule()
        if attempt is None or not self.parts.cycles.begin_binding(attempt):
            return False
        between(attempt)
        return self.parts.cycles.finish_binding(attempt)

    def get(self, name: str = "p") -> corev1.Pod:
        return self.api.get(PODS, name, "default")

    def place(self, pod: corev1.Pod) -> str:
        """Where the pod waits in the queue; "" if it does not."""
        known = self.parts.queue.get(pod)
        return known[1].value if known is not None else ""

    def close(self) -> None:
        for extender in self.parts.extenders:
            extender.close()
