"""Whatever the columns answer equals what the exact rules answer, node by node, on random clusters that change."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.backend.queue.nominator import Nominator
from extender.client.embedded import EmbeddedAPI
from extender.client.events import Recorder
from extender.client.store import Store
from extender.config.plugin_args import (
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
)
from extender.config.types import KubeSchedulerProfile, PluginRef, Plugins, PluginSet
from extender.framework.cycle_state import CycleState
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.node_rows import NodeRows
from extender.framework.runtime import columnar_filtering, columnar_scoring
from extender.framework.runtime.columnar_scoring import NodeScores
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.plugins.registry import new_in_tree_registry
from tests.fakes.without_columns import WithoutColumns
from tests.objects import PREFERRED, REQUIRED, ZONE
from tests.unit.framework.random_cluster import RandomCluster

PLUGINS = (
    PluginRef("PrioritySort"),
    PluginRef("NodeUnschedulable"),
    PluginRef("NodeName"),
    PluginRef("TaintToleration", 3),
    PluginRef("NodeAffinity", 2),
    PluginRef("NodePorts"),
    PluginRef("NodeResourcesFit", 1),
    PluginRef("PodTopologySpread", 2),
    PluginRef("InterPodAffinity", 2),
    PluginRef("NodeResourcesBalancedAllocation", 1),
    PluginRef("ImageLocality", 1),
    PluginRef("DefaultBinder"),
)

RESOURCES = (ResourceSpec("cpu", 2), ResourceSpec("memory"), ResourceSpec("example.com/gpu", 3), ResourceSpec("pods"))
SHAPE = (UtilizationShapePoint(0, 0), UtilizationShapePoint(40, 9), UtilizationShapePoint(100, 2))
ADDED = convert(
    {
        REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "Exists"}]}]},
        PREFERRED: [
            {"weight": 7, "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z1"]}]}}
        ],
    },
    corev1.NodeAffinity,
)
SPREAD = tuple(
    corev1.TopologySpreadConstraint(max_skew=1, topology_key=key, when_unsatisfiable=when)
    for key, when in (("rack", "ScheduleAnyway"), (ZONE, "DoNotSchedule"))
)


def fit(kind: ScoringStrategyType) -> NodeResourcesFitArgs:
    shape = SHAPE if kind is ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO else ()
    return NodeResourcesFitArgs(
        ignored_resource_groups=frozenset({"ignored.com"}), scoring_strategy=ScoringStrategy(kind, RESOURCES, shape)
    )


ARGUMENTS: Sequence[dict[str, PluginArgs]] = (
    {
        "NodeResourcesFit": NodeResourcesFitArgs(),
        "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(),
        "InterPodAffinity": InterPodAffinityArgs(),
        "PodTopologySpread": PodTopologySpreadArgs(),
        "NodeAffinity": NodeAffinityArgs(),
    },
    {
        "NodeResourcesFit": fit(ScoringStrategyType.MOST_ALLOCATED),
        "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(RESOURCES),
        "InterPodAffinity": InterPodAffinityArgs(hard_pod_affinity_weight=0),
        "PodTopologySpread": PodTopologySpreadArgs(SPREAD, PodTopologySpreadDefaulting.LIST),
        "NodeAffinity": NodeAffinityArgs(),
    },
    {
        "NodeResourcesFit": fit(ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO),
        "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(RESOURCES[1:]),
        "InterPodAffinity": InterPodAffinityArgs(50, ignore_preferred_terms_of_existing_pods=True),
        "PodTopologySpread": PodTopologySpreadArgs(),
        "NodeAffinity": NodeAffinityArgs(ADDED),
    },
)


@pytest.fixture(autouse=True)
def _columns_for_a_few_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (columnar_filtering, columnar_scoring):
        monkeypatch.setattr(module, "FEW", 0)


def make_framework(cluster: RandomCluster, nominator: Nominator, args: dict[str, PluginArgs]) -> Framework:
    api = EmbeddedAPI()
    return Framework(
        KubeSchedulerProfile("default-scheduler", Plugins(PluginSet(PLUGINS)), args),
        new_in_tree_registry(),
        FrameworkDependencies(
            api=api,
            events=Recorder(api),
            newest_snapshot=cluster.cache.snapshot,
            lister=lambda type_: cluster.stores.get(type_, Store()),
            nominator=nominator,
        ),
    )


def said(framework: Framework, pod: corev1.Pod, snapshot: NodeInfoLister, start: int, wanted: int) -> dict[str, Any]:
    """Everything that a cycle says of the pod."""
    framework.set_snapshot(snapshot)
    state = CycleState()
    nodes = snapshot.list()
    result, status, _ = framework.run_pre_filter_plugins(state, pod, nodes)
    answer: dict[str, Any] = {"preFilter": status, "skip": state.skip_filter_plugins}
    if result is not None and result.node_names is not None:
        nodes = [node for node in nodes if node.name in result.node_names]
    found = framework.filter_nodes(state, pod, nodes, start=start, wanted=wanted)
    answer["refused"] = found.statuses
    answer["refusals"] = set(found.refusals)
    answer["looked"] = found.looked
    answer["feasible"] = [node.name for node in found.feasible]
    some: Sequence[NodeInfo] = found.feasible or snapshot.list()
    answer["preScore"] = framework.run_pre_score_plugins(state, pod, some)
    answer["skipScore"] = state.skip_score_plugins
    answer["scores"], _ = framework.score_by_plugin(state, pod, some)
    totals, _ = framework.run_score_plugins(state, pod, some)
    answer["totals"] = [(entry.name, entry.total_score, dict(entry.scores)) for entry in totals]
    return answer


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(60))
def test_columns_say_what_the_rules_say(seed: int) -> None:
    cluster = RandomCluster(seed)
    pick = random.Random(seed)
    nominated: dict[str, corev1.Pod] = {}
    nominator = Nominator(lookup=lambda ref: nominated.get(ref.uid))
    framework = make_framework(cluster, nominator, ARGUMENTS[seed % len(ARGUMENTS)])
    for round_ in range(12):
        for _ in range(pick.randint(0, 3)):
            cluster.step()
        if round_ == 6:
            for _ in range(3):
                pod = cluster.pending()
                nominated[pod.uid] = pod
                nominator.add_nominated_pod(pod, pick.choice(sorted(cluster.nodes)))
        snapshot = cluster.cache.snapshot()
        pod = cluster.pending()
        start, wanted = pick.randrange(len(snapshot)), pick.choice((1, 5, len(snapshot)))
        by_columns = said(framework, pod, snapshot, start, wanted)
        assert by_columns == said(framework, pod, WithoutColumns(snapshot), start, wanted)


@pytest.mark.parametrize("seed", range(60, 70))
def test_columns_of_some_of_the_nodes_in_any_order(seed: int) -> None:
    """As kube-scheduler offers nodes."""
    cluster = RandomCluster(seed)
    framework = make_framework(cluster, Nominator(), ARGUMENTS[seed % len(ARGUMENTS)])
    snapshot = cluster.cache.snapshot()
    nodes = cluster.random.sample(list(snapshot.list()), len(snapshot) * 2 // 3)
    answers = []
    pod = cluster.pending()
    for view in (snapshot, WithoutColumns(snapshot)):
        framework.set_snapshot(view)
        state = CycleState()
        framework.run_pre_filter_plugins(state, pod, nodes)
        found = framework.filter_nodes(state, pod, nodes, nominated=False)
        framework.run_pre_score_plugins(state, pod, nodes)
        scores, _ = framework.score_by_plugin(state, pod, nodes)
        answers.append(([node.name for node in found.feasible], found.statuses, scores))
    assert answers[0] == answers[1]


def test_columns_are_what_is_asked() -> None:
    """Else the other tests compare the rules with themselves."""
    cluster = RandomCluster(1)
    framework = make_framework(cluster, Nominator(), ARGUMENTS[0])
    snapshot = cluster.cache.snapshot()
    framework.set_snapshot(snapshot)
    state = CycleState()
    pod = convert({"metadata": {"name": "p", "namespace": "default", "uid": "p"}}, corev1.Pod)
    framework.run_pre_filter_plugins(state, pod, snapshot.list())
    found = framework.filter_nodes(state, pod, snapshot.list())
    assert isinstance(found.feasible, NodeRows)
    framework.run_pre_score_plugins(state, pod, found.feasible)
    scores, status = framework.run_score_plugins(state, pod, found.feasible)
    assert status.success
    assert isinstance(scores, NodeScores)
