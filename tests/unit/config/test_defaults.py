"""What a file's plugins make of the defaults. kube-scheduler: TestMergePlugins, TestApplyFeatureGates"""

from __future__ import annotations

import pytest

from extender.config.defaults import (
    behind_profile,
    ignored_by_scheduler,
    merge_plugin_set,
    merge_plugins,
    planning_profile,
    whole_profile,
)
from extender.config.plugin_args import CoschedulingArgs, NodeResourcesFitArgs
from extender.config.types import ExtenderConfig, KubeSchedulerProfile, PluginRef, Plugins, PluginSet


def refs(*names: str) -> tuple[PluginRef, ...]:
    return tuple(PluginRef(name) for name in names)


DEFAULT = PluginSet(refs("Default1", "Default2"))


@pytest.mark.parametrize(
    ("default", "custom", "merged"),
    [
        pytest.param(
            DEFAULT,
            PluginSet(refs("Custom1", "Custom2")),
            PluginSet(refs("Default1", "Default2", "Custom1", "Custom2")),
            id="a custom plugin comes after the defaults",
        ),
        pytest.param(
            DEFAULT,
            PluginSet(refs("Custom1", "Default2"), refs("Default2")),
            PluginSet(refs("Default1", "Custom1", "Default2"), refs("Default2")),
            id="a default disabled and enabled anew stands where the file has it",
        ),
        pytest.param(
            DEFAULT,
            PluginSet(refs("Custom1", "Default1", "Default2"), refs("*")),
            PluginSet(refs("Custom1", "Default1", "Default2"), refs("*")),
            id="all disabled: before all defaults",
        ),
        pytest.param(
            DEFAULT,
            PluginSet(refs("Default2", "Default1"), refs("*")),
            PluginSet(refs("Default2", "Default1"), refs("*")),
            id="all disabled: the defaults in another order",
        ),
        pytest.param(DEFAULT, PluginSet(), DEFAULT, id="nothing said: the defaults"),
        pytest.param(
            DEFAULT,
            PluginSet((PluginRef("Default1", 5),)),
            PluginSet((PluginRef("Default1", 5), PluginRef("Default2"))),
            id="a default with another weight keeps its place",
        ),
        pytest.param(
            PluginSet(refs("Default1", "Default2", "Default3")),
            PluginSet((PluginRef("Default2", 2), PluginRef("Custom1"), PluginRef("Default1", 1))),
            PluginSet(
                (PluginRef("Default1", 1), PluginRef("Default2", 2), PluginRef("Default3"), PluginRef("Custom1"))
            ),
            id="several replaced, in the order of the defaults",
        ),
        pytest.param(
            DEFAULT,
            PluginSet((PluginRef("Default1", 1), PluginRef("Default1", 2))),
            PluginSet((PluginRef("Default1", 2), PluginRef("Default2"), PluginRef("Default1", 1))),
            id="a plugin that stands twice stays so, for the runtime to refuse",
        ),
        pytest.param(
            PluginSet(),
            PluginSet(disabled=refs("Default1")),
            PluginSet(disabled=refs("Default1")),
            id="disabled where no default is: kept, for the expansion of MultiPoint",
        ),
        pytest.param(
            PluginSet(refs("Default1"), refs("Default2")),
            PluginSet(refs("Custom1"), refs("Default1")),
            PluginSet(refs("Custom1"), refs("Default1", "Default2")),
            id="what the defaults disable stays disabled",
        ),
        pytest.param(
            PluginSet(refs("Default1"), refs("*")),
            PluginSet(refs("Custom1")),
            PluginSet(refs("Custom1"), refs("*")),
            id="all disabled by default: only the file's",
        ),
    ],
)
def test_merge_plugin_set(default: PluginSet, custom: PluginSet, merged: PluginSet) -> None:
    assert merge_plugin_set(default, custom) == merged


def test_merge_plugins_goes_list_by_list() -> None:
    default = Plugins(PluginSet(refs("Default1")), {"score": PluginSet(disabled=refs("Default1"))})
    custom = Plugins(
        PluginSet(refs("Custom1")), {"score": PluginSet(refs("Custom1")), "filter": PluginSet(disabled=refs("*"))}
    )
    assert merge_plugins(default, custom) == Plugins(
        PluginSet(refs("Default1", "Custom1")),
        {"score": PluginSet(refs("Custom1"), refs("Default1")), "filter": PluginSet(disabled=refs("*"))},
    )


def test_the_whole_profile_is_kube_schedulers_with_its_weights() -> None:
    enabled = whole_profile().plugins.multi_point.enabled
    assert [ref.name for ref in enabled][:2] == ["SchedulingGates", "PrioritySort"]
    assert [ref.name for ref in enabled].index("DynamicResources") + 1 == [ref.name for ref in enabled].index(
        "DefaultPreemption"
    )
    assert enabled[-1] == PluginRef("NodeDeclaredFeatures")
    assert {ref.name: ref.weight for ref in enabled if ref.weight} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }


def test_gangs_can_be_added_to_the_whole_profile() -> None:
    args = CoschedulingArgs(permit_waiting_time_seconds=5)
    profile = whole_profile("mine", coscheduling=args)
    assert profile.plugins.multi_point.enabled[-1] == PluginRef("Coscheduling")
    assert profile.plugin_config == {"Coscheduling": args}


@pytest.mark.parametrize("profile", [behind_profile("mine"), planning_profile()], ids=["behind", "planning"])
def test_the_other_profiles_can_sort_and_bind(profile: KubeSchedulerProfile) -> None:
    names = [ref.name for ref in profile.plugins.multi_point.enabled]
    assert {"PrioritySort", "DefaultBinder"} <= set(names)


def test_resources_that_an_extender_takes_upon_itself_are_ignored_in_every_profile() -> None:
    args = NodeResourcesFitArgs(ignored_resources=frozenset({"a.com/a"}))
    profiles = [
        KubeSchedulerProfile("one", plugin_config={"NodeResourcesFit": args}),
        KubeSchedulerProfile("two", plugin_config={}),
    ]
    extenders = [ExtenderConfig("u", ignored_by_scheduler=frozenset({"b.com/b"})), ExtenderConfig("v")]
    changed = ignored_by_scheduler(profiles, extenders)
    assert changed[0].plugin_config["NodeResourcesFit"] == NodeResourcesFitArgs(frozenset({"b.com/b"}))
    assert changed[1] == profiles[1]
    assert ignored_by_scheduler(profiles, [ExtenderConfig("v")]) == tuple(profiles)
