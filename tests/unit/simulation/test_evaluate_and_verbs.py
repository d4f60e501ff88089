"""What `evaluate` says of a cluster is what the verb preempt answers there, and which pods a gang evicts: random clusters, both ways."""

from __future__ import annotations

import random
from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import convert, to_builtins
from extender.api.extenderv1 import ExtenderPreemptionArgs, MetaPod, MetaVictims
from extender.api.schedulingv1alpha1 import POD_GROUP_LABEL
from extender.client.embedded import EmbeddedAPI
from extender.client.interface import NODES, POD_DISRUPTION_BUDGETS, POD_GROUPS, PODS, ResourceType
from extender.config.types import ExtenderConfiguration
from extender.plugins.registry import new_registry
from extender.simulation.evaluation import evaluate
from extender.simulation.scenario import BuiltScenario
from tests.unit.scheduler.conftest import Bench, running
from tests.unit.simulation.scenarios import Json, gang, node, pod, pod_group

PLANNED_ANEW = (25, 167, 194, 307)  # with the victims gone the planner prefers other nodes than it had in mind
SEEDS = [pytest.param(seed, id=f"seed {seed}") for seed in (*range(24), *PLANNED_ANEW)]
POLICIES = ("wholeOrSurplus", "wholeOrSurplus", "surplusOnly", "any")


class Unpermitted(EmbeddedAPI):
    def may(self, verb: str, resource: ResourceType[Any], subresource: str = "", **of: str) -> bool:
        return False


def _running_pods(rng: random.Random, names: list[str], gangs: int) -> list[Json]:
    """Members of gangs and lone pods, two to a node; each started at a time of its own."""
    places = [name for name in names for _ in range(2)]
    rng.shuffle(places)
    priorities = [rng.choice((0, 0, 1, 5)) for _ in range(gangs)]
    pods = []
    for number, name in enumerate(places[: rng.randint(len(places) - 2, len(places))]):
        of = rng.randrange(gangs + 1)
        priority = priorities[of] if of < gangs else rng.choice((0, 1, 5, 9))
        made = pod(f"p{number:02}", f"run-{of}" if of < gangs else "", on=name, priority=priority)
        made["status"]["startTime"] = f"2026-01-01T00:{number:02}:00Z"
        pods.append(made)
    return pods


def _scenario(rng: random.Random, pending: list[Json]) -> Json:
    names = [f"n{number}" for number in range(rng.randint(2, 4))]
    gangs = rng.randint(1, 3)
    groups = [pod_group(f"run-{number}", rng.randint(1, 3)) for number in range(gangs)]
    budget = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchExpressions": [{"key": POD_GROUP_LABEL, "operator": "Exists"}]}},
        "status": {"disruptionsAllowed": rng.randint(0, 2)},
    }
    return {
        "nodes": [node(name, "2") for name in names],
        "pods": _running_pods(rng, names, gangs),
        "podGroups": [*groups, pod_group("train", len(pending))],
        "pdbs": [budget] if rng.random() < 0.5 else [],
        "pending": pending[0],
        "pendingPods": pending,
        "mayEvict": rng.random() < 0.7,
        "extender": {
            "apiVersion": "gang-extender.dev/v1alpha1",
            "kind": "ExtenderConfiguration",
            "gangVictims": rng.choice(POLICIES),
        },
    }


def _cluster(scenario: Json) -> EmbeddedAPI:
    api = EmbeddedAPI() if scenario["mayEvict"] else Unpermitted()
    objects: list[tuple[ResourceType[Any], list[Json]]] = [
        (NODES, scenario["nodes"]),
        (POD_GROUPS, scenario["podGroups"]),
        (POD_DISRUPTION_BUDGETS, scenario["pdbs"]),
        (PODS, [*scenario["pods"], *scenario["pendingPods"]]),
    ]
    for resource, bodies in objects:
        for body in bodies:
            api.create(resource, body)
    return api


def _as_served(scenario: Json, api: EmbeddedAPI) -> Json:
    """With the UIDs and stamps that the API has given."""

    def of(name: str) -> Json:
        plain: Json = to_builtins(api.get(PODS, name, "default"))
        return plain

    names = [each["metadata"]["name"] for each in scenario["pendingPods"]]
    return {
        **scenario,
        "pods": [of(each["metadata"]["name"]) for each in scenario["pods"]],
        "pending": of(names[0]),
        "pendingPods": [of(name) for name in names],
    }


