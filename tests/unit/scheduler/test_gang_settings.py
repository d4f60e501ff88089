"""How long a gang may be held: kube-scheduler's own timeout, but for what the commit of so many members may take."""

from __future__ import annotations

import pytest

from extender.config.types import ExtenderConfiguration
from extender.plugins.coscheduling.dependencies import hold_limit
from tests.unit.scheduler.conftest import running


@pytest.mark.parametrize(
    ("bind_timeout", "members", "seconds"),
    [
        pytest.param(120, 1, 114.99, id="as shipped: 5 s, and 10 ms a member"),
        pytest.param(120, 100, 114, id="a hundred"),
        pytest.param(120, 1000, 105, id="a thousand"),
        pytest.param(10, 64, 4.36, id="the shortest timeout that may be configured"),
        pytest.param(10, 1000, 1, id="a commit that takes longer than the timeout: a second all the same"),
    ],
)
def test_a_hold_leaves_time_for_the_commit(bind_timeout: float, members: int, seconds: float) -> None:
    assert hold_limit(bind_timeout, members) == pytest.approx(seconds)


def test_the_configured_timeout_counts() -> None:
    with running(ExtenderConfiguration(bind_timeout_seconds=300)) as bench:
        limit = bench.scheduler._dependencies.coscheduling.dependencies.hold_limit
        assert limit(10) == pytest.approx(294.9)
