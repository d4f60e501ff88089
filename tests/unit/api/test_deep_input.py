"""JSON that is nested deeper than anything that is read: the rest of it is read all the same."""

from __future__ import annotations

import sys

import pytest

from extender.api import codec, corev1
from extender.api.codec import DEEPEST, shallow
from extender.client.decoding import read_list


def nested(levels: int, inner: str = "{}", opening: str = '{"f:a":', closing: str = "}") -> str:
    return opening * levels + inner + closing * levels


def pod(name: str, fields: str = "{}", more: str = "") -> str:
    return f'{{"metadata":{{"name":"{name}","managedFields":[{{"fieldsV1":{fields}}}],"uid":"{name}"{more}}}}}'


LEVELS = [sys.getrecursionlimit() // 2, sys.getrecursionlimit(), 10_000, 100_000]


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize(
    "more",
    [
        pytest.param("", id="plain"),
        pytest.param(',"labels":null', id="beside a null that counts as absent"),
    ],
)
def test_the_others_of_a_list_are_read_and_so_is_the_deep_one(levels: int, more: str) -> None:
    items = ",".join((pod("a"), pod("deep", nested(levels), more), pod("b")))
    found, unreadable, metadata = read_list(
        f'{{"metadata":{{"resourceVersion":"9"}},"items":[{items}]}}'.encode(), corev1.Pod
    )
    assert [each.name for each in found] == ["a", "deep", "b"]
    assert [each.uid for each in found] == ["a", "deep", "b"]
    assert unreadable == []
    assert metadata.resource_version == "9"


@pytest.mark.parametrize(
    ("deep", "left"),
    [
        pytest.param(nested(DEEPEST - 2), nested(DEEPEST - 2), id="as it is where it is not deep"),
        pytest.param(nested(DEEPEST - 1), nested(DEEPEST - 1, "null"), id="the first level too many is null"),
        pytest.param(nested(DEEPEST + 1000), nested(DEEPEST - 1, "null"), id="with all that is in it"),
        pytest.param(nested(5000, "1", "[", "]"), nested(DEEPEST - 1, "null", "[", "]"), id="lists"),
        pytest.param(
            nested(DEEPEST - 2, r'{"a]}\"":"[[[\\","b":[[1],{}],"c":2}'),
            nested(DEEPEST - 2, r'{"a]}\"":"[[[\\","b":null,"c":2}'),
            id="brackets and quotes in texts are none",
        ),
    ],
)
def test_what_is_left_of_it(deep: str, left: str) -> None:
    """The list around it is one level."""
    assert shallow(f'[{deep},"after"]'.encode()).decode() == f'[{left},"after"]'


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'{"metadata":' * 50_000, id="never closed"),
        pytest.param(b'{"metadata":{"name":"a","x":' + b"[" * 50_000 + b'"' + b"]" * 50_000, id="a text without end"),
        pytest.param(b"]" * 50_000, id="never opened"),
    ],
)
def test_what_is_no_json_is_a_mistake_at_any_depth(data: bytes) -> None:
    with pytest.raises(codec.DecodeError):
        codec.decode(data, corev1.Pod)
