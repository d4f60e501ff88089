"""The built site loads nothing from elsewhere, and what README and its neighbours link to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.built_site import built, from_elsewhere, with_diagrams
from tests.documented import PROJECT

BESIDE_THE_SITE = [PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
LINK = re.compile(r"\]\(([^)\s#]*)(#[^)\s]*)?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "ending", "found"),
    [
        pytest.param('<script src="https://cdn/x.js"></script>', ".html", ["https://cdn/x.js"], id="a script"),
        pytest.param('<script src="//cdn/x.js"></script>', ".html", ["//cdn/x.js"], id="a script by the page's scheme"),
        pytest.param(
            '<script>import m from "https://cdn/m.mjs"</script>', ".html", ["https://cdn/m.mjs"], id="a module"
        ),
        pytest.param(
            '<link rel="stylesheet" href="http://cdn/x.css">', ".html", ["http://cdn/x.css"], id="a style sheet"
        ),
        pytest.param('<link rel="preconnect" href="https://fonts">', ".html", ["https://fonts"], id="a host of fonts"),
        pytest.param('<img src="https://badge/x.svg">', ".html", ["https://badge/x.svg"], id="a picture"),
        pytest.param('<p style="background: url(https://cdn/x.png)">', ".html", ["https://cdn/x.png"], id="a style"),
        pytest.param("@font-face { src: url('https://cdn/x.woff2') }", ".css", ["https://cdn/x.woff2"], id="a font"),
        pytest.param('@import "https://cdn/x.css";', ".css", ["https://cdn/x.css"], id="a style sheet of another"),
        pytest.param('<a href="https://kubernetes.io">', ".html", [], id="a link that a reader may follow"),
        pytest.param('<link rel="next" href="https://here/next.html">', ".html", [], id="the page after it"),
        pytest.param('<script src="_static/x.js?v=1"></script>', ".html", [], id="a script of the site's own"),
        pytest.param(
            "<p>import it from &quot;https://cdn/x&quot;</p>", ".html", [], id="text that looks like a script"
        ),
    ],
)
def test_what_is_loaded_from_elsewhere(text: str, ending: str, found: list[str]) -> None:
    assert list(from_elsewhere(text, ending)) == found


def test_the_site_loads_nothing_from_elsewhere() -> None:
    site = built()
    files = [file for file in site.rglob("*") if file.suffix in (".html", ".css")]
    assert len(files) > 50
    assert {
        str(file.relative_to(site)): bad for file in files if (bad := [*from_elsewhere(file.read_text(), file.suffix)])
    } == {}


def test_the_library_that_draws_is_a_file_of_the_site_and_only_pages_with_diagrams_load_it() -> None:
    site = with_diagrams()
    loads = {
        page: 'src="_static/mermaid.min.js' in (site / page).read_text() for page in ("concepts.html", "glossary.html")
    }
    assert loads == {"concepts.html": True, "glossary.html": False}


@pytest.mark.parametrize("page", BESIDE_THE_SITE, ids=lambda page: page.name)
def test_links_of_pages_beside_the_site_lead_somewhere(page: Path) -> None:
    """Those of docs/ are checked by `make docs`."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    assert [link for link, anchor in LINK.findall(text) if not leads(page, link, anchor)] == []


def leads(page: Path, link: str, anchor: str) -> bool:
    if re.match(r"[a-z]+:", link):
        return True
    there = (page.parent / link) if link else page
    return there.exists() and (not anchor or there.is_dir() or anchor[1:] in anchors(there))


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub and MyST name them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in HEADING.findall(page.read_text())
    }


@pytest.mark.parametrize(
    ("link", "anchor", "there"),
    [
        ("docs/operations.md", "#topology-and-packing", True),
        ("docs/operations.md", "#no-such-heading", False),
        ("docs/no-such-page.md", "", False),
        ("docs/tasks", "", True),
        ("", "#the-two-commands", True),
        ("https://kubernetes.io", "", True),
    ],
)
def test_where_a_link_leads(link: str, anchor: str, there: bool) -> None:
    assert leads(PROJECT / "README.md", link, anchor) is there
