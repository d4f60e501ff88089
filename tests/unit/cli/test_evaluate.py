"""`gang-extender evaluate` as a person runs it."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from extender.cli.main import main
from tests.documented import PROJECT

Json = dict[str, Any]


def _node(name: str, cpu: str = "2") -> Json:
    return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "memory": "4Gi", "pods": "10"}}}


def _pod(name: str, node: str = "", cpu: str = "1", **spec: Any) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    if node:
        spec["nodeName"] = node
    meta = {"name": name, "namespace": "default", "uid": name}
    return {"metadata": meta, "spec": {"schedulerName": "default-scheduler", "containers": [container], **spec}}


FITS: Json = {"name": "fits", "nodes": [_node("n1"), _node("n2", "1")], "pods": [], "pending": _pod("p", cpu="1500m")}
FULL: Json = {
    "name": "full",
    "nodes": [_node("n1")],
    "pods": [_pod("low", "n1", "2")],
    "pending": _pod("p", priority=10),
}


def _run(tmp_path: Path, scenarios: Any, *flags: str) -> int:
    file = tmp_path / "scenarios.json"
    file.write_text(scenarios if isinstance(scenarios, str) else json.dumps(scenarios))
    return main(["evaluate", str(file), *flags])


def test_answers_in_the_corpus_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(tmp_path, [FITS, FULL]) == 0
    fits, full = json.loads(capsys.readouterr().out)
    assert (fits["feasible"], fits["bestSet"]) == (["n1"], ["n1"])
    assert full["fitError"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert full["preemption"]["perNode"]["n1"]["victims"] == ["default/low"]
    assert full["preemption"]["postFilter"]["nominatedNode"] == "n1"


def test_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(tmp_path, [FITS, FULL], "-o", "table") == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["SCENARIO", "FEASIBLE", "BEST", "PREEMPTION", "MESSAGE"],
        ["fits", "1/2", "n1", "-"],
        ["full", "0/1", "-", "n1", *["0/1", "nodes", "are", "available:", "1", "Insufficient", "cpu."]],
    ]


def test_standard_input_and_gzip(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(json.dumps(FITS).encode()))))
    assert main(["evaluate", "-"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "fits"


def test_one_scenario_a_list_and_an_object_with_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forms: tuple[tuple[Any, list[str]], ...] = (
        (FITS, ["fits"]),
        ([FITS, FULL], ["fits", "full"]),
        ({"scenarios": [FITS, FULL]}, ["fits", "full"]),
        ([], []),
    )
    for form, names in forms:
        assert _run(tmp_path, form) == 0
        assert [answer["name"] for answer in json.loads(capsys.readouterr().out)] == names
    assert _run(tmp_path, {"scenarios": FITS}) == 2


def test_one_bad_scenario_leaves_the_others_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad: list[Any] = [7, {**FITS, "weather": []}, {**FITS, "pending": None}, {**FITS, "nodes": [{"metadata": {}}]}]
    assert _run(tmp_path, [*bad, FITS]) == 1
    answers = json.loads(capsys.readouterr().out)
    assert [answer.get("error") for answer in answers] == [
        "$[0]: expected an object",
        "$[1].weather: unknown field",
        "$[2].pending: required",
        "$[3].nodes[0].metadata.name: required",
        None,
    ]


def test_the_scenario_of_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(tmp_path, [FITS, FULL], "--name", "full") == 0
    assert [answer["name"] for answer in json.loads(capsys.readouterr().out)] == ["full"]
    assert _run(tmp_path, [FITS], "--name", "none") == 2


def test_what_an_extender_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = {**FITS, "nodes": [_node("n1"), _node("n2")], "extenderFailed": {"n1": "no licence"}}
    both = {**failed, "extenderUnresolvable": {"n2": "no driver"}}
    assert _run(tmp_path, [failed, both]) == 0
    one, none = json.loads(capsys.readouterr().out)
    assert one["feasible"] == ["n2"]
    assert none["fitError"] == "0/2 nodes are available: 1 no driver, 1 no licence."
    text = 'expected at least one victim pod on node "n1"'
    assert none["preemption"]["potentialNodes"] == ["n1"]
    verdict = none["preemption"]["perNode"]["n1"]["verdict"]
    assert (verdict["code"], verdict["reasons"]) == (
        "UnschedulableAndUnresolvable",
        ["No preemption victims found for incoming pod"],
    )
    beside = {**none_with_victim(), "extenderFailed": {"n1": "no licence"}}
    assert _run(tmp_path, [beside]) == 0
    verdict = json.loads(capsys.readouterr().out)[0]["preemption"]["perNode"]["n1"]["verdict"]
    assert (verdict["code"], verdict["reasons"]) == ("Error", [text])


def none_with_victim() -> Json:
    """A node that has room, and a pod of lower priority that need not go."""
    return {"name": "v", "nodes": [_node("n1", "4")], "pods": [_pod("low", "n1")], "pending": _pod("p", priority=10)}


@pytest.mark.parametrize(
    ("scenario", "error"),
    [
        pytest.param({"nodes": []}, "$[0].pending: required", id="nothing to schedule"),
        pytest.param({**FITS, "nodes": []}, "no nodes available to schedule pods", id="no node"),
        pytest.param(
            {**FITS, "nodes": [{"metadata": {"name": 5}}]},
            "$[0].nodes[0].metadata.name: Expected `str`, got `int`",
            id="a wrong type, with its place",
        ),
        pytest.param({**FITS, "nodes": 3}, "$[0].nodes: expected an array", id="no list"),
        pytest.param({**FITS, "podz": []}, "$[0].podz: unknown field", id="an unknown field"),
        pytest.param(
            {**FITS, "pods": [_pod("a")]},
            "$[0].pods[0].spec.nodeName: required: these are the pods that run",
            id="a pod that does not run",
        ),
        pytest.param(
            {**FITS, "config": {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "Policy"}},
            "$[0].config:1: kind: Policy was dropped with kube-scheduler 1.23: write a profile's plugins instead",
            id="a configuration that no kube-scheduler takes",
        ),
        pytest.param(
            {
                **FITS,
                "config": {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "profiles": [{"plugins": {"filter": {"enabled": [{"name": "NodeColour"}]}}}],
                },
            },
            '$[0].config: profile default-scheduler: plugin "NodeColour" does not exist',
            id="a plugin that is not modelled is refused by name",
        ),
    ],
)
def test_a_bad_scenario_is_named_and_the_others_are_answered(
    scenario: Json, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(tmp_path, [scenario, FULL]) == 1
    out, err = capsys.readouterr()
    bad, good = json.loads(out)
    assert bad["error"] == error
    assert error in err
    assert good["name"] == "full"
    assert "error" not in good


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("[", ":1: expected JSON: Expecting value", id="cut off"),
        pytest.param("\nkind: Pod\n", ":2: expected JSON: Expecting value", id="YAML"),
        pytest.param("3", ": $: expected a list of scenarios", id="no list"),
        pytest.param("[" * 100_000, "", id="too deep"),
    ],
)
def test_what_is_no_list_of_scenarios_is_wrong_use(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(tmp_path, text) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("gang-extender: ")
    assert said in err
    assert err.count("\n") == 1


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert main(["evaluate", str(tmp_path / "none.json")]) == 2


def test_extenders_are_not_asked_and_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}],
    }
    assert _run(tmp_path, [FITS, FITS | {"config": config}]) == 0
    printed = capsys.readouterr()
    assert [answer["feasible"] for answer in json.loads(printed.out)] == [["n1"], ["n1"]]
    assert len(printed.err.splitlines()) == 1
    assert "$[1].config.extenders: extenders are not asked" in printed.err


def test_a_plugin_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": {"enabled": [{"name": "Mine"}]}}}],
    }
    assert _run(tmp_path, [FITS | {"config": config}]) == 1
    assert 'plugin "Mine" does not exist' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("count", "watched", "bar"),
    [
        pytest.param(20, True, True, id="many scenarios on a terminal"),
        pytest.param(20, False, False, id="many, and standard error is a file"),
        pytest.param(2, True, False, id="few"),
    ],
)
def test_a_bar_shows_how_far_it_is(
    count: int,
    watched: bool,
    bar: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: watched, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    [scenario] = json.loads((PROJECT / "docs/evaluate/scenarios.json").read_text())
    file = tmp_path / "scenarios.json"
    file.write_text(json.dumps([{**scenario, "name": str(number)} for number in range(count)]))
    assert main(["evaluate", str(file), "-o", "table"]) == 0
    said = capsys.readouterr()
    assert ("scenarios evaluated" in said.err) is bar
    assert len(said.out.splitlines()) == 1 + count
