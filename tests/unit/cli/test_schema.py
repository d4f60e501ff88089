"""`gang-extender schema`: what the commands print for programs is what their schemas say."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import msgspec
import pytest

from extender.cli.main import main
from extender.cli.schema import NAMES, schema
from extender.simulation.answer import Answer
from tests.documented import PROJECT
from tests.parity.corpus import read

COMMANDS = {
    "simulate": [
        ["simulate", "docs/simulate/nodes.yaml", "docs/simulate/web.yaml", "docs/simulate/gangs.yaml", "-o", "json"]
    ],
    "evaluate": [["evaluate", f"docs/evaluate/{name}.json"] for name in ("scenarios", "gangs")],
    "doctor": [["doctor", "--kube-scheduler-config", "docs/simulate/kube-scheduler.yaml", "-o", "json"]],
}


def as_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    main(arguments)
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = as_json(["schema", name], capsys)
    jsonschema.Draft202012Validator.check_schema(said)
    assert said == json.loads(json.dumps(schema(name)))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [pytest.param(name, each, id=" ".join(each)) for name, all_ in COMMANDS.items() for each in all_],
)
def test_a_report_is_as_its_schema_says(
    name: str, arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(PROJECT)
    report = as_json(arguments, capsys)
    assert report
    jsonschema.validate(report, schema(name))
    if isinstance(report, list):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate([{**report[0], "severity": "other", "nodeOrder": 1}], schema(name))


@pytest.mark.parametrize("corpus", ["expected.json.gz", "fresh.json.gz"])
def test_the_go_oracle_s_answers_have_the_shape_of_ours(corpus: str) -> None:
    for number, each in enumerate(read(corpus)):
        msgspec.convert({"name": str(number), **each.get("expected", each)}, Answer)


def test_names_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(NAMES)


def test_an_unknown_name_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "pods"]) == 2
    assert capsys.readouterr().err.startswith(
        "gang-extender: schema: no schema of the name 'pods'; there are configuration, "
    )
