"""`evaluate` beside the real kube-scheduler 1.36.3: whole answers, on 200 random clusters; and shuffled."""

from __future__ import annotations

import random
from typing import Any

import pytest

from extender.plugins.registry import new_in_tree_registry
from extender.simulation.evaluation import evaluate
from extender.simulation.scenario import BuiltScenario
from tests.parity.corpus import Json, comparable, node_is_of_the_best, scenarios

CORPUS = [pytest.param(s, e, id=s["name"]) for s, e in scenarios()]


def _answer(scenario: Json) -> Json:
    return {"name": scenario["name"], **evaluate(BuiltScenario(scenario, new_in_tree_registry()))}


@pytest.mark.parametrize(("scenario", "expected"), CORPUS)
def test_answers_as_the_real_scheduler(scenario: Json, expected: Json) -> None:
    ours = _answer(scenario)
    assert comparable(ours) == comparable(expected)
    if preemption := ours.get("preemption"):
        assert node_is_of_the_best(preemption)


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
        node["name"]: comparable({key: node[key] for key in node if key not in ("scores", "total")})
        | {"scores": {name: score for name, score in node.get("scores", {}).items() if name != "ImageLocality"}}
        for node in answer["nodes"]
    }
    preemption = answer.get("preemption") or {}
    return {
        "nodes": nodes,
        "preFilter": comparable(answer["preFilter"]),
        "feasible": sorted(answer["feasible"] or ()),
        "fitError": answer.get("fitError"),
        "eligible": preemption.get("eligible"),
        "potentialNodes": sorted(preemption.get("potentialNodes", ())),
        "perNode": {name: tried["verdict"]["code"] for name, tried in preemption.get("perNode", {}).items()},
    }
