"""The configuration in effect, said whole: what the file leaves out is there, and it reads as the same configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from extender.config.effective import differences, effective
from extender.config.load import API_VERSION, KIND, load_extender_configuration
from extender.config.types import ExtenderConfiguration
from tests.documented import PROJECT

HEAD = {"apiVersion": API_VERSION, "kind": KIND}
SHIPPED = [file for file in sorted((PROJECT / "manifests").rglob("*.yaml")) if f"kind: {KIND}" in file.read_text()]
RICH = """
schedulerNames: [a, b]
leaderLease: kube-system/a
topology: [example.com/block, {name: rack, nodeLabel: example.com/rack}]
packing: mostEven
profiles:
  - schedulerName: a
    percentageOfNodesToScore: 30
    plugins: {multiPoint: {disabled: [{name: NodeAffinity}], enabled: [{name: ImageLocality, weight: 3}]}}
    pluginConfig:
      - {name: Coscheduling, args: {deniedPGExpirationTimeSeconds: 7, groupSources: [{preset: lws}], inTreePodGroups: true}}
      - {name: DynamicResources, args: {filterTimeout: 1500ms}}
      - name: NodeResourcesFit
        args:
          ignoredResources: [example.com/foo]
          scoringStrategy:
            type: RequestedToCapacityRatio
            resources: [{name: cpu, weight: 2}]
            requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
  - schedulerName: b
    pluginConfig:
      - name: NodeAffinity
        args:
          addedAffinity:
            requiredDuringSchedulingIgnoredDuringExecution:
              nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]
"""


def reads_as(folder: Path, fields: dict[str, object]) -> ExtenderConfiguration:
    file = folder / "effective.yaml"
    file.write_text(yaml.safe_dump({**HEAD, **fields}))
    return load_extender_configuration(file)


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: str(file.relative_to(PROJECT)))
def test_what_is_shipped_reads_as_the_same(file: Path, tmp_path: Path) -> None:
    said = effective(load_extender_configuration(file))
    assert effective(reads_as(tmp_path, said)) == said


def test_everything_that_a_file_may_say_reads_as_the_same(tmp_path: Path) -> None:
    configuration = reads_as(tmp_path, yaml.safe_load(RICH))
    said = effective(configuration)
    assert reads_as(tmp_path, said) == configuration
    assert json.loads(json.dumps(said)) == said


def test_what_the_file_leaves_out_is_said() -> None:
    said = effective(ExtenderConfiguration())
    assert (said["bindTimeoutSeconds"], said["gangVictims"]) == (120.0, "wholeOrSurplus")
    assert "leaderLease" not in said
    (profile,) = said["profiles"]
    args = {each["name"]: each["args"] for each in profile["pluginConfig"]}
    assert (profile["schedulerName"], args["Coscheduling"]["membersToComeSeconds"]) == ("default-scheduler", 600)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="the same"),
        pytest.param({"a": 1, "b": [1]}, {"a": 2, "c": 1}, ["a", "b", "c"], id="changed, left out, added"),
        pytest.param({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}, ["a[1].b"], id="deep in a list"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, ["a"], id="a list that is longer"),
        pytest.param({"a": {"b": {}}}, {"a": {"b": 1}}, ["a.b"], id="another kind of value"),
    ],
)
def test_differences_are_named_as_fields(one: dict[str, object], other: dict[str, object], expected: list[str]) -> None:
    assert differences(one, other) == expected
