"""What is published is complete: each file of the package is in the wheel, each file of the project in the sdist.

Built in copies of the project, without the network: by what the extra `dev` installs. And each dependency says from which version on.
"""

from __future__ import annotations

import configparser
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.documented import PROJECT

MADE = shutil.ignore_patterns("__pycache__", ".*", "_build", "_generated", "*.egg-info", "build", "dist")
FOLDERS = ("extender", "build_backend", "docs", "manifests", "tests")
EPOCH = "1790000000"
BACKEND = (77, 0)  # of setuptools: pyproject.toml


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with both."""
    if importlib.util.find_spec("build") is None or _release("setuptools") < BACKEND:
        reason = "`build` and setuptools 77 are needed: make install"
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(f"where CI=true this must run: {reason}", pytrace=False)
        pytest.skip(reason)
    return build_in(tmp_path_factory.mktemp("project") / "gang-extender")


def build_in(copy: Path, umask: int = 0o022) -> Path:
    """Of a copy that is made there; the folder with both."""
    before = os.umask(umask)
    try:
        shutil.copytree(PROJECT, copy, ignore=MADE, copy_function=shutil.copyfile)
    finally:
        os.umask(before)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(copy / "dist"), str(copy)]
    env = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, umask=umask)
    assert done.returncode == 0, done.stdout + done.stderr
    return copy / "dist"


def _release(package: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version(package).split(".")[:2])


def files_of(*folders: str) -> Iterator[str]:
    for folder in folders:
        for file in sorted((PROJECT / folder).rglob("*")):
            parts = file.relative_to(PROJECT).parts
            if file.is_file() and not MADE(str(file.parent), list(parts)):
                yield str(file.relative_to(PROJECT))


def test_the_wheel_has_each_file_of_the_package_and_no_other(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        packed = {name for name in opened.namelist() if ".dist-info/" not in name}
    assert packed == set(files_of("extender"))


def test_another_machine_builds_the_same_bytes(built: Path, tmp_path: Path) -> None:
    """Elsewhere, later, and with another umask."""
    again = build_in(tmp_path / "elsewhere", umask=0o077)
    digests = [
        {file.name: sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()} for folder in (built, again)
    ]
    assert digests[0] == digests[1]
    assert len(digests[0]) == 2


def test_the_sdist_has_each_file_of_the_project(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as opened:
        packed = {member.name.partition("/")[2] for member in opened.getmembers() if member.isfile()}
    beside = {
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "Makefile",
        "constraints.txt",
        "requirements.txt",
        "install.yaml",
        "setup.cfg",
    }
    assert {*files_of(*FOLDERS), *beside} - packed == set()
    assert {name for name in packed if MADE("", list(Path(name).parts))} <= {
        name for name in packed if ".egg-info" in name
    }


SETUP = configparser.ConfigParser()
SETUP.read(PROJECT / "setup.cfg")
TOOLS = ("dev", "docs", "mutants", "plots", "supply-chain")  # what developers install comes from constraints.txt
NEEDED = {
    requirement: name
    for name, text in [("", SETUP["options"]["install_requires"]), *SETUP["options.extras_require"].items()]
    if name not in TOOLS
    for requirement in text.split()
}


@pytest.mark.parametrize("requirement", NEEDED)
def test_a_dependency_says_from_which_version_on_and_that_one_is_tried(requirement: str) -> None:
    """By `make lowest`."""
    found = re.fullmatch(r"([\w.-]+)(?:\[\w+\])?>=([\d.]+)(?:,<[\d.]+)?", requirement)
    assert found is not None, "wanted NAME>=VERSION"
    name, oldest = found[1].lower(), found[2]
    lowest = (PROJECT / "constraints-lowest.txt").read_text().lower()
    (tried,) = re.findall(rf"^{re.escape(name)}==(\S+)$", lowest, re.MULTILINE)
    assert (tried == oldest) or tried.startswith(f"{oldest}.")
