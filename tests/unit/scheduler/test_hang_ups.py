"""A timeout is told from the callers' hang-ups; a kube-scheduler that ends is none."""

from __future__ import annotations

import pytest

from extender.scheduler.hang_ups import HangUps

Ended = tuple[float, float, bool]
"""How long the call was held, when it ended, and whether the caller hung up."""


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        pytest.param([], None, id="no call"),
        pytest.param([(5, 10, True), (5.01, 12, True), (4.99, 14, True)], 4.99, id="after 5 s each, at three times"),
        pytest.param([(0.002, 1, True), (0.002, 2, True), (0.003, 4, True)], 0.003, id="after 2 ms each"),
        pytest.param([(5, 10, True), (5, 12, True)], None, id="two are no proof"),
        pytest.param([(5, 10, True), (5, 10.1, True), (5.1, 10.2, True)], None, id="all at once: kube-scheduler ended"),
        pytest.param([(1, 10, True), (3, 12, True), (9, 14, True)], None, id="after times of all kinds"),
        pytest.param(
            [(5, 10, True), (5, 12, True), (5, 14, True), (30, 40, False)], None, id="a call that was held for longer"
        ),
        pytest.param(
            [(5, 10, True), (5, 12, True), (5, 14, True), (4, 40, False)], 5, id="a shorter call denies nothing"
        ),
        pytest.param(
            [(5, 10, True), (5, 12, True), (5, 14, True), (7, 16, True)],
            5,
            id="one that was noticed late hides nothing",
        ),
        pytest.param(
            [*[(5, at, True) for at in (10, 12, 14)], *[(9, at, True) for at in (20, 22, 24)]],
            9,
            id="a timeout that was changed",
        ),
        pytest.param([(5, 1, True), (5, 3, True), (5, 14, True)], None, id="two of them were long ago"),
    ],
)
def test_the_timeout(ended: list[Ended], expected: float | None) -> None:
    hang_ups = HangUps()
    for held, at, hung_up in ended:
        hang_ups.ended(held, at, hung_up=hung_up)
    assert hang_ups.timeout(since=4.0 if ended[:1] == [(5, 1, True)] else 0.0) == expected
