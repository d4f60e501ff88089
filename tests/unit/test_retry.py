"""How long a retry waits: a table of declarations and what comes of them."""

from __future__ import annotations

import pytest

from extender.retry import Retry


@pytest.mark.parametrize(
    ("retry", "failures", "seconds"),
    [
        pytest.param(Retry(1.0, 60.0), 1, 1.0, id="the first failure waits for the first wait"),
        pytest.param(Retry(1.0, 60.0), 3, 4.0, id="each further one twice as long"),
        pytest.param(Retry(2.0, 60.0, factor=3.0), 3, 18.0, id="or by its own factor"),
        pytest.param(Retry(1.0, 60.0), 7, 60.0, id="never more than the longest"),
        pytest.param(Retry(1.0, 60.0), 10**9, 60.0, id="nor after a failure a second for thirty years"),
        pytest.param(Retry(90.0, 60.0), 1, 60.0, id="the longest holds for the first as well"),
        pytest.param(Retry(1.0, 60.0), 0, 1.0, id="what has not failed waits like what has failed once"),
    ],
)
def test_seconds(retry: Retry, failures: int, seconds: float) -> None:
    assert retry.seconds(failures) == seconds


@pytest.mark.parametrize(
    ("retry", "pauses"),
    [
        pytest.param(Retry(0.1, 2.0, factor=5.0, steps=3), [0.1, 0.5, 2.0], id="one before each further try"),
        pytest.param(Retry(0.1, 2.0), [], id="none where nothing is tried again at once"),
    ],
)
def test_pauses(retry: Retry, pauses: list[float]) -> None:
    assert list(retry.pauses()) == pytest.approx(pauses)
