"""What docs/ and README show, read as a user would: configurations, and commands."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from extender.config.load import load_extender_configuration
from extender.config.types import ExtenderConfiguration

PROJECT = Path(__file__).parents[1]
PAGES = (
    PROJECT / "README.md",
    *sorted(file for file in (PROJECT / "docs").rglob("*.md") if "_build" not in file.parts),
)
BESIDE_PAGES = (PROJECT / "CONTRIBUTING.md", PROJECT / "SECURITY.md")
FENCE = re.compile(r"^( *)```(.*)\n([\s\S]*?)^\1```$", re.MULTILINE)
PROMPT = "$ "


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two fences. language: `sh` for commands; none for one command with its output, which begins with a prompt."""

    page: Path
    language: str
    text: str

    @property
    def first_line(self) -> str:
        return self.text.partition("\n")[0]


def blocks(page: Path) -> Iterator[Block]:
    """In the page's order, those in lists as well."""
    for _, language, text in FENCE.findall(page.read_text()):
        yield Block(page, language, textwrap.dedent(text))


def shell_blocks(page: Path) -> list[Block]:
    """Commands whose output is not shown."""
    return [block for block in blocks(page) if block.language == "sh"]


def ended_blocks(page: Path) -> list[tuple[str, str]]:
    """Each command whose output is shown, and that output: blocks of one command, which begin with the prompt."""
    shown = [block.text.removeprefix(PROMPT) for block in blocks(page) if block.text.startswith(PROMPT)]
    return [(command, output) for command, _, output in (text.partition("\n") for text in shown)]


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
