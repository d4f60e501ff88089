"""Calls of the API server are counted in a server's metrics, and by no command."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from extender import metrics
from extender.client import request_counts
from extender.client.embedded import EmbeddedAPI
from extender.config.types import ExtenderConfiguration
from extender.scheduler import factory


@pytest.fixture(autouse=True)
def _counting_as_before() -> Iterator[None]:
    before = request_counts._count
    yield
    request_counts.count_by(before)


def value() -> float:
    return float(metrics.child(metrics.api_requests, "GET", "418")._value.get())


def test_a_scheduler_that_is_built_counts_calls_in_its_metrics() -> None:
    request_counts.count_by(request_counts._none)
    before = value()
    request_counts.counted("GET", "418")
    assert value() == before
    factory.build(ExtenderConfiguration(), EmbeddedAPI())
    request_counts.counted("GET", "418")
    assert value() == before + 1
