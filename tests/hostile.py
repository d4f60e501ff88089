"""Objects as a hostile tenant writes them: every key and every field that the program reads, with values of all kinds.

The keys and fields are taken from the code (`declared_keys`, the structs), so that a new one is tried without being listed here.
Used by the property tests of the edge.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st
from msgspec import inspect

from extender.api import codec
from extender.api.metadata_keys import Key, Source
from extender.api.schedulingv1alpha1 import GANG_GATE, POD_GROUP_LABEL
from extender.client.interface import (
    IN_TREE_GROUPS,
    IN_TREE_POD_GROUPS,
    PERSISTENT_VOLUME_CLAIMS,
    POD_GROUPS,
    PODS,
    RESOURCE_TYPES,
    ResourceType,
)
from extender.client.unreadable import convert
from extender.plugins.coscheduling.spec import keys
from tests.declared_keys import declared_keys
from tests.filled import ELEMENT, KEY, Place, fields, filled, not_null

Json = dict[str, Any]

NAMESPACED: tuple[ResourceType[Any], ...] = tuple(each for each in RESOURCE_TYPES if each.namespaced)
MAX_OBJECT = 1024 * 1024  # bytes; etcd takes 1.5 MiB
IDENTITY = {("metadata",)} | {
    ("metadata", each) for each in ("name", "generateName", "namespace", "uid", "resourceVersion")
}
"""What an API server sees to."""

TEXTS: list[str] = [
    "", " ", "\x00", "a\nb", "\u202e", "\U0001f600", "/", "a/b", "a/b/c", "../..", "-", ".", ",", "=", "null", "{}",
    "9" * 310 + "s", "9" * 12_000, "9" * 310, "-1", "-9" * 50 + "h", "1e999999999", "1e1.5", "NaN", "inf", "0x7f", "1_0",
    "\u0661\u0660", "9223372036854775808", "4294967296", "1" * 10, "0", "1h" * 30, "0.0000000001ns", "." * 63 + "s",
    "[" * 2000, "[" * 100_000, '{"a":' * 1000, '["a"' + ',"a"' * 2000 + "]", "[1]", '["' + "x" * 8000 + '"]',
    "a=1," * 2000, "a=" + "9" * 50, "=" * 5000, "a=1,a=1", "," * 8000, "g," * 4000, "x" * 64, "x" * 254, "x" * 200_000,
    "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", "2026-01-01T00:00:00", "vol-\x7f", "https://[", "%", "'; --",
]  # fmt: skip
OTHERS: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 1.5, -0.0, 1e308, [], {}, [[[[[]]]]], ["a"] * 3000,
    {"": ""}, {"n": None}, {"k" * 5000: "v"}, {f"k{i}": "1" for i in range(2000)}, {"a": {"b": {"c": []}}},
]  # fmt: skip

TIMES = [each for each in TEXTS if "T00" in each or "T23" in each] + [
    "2026-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
]
NUMBERS = [-(2**31), -1, 0, 1, 7, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63)]

texts = st.sampled_from(TEXTS) | st.text(st.characters(codec="utf-8"), max_size=80)
values = st.recursive(
    texts | st.sampled_from(OTHERS) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


def right_values(of: inspect.Type) -> st.SearchStrategy[Any]:
    """Of the kind that the field has: what passes the decoder."""
    of = not_null(of)
    match of:
        case inspect.StrType() | inspect.CustomType():
            return texts
        case inspect.IntType():
            return st.sampled_from(NUMBERS)
        case inspect.DateTimeType():
            return st.sampled_from(TIMES)
        case inspect.BoolType():
            return st.booleans()
        case inspect.VarTupleType(item_type=item):
            return st.lists(right_values(item), max_size=3) | right_values(item).map(many)
        case inspect.DictType(value_type=item):
            return st.dictionaries(texts, right_values(item), max_size=3) | right_values(item).map(many_keys)
        case inspect.StructType(fields=parts):
            return st.fixed_dictionaries({}, optional={part.encode_name: right_values(part.type) for part in parts})
    raise AssertionError(of)


def many(value: Any) -> list[Any]:
    """As many as an object may hold."""
    return [value] * max(1, min(300, MAX_OBJECT // 8 // len(repr(value))))


def many_keys(value: Any) -> Json:
    return {f"example.com/k{number}": each for number, each in enumerate(many(value))}


class Hostile:
    """where: the key or the field that it is about. No dataclass: hypothesis would print all of it."""

    def __init__(self, resource: ResourceType[Any], document: Json, where: str) -> None:
        self.resource = resource
        self.document = document
        self.where = where

    def __repr__(self) -> str:
        return f"{self.resource.kind} {self.where}: {str(self.document)[-60:]}"

    @property
    def possible(self) -> bool:
        """Whether an API server could have it at all."""
        return len(body(self.document)) <= MAX_OBJECT

    @property
    def readable(self) -> bool:
        """Whether the extender's informers take it in."""
        try:
            convert(self.document, self.resource.type)
        except codec.DecodeError:
            return False
        return self.possible


