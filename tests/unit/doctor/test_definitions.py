"""The doctor on the definition of PodGroups that a cluster has."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from extender.client.embedded import EmbeddedAPI
from extender.client.errors import ForbiddenError
from extender.client.interface import ResourceType
from extender.config.types import ExtenderConfiguration
from extender.doctor import definitions
from extender.doctor.questions import Questions
from tests.documented import PROJECT

NAME = "podgroups.scheduling.x-k8s.io"
SHIPPED = yaml.safe_load((PROJECT / "manifests" / "crd" / "podgroups.yaml").read_text())


def found(api: EmbeddedAPI) -> list[str]:
    ask = Questions(api, ExtenderConfiguration(), "kubeconfig", "")
    return [f"{each.severity.value} {each.code} {each.field}" for each in definitions.examine(ask)]


def having(definition: Any) -> EmbeddedAPI:
    api = EmbeddedAPI()
    api.create(definitions.DEFINITIONS, definition)
    return api


def other(*without: str, version: str = "v1alpha1", served: bool = True) -> Any:
    """The shipped one, without these fields of the status."""
    changed: Any = yaml.safe_load(yaml.safe_dump(SHIPPED))
    (only,) = changed["spec"]["versions"]
    only |= {"name": version, "served": served}
    for name in without:
        del only["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"][name]
    return changed


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        pytest.param(other(), [], id="the shipped one"),
        pytest.param(other("reason"), [f"warning OldDefinition {NAME}"], id="that of an earlier version of ours"),
        pytest.param(other("conditions", "reason"), [f"info NoConditions {NAME}"], id="that of scheduler-plugins"),
        pytest.param(other(version="v1"), [f"error VersionNotServed {NAME}"], id="another version"),
        pytest.param(other(served=False), [f"error VersionNotServed {NAME}"], id="a version that is not served"),
        pytest.param({**other(), "spec": {"versions": []}}, [f"error VersionNotServed {NAME}"], id="none"),
    ],
)
def test_a_definition(definition: Any, expected: list[str]) -> None:
    assert found(having(definition)) == expected


def test_without_a_definition_the_kind_is_not_served_which_is_told_elsewhere() -> None:
    assert found(EmbeddedAPI()) == []


def test_a_definition_that_may_not_be_read_is_said_not_to_be_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(self: EmbeddedAPI, resource: ResourceType[Any], name: str, namespace: str = "") -> Any:
        raise ForbiddenError("no")

    monkeypatch.setattr(EmbeddedAPI, "get", get)
    assert found(EmbeddedAPI()) == [f"info NotExamined customresourcedefinitions {NAME}"]
