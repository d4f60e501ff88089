"""Configuration files, written and read."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from extender.config.yaml_file import ConfigurationError

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "config.yaml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


def mistakes(load: Callable[[Path], object], path: Path) -> list[str]:
    """What is wrong with the file, a text each, without the file's name; each has the line in front."""
    with pytest.raises(ConfigurationError) as caught:
        load(path)
    return [line.removeprefix(f"{path}:") for line in str(caught.value).splitlines()]
