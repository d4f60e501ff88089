"""The arguments of each plugin: defaults, and every mistake with its path.

kube-scheduler: TestPluginArgsDefaults, pkg/scheduler/apis/config/validation/validation_pluginargs_test.go
"""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1
from extender.config.defaults import default_args
from extender.config.group_sources import PRESETS
from extender.config.plugin_args import (
    CoschedulingArgs,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    GroupSource,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    PodTopologySpreadDefaulting,
    ResourceSpec,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from extender.config.read_args import ARGS, read_args
from extender.config.section import Section
from extender.config.yaml_file import Mistake

VERSION = "kubescheduler.config.k8s.io/v1"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def read(plugin: str, args: dict[str, Any]) -> tuple[object, list[str]]:
    found: list[Mistake] = []
    value = read_args(plugin, Section(args, "args", found), VERSION)
    return value, [f"{mistake.path.removeprefix('args').lstrip('.')}: {mistake.text}" for mistake in found]


@pytest.mark.parametrize("plugin", sorted(ARGS))
def test_no_arguments_are_the_defaults(plugin: str) -> None:
    assert read(plugin, {}) == (default_args(plugin), [])


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        ("DefaultPreemption", {"minCandidateNodesPercentage": 50}, DefaultPreemptionArgs(50, 100)),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 0}, DefaultPreemptionArgs(0, 100)),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True},
            InterPodAffinityArgs(0, True),
        ),
        ("VolumeBinding", {"bindTimeoutSeconds": 0}, VolumeBindingArgs(0)),
        ("DynamicResources", {"filterTimeout": "0s", "bindingTimeout": "1m"}, DynamicResourcesArgs(0, 60)),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 0}, {"name": "example.com/foo"}]},
            NodeResourcesBalancedAllocationArgs((ResourceSpec("cpu"), ResourceSpec("example.com/foo"))),
        ),
        (
            "NodeResourcesFit",
            {"ignoredResources": ["example.com/foo"], "ignoredResourceGroups": ["example.org"]},
            NodeResourcesFitArgs(frozenset({"example.com/foo"}), frozenset({"example.org"})),
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 3}]}},
            NodeResourcesFitArgs(
                scoring_strategy=ScoringStrategy(ScoringStrategyType.MOST_ALLOCATED, (ResourceSpec("cpu", 3),))
            ),
        ),
        (
            "NodeResourcesFit",
            {
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "requestedToCapacityRatio": {
                        "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
                    },
                }
            },
            NodeResourcesFitArgs(
                scoring_strategy=ScoringStrategy(
                    ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO,
                    shape=(UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10)),
                )
            ),
        ),
        (
            "PodTopologySpread",
            {
                "defaultingType": "List",
                "defaultConstraints": [
                    {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
                ],
            },
            PodTopologySpreadArgs(
                (
                    corev1.TopologySpreadConstraint(2, "zone", "ScheduleAnyway"),
                    corev1.TopologySpreadConstraint(1, "zone", "DoNotSchedule"),
                ),
                PodTopologySpreadDefaulting.LIST,
            ),
        ),
        (
            "NodeAffinity",
            {
                "addedAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
                            {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}]},
                        ]
                    },
                    PREFERRED: [
                        {"weight": 2, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
                    ],
                }
            },
            NodeAffinityArgs(
                corev1.NodeAffinity(
                    corev1.NodeSelector(
                        (
                            corev1.NodeSelectorTerm((corev1.NodeSelectorRequirement("a", "In", ("b",)),)),
                            corev1.NodeSelectorTerm(
                                match_fields=(corev1.NodeSelectorRequirement("metadata.name", "NotIn", ("n",)),)
                            ),
                        )
                    ),
                    (
                        corev1.PreferredSchedulingTerm(
                            2, corev1.NodeSelectorTerm((corev1.NodeSelectorRequirement("a", "Exists"),))
                        ),
                    ),
                )
            ),
        ),
        (
            "Coscheduling",
            {
                "permitWaitingTimeSeconds": 10,
                "deniedPGExpirationTimeSeconds": 20,
                "podGroupBackoffSeconds": 5,
                "podGroupRejectPercentage": 0,
                "podGroupLabels": ["pod-group.scheduling.ming.io"],
                "inTreePodGroups": True,
            },
            CoschedulingArgs(10, 20, 5, 0, ("pod-group.scheduling.ming.io",), in_tree_pod_groups=True),
        ),
        (
            "Coscheduling",
            {
                "groupSources": [
                    {"preset": "lws"},
                    {
                        "name": "ours",
                        "groupAnnotation": "example.com/job",
                        "minMemberLabel": "example.com/size",
                        "roleLabel": "example.com/role",
                        "indexLabel": "example.com/rank",
                    },
                ]
            },
            CoschedulingArgs(
                group_sources=(
                    PRESETS["lws"],
                    GroupSource(
                        "ours",
                        group_annotation="example.com/job",
                        min_member_label="example.com/size",
                        role_label="example.com/role",
                        index_label="example.com/rank",
                    ),
                )
            ),
        ),
    ],
)
def test_arguments_are_read(plugin: str, args: dict[str, Any], expected: PluginArgs) -> None:
    assert read(plugin, args | {"apiVersion": VERSION, "kind": f"{plugin}Args"}) == (expected, [])


