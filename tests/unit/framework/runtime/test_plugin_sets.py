"""Which plugin runs where. kube-scheduler: TestNewFrameworkMultiPointExpansion, TestInitFrameworkWithScorePlugins"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from extender.config.defaults import whole_profile
from extender.config.types import EXTENSION_POINTS, KubeSchedulerProfile, PluginRef, Plugins, PluginSet
from extender.framework.interface import Plugin
from extender.framework.runtime.framework import Framework
from extender.framework.runtime.plugin_sets import INTERFACES, PluginSetError
from extender.framework.runtime.registry import RegistryError
from tests.unit.framework.runtime.fakes import (
    Binder,
    FakePlugin,
    OnlyScore,
    Scorer,
    Sort,
    make_dependencies,
    make_framework,
    refs,
    registry_of,
)

EVERYWHERE = dict.fromkeys(EXTENSION_POINTS, ("test-plugin",))


def weighted(**weights: int) -> tuple[PluginRef, ...]:
    return tuple(PluginRef(name.replace("_", "-"), weight) for name, weight in weights.items())


def build(plugins: Plugins) -> Framework:
    everything = registry_of(
        FakePlugin(), Sort(), Binder(), Scorer("score-1"), Scorer("score-2"), OnlyScore("normalizing-1")
    )
    return Framework(KubeSchedulerProfile("test", plugins), everything, make_dependencies())


def run_where(framework: Framework) -> dict[str, tuple[str, ...]]:
    return {point: tuple(p.name for p in plugins) for point, plugins in framework.list_plugins().items() if plugins}


@pytest.mark.parametrize(
    ("plugins", "expected", "weights"),
    [
        pytest.param(
            Plugins(PluginSet(weighted(test_plugin=5))),
            EVERYWHERE,
            {"test-plugin": 5},
            id="a MultiPoint plugin runs at every point that it has",
        ),
        pytest.param(
            Plugins(
                PluginSet(refs("test-plugin")),
                {
                    "pre_score": PluginSet(disabled=refs("test-plugin")),
                    "score": PluginSet(disabled=refs("test-plugin")),
                },
            ),
            {point: names for point, names in EVERYWHERE.items() if point not in ("pre_score", "score")},
            {"test-plugin": 1},
            id="disabled at some points it runs at the others",
        ),
        pytest.param(
            Plugins(PluginSet(refs("test-plugin", "score-1"))),
            EVERYWHERE | {"pre_score": ("test-plugin", "score-1"), "score": ("test-plugin", "score-1")},
            {"test-plugin": 1, "score-1": 1},
            id="several MultiPoint plugins run in their order",
        ),
        pytest.param(
            Plugins(PluginSet(refs("test-plugin", "score-1")), {"pre_score": PluginSet(disabled=refs("*"))}),
            {k: v for k, v in EVERYWHERE.items() if k != "pre_score"} | {"score": ("test-plugin", "score-1")},
            {"test-plugin": 1, "score-1": 1},
            id="all disabled at a point: none of MultiPoint's run there",
        ),
        pytest.param(
            Plugins(
                PluginSet(refs("normalizing-1", "test-plugin", "score-1")),
                {"score": PluginSet(refs("score-1", "test-plugin"))},
            ),
            EVERYWHERE
            | {"pre_score": ("test-plugin", "score-1"), "score": ("score-1", "test-plugin", "normalizing-1")},
            {"test-plugin": 1, "score-1": 1, "normalizing-1": 1},
            id="those that the point names come first, in its order",
        ),
        pytest.param(
            Plugins(
                PluginSet(refs("test-plugin", "score-1")),
                {"score": PluginSet(refs("normalizing-1", "score-1", "test-plugin"))},
            ),
            EVERYWHERE
            | {"pre_score": ("test-plugin", "score-1"), "score": ("score-1", "test-plugin", "normalizing-1")},
            {"test-plugin": 1, "score-1": 1, "normalizing-1": 1},
            id="those that are not in MultiPoint come last, wherever the point names them",
        ),
        pytest.param(
            Plugins(
                PluginSet(refs("test-plugin", "score-1")),
                {"score": PluginSet(weighted(score_1=5, test_plugin=3))},
            ),
            EVERYWHERE | {"pre_score": ("test-plugin", "score-1"), "score": ("score-1", "test-plugin")},
            {"score-1": 5, "test-plugin": 3},
            id="the point's weights win over MultiPoint's",
        ),
        pytest.param(
            Plugins(PluginSet(refs("queue-sort", "bind", "score-1"), refs("*"))),
            {"queue_sort": ("queue-sort",), "pre_score": ("score-1",), "score": ("score-1",), "bind": ("bind",)},
            {"score-1": 1},
            id="disabled '*' in MultiPoint leaves what is enabled beside it",
        ),
        pytest.param(
            Plugins(PluginSet(refs("bind", "queue-sort", "score-1"), refs("score-1"))),
            {"queue_sort": ("queue-sort",), "pre_score": ("score-1",), "score": ("score-1",), "bind": ("bind",)},
            {"score-1": 1},
            id="disabled by name in MultiPoint and enabled beside it: enabled",
        ),
        pytest.param(
            Plugins(
                PluginSet(refs("test-plugin", "score-1")),
                {"score": PluginSet(weighted(score_1=5, score_2=5, test_plugin=3))},
            ),
            EVERYWHERE | {"pre_score": ("test-plugin", "score-1"), "score": ("score-1", "test-plugin", "score-2")},
            {"score-1": 5, "score-2": 5, "test-plugin": 3},
            id="a plugin at both runs once",
        ),
        pytest.param(
            Plugins(
                points={
                    "queue_sort": PluginSet(refs("queue-sort")),
                    "bind": PluginSet(refs("bind")),
                    "filter": PluginSet(refs("test-plugin"), refs("*")),
                }
            ),
            {"queue_sort": ("queue-sort",), "filter": ("test-plugin",), "bind": ("bind",)},
            {},
            id="without MultiPoint only what the points name",
        ),
    ],
)
def test_multi_point_expansion(
    plugins: Plugins, expected: Mapping[str, tuple[str, ...]], weights: Mapping[str, int]
) -> None:
    framework = build(plugins)
    assert run_where(framework) == expected
    assert framework.score_weights == weights


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        pytest.param(
            Plugins(PluginSet(refs("test-plugin", "test-plugin"))),
            'plugin "test-plugin" already registered as "PreEnqueuePlugin"',
            id="twice in MultiPoint",
        ),
        pytest.param(
            Plugins(PluginSet(refs("test-plugin")), {"filter": PluginSet(refs("test-plugin", "test-plugin"))}),
            'plugin "test-plugin" already registered as "FilterPlugin"',
            id="twice at a point",
        ),
        pytest.param(
            Plugins(PluginSet(refs("test-plugin")), {"filter": PluginSet(refs("score-1"))}),
            'plugin "score-1" does not extend FilterPlugin plugin',
            id="at a point that it does not have",
        ),
        pytest.param(
            Plugins(PluginSet(refs("test-plugin", "queue-sort"))),
            'only one queue sort plugin required for profile with scheduler name "test", but got 2',
            id="two queue sorts",
        ),
        pytest.param(
            Plugins(PluginSet(refs("bind"))),
            'only one queue sort plugin required for profile with scheduler name "test", but got 0',
            id="no queue sort",
        ),
        pytest.param(
            Plugins(PluginSet(refs("queue-sort"))),
            'at least one bind plugin is needed for profile with scheduler name "test"',
            id="no plugin that binds",
        ),
        pytest.param(
            Plugins(PluginSet((*refs("test-plugin"), PluginRef("score-1", 2**63)))),
            "score plugins: total score of Score plugins could overflow",
            id="weights beyond 64 bits",
        ),
    ],
)
def test_a_set_that_makes_no_sense_is_refused(plugins: Plugins, message: str) -> None:
    with pytest.raises(PluginSetError) as caught:
        build(plugins)
    assert str(caught.value) == message


def test_a_plugin_that_is_not_registered_is_named() -> None:
    with pytest.raises(RegistryError, match='plugin "absent" does not exist'):
        build(Plugins(PluginSet(refs("test-plugin", "absent"))))


def test_a_factory_that_fails_is_named() -> None:
    registry = registry_of(Sort(), Binder())
    registry.register("broken", lambda args, handle: 1 / 0)  # type: ignore[arg-type, return-value]
    profile = KubeSchedulerProfile("test", Plugins(PluginSet(refs("queue-sort", "bind", "broken"))))
    with pytest.raises(RegistryError, match='initializing plugin "broken": division by zero'):
        Framework(profile, registry, make_dependencies())


def test_a_name_can_be_registered_once() -> None:
    registry = registry_of(Sort())
    with pytest.raises(RegistryError, match="a plugin named queue-sort already exists"):
        registry.merge(registry_of(Sort()))


def test_a_factory_gets_the_profiles_arguments_and_the_handle() -> None:
    got = []
    registry = registry_of(Sort(), Binder())

    def create(args: object, handle: object) -> Scorer:
        got.append((args, handle))
        return Scorer("own")

    registry.register("own", create)
    plugins = Plugins(PluginSet(refs("queue-sort", "bind", "own")))
    framework = Framework(KubeSchedulerProfile("test", plugins, {"own": {"a": 1}}), registry, make_dependencies())
    assert got == [({"a": 1}, framework)]


def test_only_plugins_that_can_refuse_are_asked_for_events() -> None:
    framework = make_framework("score", Scorer("score-1"))
    assert framework.enqueue_plugins == []
    assert [plugin.name for plugin in make_framework("filter", FakePlugin()).enqueue_plugins] == ["test-plugin"]


def test_the_snapshot_is_the_cycles_own_and_outside_a_cycle_the_newest() -> None:
    framework = make_framework("filter")
    framework.set_snapshot("the cycle's")  # type: ignore[arg-type]
    assert framework.snapshot() == "the cycle's"  # type: ignore[comparison-overlap]
    framework.set_snapshot(None)
    assert framework.snapshot() == "the newest"  # type: ignore[comparison-overlap]


HAS = {
    "SchedulingGates": "pre_enqueue",
    "PrioritySort": "queue_sort",
    "NodeUnschedulable": "filter",
    "NodeName": "filter",
    "TaintToleration": "filter pre_score score",
    "NodeAffinity": "pre_filter filter pre_score score",
    "NodePorts": "pre_filter filter",
    "NodeResourcesFit": "pre_filter filter pre_score score",
    "VolumeRestrictions": "pre_filter filter",
    "NodeVolumeLimits": "pre_filter filter",
    "VolumeBinding": "pre_filter filter pre_score score reserve pre_bind",
    "VolumeZone": "pre_filter filter",
    "PodTopologySpread": "pre_filter filter pre_score score",
    "InterPodAffinity": "pre_filter filter pre_score score",
    "DynamicResources": "pre_enqueue pre_filter filter post_filter score reserve pre_bind",
    "DefaultPreemption": "pre_enqueue post_filter",
    "NodeResourcesBalancedAllocation": "pre_score score",
    "ImageLocality": "score",
    "DefaultBinder": "bind",
    "NodeDeclaredFeatures": "pre_filter filter",
}
"""The points of each in-tree plugin."""


def stand_in(name: str, points: str) -> Plugin:
    """A plugin with these points and no others."""
    bases = tuple(INTERFACES[point] for point in points.split())
    methods = {key: value for key, value in vars(FakePlugin).items() if callable(value) and not key.startswith("_")}
    plugin: Plugin = type(name, bases, {**methods, "name": name})()
    return plugin


def test_the_default_profile_expands_as_kube_schedulers_does() -> None:
    registry = registry_of(*(stand_in(name, points) for name, points in HAS.items()))
    framework = Framework(whole_profile(), registry, make_dependencies())
    node_filters = ("NodeAffinity", "NodePorts", "NodeResourcesFit")
    pre_filter = (
        *node_filters,
        *("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
        *("PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures"),
    )
    assert run_where(framework) == {
        "pre_enqueue": ("SchedulingGates", "DynamicResources", "DefaultPreemption"),
        "queue_sort": ("PrioritySort",),
        "pre_filter": pre_filter,
        "filter": ("NodeUnschedulable", "NodeName", "TaintToleration", *pre_filter),
        "post_filter": ("DynamicResources", "DefaultPreemption"),
        "pre_score": (
            *("TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding"),
            *("PodTopologySpread", "InterPodAffinity", "NodeResourcesBalancedAllocation"),
        ),
        "score": (
            *("TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread"),
            *("InterPodAffinity", "DynamicResources", "NodeResourcesBalancedAllocation", "ImageLocality"),
        ),
        "reserve": ("VolumeBinding", "DynamicResources"),
        "pre_bind": ("VolumeBinding", "DynamicResources"),
        "bind": ("DefaultBinder",),
    }
    assert list(framework.score_weights.values()) == [3, 2, 1, 1, 2, 2, 2, 1, 1]
