"""The page in a real browser: what it shows, that it is live, by keyboard, in dark and light, and that no text of a tenant's is markup.

PAGE_SCREENSHOTS=FOLDER writes the pictures of docs/page.md there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from selenium import webdriver
from selenium.webdriver.common.by import By

from tests.browser.page import ARROW_DOWN, ARROW_RIGHT, END, ENTER, ESCAPE, HOME, TAB, Page
from tests.browser.world import HOSTILE, MEMBERS, World
from tests.e2e.processes import free_port
from tests.server.service import Service

GPUS = 4 * MEMBERS  # of team-a/next


def picture(page: Page, name: str) -> None:
    if folder := os.environ.get("PAGE_SCREENSHOTS"):
        size = page.driver.get_window_size()
        page.driver.set_window_size(1180, 720)
        page.until(lambda: page.pixels("bound"), "the picture is drawn anew")
        page.driver.save_screenshot(str(Path(folder) / f"page-{name}.png"))
        page.driver.set_window_size(size["width"], size["height"])


# What is seen


def test_the_nodes_are_there_by_rack_and_the_gangs_in_line_come_first(page: Page) -> None:
    page.until(lambda: len(page.rows()) == 18, "all gangs are in the table")
    places = [row[0] for row in page.rows()]
    assert places == [*"12345", *[""] * 13]
    assert {row[1] for row in page.rows()[:3]} == {f"team-b/big-{number}" for number in range(3)}
    big = page.row("team-b/big-0")
    assert big[2:4] + big[5:] == ["Denied", "0/150", "InsufficientResources"]
    assert page.text("count") == "18 of 18 gangs shown; 5 in line"
    assert page.text("total") == (
        f"128 nodes; nvidia.com/gpu: {1024 - 384 - GPUS} of 1024 free, 384 bound, 0 held, {GPUS} promised"
    )
    picture(page, "light")


def test_what_is_bound_promised_and_cordoned_has_its_colour(page: Page) -> None:
    page.until(lambda: page.pixels("bound"), "the picture is drawn")
    bound, promised = page.pixels("bound"), page.pixels("promised")
    assert 0 < promised < bound
    assert page.pixels("out") > 0
    assert page.pixels("held") == 0


def test_another_resource_is_drawn_when_it_is_chosen(page: Page) -> None:
    page.until(lambda: page.pixels("bound"), "the picture is drawn")
    before = page.pixels("bound")
    page.at("resource").send_keys("memory")
    page.until(lambda: "memory: " in page.text("total"), "memory is shown")
    page.until(lambda: 0 < page.pixels("bound") < before, "less of it is bound")


def test_a_gang_that_waits_says_why_and_what_would_make_it_fit(page: Page) -> None:
    said = page.gang("team-b/big-1")
    for text in (
        "Denied since",
        "minMember of 150 does not fit: Insufficient nvidia.com/gpu",
        "In line\n2 of 5",
        "It would fit with",
        "Story",
        "big-1-0: gated",
    ):
        assert text in said
    assert page.driver.current_url.endswith("/ui#team-b%2Fbig-1")


def test_a_gang_s_story_is_in_the_order_in_which_it_happened(page: Page) -> None:
    page.gang("team-a/short")
    entries = page.driver.find_elements(By.CSS_SELECTOR, "ol.story li")
    assert "Gathering" in entries[0].text
    stamps = [entry.find_element(By.TAG_NAME, "time").get_attribute("datetime") for entry in entries]
    assert stamps == sorted(stamps, key=str)


def test_a_gang_s_places_are_marked_on_the_picture(page: Page) -> None:
    page.until(lambda: page.pixels("promised"), "the picture is drawn")
    before = page.pixels("mine")
    said = page.gang("team-a/next")
    page.until(lambda: page.pixels("mine") > before, "its places are marked")
    assert "next-0: planned on n" in said
    picture(page, "gang")
    page.press(ESCAPE)
    page.until(lambda: not page.shown("gang") and page.pixels("mine") == before, "they are not any more")


def test_a_link_opens_the_gang(page: Page) -> None:
    page.open("#team-a%2Fshort")
    page.until(lambda: page.shown("gang"), "the gang is shown")
    assert "team-a/short" in page.text("gang")


def test_one_namespace_is_shown_alone_and_without_nodes(page: Page) -> None:
    page.open("?namespace=team-b", state="live: namespace team-b")
    page.until(lambda: page.rows(), "its gangs are shown")
    assert {row[1].partition("/")[0] for row in page.rows()} == {"team-b"}
    assert not page.shown("nodes")


# Text of others


def test_what_a_tenant_wrote_is_text_and_nothing_else(page: Page) -> None:
    said = page.gang("team-b/hostile")
    assert HOSTILE in said
    assert page.driver.title == "gang-extender"
    assert page.driver.find_elements(By.TAG_NAME, "img") == []


def test_nothing_comes_from_elsewhere(page: Page, world: World) -> None:
    loaded = page.loaded()
    assert {f"{world.url}/{name}" for name in ("page.js", "picture.js", "gangs.js", "page.css")} <= set(loaded)
    assert [address for address in loaded if not address.startswith(f"{world.ops_url}/")] == []


def test_a_script_that_found_its_way_in_would_not_run(page: Page) -> None:
    """The page's own policy, in this browser."""
    add = "const made = document.createElement('script'); made.textContent = 'document.title = 1'; document.body.append(made)"
    with pytest.raises(Exception, match="TrustedScript"):
        page.driver.execute_script(add)
    assert page.driver.title == "gang-extender"
    assert len(page.complaints()) == 1


