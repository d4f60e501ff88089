"""The names of topology levels, and slices, as a user writes them."""

from __future__ import annotations

import pytest

from extender.plugins.coscheduling.spec.field_errors import FieldError
from extender.plugins.coscheduling.spec.topology import NO_TOPOLOGY, Sizes, parse_level, parse_sizes, parse_spread


@pytest.mark.parametrize("text", ["rack", "topology.kubernetes.io/zone", ""])
def test_a_name_or_a_label(text: str) -> None:
    assert parse_level(text) == text


@pytest.mark.parametrize("text", ["ra\x00ck", "rack\n", "\u2028"], ids=ascii)
def test_control_characters_are_in_neither(text: str) -> None:
    with pytest.raises(FieldError, match="must be the name or the node label of a topology level"):
        parse_level(text)


def test_without_annotations_no_level_is_asked_for() -> None:
    assert (NO_TOPOLOGY.required, NO_TOPOLOGY.preferred) == ("", "")


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        pytest.param("rack=8", (("rack", 8),), id="one level"),
        pytest.param(" rack = 8 , block=32 ", (("block", 32), ("rack", 8)), id="the wider one first"),
        pytest.param("example.com/rack", (("example.com/rack", 0),), id="no number: all members"),
        pytest.param("rack=8,zone", (("zone", 0), ("rack", 8)), id="slices of all members"),
        pytest.param("rack=1", (("rack", 1),), id="a slice of one"),
    ],
)
def test_slices(text: str, sizes: Sizes) -> None:
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        pytest.param("rack=0", "must be level=members, such as rack=8, or a level", id="no members"),
        pytest.param("rack=", "must be level=members", id="no number"),
        pytest.param("=8", "must be level=members", id="no level"),
        pytest.param("rack=-8", "must be level=members", id="no count"),
        pytest.param("rack=99999999999", "must be level=members", id="more than there can be"),
        pytest.param("rack=8,,block=32", "must be level=members", id="nothing between two commas"),
        pytest.param("rack=8,rack=16", "Duplicate value: 'rack'", id="twice"),
        pytest.param("block=12,rack=8", "must be a multiple of those of rack", id="no multiple"),
        pytest.param("block=8,rack=8", "must be a multiple of those of rack", id="of one size"),
        pytest.param("block,rack", "must be a multiple of those of rack", id="all members twice"),
        pytest.param(",".join(f"l{i}={2**i}" for i in range(9)), "at most 8 levels", id="too many"),
        pytest.param("ra\x00ck=8", "must be the name or the node label", id="control characters"),
    ],
)
def test_what_are_no_slices(text: str, wrong: str) -> None:
    with pytest.raises(FieldError, match=wrong):
        parse_sizes(text)


def test_how_slices_are_spread() -> None:
    assert (parse_spread("balanced"), parse_spread("packed")) == (True, False)
    with pytest.raises(FieldError, match="supported values"):
        parse_spread("even")
