"""Fields that no such object has: named with their place where they were written by hand, and with what may have been meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.client.embedded import EmbeddedAPI
from extender.client.embedded.load import load_files
from extender.client.embedded.unknown_fields import TABLE, unknown_fields
from extender.client.interface import RESOURCE_TYPES
from tests.filled import filled
from tests.parity.record_fields import FIELDS, names

PROJECT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "{apiVersion: v1, kind: Pod, spec: {contaners: []}}",
            ["$.spec.contaners: unknown field; did you mean containers?"],
            id="of a pod",
        ),
        pytest.param(
            "{apiVersion: v1, kind: Pod, spec: {containers: [{}, {resources: {request: {cpu: 1}}}]}}",
            ["$.spec.containers[1].resources.request: unknown field; did you mean requests?"],
            id="in a list",
        ),
        pytest.param(
            "{apiVersion: apps/v1, kind: Deployment, spec: {replica: 3, template: {spec: {nodeselector: {}}}}}",
            [
                "$.spec.replica: unknown field; did you mean replicas?",
                "$.spec.template.spec.nodeselector: unknown field; did you mean nodeSelector?",
            ],
            id="of a workload and of its template",
        ),
        pytest.param(
            "{apiVersion: batch/v1, kind: Job, spec: {parallelism: 1, podReplacementPolicy: Failed}}", [], id="none"
        ),
        pytest.param(
            "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, spec: {minMembers: 3}, status: {phase: x}}",
            ["$.spec.minMembers: unknown field; did you mean minMember?"],
            id="of a PodGroup",
        ),
        pytest.param(
            "{apiVersion: v1, kind: Pod, wholly: {different: 1}}", ["$.wholly: unknown field"], id="nothing is like it"
        ),
        pytest.param("{apiVersion: x/v1, kind: Pod, spec: {a: 1}}", [], id="a kind that is not known"),
        pytest.param(
            "{apiVersion: v1, kind: Pod, metadata: {labels: {a: b}}, spec: {nodeSelector: {c: d}, containers: text}}",
            [],
            id="names of one's own choice; what is no object is for others to say",
        ),
    ],
)
def test_a_field_is_not_known(text: str, said: list[str]) -> None:
    assert list(unknown_fields(yaml.safe_load(text))) == said


@pytest.mark.parametrize("resource", RESOURCE_TYPES, ids=str)
def test_every_field_that_is_read_is_known(resource: Any) -> None:
    whole = {**filled(resource.type), "apiVersion": resource.api_version, "kind": resource.kind}
    shared = ("volumeHandle", "secretNamespace", "observedGeneration")  # of structs that serve two Go types
    assert [each for each in unknown_fields(whole) if not any(name in each for name in shared)] == []


def test_the_table_is_the_recorded_one() -> None:
    assert json.loads(TABLE.read_text()) == names(json.loads(FIELDS.read_text()))


@pytest.mark.parametrize("file", sorted(PROJECT.glob("docs/*/*.yaml")), ids=lambda file: file.name)
def test_the_examples_have_none(file: Path) -> None:
    assert [each for document in yaml.safe_load_all(file.read_text()) for each in unknown_fields(document)] == []


def test_what_an_api_server_has_let_in_is_not_looked_at(tmp_path: Path) -> None:
    """It may be newer than the table."""
    file = tmp_path / "cluster.yaml"
    file.write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: p, UID}, spec: {contaners: []}}".replace("UID", "uid: u")
    )
    assert load_files(EmbeddedAPI(), [file]).misspelt == []
    file.write_text("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {contaners: []}}")
    assert load_files(EmbeddedAPI(), [file]).misspelt == [
        f"{file}:1: $.spec.contaners: unknown field; did you mean containers?"
    ]
