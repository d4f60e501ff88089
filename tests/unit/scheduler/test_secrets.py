"""Secrets of tenants' objects and of the API server's words: nothing that a running scheduler shows or writes has them.

Planted in env and annotations of pods, in the annotation that `kubectl apply` writes, and in an error of the API server.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from extender.api import codec
from extender.client.errors import ApiError
from extender.client.interface import POD_GROUPS, PODS
from extender.scheduler.interface import (
    CONFIGURATION,
    DEBUG_CACHE,
    DEBUG_GANG,
    DEBUG_GANGS,
    DRAIN,
    GANG,
    GANGS,
    POD,
)
from tests.unit.scheduler.conftest import GROUP_LABEL, Bench

MOLE = "mole4711mole"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.fixture
def told(bench: Bench) -> Bench:
    """A gang that runs and one that does not fit, whose objects have secrets wherever users put them."""
    bench.node("n1", cpu="2")
    for name, cpu in (("runs", "1"), ("waits", "4")):
        annotations = {APPLIED: json.dumps({"spec": {"password": MOLE}}), "example.com/token": MOLE}
        metadata = {"name": name, "annotations": annotations}
        bench.api.create(POD_GROUPS, {"metadata": metadata, "spec": {"minMember": 1}})
        bench.until(lambda name=name: bench.store(POD_GROUPS).get(f"default/{name}") is not None, name)  # type: ignore[misc]
        container: dict[str, Any] = {
            "name": "c",
            "env": [{"name": "PASSWORD", "value": MOLE}],
            "args": [f"--password={MOLE}"],
            "resources": {"requests": {"cpu": cpu}},
        }
        labels = {GROUP_LABEL: name}
        metadata = {"name": f"{name}-0", "labels": labels, "annotations": annotations}
        made = bench.api.create(PODS, {"metadata": metadata, "spec": {"containers": [container]}})
        bench.until(lambda made=made: bench.store(PODS).get(made.key) is not None, made.name)  # type: ignore[misc]
    return bench


def test_no_page_answer_event_or_condition_has_what_tenants_keep_in_their_objects(
    told: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", logger="extender")
    runs, waits = (told.store(PODS).get(f"default/{name}-0") for name in ("runs", "waits"))
    said: list[object] = [told.filter(runs, "n1"), told.filter(waits, "n1"), told.bind(runs, "n1").result(10)]
    told.flush()
    pages, debug = told.scheduler.pages(), told.scheduler.debug()
    said += [pages[GANGS](), pages[GANG]("default/waits"), pages[GANG]("default/runs"), pages[POD]("default/waits-0")]
    said += [
        pages[DRAIN]("n1"),
        pages[CONFIGURATION](),
        debug[DEBUG_CACHE](True),
        debug[DEBUG_GANGS](),
        debug[DEBUG_GANG]("default/waits"),
    ]
    viewer = told.scheduler.feed().open()
    said += [viewer.next(5).decode(), caplog.text, json.dumps(told.api.events())]
    viewer.close()
    said += [told.api.get(POD_GROUPS, name, "default").status for name in ("runs", "waits")]
    assert told.api.events()
    text = "\n".join(
        each if isinstance(each, str) else codec.encode(each).decode()
        for each in said
        if not isinstance(each, Exception)
    )
    assert "default/waits" in text
    assert "n1" in text
    assert MOLE not in text


def test_an_error_of_the_api_server_is_told_without_what_it_quotes(
    told: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> object:
        raise ApiError(f'admission webhook "x" denied the request: {{"token": "{MOLE}"}}')

    runs = told.store(PODS).get("default/runs-0")
    assert told.filter(runs, "n1").node_names == ["n1"]
    monkeypatch.setattr(told.api, "bind", refuse)
    error = told.bind(runs, "n1").result(10)
    assert 'admission webhook "x" denied the request' in error
    assert MOLE not in error
