"""The configurations that docs/ shows, read as a user's file would be."""

from __future__ import annotations

import re
from pathlib import Path

from extender.config.load import load_extender_configuration
from extender.config.types import ExtenderConfiguration


def configuration_in(page: str, folder: Path) -> ExtenderConfiguration:
    """The first block of a page, or of a section of it, that is marked as an extender.yaml."""
    found = re.search(r"<!-- extender.yaml -->\n```yaml\n(.*?)```", page, re.DOTALL)
    assert found is not None
    file = folder / "extender.yaml"
    file.write_text(found[1])
    return load_extender_configuration(file)
