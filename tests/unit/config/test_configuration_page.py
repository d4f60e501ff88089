"""docs/configuration.md has every key with its default, every flag of serve, and an example that is read."""

from __future__ import annotations

import argparse
import re
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.cli import serve
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import ExtenderConfiguration
from tests.documented import configuration_in

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text()
_, FILE, ARGUMENTS, FLAGS, _ = PAGE.split("\n## ")
ROW = re.compile(r"^\| `(\w+)` \| `([^`]*)` \|", re.MULTILINE)
SPELLED = {"denied_pg_expiration_time_seconds": "deniedPGExpirationTimeSeconds"}


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return SPELLED.get(name, first + "".join(each.capitalize() for each in rest))


def as_read(default: object) -> Any:
    if isinstance(default, tuple):
        return list(default)
    return default.value if isinstance(default, Enum) else "" if default is None else default


@pytest.mark.parametrize(
    ("section", "defaults"),
    [
        pytest.param(FILE, ExtenderConfiguration(), id="the file"),
        pytest.param(ARGUMENTS, CoschedulingArgs(), id="Coscheduling's arguments"),
    ],
)
def test_every_key_stands_there_with_its_default(section: str, defaults: Any) -> None:
    said = {key: yaml.safe_load(default) for key, default in ROW.findall(section)}
    assert said == {camel(field.name): as_read(getattr(defaults, field.name)) for field in fields(defaults)}


def test_every_flag_of_serve_stands_there() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    serve.add_arguments(parser)
    flags = {action.option_strings[0] for action in parser._actions}
    rows = [line.split("|")[1] for line in FLAGS.splitlines() if line.startswith("| `-")]
    assert set(re.findall(r"`(-[\w-]+)`", "".join(rows))) == flags


def test_the_example_is_read(tmp_path: Path) -> None:
    (profile,) = configuration_in(FILE, tmp_path).profiles
    assert profile.plugin_config["Coscheduling"] == CoschedulingArgs(permit_waiting_time_seconds=30)
