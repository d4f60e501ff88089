"""What makes a source of groups of a configured one, and which keys of a pod it reads."""

from __future__ import annotations

import pytest

from extender.api.metadata_keys import Source as Where
from extender.config.plugin_args import GroupSource
from extender.plugins.coscheduling.spec.sources.source import KOORDINATOR, LIGHTWEIGHT, Source, configured, presets


@pytest.mark.parametrize(
    ("source", "where"),
    [
        pytest.param(
            GroupSource("s", group_label="a/g", min_member_label="a/m"), (Where.LABEL, Where.LABEL), id="labels"
        ),
        pytest.param(
            GroupSource("s", group_annotation="a/g", min_member_annotation="a/m"),
            (Where.ANNOTATION, Where.ANNOTATION),
            id="annotations",
        ),
        pytest.param(
            GroupSource("s", group_label="a/g", min_member_annotation="a/m"), (Where.LABEL, Where.ANNOTATION), id="both"
        ),
    ],
)
def test_keys_are_read_where_the_configuration_says(source: GroupSource, where: tuple[Where, Where]) -> None:
    made = configured(source)
    assert made.minimum is not None
    assert ((str(made.group), made.group.source), (str(made.minimum), made.minimum.source)) == (
        ("a/g", where[0]),
        ("a/m", where[1]),
    )
    assert made.served_only, "pods of other schedulers with these keys are no members"


def test_the_preset_keys_are_known_without_being_configured() -> None:
    assert {"lws", "kueue", "volcano"} <= {source.name for source in presets()}


def test_which_keys_a_source_reads() -> None:
    assert list(LIGHTWEIGHT.read_keys()) == [LIGHTWEIGHT.group, LIGHTWEIGHT.minimum]
    assert list(Source("s", KOORDINATOR.group).read_keys()) == [KOORDINATOR.group]
