"""What docs/ and README show, read as a user would: configurations, and commands."""

from __future__ import annotations

import re
from pathlib import Path

from extender.config.load import load_extender_configuration
from extender.config.types import ExtenderConfiguration

PROJECT = Path(__file__).parents[1]
PAGES = (
    PROJECT / "README.md",
    *sorted(file for file in (PROJECT / "docs").rglob("*.md") if "_build" not in file.parts),
)
BLOCK = re.compile(r"^```\n\$ (.*)\n([\s\S]*?)^```", re.MULTILINE)


def ended_blocks(page: Path) -> list[tuple[str, str]]:
    """Each command whose output is shown, and that output: blocks of one command, which begin with `$ `."""
    return BLOCK.findall(page.read_text())


def dump_commands() -> list[tuple[list[str], str]]:
    """The arguments of each `kubectl get` in README that writes down a cluster, and the file that it writes to."""
    found = re.findall(r"^kubectl (get .*) > (\S+)$", (PROJECT / "README.md").read_text(), re.MULTILINE)
    return [(arguments.split(), file) for arguments, file in found]


def configuration_in(page: str, folder: Path) -> ExtenderConfiguration:
    """The first block of a page, or of a section of it, that is marked as an extender.yaml."""
    found = re.search(r"<!-- extender.yaml -->\n```yaml\n(.*?)```", page, re.DOTALL)
    assert found is not None
    file = folder / "extender.yaml"
    file.write_text(found[1])
    return load_extender_configuration(file)
