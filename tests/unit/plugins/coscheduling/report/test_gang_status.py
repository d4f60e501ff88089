"""Amounts as people write them, and a status that reads the same after its way through JSON."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from extender.plugins.coscheduling.report.gang_status import (
    GangStatus,
    GangSummary,
    KeptFree,
    ShownMember,
    ShownState,
    amount_text,
)


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        pytest.param("cpu", 3000, "3", id="cores"),
        pytest.param("cpu", 1500, "1500m", id="milli"),
        pytest.param("memory", 3 << 30, "3Gi", id="bytes in the largest unit"),
        pytest.param("memory", 1536 << 20, "1.5Gi", id="a half"),
        pytest.param("memory", 1 << 30, "1Gi", id="just one unit"),
        pytest.param("ephemeral-storage", 1023, "1023", id="less than a unit"),
        pytest.param("example.com/gpu", 8, "8", id="pieces"),
    ],
)
def test_amount_text(resource: str, amount: int, text: str) -> None:
    assert amount_text(resource, amount) == text


def test_the_cli_decodes_what_the_page_encodes() -> None:
    now = datetime(2026, 3, 2, tzinfo=UTC)
    summary = GangSummary("default", "g", "Gathering", now, "", "", 2, {state.value: 0 for state in ShownState})
    status = GangStatus(
        summary,
        5,
        1,
        member_list=(ShownMember("p", ShownState.HELD, "n1"),),
        kept_free=KeptFree("a", ("n1",), now, now),
    )
    encoded = msgspec.json.encode(status)
    assert msgspec.json.decode(encoded, type=GangStatus) == status
    assert b'"keptFree":{"domain":"a"' in encoded
    assert summary.key == "default/g"
