"""What members that have Succeeded say of a phase that is over."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from extender.plugins.coscheduling.spec.sources.ended_phase import EndedPhase
from tests.unit.plugins.coscheduling.kube_scheduler import member, on_node

START = "gang-extender.dev/start"


@pytest.mark.parametrize(
    ("records", "began"),
    [
        pytest.param(("2026-03-02T10:00:00Z 2", "2026-03-02T10:05:00Z 2"), 5, id="the last of two starts"),
        pytest.param(("", "2026-03-02T10:05:00Z 2"), 5, id="one was bound by others"),
        pytest.param(("yesterday", ""), None, id="what is no record says nothing"),
    ],
)
def test_number_size_and_start(records: tuple[str, str], began: int | None) -> None:
    pods = [
        on_node(member(f"m{at}", cpu=at + 1), "n0", {START: record} if record else {})
        for at, record in enumerate(records)
    ]
    found = EndedPhase.of(pods)
    assert (found.number, found.like.pod.name, found.requests.milli_cpu) == (2, "m1", 3000)
    assert found.began == (datetime(2026, 3, 2, 10, began, tzinfo=UTC) if began is not None else None)
