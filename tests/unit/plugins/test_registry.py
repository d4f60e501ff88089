"""Which plugins there are."""

from __future__ import annotations

from typing import Any

import pytest

from extender.config.defaults import BEHIND, MULTI_POINT
from extender.framework.runtime.registry import RegistryError
from extender.plugins import names, registry
from extender.plugins.priority_sort import PrioritySort


class Point:
    """An installed entry point."""

    def __init__(self, name: str, value: object) -> None:
        self.name = name
        self._value = value

    def load(self) -> object:
        return self._value


def installed(monkeypatch: pytest.MonkeyPatch, *points: Point) -> None:
    def entry_points(*, group: str) -> tuple[Point, ...]:
        return points if group == "gang_extender.plugins" else ()

    monkeypatch.setattr(registry, "entry_points", entry_points)


def test_every_plugin_of_the_ready_profiles_is_known() -> None:
    known = registry.new_in_tree_registry()
    assert {ref.name for ref in (*MULTI_POINT.enabled, *BEHIND.enabled)} <= set(known)


def test_every_name_is_known() -> None:
    all_names = {value for key, value in vars(names).items() if key.isupper()}
    assert set(registry.new_in_tree_registry()) == all_names


def test_a_plugin_is_built_from_its_module() -> None:
    handle: Any = None
    assert isinstance(registry.new_in_tree_registry()[names.PRIORITY_SORT](None, handle), PrioritySort)


def test_installed_plugins_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    factory = object()
    installed(monkeypatch, Point("Theirs", factory))
    assert registry.new_registry()["Theirs"] is factory


@pytest.mark.parametrize("taken", [("NodeName",), ("Theirs", "Theirs")], ids=["one of ours", "one of theirs"])
def test_a_name_that_is_taken_is_an_error(monkeypatch: pytest.MonkeyPatch, taken: tuple[str, ...]) -> None:
    installed(monkeypatch, *(Point(name, object()) for name in taken))
    with pytest.raises(RegistryError, match=f"a plugin named {taken[-1]} already exists"):
        registry.new_registry()


def test_a_plugin_that_does_not_load_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Point):
        value = "theirs:Theirs"

        def load(self) -> object:
            raise ImportError("no module named theirs")

    installed(monkeypatch, Broken("Theirs", None))
    with pytest.raises(RegistryError, match='plugin "Theirs" does not load from theirs:Theirs: no module named theirs'):
        registry.new_registry()
