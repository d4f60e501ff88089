"""Every key that makes a group or asks for something: each once, bounded, and on the objects that may have it."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api.metadata_keys import Key, Source
from extender.plugins.coscheduling.spec import keys
from extender.plugins.coscheduling.spec.keys import group_label

DECLARED = [value for value in vars(keys).values() if isinstance(value, Key)]


def test_no_two_constants_are_one_key() -> None:
    assert len(set(DECLARED)) == len(DECLARED)


@pytest.mark.parametrize("key", keys.ASKING)
def test_what_a_pod_group_may_ask_for_a_group_without_one_may_ask_for_too(key: Key[Any]) -> None:
    assert set(key.kinds) == {"Pod", "PodGroup"}
    assert key.source is Source.ANNOTATION


def test_names_and_minima_of_groups_ask_for_nothing() -> None:
    """A pod that names its group says nothing of what it asks for: its annotations need not be read."""
    assert not {keys.LIGHTWEIGHT_NAME, keys.LIGHTWEIGHT_MIN_AVAILABLE, keys.START} & set(keys.ASKING)


def test_the_configured_label_of_pod_groups_is_a_key_like_the_others() -> None:
    label = group_label("example.com/group")
    assert (str(label), label.source, label.kinds) == ("example.com/group", Source.LABEL, ("Pod",))
