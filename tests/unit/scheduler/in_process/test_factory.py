"""The scheduler's options: back-offs, profiles, and plugins from outside. kube-scheduler: pkg/scheduler/scheduler_test.go"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from extender.api import corev1
from extender.client.embedded import EmbeddedAPI
from extender.client.interface import PODS
from extender.config.defaults import MULTI_POINT
from extender.config.types import KubeSchedulerConfiguration, KubeSchedulerProfile, PluginRef, Plugins, PluginSet
from extender.framework.cycle_state import CycleState
from extender.framework.handle import Handle
from extender.framework.interface import FilterPlugin, PermitPlugin, PostBindPlugin
from extender.framework.node_info import NodeInfo
from extender.framework.pods_to_activate import stash_pod
from extender.framework.runtime.registry import RegistryError
from extender.framework.status import SUCCESS, Status, unschedulable
from extender.plugins.registry import new_in_tree_registry
from extender.profile import ProfileError
from extender.scheduler.in_process.factory import InProcessParts, build_parts
from tests.objects import make_node, make_pod

DEFAULT = "default-scheduler"


@dataclass
class Dependencies:
    """One thread, and time that stands still unless it is moved."""

    now: float = 1000.0
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    recorder: Any = field(default_factory=lambda: Silent())
    verdicts: Any = None
    record: Any = None

    def clock(self) -> float:
        return self.now

    def spawn(self, job: Callable[[], None]) -> None:
        job()

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def submit(self, name: str, task: Callable[[], None]) -> None:
        task()


class Silent:
    def event(self, *args: object) -> None:
        return


class Theirs(FilterPlugin, PermitPlugin, PostBindPlugin):
    """Refuses the pod "refused"; activates the pods that `after` names for the extension point."""

    name = "Theirs"

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self.after: dict[str, Iterable[corev1.Pod]] = {}

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        return unschedulable("no") if pod.name == "refused" else SUCCESS

    def permit(self, state: CycleState, pod: corev1.Pod, node_name: str) -> tuple[Status, float]:
        self._stash(state, "permit")
        return SUCCESS, 0.0

    def post_bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> None:
        self._stash(state, "post_bind")

    def _stash(self, state: CycleState, point: str) -> None:
        for pod in self.after.get(point, ()):
            stash_pod(state, pod)


def profile(name: str = DEFAULT, *more: str) -> KubeSchedulerProfile:
    enabled = (*MULTI_POINT.enabled, *map(PluginRef, more))
    return KubeSchedulerProfile(name, Plugins(PluginSet(enabled)))


def built(
    dependencies: Dependencies, profiles: Sequence[KubeSchedulerProfile] = (), **options: Any
) -> tuple[InProcessParts, EmbeddedAPI]:
    api = EmbeddedAPI()
    registry = new_in_tree_registry()
    registry.merge({"Theirs": lambda args, handle: Theirs(handle)})
    configuration = KubeSchedulerConfiguration(tuple(profiles) or (profile(),), **options)
    return build_parts(api, configuration, registry, dependencies), api


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [
        pytest.param(1, 3, id="the first back-off is podInitialBackoffSeconds"),
        pytest.param(2, 5, id="the second is twice that, but no longer than podMaxBackoffSeconds"),
    ],
)
def test_back_offs(failures: int, seconds: int) -> None:
    dependencies = Dependencies()
    parts, _ = built(dependencies, pod_initial_backoff_seconds=3, pod_max_backoff_seconds=5)
    parts.queue.add(make_pod().name("p").obj())
    for _ in range(failures):
        dependencies.now += 100
        entry = parts.queue.pop_ready()
        assert entry is not None
        parts.queue.add_unschedulable_if_not_present(entry.rejected_by([]))
    wakeup = parts.queue.next_wakeup()
    assert wakeup is not None
    assert seconds <= wakeup - dependencies.now <= seconds + 1  # rounded up to the window of a second


def test_every_profile_has_its_framework_and_all_share_one_queue() -> None:
    parts, _ = built(Dependencies(), [profile("one"), profile("two")])
    assert set(parts.profiles) == {"one", "two"}
    assert parts.profiles["one"] is not parts.profiles["two"]


def test_two_profiles_of_one_name_are_an_error() -> None:
    with pytest.raises(ProfileError, match='duplicate profile with scheduler name "one"'):
        built(Dependencies(), [profile("one"), profile("one")])


def test_a_plugin_from_outside_refuses_pods() -> None:
    parts, _ = built(Dependencies(), [profile(DEFAULT, "Theirs")])
    parts.cache.add_node(make_node().name("n").capacity(cpu="4").obj())
    parts.queue.add(make_pod().name("refused").obj())
    entry = parts.queue.pop_ready()
    assert entry is not None
    assert parts.cycles.schedule_one(entry) is None


def test_a_plugin_that_is_not_there_is_an_error() -> None:
    with pytest.raises(RegistryError, match='plugin "Nobodys" does not exist'):
        built(Dependencies(), [profile(DEFAULT, "Nobodys")])


@pytest.mark.parametrize(
    ("point", "woken_by_scheduling", "woken_by_binding"),
    [
        pytest.param("permit", True, True, id="stashed in Permit: woken at the end of the scheduling cycle"),
        pytest.param("post_bind", False, True, id="stashed in PostBind: woken once the pod is bound"),
    ],
)
def test_siblings_that_a_plugin_stashes_are_activated(
    point: str, woken_by_scheduling: bool, woken_by_binding: bool
) -> None:
    parts, api = built(Dependencies(), [profile(DEFAULT, "Theirs")])
    sibling = make_pod().name("refused").obj()
    plugin = parts.profiles[DEFAULT].plugins["Theirs"]
    assert isinstance(plugin, Theirs)
    plugin.after = {point: [sibling]}
    parts.cache.add_node(make_node().name("n").capacity(cpu="4").obj())
    parts.queue.add(sibling)
    entry = parts.queue.pop_ready()
    assert entry is not None
    parts.queue.add_unschedulable_if_not_present(entry.rejected_by(["Theirs"]))
    pod = api.create(PODS, make_pod().name("p").json(), "default")
    parts.queue.add(pod)
    entry = parts.queue.pop_ready()
    assert entry is not None
    attempt = parts.cycles.schedule_one(entry)
    assert attempt is not None
    assert (parts.queue.pending_pods().active == 1) is woken_by_scheduling
    assert parts.cycles.begin_binding(attempt)
    assert parts.cycles.finish_binding(attempt)
    assert (parts.queue.pending_pods().active == 1) is woken_by_binding
