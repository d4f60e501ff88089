"""The pages that `make docs` has built, and what each of them loads. Used by the tests of the site."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.documented import PROJECT

SITE = PROJECT / "docs" / "_build" / "html"
NOT_LOADED = frozenset(("canonical", "next", "prev", "index", "search", "author", "copyright"))
IN_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?([^"')\s;]+)""")
BY_SCRIPTS = re.compile(r"""(?:\bimport\s*\(?|\bfrom|\bfetch\s*\(|importScripts\s*\()\s*["'`]([^"'`]+)""")


def built() -> Path:
    """The site's folder; a test that asks for it is skipped where the site is not built, and fails in CI, which builds it first."""
    return _with("index.html", "the site is not built: make docs")


def with_diagrams() -> Path:
    """The same, where npm could bring what draws them."""
    return _with("_static/mermaid.min.js", "the site is built without diagrams: install npm, and make docs")


def _with(file: str, why_not: str) -> Path:
    if not (SITE / file).exists():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(why_not)
    return SITE


class Loads(HTMLParser):
    """The addresses that a page loads by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag != "a" and not (tag == "link" and given.get("rel") in NOT_LOADED):
            names = ("href",) if tag in ("link", "image", "use") else ("src", "data", "poster")
            self.found += [given[name] for name in names if name in given]
            self.found += [each.split()[0] for each in given.get("srcset", "").split(",") if each.strip()]
        self.found += IN_STYLES.findall(given.get("style", ""))
        self._inside = tag if tag in ("script", "style") else ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.found += BY_SCRIPTS.findall(data)
        elif self._inside == "style":
            self.found += IN_STYLES.findall(data)


def from_elsewhere(text: str, ending: str) -> Iterator[str]:
    """What a file of the site loads from another host: of a page, or of a style sheet."""
    found = Loads(text).found if ending == ".html" else IN_STYLES.findall(text)
    return (each for each in found if re.match(r"(?:[a-z][a-z+.-]*:)?//", each, re.IGNORECASE))
