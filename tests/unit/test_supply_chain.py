"""What is installed where: production by hash, developers' tools by version, each package in one of the two; and by which licences."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.documented import PROJECT

HERE = {"sys_platform": "linux", "platform_python_implementation": "CPython", "implementation_name": "cpython"}
FREE = re.compile(r"0BSD|Apache|BSD|CC0-1\.0|MIT|MPL|Mozilla Public|PSF|Python Software Foundation|ZPL-2\.1|Zlib")


def locked(name: str) -> Iterator[Requirement]:
    """The lines of a file of requirements, without hashes."""
    for line in (PROJECT / name).read_text().replace("\\\n", " ").splitlines():
        if line and not line.startswith("#"):
            yield Requirement(line.partition("--hash")[0].strip())


def versions(name: str) -> dict[str, str]:
    """Of those that Linux has."""
    return {
        canonicalize_name(each.name): str(each.specifier).removeprefix("==")
        for each in locked(name)
        if each.marker is None or each.marker.evaluate(dict(HERE))
    }


RUNTIME = versions("requirements.txt")


def needed(package: str, extras: frozenset[str], seen: set[str]) -> set[str]:
    """The packages that it needs, and those that these need, as installed here; extras: its own."""
    try:
        declared = requires(package) or []
    except PackageNotFoundError:
        return seen
    for requirement in map(Requirement, declared):
        name = canonicalize_name(requirement.name)
        wanted = requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in extras | {""}
        )
        if wanted and name not in seen:
            seen.add(name)
            needed(name, frozenset(requirement.extras), seen)
    return seen


def test_all_that_runs_in_production_is_locked_and_nothing_else() -> None:
    assert needed("gang-extender", frozenset({"server"}), set()) == set(RUNTIME)


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-build.txt"])
def test_each_package_has_one_version_and_hashes(file: str) -> None:
    for line in (PROJECT / file).read_text().replace("\\\n", " ").splitlines():
        assert line.startswith("#") or re.fullmatch(
            r"[\w.-]+==\S+ (?:; .*?)?(?: *--hash=sha256:[0-9a-f]{64})+", line
        ), line


def test_what_developers_need_is_locked_elsewhere_and_the_backend_in_both() -> None:
    tools = versions("constraints.txt")
    assert set(RUNTIME) & set(tools) == set()
    assert versions("requirements-build.txt") == {"setuptools": tools["setuptools"]}


def test_the_image_installs_by_hash_upon_a_base_by_digest() -> None:
    text = (PROJECT / "Dockerfile").read_text()
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert re.search(r"^ARG BASE=python:3\.13-slim@sha256:[0-9a-f]{64}$", text, re.MULTILINE)
    installs = re.findall(r"pip (?:install|wheel) .*?(?= \\$|$)", text, re.MULTILINE)
    assert [each for each in installs if "--require-hashes" not in each and "--no-deps" not in each] == []


def test_the_page_of_licences_has_these_packages() -> None:
    page = (PROJECT / "docs" / "licences.md").read_text()
    rows = re.findall(r"^\| ([\w.-]+) \| (\d\S*) \| (.+) \|$", page, re.MULTILINE)
    assert {canonicalize_name(name): version for name, version, _ in rows} == RUNTIME
    assert [row for row in rows if not FREE.search(row[2]) or re.search(r"(?<!L)\bA?GPL", row[2])] == []


PAGE = (PROJECT / "docs" / "supply-chain.md").read_text()
KNOWN = re.findall(r"^\| ([\w.-]+) \| (none known|.*CVE-.*) \| (\S*) \|$", PAGE, re.MULTILINE)


def test_each_package_that_is_locked_is_in_the_list_of_known_vulnerabilities() -> None:
    every = {canonicalize_name(each.name) for each in locked("requirements.txt")}
    assert [name for name, _, _ in KNOWN] == sorted(every)
    assert re.search(r"^As of 20\d\d-\d\d-\d\d", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("package", "vulnerabilities", "fixed_in"), KNOWN, ids=[name for name, _, _ in KNOWN])
def test_what_is_locked_has_the_fix_of_each_vulnerability_that_is_known(
    package: str, vulnerabilities: str, fixed_in: str
) -> None:
    assert (vulnerabilities == "none known") is (fixed_in == "")
    if fixed_in:
        (version,) = (
            str(each.specifier) for each in locked("requirements.txt") if canonicalize_name(each.name) == package
        )
        assert Version(version.removeprefix("==")) >= Version(fixed_in)


@pytest.mark.skipif("SBOM" not in os.environ, reason="by `make sbom`, which writes it")
def test_the_bill_of_materials_has_what_is_locked_and_the_extender() -> None:
    found = json.loads(Path(os.environ["SBOM"]).read_text())
    assert found["bomFormat"] == "CycloneDX"
    components = {canonicalize_name(each["name"]): each["version"] for each in found["components"]}
    assert components.pop(canonicalize_name("gang-extender"))
    assert components == RUNTIME
