"""Which victims are spared first, and which of several nodes is taken."""

from __future__ import annotations

import pytest

from extender.framework.preemption.candidate import Victims
from extender.framework.preemption.ordering import (
    best_nodes,
    default_score_functions,
    earliest_start_time,
    sort_by_importance,
)
from tests.objects import PodBuilder, make_pod

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def _pod(name: str, priority: int = 0, start: str = EARLY) -> PodBuilder:
    pod = make_pod().name(name).priority(priority)
    return pod.start_time(start) if start else pod


@pytest.mark.parametrize(
    ("pods", "order"),
    [
        pytest.param([_pod("low", 1), _pod("high", 2)], ["high", "low"], id="higher priority first"),
        pytest.param([_pod("new", 1, LATE), _pod("old", 1)], ["old", "new"], id="then the pod that runs for longer"),
        pytest.param([_pod("a"), _pod("b"), _pod("c")], ["a", "b", "c"], id="equals stay as they are"),
        pytest.param(
            [_pod("unstarted", 1, ""), _pod("old", 1)], ["old", "unstarted"], id="no start time counts as now"
        ),
        pytest.param(
            [_pod("a", 0, ""), _pod("b", 0, ""), _pod("c", 0, "")],
            ["c", "b", "a"],
            id="of pods without start times the later one passes the earlier",
        ),
    ],
)
def test_importance(pods: list[PodBuilder], order: list[str]) -> None:
    objects = [pod.obj() for pod in pods]
    sort_by_importance(objects)
    assert [pod.name for pod in objects] == order


def _victims(*pods: PodBuilder, violations: int = 0) -> Victims:
    return Victims(tuple(pod.obj() for pod in pods), violations)


@pytest.mark.parametrize(
    ("nodes", "best"),
    [
        pytest.param(
            {"n1": _victims(_pod("a", 1), violations=1), "n2": _victims(_pod("b", 9))},
            ["n2"],
            id="fewest violations, whatever the priority",
        ),
        pytest.param(
            {"n1": _victims(_pod("a", 5)), "n2": _victims(_pod("b", 4), _pod("c", 4))},
            ["n2"],
            id="lowest top priority, though more victims",
        ),
        pytest.param(
            {"n1": _victims(_pod("a", 4), _pod("b", 3)), "n2": _victims(_pod("c", 4), _pod("d", 2))},
            ["n2"],
            id="lowest sum of priorities",
        ),
        pytest.param(
            {"n1": _victims(_pod("a", -4)), "n2": _victims(_pod("b", -4), _pod("c", -9))},
            ["n1"],
            id="negative priorities do not make more victims cheaper",
        ),
        pytest.param(
            {"n1": _victims(_pod("a", 4)), "n2": _victims(_pod("b", 4, LATE))},
            ["n2"],
            id="the pod that has run the shortest",
        ),
        pytest.param(
            {"n1": _victims(_pod("a", 4), _pod("b", 1, LATE)), "n2": _victims(_pod("c", 4), _pod("d", 1, EARLY))},
            ["n1", "n2"],
            id="only the start times of the highest priority count; the rest is a tie",
        ),
        pytest.param({"n1": _victims(_pod("a"))}, ["n1"], id="one needs no choice"),
    ],
)
def test_best_nodes(nodes: dict[str, Victims], best: list[str]) -> None:
    assert best_nodes(list(nodes), default_score_functions(nodes)) == best


def test_earliest_start_is_of_the_highest_priority_wherever_it_stands() -> None:
    victims = _victims(_pod("a", 1, EARLY), _pod("b", 5, LATE))
    assert earliest_start_time(victims).day == 2
