"""No value of a label or an annotation is looked at before its length is, and none is read but by a declared key."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import extender
from extender.api.metadata_keys import LIST, Key, Record, Source
from extender.api.metav1 import ObjectMeta
from extender.plugins.coscheduling.spec.keys import ASKING
from extender.plugins.coscheduling.spec.reading import Reading
from tests.declared_keys import declared_keys

SOURCES = Path(extender.__file__).parent

# Where such a map is used as a whole, by file and function; anything else is `Key.text`.
WHOLE: dict[str, str] = {
    "node.py Node.labels": "hands them on",
    "pod.py Pod.labels": "hands them on",
    "metadata_keys.py Key._values": "the one place",
    "pod_columns.py _add_pod_class": "pods are alike if all are the same",
    "api.py EmbeddedAPI.bind": "plays the API server: a binding's go to its pod",
    "group_hints.py _standing": "two versions are compared",
    "helpful_events.py changed_labels": "two versions of a node are compared",
    "members.py shape_of": "members are alike if those that selectors look at are",
    "group_members.py _without_record": "two versions are compared, but for our own record",
    "installed.py _is_ours": "a ConfigMap's of the extender's own namespace, compared with a word",
    "group_annotations.py relevant": "whether any declared key is there",
    "group_annotations.py asked_by": "whether any declared key is there",
    "roles.py role_of": "the owner names the label; the value is cut, compared with the roles and counted",
    "csi_translation.py with_csi_topology": "a volume's: of the cluster, not of a namespace",
    "csi_translation.py _labels_in_use": "a volume's",
    "node_volume_limits.py NodeVolumeLimits._volume_of": "a volume's",
    "volume_zone.py topologies_of": "a volume's",
    "scoring.py SpreadScores._domains": "a node's",
    "asked.py _manager_like": "the plugin's GroupLabels, copied",
    "demo.py _of": "the demo's own pods, compared with a name",
    "matching.py bind_volume_to_claim": "a volume's, changed",
    "hints.py after_node_change": "two versions of a node are compared",
    "plugin.py InterPodAffinity._labels_of": "a namespace's, for selectors",
    "constraints.py _selector": "matchLabelKeys become a selector",
    "constraints.py default_selector": "matched with a service's selector",
    "hints.py SpreadHints.after_pod_change": "matched with selectors",
    "hints.py SpreadHints.after_node_change": "two versions of a node are compared",
    "pods.py _keys_of_groups": "values no longer than a name are compared with names",
    "metadata_keys.py AnyOf.on": "asked for declared keys, and for none of its values",
    "volume_controller.py _Pass._make_claims": "plays the controller: a template's go to its claim",
}


def uses() -> Iterator[tuple[str, str]]:
    """(file and function, expression) of each use of a map of labels or annotations that is not plainly of all of it."""
    for file in sorted(SOURCES.rglob("*.py")):
        yield from _uses(ast.parse(file.read_text()), file.name, [])


def _uses(node: ast.AST, file: str, scope: list[str]) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        inner = [*scope, child.name] if isinstance(child, ast.FunctionDef | ast.ClassDef) else scope
        match child:
            case ast.Attribute(attr="labels" | "annotations") if _is_of_an_object(child) and not _whole(child, node):
                yield f"{file} {'.'.join(inner)}", ast.unparse(node)
        yield from _uses(child, file, inner)


def _is_of_an_object(use: ast.Attribute) -> bool:
    """Not a metric's labels, nor the plugin's GroupLabels; and not a node's, which are no user's."""
    of = ast.unparse(use.value)
    if of in ("self", "metric") or of.startswith("metrics.") or of.endswith("manager"):
        return False
    node = of.removesuffix(".metadata")
    return not node.endswith(("node", "_node(node)", "_node(info)", "_node(nodes[row])", "get(NODES, node_name)"))


def _whole(use: ast.Attribute, around: ast.AST) -> bool:
    """Matched with a selector, compared with another version, copied, or asked whether it is empty."""
    match around:
        case ast.Call(func=ast.Attribute(attr="matches")):
            return True
        case ast.Compare(left=ast.Attribute(attr=attr), comparators=[ast.Attribute(attr=other)]):
            return attr == other == use.attr
        case ast.Dict(keys=keys, values=values):
            return any(key is None and value is use for key, value in zip(keys, values, strict=True))
        case ast.If() | ast.BoolOp() | ast.UnaryOp():
            return True
    return False


def test_labels_and_annotations_are_read_by_declared_keys_alone() -> None:
    found = list(uses())
    assert [use for use in found if use[0] not in WHOLE] == []
    assert WHOLE.keys() - {place for place, _ in found} == set(), "these are there no more"


def test_the_keys_that_are_read_are_found() -> None:
    found = declared_keys()
    assert {"scheduling.x-k8s.io/pod-group", "gang.scheduling.koordinator.sh/waiting-time"} <= set(found)
    assert "volume.kubernetes.io/selected-node" in found
    assert len(found) > 20


@pytest.mark.parametrize("key", declared_keys())
def test_a_key_says_what_it_is_read_of_and_how_long_it_may_be(key: Key[Any]) -> None:
    assert set(key.kinds) <= {"Pod", "PodGroup", "PersistentVolumeClaim", "PersistentVolume", "CSINode"}
    assert 0 < key.longest <= LIST


def having(key: Key[Any], value: str) -> ObjectMeta:
    found: dict[str, str] = {key: value}
    return ObjectMeta(labels=found) if key.source is Source.LABEL else ObjectMeta(annotations=found)


@pytest.mark.parametrize("key", declared_keys())
def test_a_value_that_is_too_long_is_not_parsed(key: Key[Any]) -> None:
    seen: list[str] = []
    counting: Key[None] = Key(key, key.source, key.kinds, key.longest, seen.append)
    value = "9" * 200_000
    metadata = having(key, value)
    reading = Reading()
    assert reading.value(metadata, counting) is None
    assert seen == []
    assert len(key.text(metadata)) == key.longest + 1
    assert reading.invalid.startswith(f"{key.source} {key}: Too long: '999")
    assert len(reading.invalid) < 300


def test_the_longest_value_is_parsed() -> None:
    key = Key("example.com/x", Source.LABEL, ("Pod",), 5, str)
    assert Reading().value(ObjectMeta(labels={key: "12345"}), key) == "12345"
    assert Reading().value(ObjectMeta(labels={key: "123456"}), key) is None


def test_each_key_of_ours_is_a_user_s_or_a_record_of_the_extender_s() -> None:
    """A record is what `annotate_binding` takes and manifests/tenants keeps users from writing."""
    ours = {key for key in declared_keys() if key.startswith("gang-extender.dev/")}
    records = {key for key in ours if isinstance(key, Record)}
    assert ours - records == {key for key in ASKING if key.startswith("gang-extender.dev/")}
    assert records == {"gang-extender.dev/start"}
