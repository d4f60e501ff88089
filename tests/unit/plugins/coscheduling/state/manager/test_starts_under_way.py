"""From the quorum until that is bound: each start is measured once, and what this process has not decided not at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from extender.metrics import REGISTRY
from extender.plugins.coscheduling.state.manager.starts_under_way import GONE, StartsUnderWay

QUORUM = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = "default/g"


def measured(outcome: str) -> tuple[float, float]:
    name, labels = "gang_extender_gang_start_duration_seconds", {"outcome": outcome}
    found = [REGISTRY.get_sample_value(f"{name}_{part}", labels) or 0.0 for part in ("count", "sum")]
    return found[0], found[1]


def starts(later: float) -> StartsUnderWay:
    """At that many seconds after the quorum."""
    return StartsUnderWay(lambda: QUORUM + timedelta(seconds=later))


def test_a_start_is_measured_once() -> None:
    count, seconds = measured("bound")
    under_way = starts(later=7)
    under_way.begins(KEY, QUORUM)
    under_way.begins("default/h", QUORUM)
    under_way.is_whole(KEY)
    under_way.is_whole(KEY)
    assert measured("bound") == (count + 1, seconds + 7)


def test_a_start_that_goes_on_keeps_its_time() -> None:
    count, seconds = measured("bound")
    under_way = starts(later=9)
    under_way.begins(KEY, QUORUM)
    under_way.begins(KEY, QUORUM + timedelta(seconds=5))
    under_way.is_whole(KEY)
    assert measured("bound") == (count + 1, seconds + 9)


def test_what_was_not_begun_here_or_is_gone_is_not_measured() -> None:
    before = measured("bound")
    under_way = starts(later=1)
    under_way.is_whole(KEY)
    under_way.begins(KEY, None)
    under_way.is_whole(KEY)
    under_way.begins(KEY, QUORUM)
    under_way.forget(KEY)
    under_way.is_whole(KEY)
    assert measured("bound") == before


def test_the_api_server_s_clock_may_be_ahead() -> None:
    _, seconds = measured("bound")
    under_way = starts(later=-3)
    under_way.begins(KEY, QUORUM)
    under_way.is_whole(KEY)
    assert measured("bound")[1] == seconds


def test_a_start_of_less_than_a_second_is_measured_as_it_is() -> None:
    _, seconds = measured("bound")
    under_way = starts(later=0.25)
    under_way.begins(KEY, QUORUM)
    under_way.is_whole(KEY)
    assert measured("bound")[1] == seconds + 0.25


def test_a_gang_that_is_gone_is_measured_as_that() -> None:
    bound, (count, seconds) = measured("bound"), measured("gone")
    starts(later=5).measure(GONE, QUORUM)
    assert (measured("gone"), measured("bound")) == ((count + 1, seconds + 5), bound)


def test_a_group_that_was_not_to_start_is_forgotten_too() -> None:
    before = measured("bound")
    under_way = starts(later=5)
    under_way.forget("default/unknown")
    under_way.begins(KEY, QUORUM)
    under_way.forget("default/unknown")
    under_way.is_whole(KEY)
    assert measured("bound")[0] == before[0] + 1, "and no other with it"
