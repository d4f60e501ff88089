"""A headless Chromium of the distribution, driven by selenium; or why there is none.

Used by conftest and by the benchmark of the page. On Debian and Ubuntu: apt-get install chromium chromium-driver.
CHROMIUM, CHROMEDRIVER: other paths.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

PROGRAMS = {"CHROMIUM": ("chromium", "chromium-browser"), "CHROMEDRIVER": ("chromedriver",)}
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # which needs rights that a container's root has not
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--ignore-certificate-errors",  # of tests' own CAs
    "--window-size=1400,900",
    "--force-color-profile=srgb",
)


class NoBrowserError(Exception):
    """The text says what is missing and how to get it."""


def programs() -> dict[str, str]:
    """The paths of both, by the variables that may name them. Raises NoBrowserError."""
    found = {}
    for variable, names in PROGRAMS.items():
        given = os.environ.get(variable)
        path = given or next((path for name in names if (path := shutil.which(name))), None)
        if path is None or not Path(path).exists():
            raise NoBrowserError(
                f"{given or names[0]} is not there: apt-get install chromium chromium-driver, or {variable}=PATH"
            )
        found[variable] = path
    return found


def start(flags: Sequence[str] = ()) -> webdriver.Chrome:
    """Raises NoBrowserError. The caller quits it."""
    paths = programs()
    options = Options()
    options.binary_location = paths["CHROMIUM"]
    for flag in (*FLAGS, *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(paths["CHROMEDRIVER"]))
