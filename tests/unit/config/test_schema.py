"""The schema of ExtenderConfiguration takes what the reader takes, and refuses what one key alone makes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from extender.config.load import load_extender_configuration
from extender.config.plugin_args import CoschedulingArgs
from extender.config.schema import LIMITS, configuration_schema
from extender.config.types import ExtenderConfiguration
from extender.config.yaml_file import ConfigurationError
from tests.documented import PROJECT

SCHEMA = configuration_schema()
CHECK = jsonschema.Draft202012Validator(SCHEMA)
HEAD = {"apiVersion": "gang-extender.dev/v1alpha1", "kind": "ExtenderConfiguration"}
ENTRY = SCHEMA["properties"]["profiles"]["items"]["properties"]["pluginConfig"]["items"]
ARGUMENTS = ENTRY["then"]["properties"]["args"]["properties"]
"""Of Coscheduling."""


def read(document: Any, folder: Path) -> bool:
    file = folder / "extender.yaml"
    file.write_text(yaml.safe_dump(document))
    try:
        load_extender_configuration(file)
    except ConfigurationError:
        return False
    return True


def with_args(**args: Any) -> dict[str, Any]:
    return {"profiles": [{"pluginConfig": [{"name": "Coscheduling", "args": args}]}]}


def at(key: str, value: Any) -> dict[str, Any]:
    """A document in which this key has that value."""
    return {**HEAD, **(with_args(**{key: value}) if key in ARGUMENTS else {key: value})}


def at_its_limits() -> Iterator[tuple[str, Any, bool]]:
    for key, limits in LIMITS.items():
        for value in limits.get("enum", ()):
            yield key, value, True
        if "enum" in limits:
            yield key, "other", False
        if "minimum" in limits:
            low, high = limits["minimum"], limits["maximum"]
            yield from ((key, low, True), (key, high, True), (key, low - 1, False), (key, high + 1, False))
        if "minItems" in limits:
            yield from ((key, [], False), (key, ["a/b"], True))
        if "maxItems" in limits:
            sources = [
                {"name": f"s{number}", "groupLabel": f"example.com/{number}", "minMemberLabel": "example.com/min"}
                for number in range(limits["maxItems"] + 1)
            ]
            yield from ((key, sources[:-1], True), (key, sources, False))


@pytest.mark.parametrize(
    ("key", "value", "taken"), [pytest.param(*row, id=f"{row[0]}={row[1]!s:.20}") for row in at_its_limits()]
)
def test_the_reader_has_the_same_limits(key: str, value: Any, taken: bool, tmp_path: Path) -> None:
    document = at(key, value)
    assert (CHECK.is_valid(document), read(document, tmp_path)) == (taken, taken)


def test_a_number_that_is_limited_by_the_reader_is_limited_here() -> None:
    """Those of the file and of Coscheduling's arguments: a key that is added has its limits added."""
    numbers = {
        key
        for key, value in {**SCHEMA["properties"], **ARGUMENTS}.items()
        if value.get("type") in ("integer", "number")
    }
    assert numbers == {key for key, limits in LIMITS.items() if "minimum" in limits}


@pytest.mark.parametrize(
    "file",
    [
        file
        for folder in ("manifests", "docs", "tests")
        for file in sorted((PROJECT / folder).rglob("*.yaml"))
        if "\nkind: ExtenderConfiguration\n" in file.read_text()
    ],
    ids=lambda file: str(file.relative_to(PROJECT)),
)
def test_a_file_of_the_project_is_valid(file: Path) -> None:
    found = [each for each in yaml.safe_load_all(file.read_text()) if each["kind"] == HEAD["kind"]]
    assert [error.message for each in found for error in CHECK.iter_errors(each)] == []


@pytest.mark.parametrize(
    ("more", "taken"),
    [
        pytest.param({}, True, id="nothing but the head"),
        pytest.param({"topology": ["example.com/rack"]}, True, id="a level that is a label"),
        pytest.param({"topology": [{"name": "rack", "nodeLabel": "example.com/rack"}]}, True, id="a level with a name"),
        pytest.param({"topology": [{"name": "rack"}]}, False, id="a level without a label"),
        pytest.param({"leaderLease": "kube-system/gang-scheduler"}, True, id="a Lease"),
        pytest.param({"leaderLease": "gang-scheduler"}, False, id="a Lease without a namespace"),
        pytest.param({"packing": "loose"}, False, id="an unknown packing"),
        pytest.param({"schedulerNames": "gang-scheduler"}, False, id="a text in place of a list"),
        pytest.param({"schedulerName": ["gang-scheduler"]}, False, id="a misspelt key"),
        pytest.param({"gangPreemption": "no"}, False, id="a text in place of a bool"),
        pytest.param({"kind": "Other"}, False, id="another kind"),
        pytest.param(with_args(groupSources=[{"preset": "lws"}]), True, id="a preset"),
        pytest.param(with_args(groupSources=[{"preset": "none"}]), False, id="an unknown preset"),
        pytest.param(
            with_args(groupSources=[{"name": "x", "groupLabel": "a/b"}]), False, id="a source without minMember"
        ),
        pytest.param(with_args(permitWaitingSeconds=1), False, id="a misspelt argument"),
        pytest.param(
            {"profiles": [{"plugins": {"score": {"disabled": [{"name": "NodeResourcesFit"}]}}}]},
            True,
            id="a plugin set",
        ),
        pytest.param({"profiles": [{"plugins": {"scores": {}}}]}, False, id="an unknown extension point"),
        pytest.param(
            {"profiles": [{"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": {}}}]}]},
            True,
            id="arguments of another plugin",
        ),
    ],
)
def test_schema_and_reader_agree(more: dict[str, Any], taken: bool, tmp_path: Path) -> None:
    document = {**HEAD, **more}
    assert (CHECK.is_valid(document), read(document, tmp_path)) == (taken, taken)


def test_every_field_is_there() -> None:
    assert len(SCHEMA["properties"]) == len(fields(ExtenderConfiguration)) + len(HEAD)
    assert len(ARGUMENTS) == len(fields(CoschedulingArgs)) + 2
