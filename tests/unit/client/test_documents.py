"""Objects read from files: each with its own line, merges and anchors as YAML has them, and mistakes with their place."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from extender.api.codec import DecodeError
from extender.client.embedded.documents import read_documents

LISTS = """\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: a}
- apiVersion: v1
  kind: PodList
  items:
  - metadata: {name: b}
---
---
kind: Node
"""


def test_each_object_has_its_own_line_in_lists_too(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(LISTS)
    found = [(document.line, document.object["kind"]) for document in read_documents(file)]
    assert found == [(4, "Pod"), (10, "Pod"), (13, "Node")]


def test_json_is_read_as_well(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text('{"kind": "List",\n "items": [{"kind": "Node", "n": 1, "t": "1", "b": true, "none": null}]}')
    (node,) = read_documents(file)
    assert (node.line, node.object) == (2, {"kind": "Node", "n": 1, "t": "1", "b": True, "none": None})


def test_a_merged_mapping_may_be_overridden_and_used_again(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(
        "kind: Node\nbase: &base {x: 1, y: 1}\nmore: &more {<<: *base, y: 2}\nmost: {<<: *more}\nagain: *more\n"
    )
    (node,) = read_documents(file)
    assert node.object["more"] == node.object["most"] == node.object["again"] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("kind: A\nb: 1\nb: 2\n", ":3: duplicate key 'b'", id="a key that stands twice"),
        pytest.param("kind: A\nb: {<<: {c: 1}, d: 1, d: 2}\n", ":2: duplicate key 'd'", id="beside what is merged in"),
        pytest.param("kind: A\n? [b]\n: 1\n", ":2: a key must be a text", id="a list for a key"),
        pytest.param("kind: A\nb: *c\n", ":2: found undefined alias", id="an anchor that is not there"),
        pytest.param("kind: List\nitems:\n- kind: A\n- 3\n", ":4: $.kind: an object", id="an item that is no object"),
        pytest.param("kind: A\nb: &b [*b]\n", "an alias of what it stands in", id="something that holds itself"),
    ],
)
def test_a_mistake_has_its_place(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    with pytest.raises(DecodeError, match=r"cluster\.yaml") as failed:
        read_documents(file)
    assert said in str(failed.value)
    assert gc.isenabled()
