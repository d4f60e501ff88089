"""`gang-extender evaluate` where pods are of groups, as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from extender.cli.main import main
from extender.simulation.scenario import KNOWN
from tests.unit.simulation.scenarios import RUNNING, VIP, Json, gang, nodes, pod, pod_group, waiting

PROJECT = Path(__file__).parents[3]
LOW = [pod(f"low-{number}", on=f"n{number}") for number in (1, 2, 3)]
EQUAL = pod("equal", on="n3", priority=10)
RUN = [pod_group("run", 2)]
SCENARIOS: list[tuple[Json, str, str]] = [
    (
        waiting("three low pods", gang(), 3, nodes=nodes(3), pods=LOW),
        "n1,n2,n3",
        "gang default/train: minMember of 3 does not fit: Insufficient cpu; "
        "evicts default/low-1,default/low-2,default/low-3",
    ),
    (
        waiting("one equal", gang(), 3, nodes=nodes(3), pods=[*LOW[:2], EQUAL]),
        "-",
        "gang default/train: minMember of 3 does not fit: Insufficient cpu; "
        "evicts no pod: the gang would not fit even without all pods of lower priority",
    ),
    (
        {"name": "a lone pod", "nodes": nodes(3), "pods": [*RUNNING, LOW[2]], "podGroups": RUN, "pending": VIP},
        "n3",
        "0/3 nodes are available: 3 Insufficient cpu.",
    ),
    (
        {"name": "no lone pod", "nodes": nodes(2), "pods": RUNNING, "podGroups": RUN, "pending": VIP},
        "n1",
        "0/2 nodes are available: 2 Insufficient cpu.",
    ),
    (
        {
            "name": "surplus",
            "nodes": nodes(3),
            "pods": [*RUNNING, pod("run-3", "run", on="n3")],
            "podGroups": RUN,
            "pending": VIP,
        },
        "n3",
        "0/3 nodes are available: 3 Insufficient cpu.",
    ),
    (
        {
            "name": "no permission",
            "nodes": nodes(2),
            "pods": RUNNING,
            "podGroups": RUN,
            "pending": VIP,
            "mayEvict": False,
        },
        "-",
        "preempts no pod: a fraction of a running gang would be left",
    ),
    (waiting("fits", gang(), 3, nodes=nodes(3), pods=[]), "-", "gang default/train: fits"),
    (
        waiting("too few", gang(members=2), 3, nodes=nodes(3), pods=[]),
        "-",
        "gang default/train: fewer pods exist than minMember of 3",
    ),
]


def _run(tmp_path: Path, scenarios: Any, *flags: str) -> int:
    file = tmp_path / "scenarios.json"
    file.write_text(json.dumps(scenarios))
    return main(["evaluate", str(file), *flags])


@pytest.mark.parametrize(
    ("scenario", "where", "message"), [pytest.param(*each, id=each[0]["name"]) for each in SCENARIOS]
)
def test_a_line_of_the_table(
    scenario: Json, where: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(tmp_path, scenario, "-o", "table") == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert line.split("   ")[0] == scenario["name"]
    assert where in line.split()
    assert line.endswith(message)


def test_the_page_shows_what_its_example_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(PROJECT)
    page = (PROJECT / "docs/evaluate.md").read_text()
    shown = page.split("```\n$ gang-extender ")[1].partition("```")[0]
    command, _, output = shown.partition("\n")
    assert main(command.split()) == 0
    assert capsys.readouterr().out == output


def test_the_page_names_every_key() -> None:
    page = (PROJECT / "docs/evaluate.md").read_text()
    assert [key for key in sorted(KNOWN - {"kind"}) if f"`{key}`" not in page] == []


def test_which_pods_go_for_which_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(tmp_path, [scenario for scenario, _, _ in SCENARIOS]) == 0
    answers = {answer["name"]: answer.get("preemption") for answer in json.loads(capsys.readouterr().out)}
    per_node = {f"n{number}": [f"default/low-{number}"] for number in (1, 2, 3)}
    assert answers["three low pods"]["gang"]["perNode"] == per_node
    assert "victims" not in answers["one equal"]["gang"]
    lone, *others = answers["a lone pod"]["guard"]["candidates"]
    assert (lone["victims"], [each["usable"] for each in others]) == (["default/low-3"], [False, False])
    (whole,) = (each for each in answers["no lone pod"]["guard"]["candidates"] if each["usable"])
    assert (whole["victims"], whole["elsewhere"]) == (["default/run-1"], {"n2": ["default/run-2"]})
    (spare,) = (each for each in answers["surplus"]["guard"]["candidates"] if each["usable"])
    assert (spare["victims"], "elsewhere" in spare) == (["default/run-3"], False)
    assert answers["no permission"]["guard"]["verdict"] == "gang_fraction"


def test_kube_schedulers_own_answer_stands_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = SCENARIOS[3][0]
    assert _run(tmp_path, [scenario, {**scenario, "podGroups": [], "pods": [LOW[0], LOW[1]]}]) == 0
    with_gang, without = (answer["preemption"] for answer in json.loads(capsys.readouterr().out))
    assert with_gang["postFilter"]["verdict"]["code"] == "Success"
    assert set(with_gang) - set(without) == {"guard"}


@pytest.mark.parametrize(
    ("wrap", "place"),
    [
        pytest.param(lambda good, bad: [good, bad], "$[1]", id="in a list"),
        pytest.param(lambda good, bad: {"scenarios": [good, good, good, bad]}, "$.scenarios[3]", id="in an object"),
        pytest.param(lambda good, bad: bad, "$", id="alone"),
    ],
)
def test_a_bad_group_is_named_with_file_and_place(
    wrap: Any, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = SCENARIOS[0][0]
    assert _run(tmp_path, wrap(good, {**good, "name": "bad", "podGroups": [{"metadata": {}}]})) == 1
    said = capsys.readouterr().err
    assert said == f"gang-extender: {tmp_path}/scenarios.json: bad: {place}.podGroups[0].metadata.name: required\n"
