"""The page as a user has it before them: what can be read, pressed, and seen of the picture's colours. Used by the tests here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

WITHIN = 10  # seconds
COUNT_PIXELS = """
const canvas = document.getElementById("picture"), context = canvas.getContext("2d");
const colour = getComputedStyle(document.documentElement).getPropertyValue(arguments[0]).trim();
const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
let found = 0;
for (let at = 0; at < data.length; at += 4) {
  if (data[at] === r && data[at + 1] === g && data[at + 2] === b && data[at + 3] === 255) found += 1;
}
return found;
"""


class Page:
    def __init__(self, driver: webdriver.Chrome, url: str) -> None:
        self.driver = driver
        self.url = url

    def open(self, more: str = "", state: str = "live") -> None:
        """more: of the address. state: what the page says of its connection then."""
        self.driver.get("about:blank")
        self.complaints()
        self.driver.get(self.url + more)
        self.until(lambda: self.text("state").startswith(state), f"the page is {state}")

    def until(self, true: Any, what: str) -> None:
        WebDriverWait(self.driver, WITHIN, poll_frequency=0.05).until(lambda _: true(), what)

    def at(self, id_: str) -> WebElement:
        return self.driver.find_element(By.ID, id_)

    def text(self, id_: str) -> str:
        return self.at(id_).text

    def shown(self, id_: str) -> bool:
        return self.at(id_).is_displayed()

    def rows(self) -> list[list[str]]:
        """The table of gangs, by cell."""
        script = "return [...document.querySelectorAll('#rows tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
        found: list[list[str]] = self.driver.execute_script(script)
        return found

    def row(self, gang: str) -> list[str]:
        return next(row for row in self.rows() if row[1] == gang)

    def gang(self, key: str) -> str:
        """Opens it; all that its part of the page says."""
        self.driver.find_element(By.LINK_TEXT, key).click()
        self.until(lambda: self.at("gang").get_attribute("data-key") == key, f"{key} is shown")
        return self.text("gang")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def pixels(self, colour: str) -> int:
        """How many of the picture's have this colour of page.css exactly."""
        found: int = self.driver.execute_script(COUNT_PIXELS, f"--{colour}")
        return found

    def in_colours(self, scheme: str) -> None:
        """light or dark: as the reader's system has it."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def complaints(self) -> list[str]:
        """What the browser's console says: faults of scripts, and all that the page's policy forbids."""
        said = [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]
        return [each for each in said if "willReadFrequently" not in each]  # of our own reading of pixels

    def loaded(self) -> Sequence[str]:
        """The addresses of all that was loaded."""
        script = "return performance.getEntriesByType('resource').map((entry) => entry.name)"
        found: list[str] = self.driver.execute_script(script)
        return found


ARROW_DOWN, ARROW_RIGHT, END, ENTER, ESCAPE, HOME, TAB = (
    Keys.ARROW_DOWN,
    Keys.ARROW_RIGHT,
    Keys.END,
    Keys.ENTER,
    Keys.ESCAPE,
    Keys.HOME,
    Keys.TAB,
)
