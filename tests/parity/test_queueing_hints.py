"""Queueing hints against the real ones of kube-scheduler 1.36.3: the events made of a change, which plugins hear them, what they say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.framework.interface import Plugin
from extender.framework.listers import Lister
from extender.plugins.registry import new_in_tree_registry
from tests.parity.hint_cases import PLUGINS, Json, cases, digest
from tests.parity.record_hints import ANSWERS
from tests.unit.plugins.wakes import wakes

Change = tuple[corev1.Pod, Any, Any]
"""(refused pod, old, new)"""


class EmptyCluster:
    """A handle for plugins that look up services and controllers."""

    def lister(self, type_: type[object]) -> Lister[object]:
        return Nothing()


class Nothing:
    def list(self) -> Sequence[object]:
        return ()

    def by_namespace(self, namespace: str) -> Iterable[object]:
        return ()

    def get(self, key: str) -> None:
        return None


@pytest.fixture(scope="module")
def recorded() -> Json:
    loaded: Json = json.loads(ANSWERS.read_text())
    return loaded


@pytest.fixture(scope="module")
def made(recorded: Json) -> list[Json]:
    made = cases(recorded["seed"], recorded["count"])
    assert digest(made) == recorded["digest"], "other cases than those that were recorded: see record_hints"
    return made


@pytest.fixture(scope="module")
def changes(made: list[Json]) -> list[Change]:
    return [decoded(case) for case in made]


def plugin_named(name: str) -> Plugin:
    handle: Any = EmptyCluster()
    return new_in_tree_registry()[name](None, handle)


def decoded(case: Json) -> Change:
    type_: type[Any] = corev1.Pod if case["kind"] == "pod" else corev1.Node
    old, new = (None if case[key] is None else convert(case[key], type_) for key in ("old", "new"))
    return convert(case["pod"], corev1.Pod), old, new


@pytest.mark.parametrize("name", PLUGINS)
def test_hints_say_what_the_real_ones_say(name: str, made: list[Json], changes: list[Change], recorded: Json) -> None:
    plugin = plugin_named(name)
    answers = "".join("1" if wakes(plugin, *change) else "0" for change in changes)
    wrong = [index for index, (ours, theirs) in enumerate(zip(answers, recorded["answers"][name])) if ours != theirs]
    assert not wrong, f"{len(wrong)} of {len(made)} differ, the first: {json.dumps(made[wrong[0]])}"


@pytest.mark.parametrize("name", PLUGINS)
def test_both_answers_are_among_the_recorded_ones(name: str, recorded: Json) -> None:
    assert set(recorded["answers"][name]) == {"0", "1"}
