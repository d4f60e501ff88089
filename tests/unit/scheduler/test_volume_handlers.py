"""Volumes that change behind a kube-scheduler: which plugins hear of it, and when they count as known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from extender.client.embedded.api import EmbeddedAPI
from extender.client.informer import InformerFactory
from extender.client.interface import CSI_STORAGE_CAPACITIES, STORAGE_CLASSES
from extender.scheduler.actions import bell
from extender.scheduler.event_handlers import ObjectHandlers
from extender.scheduler.volume_handlers import (
    KINDS,
    any_volume,
    has_unbound_claims,
    volumes_known,
    watch_volumes,
)
from tests.objects import make_pod
from tests.unit.plugins.storage import make_capacity, make_claim


@pytest.mark.parametrize(
    ("name", "heard"),
    [
        pytest.param("capacity", 3, id="capacity that a driver publishes"),
        pytest.param(bell.NAME, 0, id="our own bell is no news"),
    ],
)
def test_what_is_heard(name: str, heard: int) -> None:
    told: list[tuple[object, object]] = []
    handlers = ObjectHandlers(any_volume(lambda old, new: told.append((old, new))))
    capacity = make_capacity(name, "fast", "z", "1Gi")
    handlers.on_add(capacity)
    handlers.on_update(capacity, capacity)
    handlers.on_delete(capacity)
    assert told == [(None, capacity), (capacity, capacity), (capacity, None)][:heard]


@pytest.mark.parametrize(
    ("volume", "unbound"),
    [
        pytest.param("", True, id="a claim that waits"),
        pytest.param("disk", False, id="a claim that is bound"),
        pytest.param(None, False, id="a claim that we have not seen"),
    ],
)
def test_whether_a_pod_s_claims_are_still_to_be_bound(volume: str | None, unbound: bool) -> None:
    claims = [] if volume is None else [make_claim("data", bound_to=volume)]

    class Informers:
        def informer(self, kind: Any) -> Any:
            return SimpleNamespace(store={f"default/{claim.metadata.name}": claim for claim in claims})

    informers: Any = Informers()
    pod = make_pod().namespace("default").name("p").pvc("data").obj()
    assert has_unbound_claims(informers, pod) is unbound


class State:
    def __init__(self, served: bool) -> None:
        self.served = served


class Informer:
    def __init__(self, synced: bool, served: bool) -> None:
        self.has_synced = synced
        self.state = State(served)


@pytest.mark.parametrize(
    ("synced", "served", "known"),
    [
        pytest.param(True, True, True, id="all are there"),
        pytest.param(False, True, False, id="one has not been listed yet"),
        pytest.param(True, False, False, id="one is not served, or not to us"),
    ],
)
def test_volumes_are_known_where_every_kind_is(synced: bool, served: bool, known: bool) -> None:
    class Informers:
        def informer(self, kind: Any) -> Any:
            return Informer(synced, served) if kind is STORAGE_CLASSES else Informer(True, True)

    informers: Any = Informers()
    assert volumes_known(informers) is known


def test_every_kind_is_watched_and_none_of_them_has_to_be_there() -> None:
    informers = InformerFactory(EmbeddedAPI())
    watch_volumes(informers, lambda old, new: None)
    assert {informer.resource for informer in informers.all()} == set(KINDS)
    assert CSI_STORAGE_CAPACITIES in KINDS
