"""PreScore and Score. kube-scheduler: TestRunPreScorePlugins, TestRunScorePlugins"""

from __future__ import annotations

import pytest

from extender.config.types import KubeSchedulerProfile, PluginRef, Plugins, PluginSet
from extender.framework.cycle_state import CycleState
from extender.framework.interface import Plugin
from extender.framework.runtime.framework import Framework
from extender.framework.runtime.scoring_points import PluginScores
from extender.framework.status import SUCCESS, Code, Status
from tests.unit.framework.runtime.fakes import (
    NODES,
    POD,
    REASON,
    Binder,
    FakePlugin,
    OnlyScore,
    Scorer,
    Sort,
    make_dependencies,
    make_framework,
    refs,
    registry_of,
)

E, U, SK = Code.ERROR, Code.UNSCHEDULABLE, Code.SKIP


def scoring(*plugins: Plugin, weights: dict[str, int] | None = None) -> Framework:
    """The plugins at MultiPoint, with their weights."""
    sort, binder = Sort(), Binder()
    weighted = tuple(PluginRef(plugin.name, (weights or {}).get(plugin.name, 0)) for plugin in plugins)
    profile = KubeSchedulerProfile("test", Plugins(PluginSet((*refs(sort.name, binder.name), *weighted))))
    return Framework(profile, registry_of(sort, binder, *plugins), make_dependencies())


@pytest.mark.parametrize(
    ("codes", "expected", "skipped"),
    [
        pytest.param([Code.SUCCESS, Code.SUCCESS], "", set(), id="all succeed"),
        pytest.param([Code.SUCCESS, E], "p1", set(), id="an error after a success"),
        pytest.param([SK, E], "p1", {"p0"}, id="an error after a skip: the skip is noted all the same"),
        pytest.param([SK, SK, SK], "", {"p0", "p1", "p2"}, id="all skip"),
        pytest.param([SK, Code.SUCCESS, SK, Code.SUCCESS], "", {"p0", "p2"}, id="some skip"),
        pytest.param([U], "p0", set(), id="a refusal is an error: it is too late for one"),
    ],
)
def test_pre_score(codes: list[Code], expected: str, skipped: set[str]) -> None:
    state = CycleState()
    plugins = [FakePlugin(f"p{i}", pre_score=code) for i, code in enumerate(codes)]
    status = make_framework("pre_score", *plugins).run_pre_score_plugins(state, POD, NODES)
    text = f'running PreScore plugin "{expected}": {REASON}'
    assert status == (Status(E, (text,)) if expected else SUCCESS)
    assert state.skip_score_plugins == skipped


def halve(score: int) -> int:
    return score // 2


