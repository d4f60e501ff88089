"""A browser for all tests here, and an extender for each module, on a cluster in memory.

Without Chromium these tests are skipped, which the end of the run says loudly; with CI_BROWSER=required that is a failure.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from tests.browser import chromium
from tests.browser.page import Page
from tests.browser.world import World

UNAVAILABLE = pytest.StashKey[str]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if reason := config.stash.get(UNAVAILABLE, ""):
        terminalreporter.section("NOT RUN: the page in a browser", sep="!", red=True, bold=True)
        terminalreporter.line(f"No test of tests/browser has run. {reason}")


@pytest.fixture(scope="package")
def browser(request: pytest.FixtureRequest) -> Iterator[webdriver.Chrome]:
    try:
        driver = chromium.start()
    except chromium.NoBrowserError as error:
        request.config.stash[UNAVAILABLE] = str(error)
        if os.environ.get("CI_BROWSER") == "required":
            pytest.fail(f"where CI_BROWSER=required this must run: {error}", pytrace=False)
        pytest.skip(str(error))
    yield driver
    driver.quit()


@pytest.fixture
def start_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    started: list[World] = []

    def start() -> World:
        started.append(World(tmp_path))
        return started[-1].start()

    yield start
    for world in started:
        world.stop()


@pytest.fixture(scope="module")
def world(browser: webdriver.Chrome, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """For tests that change nothing."""
    made = World(tmp_path_factory.mktemp("world"))
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def page(browser: webdriver.Chrome, world: World) -> Iterator[Page]:
    """Of that world, in light. At the end the browser may have had nothing to complain of."""
    page = Page(browser, world.url)
    page.in_colours("light")
    page.open()
    yield page
    assert page.complaints() == []
