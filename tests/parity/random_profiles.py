"""Random KubeSchedulerConfigurations for fresh scenarios: arguments, weights, plugins taken out. Used by random_clusters."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.parity.random_pods import GPU, HOSTNAME, RACK, ZONE, Breadth, Pods

Json = dict[str, Any]
Args = Callable[[random.Random, bool], Json]


def configuration(rng: random.Random, wide: bool) -> Json:
    chosen = rng.sample(tuple(ARGS), rng.choice((1, 1, 2, 3)))
    profile: Json = {
        "schedulerName": "default-scheduler",
        "pluginConfig": [{"name": name, "args": ARGS[name](rng, wide)} for name in chosen],
    }
    if wide and rng.random() < 0.3:
        profile["plugins"] = _plugins(rng)
    config: Json = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    if wide and rng.random() < 0.1:
        config["percentageOfNodesToScore"] = 50
    return {**config, "profiles": [profile]}


def _plugins(rng: random.Random) -> Json:
    names = (
        "NodeResourcesFit",
        "ImageLocality",
        "InterPodAffinity",
        "TaintToleration",
        "NodeAffinity",
        "PodTopologySpread",
    )
    name = rng.choice(names)
    sets: Json = {
        "score": {"disabled": [{"name": name}], "enabled": [{"name": name, "weight": rng.choice((1, 5, 50))}]}
    }
    if rng.random() < 0.3:
        sets = {"score": {"disabled": [{"name": name}]}}
    if rng.random() < 0.2:
        sets["filter"] = {"disabled": [{"name": rng.choice((*names[2:], names[0]))}]}
    if rng.random() < 0.1:
        sets["postFilter"] = {"disabled": [{"name": rng.choice(("*", "DefaultPreemption", "DynamicResources"))}]}
    if rng.random() < 0.1:
        sets = {"multiPoint": {"disabled": [{"name": rng.choice(names)}]}}
    return sets


def _fit(rng: random.Random, wide: bool) -> Json:
    weights = (1, 2, 3, 5, *((100,) if wide else ()))
    named = ["cpu", "memory", GPU, *(("ephemeral-storage", "hugepages-2Mi") if wide else ())]
    if wide:
        named = rng.sample(named, rng.randint(1, len(named)))
    kinds = ("MostAllocated", "RequestedToCapacityRatio", *(("LeastAllocated",) if wide else ()))
    strategy: Json = {
        "type": rng.choice(kinds),
        "resources": [{"name": name, "weight": rng.choice(weights)} for name in named],
    }
    if strategy["type"] == "RequestedToCapacityRatio":
        strategy["requestedToCapacityRatio"] = {"shape": _shape(rng, wide)}
    args: Json = {"scoringStrategy": strategy}
    if wide and rng.random() < 0.3:
        args["ignoredResources"] = rng.sample((GPU, "example.com/fpga"), 1)
    if wide and rng.random() < 0.2:
        args["ignoredResourceGroups"] = ["example.com"]
    return args


def _shape(rng: random.Random, wide: bool) -> list[Json]:
    if not wide:
        return [{"utilization": 0, "score": 0}, {"utilization": 40, "score": 8}, {"utilization": 100, "score": 3}]
    at = sorted(rng.sample(range(101), rng.randint(1, 4)))
    return [{"utilization": utilization, "score": rng.randint(0, 10)} for utilization in at]


def _balanced(rng: random.Random, wide: bool) -> Json:
    named = ["cpu", "memory", "ephemeral-storage", GPU]
    if wide:
        named = rng.sample(named, rng.randint(1, 4))
    return {"resources": [{"name": name, "weight": 1} for name in named]}


def _affinity(rng: random.Random, wide: bool) -> Json:
    return rng.choice(
        ({"hardPodAffinityWeight": rng.choice((0, 30, 100))}, {"ignorePreferredTermsOfExistingPods": True})
    )


def _spread(rng: random.Random, wide: bool) -> Json:
    constraints: list[Json] = [
        {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"},
        {"maxSkew": 2, "topologyKey": HOSTNAME, "whenUnsatisfiable": "DoNotSchedule"},
    ]
    if wide:
        constraints.append(
            {"maxSkew": 3, "topologyKey": RACK, "whenUnsatisfiable": rng.choice(("ScheduleAnyway", "DoNotSchedule"))}
        )
        constraints = rng.sample(constraints, rng.randint(0, 3))
    return {"defaultConstraints": constraints, "defaultingType": "List"}


def _added(rng: random.Random, wide: bool) -> Json:
    added = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}
    affinity: Json = {"requiredDuringSchedulingIgnoredDuringExecution": added}
    if wide:
        requirement = Pods(rng, Breadth.CORPUS).node_requirement()
        preferred = [{"weight": 7, "preference": {"matchExpressions": [requirement]}}]
        affinity = rng.choice((affinity, {"preferredDuringSchedulingIgnoredDuringExecution": preferred}))
    return {"addedAffinity": affinity}


def _preemption(rng: random.Random, wide: bool) -> Json:
    if wide:
        return {
            "minCandidateNodesPercentage": rng.choice((0, 1, 30, 100)),
            "minCandidateNodesAbsolute": rng.choice((1, 2, 100)),
        }
    return {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 3}


ARGS: dict[str, Args] = {
    "NodeResourcesFit": _fit,
    "NodeResourcesBalancedAllocation": _balanced,
    "InterPodAffinity": _affinity,
    "PodTopologySpread": _spread,
    "NodeAffinity": _added,
    "DefaultPreemption": _preemption,
}
