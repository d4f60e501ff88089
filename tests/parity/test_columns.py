"""The corpus and the fresh scenarios by columns: what they say of all nodes at once is what the real plugins said of each."""

from __future__ import annotations

from typing import Any

import pytest

from extender.framework.cycle_state import CycleState
from extender.framework.node_rows import NodeRows
from extender.framework.runtime import columnar_filtering, columnar_scoring
from extender.framework.status import Status
from extender.plugins.registry import new_in_tree_registry
from extender.simulation.scenario import BuiltScenario
from tests.parity.corpus import Json, fresh, scenarios


@pytest.fixture(autouse=True)
def _columns_for_a_few_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (columnar_filtering, columnar_scoring):
        monkeypatch.setattr(module, "FEW", 0)


def _verdict(status: Status) -> tuple[str, str, frozenset[str]]:
    return str(status.code), status.plugin, frozenset(status.reasons)


def _expected(verdict: Json) -> tuple[str, str, frozenset[str]]:
    return verdict["code"], verdict.get("plugin", ""), frozenset(verdict.get("reasons") or ())


CASES = [*scenarios(), *((s, e) for s, e in fresh() if "error" not in e)]


@pytest.mark.parametrize(
    ("scenario", "expected"), [pytest.param(s, e, id=f"{at}-{s['name']}") for at, (s, e) in enumerate(CASES)]
)
def test_columns_answer_as_the_real_plugins(scenario: Json, expected: Json) -> None:
    extended = {**scenario.get("extenderFailed", {}), **scenario.get("extenderUnresolvable", {})}
    built = BuiltScenario(scenario, new_in_tree_registry())
    framework, pod, nodes = built.framework, built.pod, built.snapshot.list()
    state = CycleState()
    framework.set_snapshot(built.snapshot)
    result, status, _ = framework.run_pre_filter_plugins(state, pod, nodes)
    if not status.success:
        return
    if result is not None and result.node_names is not None:
        nodes = [node for node in nodes if node.name in result.node_names]
    found = framework.filter_nodes(state, pod, nodes)
    assert isinstance(found.feasible, NodeRows)
    answers = {answer["name"]: answer for answer in expected["nodes"]}
    for name, refusal in found.statuses.items():
        assert _verdict(refusal) == _expected(answers[name]["verdict"])
    feasible = [node for node in found.feasible if node.name not in extended]
    assert {node.name for node in feasible} == set(expected.get("feasible") or ())
    if feasible:
        _compare_scores(framework.run_pre_score_plugins(state, pod, feasible), framework, state, pod, feasible, answers)


def _compare_scores(status: Status, framework: Any, state: CycleState, pod: Any, feasible: Any, answers: Json) -> None:
    assert status.success
    scores, status = framework.score_by_plugin(state, pod, feasible)
    assert status.success
    for index, node in enumerate(feasible):
        ours = {each.plugin: (each.raw[index], each.normalized[index]) for each in scores}
        theirs = {name: (s["raw"], s["norm"]) for name, s in answers[node.name]["scores"].items()}
        assert ours == theirs, node.name
