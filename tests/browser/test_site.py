"""Each diagram of the site is drawn in a browser, of pages that are opened from the disk: no host is asked for anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.browser.page import WITHIN, Page
from tests.built_site import with_diagrams
from tests.documented import PROJECT

DIAGRAM = re.compile(r"^```mermaid$", re.MULTILINE)
WITH_DIAGRAMS = {
    page: count
    for page in sorted((PROJECT / "docs").rglob("*.md"))
    if not {"_build", "_generated"} & set(page.parts) and (count := len(DIAGRAM.findall(page.read_text())))
}
DRAWN = "pre.mermaid svg[aria-roledescription]:not([aria-roledescription=error])"


@pytest.fixture
def drawn(browser: webdriver.Chrome, page_of_the_site: Path) -> Iterator[webdriver.Chrome]:
    page = Page(browser, page_of_the_site.as_uri())
    browser.get("about:blank")
    page.complaints()
    browser.get(page.url)
    yield browser
    assert page.complaints() == []


@pytest.fixture
def page_of_the_site(markdown: Path) -> Path:
    return with_diagrams() / markdown.relative_to(PROJECT / "docs").with_suffix(".html")


@pytest.mark.parametrize("markdown", WITH_DIAGRAMS, ids=lambda page: str(page.relative_to(PROJECT / "docs")))
def test_each_diagram_of_a_page_is_drawn(drawn: webdriver.Chrome, markdown: Path) -> None:
    diagrams = drawn.find_elements(By.CSS_SELECTOR, "pre.mermaid")
    assert len(diagrams) == WITH_DIAGRAMS[markdown]
    WebDriverWait(drawn, WITHIN, poll_frequency=0.05).until(
        lambda _: len(drawn.find_elements(By.CSS_SELECTOR, DRAWN)) == len(diagrams), "each diagram is drawn"
    )