def expression(operator: str, *values: str) -> dict[str, Any]:
    one = {"key": "a", "operator": operator, "values": list(values)}
    return {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [one]}]}}}


EXPRESSION = f"addedAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]"


def shape(*points: tuple[int, int]) -> dict[str, Any]:
    rows = [{"utilization": utilization, "score": score} for utilization, score in points]
    return {"scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": rows}}}


SHAPE = "scoringStrategy.requestedToCapacityRatio.shape"


def constraint(**fields: Any) -> dict[str, Any]:
    one = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"} | fields
    return {"defaultingType": "List", "defaultConstraints": [{k: v for k, v in one.items() if v is not None}]}


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 101, "minCandidateNodesAbsolute": -1},
            [
                "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
                "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
            ],
        ),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            [
                "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute",
                "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage",
            ],
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 101},
            ["hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": "1", "ignorePreferredTermsOfExistingPods": 1},
            [
                "hardPodAffinityWeight: must be an integer, not a string",
                "ignorePreferredTermsOfExistingPods: must be true or false, not an integer",
            ],
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": True},
            ["hardPodAffinityWeight: must be an integer, not a bool"],
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 1.0},
            ["hardPodAffinityWeight: must be an integer, not a number"],
        ),
        (
            "VolumeBinding",
            {"bindTimeoutSeconds": -1},
            ["bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value"],
        ),
        (
            "VolumeBinding",
            {"shape": []},
            [
                "shape: Invalid value: []: unexpected field `shape`, "
                "remove it or turn on the feature gate StorageCapacityScoring"
            ],
        ),
        (
            "DynamicResources",
            {"filterTimeout": "-1s", "bindingTimeout": "1ms"},
            [
                'filterTimeout: Invalid value: "-1s": must be zero or positive',
                'bindingTimeout: Invalid value: "1ms": must be at least 1 second',
            ],
        ),
        ("DynamicResources", {"filterTimeout": 10}, ["filterTimeout: must be a duration such as 30s, not an integer"]),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}, {"name": "cpu"}]},
            [
                "resources[0].weight: Invalid value: 2: must be 1",
                'resources[1].name: Duplicate value: "cpu"',
            ],
        ),
        (
            "NodeResourcesFit",
            {"ignoredResources": ["a b"], "ignoredResourceGroups": ["a/b"]},
            [
                "ignoredResources[0]: Invalid value: \"a b\": name part must be 1 to 63 letters, digits, '-', '_' or '.', "
                "and begin and end with a letter or a digit",
                "ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/'",
            ],
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {}},
            [
                'scoringStrategy.type: Unsupported value: "": supported values: "LeastAllocated", "MostAllocated", '
                '"RequestedToCapacityRatio"'
            ],
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 101}]}},
            [
                "scoringStrategy.resources[0].weight: Invalid value: 101: "
                "resource weight of cpu not in valid range (0, 100]"
            ],
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            [
                "scoringStrategy.requestedToCapacityRatio: Required value: "
                "must be specified when type is RequestedToCapacityRatio"
            ],
        ),
        (
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "LeastAllocated", "requestedToCapacityRatio": {}}},
            [
                "scoringStrategy.requestedToCapacityRatio: Forbidden: "
                "must be nil when type is not RequestedToCapacityRatio"
            ],
        ),
        ("NodeResourcesFit", shape(), [f"{SHAPE}: Required value: at least one point must be specified"]),
        (
            "NodeResourcesFit",
            shape((10, 1), (10, 2)),
            [f"{SHAPE}[1].utilization: Invalid value: 10: values must be sorted in increasing order"],
        ),
        (
            "NodeResourcesFit",
            shape((-1, -1), (101, 11)),
            [
                f"{SHAPE}[0].utilization: Invalid value: -1: not in valid range [0, 100]",
                f"{SHAPE}[0].score: Invalid value: -1: not in valid range [0, 10]",
                f"{SHAPE}[1].utilization: Invalid value: 101: not in valid range [0, 100]",
                f"{SHAPE}[1].score: Invalid value: 11: not in valid range [0, 10]",
            ],
        ),
        (
            "PodTopologySpread",
            constraint(maxSkew=0),
            ["defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"],
        ),
        (
            "PodTopologySpread",
            constraint(maxSkew=None),
            ["defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)"],
        ),
        (
            "PodTopologySpread",
            constraint(topologyKey="", whenUnsatisfiable=""),
            [
                "defaultConstraints[0].topologyKey: Required value: can not be empty",
                "defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
            ],
        ),
        (
            "PodTopologySpread",
            constraint(whenUnsatisfiable="Maybe"),
            [
                'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Maybe": '
                'supported values: "DoNotSchedule", "ScheduleAnyway"'
            ],
        ),
        (
            "PodTopologySpread",
            constraint(labelSelector={"matchLabels": {"a": "b"}}),
            [
                "defaultConstraints[0].labelSelector: Forbidden: "
                "constraint must not define a selector, as they deduced for each pod"
            ],
        ),
        (
            "PodTopologySpread",
            {"defaultingType": "List", "defaultConstraints": constraint()["defaultConstraints"] * 2},
            ['defaultConstraints[1]: Duplicate value: "{zone, DoNotSchedule}"'],
        ),
        (
            "PodTopologySpread",
            constraint() | {"defaultingType": "System"},
            ['defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
        ),
        (
            "PodTopologySpread",
            {"defaultingType": "None"},
            ['defaultingType: Unsupported value: "None": supported values: "System", "List"'],
        ),
        (
            "NodeAffinity",
            expression("In"),
            [f"{EXPRESSION}.values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"],
        ),
        (
            "NodeAffinity",
            expression("Exists", "a"),
            [f'{EXPRESSION}.values: Invalid value: ["a"]: values set must be empty for exists and does not exist'],
        ),
        (
            "NodeAffinity",
            expression("Gt", "1", "2"),
            [
                f'{EXPRESSION}.values: Invalid value: ["1","2"]: '
                "for 'Gt', 'Lt' operators, exactly one value is required"
            ],
        ),
        (
            "NodeAffinity",
            expression("Lt", "x"),
            [f"{EXPRESSION}.values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"],
        ),
        (
            "NodeAffinity",
            expression("Near", "x"),
            [
                f'{EXPRESSION}.operator: Unsupported value: "Near": supported values: '
                '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
            ],
        ),
        (
            "NodeAffinity",
            {
                "addedAffinity": {
                    PREFERRED: [
                        {"weight": 1, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In"}]}},
                        {"weight": 0, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In"}]}},
                    ]
                }
            },
            [
                f"addedAffinity.{PREFERRED}[0].preference.matchFields[0].values: "
                "Invalid value: []: must have one element"
            ],
        ),
        (
            "Coscheduling",
            {"permitWaitingTimeSeconds": -1, "podGroupRejectPercentage": 101, "podGroupLabels": []},
            [
                "podGroupLabels: Required value: at least one label",
                "permitWaitingTimeSeconds: Invalid value: -1: not in valid range [0, 900]",
                "podGroupRejectPercentage: Invalid value: 101: not in valid range [0, 100]",
            ],
        ),
        ("Coscheduling", {"permitWaitingTime": 1}, ["permitWaitingTime: unknown field"]),
        (
            "Coscheduling",
            {
                "groupSources": [
                    {"preset": "spark"},
                    {"preset": "kueue", "roleLabel": "a"},
                    {"preset": "kueue"},
                    {"name": "a", "groupLabel": "a b", "minMemberLabel": "n"},
                    {"name": "a", "groupLabel": "b", "groupAnnotation": "b", "minMember": 3},
                    {"groupLabel": "scheduling.x-k8s.io/pod-group", "minMemberLabel": "n", "minMemberAnnotation": "n"},
                    {"name": "x" * 64, "groupLabel": "b", "minMemberLabel": "n"},
                    "lws",
                ]
            },
            [
                "groupSources[7]: must be a mapping, not a string",
                'groupSources[0].preset: Unsupported value: "spark": supported values: "lws", "kueue", "volcano"',
                "groupSources[1].roleLabel: Forbidden: may not be set beside preset",
                'groupSources[2].preset: Duplicate value: "kueue"',
                'groupSources[3].groupLabel: Invalid value: "a b": name part must be 1 to 63 letters, digits, '
                "'-', '_' or '.', and begin and end with a letter or a digit",
                "groupSources[4].groupAnnotation: Forbidden: may not be set beside groupLabel",
                "groupSources[4].minMemberLabel: Required value: or minMemberAnnotation",
                'groupSources[4].name: Duplicate value: "a"',
                "groupSources[4].minMember: unknown field",
                "groupSources[5].name: Required value",
                "groupSources[5].minMemberAnnotation: Forbidden: may not be set beside minMemberLabel",
                'groupSources[5].groupLabel: Duplicate value: "scheduling.x-k8s.io/pod-group"',
                f'groupSources[6].name: Invalid value: "{"x" * 63}": must be at most 63 printable characters',
                'groupSources[6].groupLabel: Duplicate value: "b"',
                "groupSources[7].name: Required value",
                "groupSources[7].groupLabel: Required value: or groupAnnotation",
                "groupSources[7].minMemberLabel: Required value: or minMemberAnnotation",
            ],
        ),
        (
            "Coscheduling",
            {"groupSources": [{"preset": "lws"}] * 17},
            [
                "groupSources: Too many: 17: must have at most 16 items",
                *(f'groupSources[{index}].preset: Duplicate value: "lws"' for index in range(1, 16)),
            ],
        ),
        (
            "NodeAffinity",
            {"kind": "InterPodAffinityArgs"},
            ['kind: Invalid value: "InterPodAffinityArgs": args for plugin NodeAffinity are of NodeAffinityArgs'],
        ),
        (
            "NodeAffinity",
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            [
                'apiVersion: Invalid value: "kubescheduler.config.k8s.io/v1beta3": '
                "args for plugin NodeAffinity are of kubescheduler.config.k8s.io/v1"
            ],
        ),
    ],
)
def test_mistakes_are_said(plugin: str, args: dict[str, Any], expected: list[str]) -> None:
    assert read(plugin, args)[1] == expected


def test_a_plugin_of_others_gets_its_arguments_as_they_stand() -> None:
    assert read("TheirOwn", {"anything": [1, {"at": "all"}]}) == ({"anything": [1, {"at": "all"}]}, [])
