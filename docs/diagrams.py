"""Mermaid diagrams of the site: a browser draws them with a copy of the library that is part of the site. Nothing is loaded from elsewhere.

Used by conf.py. `npm pack` brings the library once, into docs/_build; the hash of its package is pinned here.
"""

from __future__ import annotations

import base64
import hashlib
import html
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import IO, Any, cast

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

PACKAGE = "mermaid@11.12.0"
INTEGRITY = "sha512-ZudVx73BwrMJfCFmSSJT84y6u5brEoV8DOItdHomNLz32uBjNrelm7mg95X7g+C6UoQH/W6mBLGDEDv73JdxBg=="
MEMBER = "package/dist/mermaid.min.js"  # the one that pages opened from a disk can load as well: modules they cannot
LIBRARY = "mermaid.min.js"
FOLDER = Path(__file__).parent / "_build" / PACKAGE
SECONDS = 300.0
START = """
addEventListener("DOMContentLoaded", () => {
  const chosen = document.body.dataset.theme;
  const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  mermaid.initialize({startOnLoad: false, theme: dark ? "dark" : "default", securityLevel: "strict"});
  mermaid.run({querySelector: "pre.mermaid"});
});
"""
"""Furo says on the body which of the two colour schemes a reader has chosen."""


def fetch(folder: Path) -> bool:
    """Whether the library is in the folder now. It is not where npm is not installed: the diagrams then stay text.

    Raises ExtensionError if npm cannot get the package, or the package is not the one that is pinned.
    """
    if (folder / LIBRARY).exists():
        return True
    npm = shutil.which("npm")
    if npm is None:
        logging.getLogger(__name__).info("npm is not installed: diagrams stay text on this build of the site")
        return False
    with tempfile.TemporaryDirectory() as there:
        command = [npm, "pack", "--silent", "--pack-destination", there, PACKAGE]
        try:
            subprocess.run(command, cwd=there, check=True, capture_output=True, text=True, timeout=SECONDS)  # noqa: S603
        except subprocess.CalledProcessError as error:
            raise ExtensionError(f"npm could not get {PACKAGE}: {error.stderr.strip()}") from error
        except subprocess.TimeoutExpired as error:
            raise ExtensionError(f"npm could not get {PACKAGE} within {SECONDS:.0f} s") from error
        [package] = Path(there).glob("*.tgz")
        library = unpack(package.read_bytes(), package)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / LIBRARY).write_bytes(library)
    return True


def unpack(package: bytes, file: Path, integrity: str = INTEGRITY) -> bytes:
    """The library of a package whose hash is the pinned one, in the form in which npm gives hashes."""
    found = "sha512-" + base64.b64encode(hashlib.sha512(package).digest()).decode()
    if found != integrity:
        raise ExtensionError(f"{PACKAGE} is not the package that is pinned: {found} instead of {integrity}")
    with tarfile.open(file) as archive, cast("IO[bytes]", archive.extractfile(MEMBER)) as member:
        return member.read()


class Diagrams(SphinxTransform):
    """Blocks of code in the language mermaid: what the library looks for, with the text of the diagram in it."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        for block in list(self.document.findall(nodes.literal_block)):
            if block.get("language") != "mermaid":
                continue
            if self.config.diagrams_are_drawn:
                text = f'<pre class="mermaid">{html.escape(block.astext())}</pre>'
                block.replace_self(nodes.raw("", text, format="html"))
            else:
                block["language"] = "text"


def prepare(app: Sphinx, config: Config) -> None:
    config.diagrams_are_drawn = fetch(FOLDER)
    if config.diagrams_are_drawn:
        config.html_static_path.append(str(FOLDER))


def add_scripts(
    app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None
) -> None:
    """Only to pages that have a diagram."""
    if document is not None and any('<pre class="mermaid">' in raw.astext() for raw in document.findall(nodes.raw)):
        app.add_js_file(LIBRARY, loading_method="defer")
        app.add_js_file(None, body=START)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("diagrams_are_drawn", False, "env", bool)
    app.connect("config-inited", prepare)
    app.add_transform(Diagrams)
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
