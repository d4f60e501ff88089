"""Whatever stands in a field of whatever kind: a list and a watch go on, and the other objects are seen."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest

from extender.api.codec import convert
from extender.client.connection import Connection
from extender.client.interface import RESOURCE_TYPES, EventType, ResourceType
from tests.fakes.api_server import Answer, FakeAPIServer, event, page
from tests.filled import Place, fields, filled
from tests.hostile import IDENTITY, NUMBERS, OTHERS, TEXTS, TIMES, with_value

pytestmark = pytest.mark.faults  # what cannot be read is counted

VALUES: list[Any] = [each for each in (*TEXTS, *OTHERS, *NUMBERS, *TIMES) if len(str(each)) < 20_000]


def hostile(resource: ResourceType[Any]) -> Iterator[dict[str, Any]]:
    """Every field holds some of the values; over all fields each of them has its turn."""
    turn = cycle(VALUES)
    places: list[Place] = [place for place, _ in fields(resource.type) if place not in IDENTITY]
    for number, place in enumerate(places * 3):
        yield with_value(resource, place, next(turn), f"hostile-{number}")


def honest(resource: ResourceType[Any], name: str) -> dict[str, Any]:
    document = filled(resource.type)
    return {**document, "metadata": {**document["metadata"], "name": name}}


@pytest.mark.parametrize("resource", RESOURCE_TYPES, ids=str)
def test_a_list_shows_the_others(server: FakeAPIServer, connection: Connection, resource: ResourceType[Any]) -> None:
    server.lists.append(page(honest(resource, "first"), *hostile(resource), honest(resource, "last")))
    names = [each.metadata.name for each in connection.list_page(resource).items]
    assert (names[0], names[-1]) == ("first", "last")


@pytest.mark.parametrize("resource", RESOURCE_TYPES, ids=str)
def test_a_watch_shows_the_others(server: FakeAPIServer, connection: Connection, resource: ResourceType[Any]) -> None:
    shown = [honest(resource, "first"), *hostile(resource), honest(resource, "last")]
    server.watches.append(Answer(lines=[event("ADDED", each) for each in shown]))
    seen = list(connection.watch(resource))
    assert len(seen) == len(shown)
    for at, name in ((0, "first"), (-1, "last")):
        assert (seen[at].type, seen[at].object) == (EventType.ADDED, convert(honest(resource, name), resource.type))
