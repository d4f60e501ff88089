"""Our structs against the Go types of Kubernetes 1.36.3, and of 1.37.2 for kinds that are newer: names, and null wherever Go writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import inspect

from extender.api import codec
from extender.api.extenderv1 import ExtenderArgs, ExtenderBindingArgs, ExtenderPreemptionArgs
from extender.client.interface import (
    KOORDINATOR_POD_GROUPS,
    POD_GROUPS,
    RESOURCE_TYPES,
    VOLCANO_POD_GROUPS,
)
from tests.filled import ELEMENT, Place, fields, filled, with_null, without
from tests.parity.record_fields import FIELDS

POSTED = (ExtenderArgs, ExtenderPreemptionArgs, ExtenderBindingArgs)
NOT_OF_THESE_GO_TYPES = (
    POD_GROUPS,  # custom resources: of scheduler-plugins, Koordinator and Volcano
    KOORDINATOR_POD_GROUPS,
    VOLCANO_POD_GROUPS,
)
OURS = {f"{each.api_version}/{each.kind}": each.type for each in RESOURCE_TYPES if each not in NOT_OF_THESE_GO_TYPES}
OURS |= {each.__name__: each for each in POSTED}
SHARED = (  # structs that serve two Go types, of which only the other one has the field
    ("csi", "volumeHandle"),
    ("azureFile", "secretNamespace"),
    (ELEMENT, "observedGeneration"),
)
Field = tuple[Place, inspect.Field, dict[str, Any] | None]
"""Ours with its place, and Go's entry of the table; None where Go has no such field."""


@pytest.fixture(scope="module")
def recorded() -> Any:
    return json.loads(FIELDS.read_text())


def beside_go(kind: str, recorded: Any) -> Iterator[Field]:
    for place, field in fields(OURS[kind]):
        of = recorded["kinds"][kind]
        for key in place[:-1]:
            of = of if key == ELEMENT else recorded["types"].get(of, {}).get(key, {}).get("of", "")
        yield place, field, recorded["types"].get(of, {}).get(place[-1])


def test_every_kind_that_is_read_was_recorded(recorded: Any) -> None:
    assert recorded["kinds"].keys() == OURS.keys()


@pytest.mark.parametrize("kind", OURS)
def test_each_field_has_the_name_that_go_gives_it(kind: str, recorded: Any) -> None:
    unknown = [place for place, _, theirs in beside_go(kind, recorded) if theirs is None]
    assert [place for place in unknown if place[-2:] not in SHARED] == []


@pytest.mark.parametrize("kind", OURS)
def test_what_go_writes_as_null_is_read_as_absent(kind: str, recorded: Any) -> None:
    type_, whole = OURS[kind], filled(OURS[kind])
    for place, field, theirs in beside_go(kind, recorded):
        if theirs is None or not theirs.get("null") or place == ("Pod",):
            continue
        assert not field.required, place
        found = codec.decode(codec.encode(with_null(whole, place)), type_)
        assert found == codec.decode(codec.encode(without(whole, place)), type_), place


def test_there_are_such_fields(recorded: Any) -> None:
    """Or the test above would hold of nothing."""
    found = {
        (kind, place)
        for kind in OURS
        for place, _, theirs in beside_go(kind, recorded)
        if theirs is not None and theirs.get("null")
    }
    assert ("v1/Node", ("status", "images", ELEMENT, "names")) in found
    assert ("storage.k8s.io/v1/CSINode", ("spec", "drivers")) in found
    assert ("storage.k8s.io/v1/CSINode", ("spec", "drivers", ELEMENT, "topologyKeys")) in found
    assert ("v1/Pod", ("spec", "containers")) in found