# By keyboard


def test_from_node_to_node_by_arrow_keys(page: Page) -> None:
    page.until(lambda: page.pixels("bound"), "the picture is drawn")
    page.driver.execute_script("document.getElementById('picture').focus()")
    page.press(HOME)
    assert page.text("node").startswith("n00-0, zone zone-0, rack rack-00, ")
    page.press(ARROW_RIGHT)
    assert page.text("node").startswith("n00-1, ")
    page.press(ARROW_DOWN)
    assert page.text("node").startswith("n00-7, "), "the node below"
    page.press(END)
    assert page.text("node").startswith("n13-15, zone zone-1, rack rack-13, 0 pods, cordoned; ")
    assert "nvidia.com/gpu: 8 of 8 free" in page.text("node")


def test_a_search_and_a_gang_by_keys_alone(page: Page) -> None:
    page.until(lambda: len(page.rows()) == 18, "all gangs are in the table")
    page.press("/")
    page.press(*"insuff")
    page.until(lambda: len(page.rows()) == 3, "those with that reason are left")
    page.press(TAB, ENTER)
    page.until(lambda: page.shown("gang"), "the first of them is shown")
    assert page.text("gang").startswith("team-b/big-")
    assert page.driver.switch_to.active_element.get_attribute("id") == "gang-heading"
    page.press(ESCAPE)
    page.until(lambda: not page.shown("gang"), "it is closed")


# Light and dark

