"""docs/security.md names all that a tenant writes, and tests that there are."""

from __future__ import annotations

import re
from typing import Any

import pytest

from extender.api.metadata_keys import Key
from tests.declared_keys import declared_keys
from tests.documented import PROJECT

PAGE = (PROJECT / "docs" / "security.md").read_text()
TESTS = PROJECT / "tests"
WRITTEN_BY_TENANTS = [key for key in declared_keys() if {"Pod", "PodGroup"} & set(key.kinds)]


def named(pattern: str) -> list[str]:
    return sorted(set(re.findall(pattern, PAGE)))


@pytest.mark.parametrize("key", WRITTEN_BY_TENANTS)
def test_each_label_and_annotation_that_a_tenant_writes_is_gone_through(key: Key[Any]) -> None:
    assert f"`{key}`" in PAGE


@pytest.mark.parametrize("file", named(r"`((?:unit|server|e2e)/[\w/]+(?:\.py)?)(?:::\w+)?`"))
def test_each_file_of_tests_that_is_named_is_there(file: str) -> None:
    assert (TESTS / file).exists()


@pytest.mark.parametrize("name", named(r"\b(test_\w+)`"))
def test_each_test_that_is_named_is_there(name: str) -> None:
    assert any(f"def {name}(" in file.read_text() for file in TESTS.rglob("test_*.py"))