@pytest.mark.parametrize(
    ("framework", "expected"),
    [
        pytest.param(make_framework("score"), [("n1", 0, {}), ("n2", 0, {})], id="no plugin: all nodes score 0"),
        pytest.param(
            make_framework("score", Scorer("a", {"n1": 1, "n2": 2})),
            [("n1", 1, {"a": 1}), ("n2", 2, {"a": 2})],
            id="one plugin, weight unset: 1",
        ),
        pytest.param(
            scoring(Scorer("a", {"n1": 10, "n2": 20}, normalize=halve)),
            [("n1", 5, {"a": 5}), ("n2", 10, {"a": 10})],
            id="scores are normalised",
        ),
        pytest.param(
            scoring(
                Scorer("a", {"n1": 10, "n2": 20}),
                Scorer("b", {"n1": 10, "n2": 20}, normalize=halve),
                Scorer("c", {"n1": 0, "n2": 100}),
                weights={"a": 1, "b": 2, "c": 3},
            ),
            [("n1", 20, {"a": 10, "b": 10, "c": 0}), ("n2", 340, {"a": 20, "b": 20, "c": 300})],
            id="three plugins: weighted after they are normalised, and summed up",
        ),
        pytest.param(
            scoring(Scorer("a", {"n1": 1000, "n2": -2}, normalize=lambda score: max(0, score // 10))),
            [("n1", 100, {"a": 100}), ("n2", 0, {"a": 0})],
            id="raw scores may be anything",
        ),
    ],
)
def test_score(framework: Framework, expected: list[tuple[str, int, dict[str, int]]]) -> None:
    scores, status = framework.run_score_plugins(CycleState(), POD, NODES)
    assert status.success
    assert [(entry.name, entry.total_score, dict(entry.scores)) for entry in scores] == expected


def out_of_range(score: int) -> str:
    return (
        f'applying score defaultWeights on Score plugins: plugin "a" returns an invalid score {score}, '
        "it should in the range of [0, 100] after normalizing"
    )


@pytest.mark.faults
@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        pytest.param(
            Scorer("a", score=E), f'running Score plugins: plugin "a" failed with: {REASON}', id="a score fails"
        ),
        pytest.param(
            FakePlugin("a", raises={"score": ZeroDivisionError("z")}),
            'running Score plugins: plugin "a" failed with: ZeroDivisionError: z',
            id="a score raises",
        ),
        pytest.param(
            Scorer("a", score=SK),
            f'running Score plugins: plugin "a" failed with: {REASON}',
            id="a score skips: too late",
        ),
        pytest.param(
            Scorer("a", normalize=E),
            f'running Normalize on Score plugins: plugin "a" failed with: {REASON}',
            id="normalising fails",
        ),
        pytest.param(Scorer("a", 101), out_of_range(101), id="a score above 100"),
        pytest.param(Scorer("a", -1), out_of_range(-1), id="a score below 0"),
        pytest.param(Scorer("a", 10, normalize=lambda score: 200), out_of_range(200), id="above 100 once normalised"),
        pytest.param(Scorer("a", 10, normalize=lambda score: -7), out_of_range(-7), id="below 0 once normalised"),
    ],
)
def test_a_score_that_fails_is_an_error(plugin: Plugin, text: str) -> None:
    scores, status = make_framework("score", plugin).run_score_plugins(CycleState(), POD, NODES)
    assert scores == []
    assert status == Status(E, (text,))


@pytest.mark.parametrize(
    ("skips", "names"),
    [
        pytest.param([Code.SUCCESS, SK], {"p0"}, id="one skips: only the other's scores"),
        pytest.param([SK, SK], set(), id="all skip: all nodes score 0"),
    ],
)
def test_what_skipped_in_pre_score_does_not_score(skips: list[Code], names: set[str]) -> None:
    framework = scoring(*(Scorer(f"p{i}", pre_score=code) for i, code in enumerate(skips)))
    state = CycleState()
    assert framework.run_pre_score_plugins(state, POD, NODES).success
    scores, status = framework.run_score_plugins(state, POD, NODES)
    assert status.success
    assert [set(entry.scores) for entry in scores] == [names, names]
    assert framework.total_score_weight(state) == len(names)


def test_a_plugin_without_pre_score_always_scores() -> None:
    framework = scoring(Scorer("skips", pre_score=SK), OnlyScore("always"))
    state = CycleState()
    framework.run_pre_score_plugins(state, POD, NODES)
    scores, _ = framework.run_score_plugins(state, POD, NODES)
    assert [dict(entry.scores) for entry in scores] == [{"always": 1}, {"always": 1}]


def test_what_each_plugin_said_can_be_seen_raw_and_normalised() -> None:
    framework = scoring(Scorer("a", {"n1": 10, "n2": 20}, normalize=halve), weights={"a": 3})
    assert framework.score_by_plugin(CycleState(), POD, NODES) == (
        [PluginScores("a", weight=3, raw=[10, 20], normalized=[5, 10])],
        SUCCESS,
    )


def test_asking_for_a_score_that_is_not_there_is_a_key_error() -> None:
    scores, _ = make_framework("score", Scorer("a")).run_score_plugins(CycleState(), POD, NODES)
    assert scores[0].scores["a"] == 10
    with pytest.raises(KeyError):
        scores[0].scores["b"]