def _bench(scenario: Json, api: EmbeddedAPI) -> Any:
    return running(ExtenderConfiguration(gang_victims=scenario["extender"]["gangVictims"]), api)


def _verb(bench: Bench, preemption: Json, scenario: Json) -> dict[str, tuple[list[str], int]]:
    """Node -> victims in order, and how many budgets they violate, of the answer to kube-scheduler's own candidates."""
    uids = {f"default/{each['metadata']['name']}": each["metadata"]["uid"] for each in scenario["pods"]}
    offered = {}
    for name in preemption["candidates"]:
        tried = preemption["perNode"][name]
        victims = tuple(MetaPod(uid=uids[victim]) for victim in tried["victims"])
        offered[name] = MetaVictims(pods=victims, num_pdb_violations=tried["numPDBViolations"])
    args = ExtenderPreemptionArgs(pod=convert(scenario["pending"], corev1.Pod), node_name_to_meta_victims=offered)
    names = {uid: name for name, uid in uids.items()}
    return {
        name: ([names[victim.uid] for victim in left.pods], left.num_pdb_violations)
        for name, left in bench.scheduler.preempt(args).node_name_to_meta_victims.items()
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_the_guard_in_evaluate_answers_as_the_verb_preempt(seed: int) -> None:
    rng = random.Random(seed)
    vip = pod("vip", priority=rng.choice((2, 6, 100)), cpu=rng.choice(("1", "2")))
    scenario = _scenario(rng, [vip])
    api = _cluster(scenario)
    scenario = _as_served(scenario, api)
    preemption = evaluate(BuiltScenario(scenario, new_registry())).get("preemption", {})
    if not preemption.get("candidates"):
        return
    usable = {
        each["node"]: (each["victims"], each["numPDBViolations"])
        for each in preemption["guard"]["candidates"]
        if each["usable"]
    }
    with _bench(scenario, api) as bench:
        if scenario["mayEvict"]:
            bench.until(bench.may_evict, "evictions are allowed")
        assert _verb(bench, preemption, scenario) == usable


@pytest.mark.parametrize("seed", SEEDS)
def test_the_victims_of_a_gang_are_those_that_evaluate_names(seed: int) -> None:
    rng = random.Random(seed)
    members = gang(members=rng.randint(2, 3), priority=rng.choice((2, 6, 100)), cpu=rng.choice(("1", "2")))
    scenario = _scenario(rng, members)
    api = _cluster(scenario)
    scenario = _as_served(scenario, api)
    said = evaluate(BuiltScenario(scenario, new_registry()))["preemption"]["gang"]
    expected = set() if "whyNot" in said else {victim["pod"] for victim in said.get("victims", ())}
    before = {each.key for each in api.list_page(PODS).items}
    with _bench(scenario, api) as bench:
        if scenario["mayEvict"]:
            bench.until(bench.may_evict, "evictions are allowed")
        names = [each["metadata"]["name"] for each in scenario["nodes"]]
        answer = bench.filter(api.get(PODS, "train-0", "default"), *names)
        assert bool(answer.node_names) == said["fits"]
        bench.flush()
        bench.scheduler._dependencies.evictor._pool.flush()
        assert before - {each.key for each in api.list_page(PODS).items} == expected


def test_the_clusters_are_of_all_kinds() -> None:
    """Otherwise the two above would show nothing."""
    verdicts, whys = set(), set()
    for seed in range(24):
        rng = random.Random(seed)
        vip = pod("vip", priority=rng.choice((2, 6, 100)), cpu=rng.choice(("1", "2")))
        preemption = evaluate(BuiltScenario(_scenario(rng, [vip]), new_registry())).get("preemption", {})
        verdicts |= {each.get("takes", "own") for each in preemption.get("guard", {}).get("candidates", ())}
        verdicts.add(preemption.get("guard", {}).get("verdict", "fits"))
        rng = random.Random(seed)
        members = gang(members=rng.randint(2, 3), priority=rng.choice((2, 6, 100)), cpu=rng.choice(("1", "2")))
        said = evaluate(BuiltScenario(_scenario(rng, members), new_registry()))["preemption"]["gang"]
        whys.add("fits" if said["fits"] else said.get("whyNot") or ("a gang" if said["brokenGangs"] else "pods"))
    assert verdicts >= {"own_choice", "reselected", "gang_fraction", "lonePods", "surplus", "wholeGangs"}
    assert whys >= {"fits", "a gang", "pods", "the gang would not fit even without all pods of lower priority"}
