"""`evaluate` beside the real kube-scheduler 1.36.3: whole answers, on 200 random clusters; and shuffled."""

from __future__ import annotations

import random
from typing import Any

import pytest

from extender.plugins.registry import new_in_tree_registry
from extender.simulation.evaluation import evaluate
from extender.simulation.scenario import World
from tests.parity.corpus import Json, scenarios

SETS = frozenset({"reasons", "bestSet", "chosenSet"})
CORPUS = [pytest.param(s, e, id=s["name"]) for s, e in scenarios()]


def _answer(scenario: Json) -> Json:
    return {"name": scenario["name"], **evaluate(World(scenario, new_in_tree_registry()))}


def _with_sets(value: Any) -> Any:
    """Lists in which the order means nothing, sorted."""
    if isinstance(value, dict):
        return {k: sorted(v) if k in SETS and v else _with_sets(v) for k, v in value.items()}
    return [_with_sets(item) for item in value] if isinstance(value, list) else value


def _without_choice(answer: Json) -> Json:
    """The node that preemption takes is one of several equals; the test looks at it apart."""
    preemption = answer.get("preemption")
    if preemption is None:
        return answer
    post_filter = {**preemption["postFilter"], "nominatedNode": bool(preemption["postFilter"]["nominatedNode"])}
    return {**answer, "preemption": {**preemption, "postFilter": post_filter}}


@pytest.mark.parametrize(("scenario", "expected"), CORPUS)
def test_answers_as_the_real_scheduler(scenario: Json, expected: Json) -> None:
    ours = _answer(scenario)
    assert _without_choice(_with_sets(ours)) == _without_choice(_with_sets(expected))
    preemption = ours.get("preemption")
    if preemption and (node := preemption["postFilter"]["nominatedNode"]):
        # Of more nodes than are dry-run, which ones are is up to a random offset.
        few = len(preemption["potentialNodes"]) <= preemption["numCandidates"]
        assert node in (preemption["chosenSet"] if few else preemption["potentialNodes"])


@pytest.mark.parametrize(("scenario", "expected"), CORPUS)
def test_in_another_order_only_ties_move(scenario: Json, expected: Json) -> None:
    rng = random.Random(scenario["name"])
    shuffled = {**scenario, "nodes": _shuffled(rng, scenario["nodes"]), "pods": _shuffled(rng, scenario["pods"])}
    ours, moved = _answer(scenario), _answer(shuffled)
    assert _independent_of_order(moved) == _independent_of_order(ours)


def _shuffled(rng: random.Random, items: list[Any]) -> list[Any]:
    return rng.sample(items, len(items))


def _independent_of_order(answer: Json) -> Json:
    """Verdicts, amounts and feasible nodes, which no order may touch.

    Scores are left out where an image's size depends on the node that is seen first; victims where pods are as important
    as each other; the candidates' choice with them.
    """
    nodes = {
        node["name"]: _with_sets({key: node[key] for key in node if key not in ("scores", "total")})
        | {"scores": {name: score for name, score in node.get("scores", {}).items() if name != "ImageLocality"}}
        for node in answer["nodes"]
    }
    preemption = answer.get("preemption") or {}
    return {
        "nodes": nodes,
        "preFilter": _with_sets(answer["preFilter"]),
        "feasible": sorted(answer["feasible"] or ()),
        "fitError": answer.get("fitError"),
        "eligible": preemption.get("eligible"),
        "potentialNodes": sorted(preemption.get("potentialNodes", ())),
        "perNode": {name: tried["verdict"]["code"] for name, tried in preemption.get("perNode", {}).items()},
    }
