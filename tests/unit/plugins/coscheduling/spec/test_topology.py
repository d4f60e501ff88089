"""The name of a topology level, as a user writes it."""

from __future__ import annotations

import pytest

from extender.plugins.coscheduling.spec.field_errors import FieldError
from extender.plugins.coscheduling.spec.topology import NO_TOPOLOGY, parse_level


@pytest.mark.parametrize("text", ["rack", "topology.kubernetes.io/zone", ""])
def test_a_name_or_a_label(text: str) -> None:
    assert parse_level(text) == text


@pytest.mark.parametrize("text", ["ra\x00ck", "rack\n", "\u2028"], ids=ascii)
def test_control_characters_are_in_neither(text: str) -> None:
    with pytest.raises(FieldError, match="must be the name or the node label of a topology level"):
        parse_level(text)


def test_without_annotations_no_level_is_asked_for() -> None:
    assert (NO_TOPOLOGY.required, NO_TOPOLOGY.preferred) == ("", "")
