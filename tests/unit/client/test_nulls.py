"""Null stands for absent wherever Go may write it: in a list, in a watch, in an answer, in what kube-scheduler posts.

Go encodes an empty slice, map or time without `omitempty` as null. One untagged image made a node unreadable.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import inspect

from extender.api import codec, corev1
from extender.api.extenderv1 import ExtenderArgs, ExtenderBindingArgs, ExtenderPreemptionArgs
from extender.client.connection import Connection
from extender.client.interface import NODES, RESOURCE_TYPES, EventType, ResourceType
from tests.fakes.api_server import Answer, FakeAPIServer, event, page
from tests.filled import Place, fields, filled, not_null, with_null, without

POSTED = [ExtenderArgs, ExtenderPreemptionArgs, ExtenderBindingArgs]


def optional_places(type_: type[Any]) -> list[Place]:
    """Without the name: no object is without."""
    return [place for place, field in fields(type_) if not field.required and place != ("metadata", "name")]


def pairs(type_: type[Any]) -> list[tuple[dict[str, Any], Any]]:
    """For each field that may be absent: the object with null there, and what it is to be read as."""
    whole = filled(type_)
    return [
        (with_null(whole, place), codec.convert(without(whole, place), type_, nulls=False))
        for place in optional_places(type_)
    ]


@pytest.fixture(params=RESOURCE_TYPES, ids=str)
def resource(request: pytest.FixtureRequest) -> ResourceType[Any]:
    found: ResourceType[Any] = request.param
    return found


def test_no_list_and_no_map_has_to_be_there(resource: ResourceType[Any]) -> None:
    needed = {place: not_null(field.type) for place, field in fields(resource.type) if field.required}
    assert not [place for place, of in needed.items() if isinstance(of, inspect.VarTupleType | inspect.DictType)]


def test_null_in_a_list_is_a_field_that_is_absent(
    server: FakeAPIServer, connection: Connection, resource: ResourceType[Any]
) -> None:
    made = pairs(resource.type)
    server.lists.append(page(*(obj for obj, _ in made)))
    assert list(connection.list_page(resource).items) == [wanted for _, wanted in made]


def test_null_in_a_watch_is_a_field_that_is_absent(
    server: FakeAPIServer, connection: Connection, resource: ResourceType[Any]
) -> None:
    made = pairs(resource.type)
    server.watches.append(Answer(lines=[event("MODIFIED", obj) for obj, _ in made]))
    seen = list(connection.watch(resource))
    assert [each.object for each in seen] == [wanted for _, wanted in made]
    assert {each.type for each in seen} == {EventType.MODIFIED}


def test_null_in_an_answer_is_a_field_that_is_absent(server: FakeAPIServer, connection: Connection) -> None:
    made = pairs(corev1.Node)
    server.others.extend([Answer(body=obj) for obj, _ in made])
    assert [connection.get(NODES, "n") for _ in made] == [wanted for _, wanted in made]


@pytest.mark.parametrize("type_", POSTED)
def test_null_in_what_kube_scheduler_posts_is_a_field_that_is_absent(type_: type[Any]) -> None:
    for obj, wanted in pairs(type_):
        assert codec.decode(codec.encode(obj), type_) == wanted


@pytest.mark.parametrize(
    ("status", "names"),
    [
        pytest.param({"images": [{"names": None, "sizeBytes": 7}]}, [()], id="an image without tags and digests"),
        pytest.param({"images": None}, [], id="no list of images"),
        pytest.param({"images": [{"names": ["a"]}, {"names": None}]}, [("a",), ()], id="one of two images"),
        pytest.param(None, [], id="no status"),
    ],
)
def test_a_node_as_kubelets_write_it(status: Any, names: list[tuple[str, ...]]) -> None:
    written = {"metadata": {"name": "n", "creationTimestamp": None}, "spec": {}, "status": status}
    node = codec.decode(codec.encode(written), corev1.Node)
    assert [image.names for image in node.status.images] == names


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(b'{"metadata":null}', r"got `null` - at `\$.metadata`", id="for an object that has to be there"),
        pytest.param(b'{"metadata":{"labels":{"a":null}}}', r"got `null`", id="for a text in a map"),
        pytest.param(b'{"metadata":{"finalizers":[null]}}', r"got `null`", id="for an element of a list"),
        pytest.param(
            b'{"metadata":{"name":5,"labels":null}}', r"got `int` - at `\$.metadata.name`", id="beside a fault"
        ),
        pytest.param(b'{"metadata":{"labels":null}', "truncated", id="in what is cut off"),
        pytest.param(b'{"metadata":{"name":5},"x":' + b"[null," * 3000, ".", id="in what is nested too deeply"),
        pytest.param(b'{"metadata":{"name":5,"x":null,"y":1e999999}}', ".", id="beside a number without end"),
    ],
)
def test_null_where_nothing_may_be_absent_is_a_mistake(data: bytes, text: str) -> None:
    with pytest.raises(codec.DecodeError, match=text):
        codec.decode(data, corev1.Node)
