"""Which evictions count as violations of a PodDisruptionBudget."""

from __future__ import annotations

import pytest

from extender.framework.preemption.disruption_budgets import split_by_violation
from tests.objects import Json, make_pdb, make_pod, selector

APP = {"app": "a"}
POD = make_pod().labels(APP)
BUDGET = make_pdb().name("b").match(APP)


def _budget(label_selector: Json | None) -> object:
    return BUDGET._in("spec", "selector", label_selector).obj()


@pytest.mark.parametrize(
    ("pods", "budgets", "violating"),
    [
        pytest.param(["p1", "p2"], [BUDGET.disruptions_allowed(2).obj()], [], id="as many as are allowed"),
        pytest.param(["p1", "p2"], [BUDGET.disruptions_allowed(1).obj()], ["p2"], id="the first uses the budget up"),
        pytest.param(["p1", "p2"], [BUDGET.disruptions_allowed(0).obj()], ["p1", "p2"], id="nothing is allowed"),
        pytest.param(
            ["p1"],
            [BUDGET.disruptions_allowed(1).obj(), make_pdb().name("c").match(APP).disruptions_allowed(0).obj()],
            ["p1"],
            id="one of two budgets is enough",
        ),
        pytest.param(["p1"], [BUDGET.namespace("other").obj()], [], id="a budget of another namespace"),
        pytest.param(["p1"], [_budget(None)], [], id="a budget without a selector matches nothing"),
        pytest.param(["p1"], [_budget({})], [], id="an empty selector matches nothing"),
        pytest.param(
            ["p1"], [_budget(selector(None, ("app", "NotIn", ())))], [], id="NotIn without values is no selector"
        ),
        pytest.param(
            ["p1"], [_budget(selector(None, ("app", "Exists", ("a",))))], [], id="Exists with values is none either"
        ),
        pytest.param(["p1"], [_budget(selector(None, ("app", "Near", ("a",))))], [], id="nor is an unknown operator"),
        pytest.param(["p1"], [_budget(selector(None, ("app", "Exists", ())))], ["p1"], id="Exists matches"),
        pytest.param(
            ["p1", "p2"],
            [BUDGET.disruptions_allowed(0)._in("status", "disruptedPods", {"p1": "2026-01-01T00:00:00Z"}).obj()],
            ["p2"],
            id="a pod that the API server has counted already",
        ),
    ],
)
def test_split_by_violation(pods: list[str], budgets: list[object], violating: list[str]) -> None:
    infos = [POD.name(name).info() for name in pods]
    bad, good = split_by_violation(infos, budgets)  # type: ignore[arg-type]
    assert [info.pod.name for info in bad] == violating
    assert [info.pod.name for info in good] == [name for name in pods if name not in violating]


def test_a_pod_without_labels_violates_nothing() -> None:
    info = make_pod().name("p").info()
    assert split_by_violation([info], [BUDGET.obj()]) == ([], [info])
