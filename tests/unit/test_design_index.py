"""The index of docs/design lists each note once, by its number, with its own file."""

from __future__ import annotations

import re
from pathlib import Path

DESIGN = Path(__file__).parents[2] / "docs" / "design"


def test_each_note_is_in_the_index() -> None:
    listed = re.findall(r"^\| \[(\d+)\]\(([^)]+)\)", (DESIGN / "README.md").read_text(), flags=re.MULTILINE)
    notes = sorted(file.name for file in DESIGN.glob("0*.md"))
    assert [name for _, name in listed] == notes
    assert [number for number, _ in listed] == [str(int(name[:4])) for name in notes]
