"""evaluate where a scenario's config names extenders: this one, simulated; others, asked only where the user says so."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from extender.cli.main import main
from tests.fakes.extender import FakeExtender
from tests.unit.simulation.scenarios import Json, gang, node, nodes, pod, waiting

VERBS = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "preemptVerb": "preempt", "bindVerb": "bind"}
RACK = "example.com/rack"


def config(url: str = "http://127.0.0.1:8888", **fields: Any) -> Json:
    entry = {"urlPrefix": url, **VERBS, "weight": 100, "nodeCacheCapable": True, **fields}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {**kind, "extenders": [entry]}


def extender(**fields: Any) -> Json:
    return {"apiVersion": "gang-extender.dev/v1alpha1", "kind": "ExtenderConfiguration", **fields}


class Evaluate:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._file = folder / "scenario.json"
        self._capsys = capsys
        self.said = ""

    def __call__(self, scenario: Json, *flags: str) -> Json:
        self._file.write_text(json.dumps(scenario))
        main(["evaluate", str(self._file), *flags])
        printed = self._capsys.readouterr()
        self.said = printed.err
        answer: Json = json.loads(printed.out)[0]
        return answer


@pytest.fixture
def evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Evaluate:
    return Evaluate(tmp_path, capsys)


def test_this_extender_is_the_plugin_in_the_pod_s_profile(evaluate: Evaluate) -> None:
    scenario = waiting("two of three fit", gang(), 3, nodes=nodes(2), pods=[])
    alone = evaluate(scenario)
    assert alone["feasible"] == ["n1", "n2"]
    asked = evaluate({**scenario, "config": config()})
    assert asked["feasible"] is None
    assert "minMember of 3 does not fit: Insufficient cpu" in asked["fitError"]
    assert asked["preemption"]["gang"]["fits"] is False


def test_its_settings_count(evaluate: Evaluate) -> None:
    scenario = waiting("one rack", gang(members=2), 2, nodes=[node("n1", **{RACK: "a"}), node("n2", **{RACK: "b"})])
    scenario["podGroups"][0]["metadata"]["annotations"] = {"gang-extender.dev/topology-required": "rack"}
    settings = extender(topology=[{"name": "rack", "nodeLabel": RACK}])
    answer = evaluate({**scenario, "config": config(), "extender": settings})
    assert "no single rack takes it" in answer["fitError"]
    assert evaluate.said == ""


def test_its_scores_count_as_the_entry_weighs_them(evaluate: Evaluate) -> None:
    """A single pod is kept off the free rack."""
    racks = [node("n1", cpu="8", **{RACK: "a"}), node("n2", cpu="8", **{RACK: "b"})]
    scenario = {"name": "single", "nodes": racks, "pods": [pod("there", on="n1")], "pending": pod("single")}
    settings = extender(topology=[{"name": "rack", "nodeLabel": RACK}])
    assert evaluate(scenario)["bestSet"] == ["n2"]
    assert evaluate({**scenario, "config": config(), "extender": settings})["bestSet"] == ["n1"]


def test_no_connection_is_opened(evaluate: Evaluate) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        for fields in ({}, {"filterVerb": "predicates"}):
            scenario = {
                "name": "full",
                "nodes": nodes(1),
                "pods": [pod("low", on="n1")],
                "pending": pod("p", priority=10),
            }
            evaluate({**scenario, "config": config(url, **fields)})
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert f"$.config.extenders: extenders are not asked without --call-extenders: {url} (filter," in evaluate.said


def test_asked_for_others_filter_and_prioritize(evaluate: Evaluate) -> None:
    refused = {
        "NodeNames": ["n1", "n2"],
        "FailedNodes": {"n3": "too hot"},
        "FailedAndUnresolvableNodes": {"n4": "too far"},
    }
    server = FakeExtender({"filter": refused, "prioritize": [{"Host": "n2", "Score": 9}], "preempt": {}, "bind": {}})
    try:
        scenario = {
            "name": "p",
            "nodes": nodes(4),
            "pods": [],
            "pending": pod("p"),
            "config": config(f"{server.url}/x"),
        }
        server.answers = {f"x/{verb}": answer for verb, answer in server.answers.items()}
        answer = evaluate(scenario, "--call-extenders")
    finally:
        server.stop()
    assert set(server.asked) == {"x/filter", "x/prioritize"}
    assert (answer["feasible"], answer["bestSet"]) == (["n1", "n2"], ["n2"])
    verdicts = {each["name"]: each["verdict"] for each in answer["nodes"]}
    assert verdicts["n3"]["reasons"] == ["too hot"]
    assert [verdicts[name]["unresolvable"] for name in ("n3", "n4")] == [False, True]


def test_an_extender_that_does_not_answer_is_the_scenario_s_error(evaluate: Evaluate) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/x"
    scenario = {"name": "p", "nodes": nodes(1), "pending": pod("p"), "config": config(url)}
    assert "connection refused" in evaluate(scenario, "--call-extenders")["error"]