CONTRAST = """
const light = (colour) => {
  const bend = (c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => bend(part / 255));
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};
const page = light(getComputedStyle(document.body).backgroundColor);
return [...document.querySelectorAll("h1, h2, p, td, th, a, label, li, dt, dd, button")].filter((each) => each.textContent).map((each) => {
  const ink = light(getComputedStyle(each).color);
  return (Math.max(ink, page) + 0.05) / (Math.min(ink, page) + 0.05);
});
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(page: Page, scheme: str) -> None:
    """The least contrast that WCAG 2 takes for text: 4.5."""
    page.in_colours(scheme)
    page.gang("team-b/big-0")
    assert min(page.driver.execute_script(CONTRAST)) >= 4.5


def test_in_the_dark_the_picture_is_drawn_anew(page: Page) -> None:
    page.until(lambda: page.pixels("free"), "the picture is drawn")
    page.in_colours("dark")
    page.until(lambda: page.pixels("free") and page.pixels("bound"), "it has the colours of the dark")
    background = page.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(20, 23, 27)"
    page.gang("team-b/big-0")
    picture(page, "dark")


# Live


def test_a_start_is_seen_as_it_happens(browser: webdriver.Chrome, start_world: Callable[[], World]) -> None:
    world = start_world()
    page = Page(browser, world.url)
    page.in_colours("light")
    page.open()
    page.until(lambda: page.pixels("promised"), "its places are drawn")
    page.gang("team-a/next")
    held = world.hold_one()
    page.until(lambda: page.pixels("held"), "the first member is held")
    page.until(lambda: "1 held" in page.text("gang"), "its page says so")
    page.until(lambda: page.row("team-a/next")[2] == "Assembling", "and so does the list")
    world.bind_others()
    held.join()
    page.until(lambda: page.row("team-a/next")[2:4] == ["Bound", f"{MEMBERS}/{MEMBERS}"], "it runs")
    page.until(lambda: (page.pixels("promised"), page.pixels("held")) == (0, 0), "nothing is promised or held any more")
    page.until(lambda: "GangScheduled" in page.text("gang"), "its story says so")
    assert "384 bound" not in page.text("total")
    assert page.complaints() == []


def test_where_the_extender_goes_the_page_says_so_and_comes_back_with_it(
    browser: webdriver.Chrome, start_world: Callable[[], World]
) -> None:
    world = start_world()
    page = Page(browser, world.url)
    page.open()
    world.stop()
    page.until(lambda: "trying again" in page.text("state"), "the page tries again")
    world.start()
    page.until(lambda: page.text("state") == "live", "it is live again")
    page.until(lambda: len(page.rows()) == 18, "and shows all gangs")


def test_a_page_that_is_not_seen_is_not_fed_and_is_live_again_when_it_is(page: Page, world: World) -> None:
    page.until(lambda: world.viewers() == 1, "it is the one viewer")
    show = """Object.defineProperty(document, "hidden", { value: arguments[0], configurable: true });
              document.dispatchEvent(new Event("visibilitychange"))"""
    page.driver.execute_script(show, True)
    page.until(lambda: page.text("state").startswith("not followed"), "it rests")
    page.driver.execute_script(show, False)
    page.until(lambda: page.text("state") == "live", "it is live again")
    assert len(page.rows()) == 18


# With a token


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[Service, str]]:
    """The pages' port of fake verbs, with two tokens; its address."""
    issued, port = trustme.CA().issue_cert("127.0.0.1"), free_port()
    issued.cert_chain_pems[0].write_to_path(tmp_path / "tls.crt")
    issued.private_key_pem.write_to_path(tmp_path / "tls.key")
    options: dict[str, Any] = {
        "pages_bind_address": "127.0.0.1",
        "pages_port": port,
        "pages_tls_cert_file": str(tmp_path / "tls.crt"),
        "pages_tls_private_key_file": str(tmp_path / "tls.key"),
    }
    running = Service(tmp_path, {"FEED": "endless"}, **options)
    yield running.start(), f"https://127.0.0.1:{port}/ui"
    running.stop()


def test_a_token_is_asked_for_and_kept_nowhere(browser: webdriver.Chrome, service: tuple[Service, str]) -> None:
    page = Page(browser, service[1])
    page.open(state="Unauthorized")
    assert page.shown("access-form")
    page.at("token").send_keys("tenant")
    page.press(ENTER)
    page.until(lambda: 'cannot see namespace ""' in page.text("access-why"), "a tenant may not see all")
    page.at("namespace").send_keys("team-a")
    page.press(ENTER)
    page.until(lambda: page.text("state") == "live: namespace team-a", "its own namespace is shown")
    assert not page.shown("access-form")
    script = "return [document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage), location.href]"
    assert "tenant" not in json.dumps(page.driver.execute_script(script))
    assert page.at("token").get_attribute("value") == ""
    page.driver.refresh()
    page.until(lambda: page.text("state") == "Unauthorized", "after a reload it is asked for once more")
    page.complaints()
