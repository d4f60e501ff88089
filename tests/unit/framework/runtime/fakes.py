"""Plugins that answer what a test tells them, and a framework of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, cast

from extender.api import corev1
from extender.config.types import KubeSchedulerProfile, PluginRef, Plugins, PluginSet
from extender.framework.cycle_state import CycleState
from extender.framework.interface import (
    BindPlugin,
    FilterPlugin,
    NodeScore,
    NodeToStatus,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueuedPodInfo,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.framework.runtime.plugin_calls import Recorder
from extender.framework.runtime.registry import PluginFactory, Registry
from extender.framework.status import SUCCESS, Code, Status
from tests.objects import make_node, make_pod

REASON = "injected status"
POD = make_pod().name("p").obj()
NODES = [make_node().name(name).info() for name in ("n1", "n2")]


def status(code: Code) -> Status:
    return SUCCESS if code is Code.SUCCESS else Status(code, (REASON,))


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def step(self, seconds: float) -> None:
        self.now += seconds


class Sort(QueueSortPlugin):
    name = "queue-sort"

    def less(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
        return first.timestamp < second.timestamp


class Binder(BindPlugin):
    """Binds, or whatever it is told to."""

    def __init__(self, name: str = "bind", code: Code = Code.SUCCESS) -> None:
        self.name = name  # type: ignore[misc]
        self.code = code
        self.calls = 0

    def bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        self.calls += 1
        return status(self.code)


class Scorer(PreScorePlugin, ScorePlugin):
    """Scores by node name; PreScore's code may be something else than success."""

    def __init__(
        self,
        name: str,
        scores: Mapping[str, int] | int = 10,
        *,
        pre_score: Code = Code.SUCCESS,
        score: Code = Code.SUCCESS,
        normalize: Code | Callable[[int], int] = Code.SUCCESS,
    ) -> None:
        self.name = name  # type: ignore[misc]
        self._scores = scores
        self._pre_score = pre_score
        self._score = score
        self._normalize = normalize

    def pre_score(self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Status:
        return status(self._pre_score)

    def score(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> tuple[int, Status]:
        return self._scores if isinstance(self._scores, int) else self._scores[node.name], status(self._score)

    def normalize_score(self, state: CycleState, pod: corev1.Pod, scores: list[NodeScore]) -> Status:
        if isinstance(self._normalize, Code):
            return status(self._normalize)
        for entry in scores:
            entry.score = self._normalize(entry.score)
        return SUCCESS


class OnlyScore(ScorePlugin):
    """Has no PreScore."""

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]

    def score(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> tuple[int, Status]:
        return 1, SUCCESS


class FakePlugin(
    QueueSortPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterExtensions,
    FilterPlugin,
    PostFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ReservePlugin,
    PermitPlugin,
    PreBindPlugin,
    BindPlugin,
    PostBindPlugin,
):
    """Has every extension point; answers success but where `answers` or `codes` say otherwise, by method name. Notes its
    calls."""

    def __init__(
        self,
        name: str = "test-plugin",
        *,
        narrowed: Iterable[str] | None = None,
        permit_seconds: float = 10.0,
        result: PostFilterResult | None = None,
        raises: Mapping[str, Exception] | None = None,
        journal: list[str] | None = None,
        answers: Mapping[str, Code] | None = None,
        **codes: Code,
    ) -> None:
        self.name = name  # type: ignore[misc]
        self.codes = {**(answers or {}), **codes}
        self.narrowed = narrowed
        self.permit_seconds = permit_seconds
        self.result = result
        self.raises = raises or {}
        self.calls: list[str] = []
        self.journal = journal if journal is not None else []
        self.seen_pods: list[list[str]] = []

    def _say(self, method: str) -> Status:
        self.calls.append(method)
        self.journal.append(f"{method} {self.name}")
        if method in self.raises:
            raise self.raises[method]
        return status(self.codes.get(method, Code.SUCCESS))

    def less(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
        return first.timestamp < second.timestamp

    def pre_enqueue(self, pod: corev1.Pod) -> Status:
        return self._say("pre_enqueue")

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        narrowed = PreFilterResult(frozenset(self.narrowed)) if self.narrowed is not None else None
        return narrowed, self._say("pre_filter")

    def pre_filter_extensions(self) -> PreFilterExtensions | None:
        return self

    def add_pod(self, state: CycleState, pod: corev1.Pod, added: PodInfo, node: NodeInfo) -> Status:
        return self._say("add_pod")

    def remove_pod(self, state: CycleState, pod: corev1.Pod, removed: PodInfo, node: NodeInfo) -> Status:
        return self._say("remove_pod")

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        self.seen_pods.append([info.pod.name for info in node.pods])
        return self._say("filter")

    def post_filter(
        self, state: CycleState, pod: corev1.Pod, node_statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        return self.result, self._say("post_filter")

    def pre_score(self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Status:
        return self._say("pre_score")

    def score(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> tuple[int, Status]:
        return 0, self._say("score")

    def reserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        return self._say("reserve")

    def unreserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> None:
        self._say("unreserve")

    def permit(self, state: CycleState, pod: corev1.Pod, node_name: str) -> tuple[Status, float]:
        return self._say("permit"), self.permit_seconds

    def pre_bind_pre_flight(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        return self._say("pre_bind_pre_flight")

    def pre_bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        return self._say("pre_bind")

    def bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        return self._say("bind")

    def post_bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> None:
        self._say("post_bind")


class Nominations:
    """A nominator that knows what it is told."""

    def __init__(self, nominated: Mapping[str, Sequence[corev1.Pod]] | None = None) -> None:
        self._nominated = nominated or {}

    def nominated_nodes(self) -> Sequence[str]:
        return tuple(self._nominated)

    def nominated_pods_for_node(self, node_name: str) -> Sequence[corev1.Pod]:
        return self._nominated.get(node_name, ())

    def nominated_pods_but(self, uids: Set[str]) -> list[tuple[str, corev1.Pod]]:
        names = self.nominated_nodes()
        return [(name, pod) for name in names for pod in self.nominated_pods_for_node(name) if pod.uid not in uids]

    def add_nominated_pod(self, pod: corev1.Pod, node_name: str) -> None:
        raise AssertionError("not expected")

    def delete_nominated_pod_if_exists(self, pod: corev1.Pod) -> None:
        raise AssertionError("not expected")


def refs(*names: str) -> tuple[PluginRef, ...]:
    return tuple(PluginRef(name) for name in names)


def make_dependencies(
    *,
    nominator: Nominations | None = None,
    clock: Callable[[], float] | None = None,
    record: Recorder | None = None,
) -> FrameworkDependencies:
    return FrameworkDependencies(
        api=cast(Any, None),
        events=cast(Any, None),
        newest_snapshot=lambda: cast(Any, "the newest"),
        lister=lambda type_: cast(Any, None),
        nominator=nominator or Nominations(),
        clock=clock or FakeClock(),
        record=record,
    )


def _giving(plugin: Plugin) -> PluginFactory:
    return lambda args, handle: plugin


def registry_of(*plugins: Plugin) -> Registry:
    registry = Registry()
    for plugin in plugins:
        registry.register(plugin.name, _giving(plugin))
    return registry


def make_framework(point: str, *plugins: Plugin, dependencies: FrameworkDependencies | None = None) -> Framework:
    """The plugins at one extension point, in their order; a queue sort and a binder so that the profile is valid."""
    sort, binder = Sort(), Binder()
    points = {"queue_sort": PluginSet(refs(sort.name)), "bind": PluginSet(refs(binder.name))}
    points[point] = PluginSet(refs(*(plugin.name for plugin in plugins)))
    profile = KubeSchedulerProfile("test", Plugins(points=points))
    return Framework(profile, registry_of(sort, binder, *plugins), dependencies or make_dependencies())