def of_key(key: Key[Any], kind: str, value: str, name: str) -> list[Hostile]:
    """Objects of that kind with the key; a PodGroup has a pod besides, and a pod a group without an object."""
    part = "labels" if key.source is Source.LABEL else "annotations"
    if kind == "PodGroup":
        named = pod(name, labels={POD_GROUP_LABEL: name})
        both = [(each, group(each, name)) for each in (POD_GROUPS, IN_TREE_POD_GROUPS)]
        found = [Hostile(each, with_metadata(document, part, {key: value}), key) for each, document in both]
        return [*found, Hostile(PODS, named, key)]
    if kind == "Pod":
        lightweight = {keys.LIGHTWEIGHT_NAME: name, keys.LIGHTWEIGHT_MIN_AVAILABLE: "1"}
        made = pod(
            name,
            annotations={} if key in lightweight else alone(name),
            labels=lightweight if key in lightweight else {},
        )
        return [Hostile(PODS, with_metadata(made, part, {key: value}), key)]
    if kind == "PersistentVolumeClaim":
        made = with_metadata(claim(name), part, {key: value})
        return [
            Hostile(PERSISTENT_VOLUME_CLAIMS, made, key),
            Hostile(PODS, pod(name, annotations=alone(name), volumes=[uses(name)]), key),
        ]
    return []


def of_field(resource: ResourceType[Any], place: Place, value: Any, name: str) -> list[Hostile]:
    """An object with what belongs around that field, and the value in it; beside a PodGroup or a claim, the pod that names it."""
    document = with_value(resource, place, value, name)
    found = [Hostile(resource, document, f"{resource.kind} {'.'.join(place)}")]
    if resource is PERSISTENT_VOLUME_CLAIMS:
        found.append(Hostile(PODS, pod(name, annotations=alone(name), volumes=[uses(name)]), found[0].where))
    if resource is POD_GROUPS:
        found.append(Hostile(PODS, pod(name, labels={POD_GROUP_LABEL: name}), found[0].where))
    if resource in IN_TREE_GROUPS:
        found.append(Hostile(PODS, pod(name, schedulingGroup={"podGroupName": name}), found[0].where))
    return found


def with_value(resource: ResourceType[Any], place: Place, value: Any, name: str) -> Json:
    document = copy.deepcopy({PODS: member, PERSISTENT_VOLUME_CLAIMS: claim}.get(resource, bare)(name))
    around = copy.deepcopy(filled(resource.type)[place[0]])
    if len(place) > 1 and isinstance(around, dict) and place[1] != ELEMENT:
        document.setdefault(place[0], {})[place[1]] = around[place[1]]
    elif len(place) > 1:
        document[place[0]] = around
    spot: Any = document
    for step in place[:-1]:
        if step == ELEMENT:
            spot = spot[KEY] if isinstance(spot, dict) else spot[0]
        else:
            spot = spot.setdefault(step, {})
    spot[place[-1]] = value
    return document


ALL_FIELDS: list[tuple[ResourceType[Any], Place, inspect.Type]] = [
    (each, place, field.type)
    for each in NAMESPACED
    for place, field in fields(each.type)
    if place not in IDENTITY and place[:2] not in IDENTITY
]
ALL_KEYS: list[tuple[Key[Any], str]] = [(key, kind) for key in declared_keys() for kind in key.kinds]


@st.composite
def objects(draw: st.DrawFn, fields_at_once: int = 40) -> list[Hostile]:
    """One of each key, each with a value of its own, and some of the fields."""
    found: list[Hostile] = []
    for number, (key, kind) in enumerate(ALL_KEYS):
        found += of_key(key, kind, draw(texts), f"key-{number}")
    for number in range(fields_at_once):
        resource, place, of = draw(st.sampled_from(ALL_FIELDS))
        found += of_field(resource, place, draw(right_values(of) | values), f"field-{number}")
    return mixed(found, draw(st.integers(0, 3)))


def mixed(found: list[Hostile], first: int) -> list[Hostile]:
    """Some of the pods wait at our gate, some run."""
    for number, each in enumerate(found, first):
        spec = each.document.get("spec")
        if each.resource is PODS and isinstance(spec, dict):
            if number % 4 == 0:
                spec.setdefault("schedulingGates", [{"name": GANG_GATE}])
            elif number % 4 == 1:
                spec.setdefault("nodeName", "n0")
    return found


def bare(name: str) -> Json:
    return {"metadata": {"name": name, "namespace": "hostile", "uid": name}}


def with_metadata(document: Json, part: str, more: dict[str, str]) -> Json:
    metadata = document["metadata"]
    merged = {**metadata.get(part, {}), **{str(key): value for key, value in more.items()}}
    return {**document, "metadata": {**metadata, part: merged}}


def pod(name: str, labels: Any = None, annotations: Any = None, **spec: Any) -> Json:
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": "10m"}}}
    document = {**bare(name), "spec": {"containers": [container], **spec}}
    return with_metadata(with_metadata(document, "labels", labels or {}), "annotations", annotations or {})


def member(name: str) -> Json:
    """Of a group of its own, so that a plan is made for it."""
    return pod(name, annotations=alone(name))


def alone(name: str) -> dict[str, str]:
    return {keys.KOORDINATOR_NAME: name, keys.KOORDINATOR_MIN_AVAILABLE: "1"}


def uses(claim_name: str) -> Json:
    return {"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}


def group(resource: ResourceType[Any], name: str) -> Json:
    in_tree = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    return {**bare(name), "spec": in_tree if resource in IN_TREE_GROUPS else {"minMember": 1}}


def claim(name: str) -> Json:
    return {**bare(name), "spec": {"storageClassName": "none", "resources": {"requests": {"storage": "1Gi"}}}}


def body(value: Any) -> bytes:
    return json.dumps(value).encode()
