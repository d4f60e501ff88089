"""The documentation as a site: `make docs` builds it with Sphinx into docs/_build, and any broken link fails.

The pages are plain Markdown that is read in the repository as well, so links lead to files beyond docs/ too: on the site they are text.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

sys.path.insert(0, str(Path(__file__).parent))
import generated

project = "gang-extender"
extensions = ["myst_parser", "diagrams"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "gang-extender"
html_copy_source = False
html_show_sphinx = False
myst_heading_anchors = 6

PROJECT = Path(__file__).resolve().parents[1]


class BeyondThePages(SphinxPostTransform):
    """A link to a folder or page of the project that is not on the site: its text. One to nothing is left to MyST, which warns."""

    default_priority = 8  # before MyST's

    def run(self, **kwargs: Any) -> None:
        folder = (PROJECT / "docs" / self.env.docname).parent
        for node in list(self.document.findall(addnodes.pending_xref)):
            there = (folder / node["reftarget"]).resolve()  # also if it is absolute
            if not there.is_relative_to(PROJECT / "docs") and (there.is_dir() or there.with_suffix(".md").is_file()):
                node.replace_self(node.children)


def write_reference(app: Sphinx) -> None:
    generated.write(Path(app.srcdir) / "_generated")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_reference)
    app.add_post_transform(BeyondThePages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
