"""Each namespace has its turn, and where there is no room it is the one with most that loses something."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from extender.client.fair_queue import FairQueue


def filled(items: Sequence[str], most: int | None = None) -> tuple[FairQueue[str], int]:
    """Items by their share's letter and a number; with how many were dropped."""
    queue: FairQueue[str] = FairQueue(most)
    return queue, sum(not queue.put(item[0], item) for item in items)


def taken(queue: FairQueue[str]) -> list[str]:
    return [queue.take() for _ in range(len(queue))]


@pytest.mark.parametrize(
    ("items", "most", "left", "dropped"),
    [
        pytest.param(["a1", "a2", "a3"], None, ["a1", "a2", "a3"], 0, id="one share: first come, first served"),
        pytest.param(["a1", "a2", "a3", "b1"], None, ["a1", "b1", "a2", "a3"], 0, id="another has its turn at once"),
        pytest.param(["a1", "b1", "a2", "c1", "b2"], None, ["a1", "b1", "c1", "a2", "b2"], 0, id="three in turn"),
        pytest.param(["a1", "a2", "a3"], 2, ["a1", "a2"], 1, id="full: the newest of the only share"),
        pytest.param(["a1", "a2", "b1"], 2, ["a1", "b1"], 1, id="full: the newest of the share that has most"),
        pytest.param(["a1", "b1", "b2", "c1"], 3, ["a1", "b1", "c1"], 1, id="full: whichever share that is"),
        pytest.param(["a1", "b1", "b2"], 2, ["a1", "b1"], 1, id="a share that would have most loses what it brings"),
        pytest.param(["a1", "b1", "c1"], 2, ["b1", "c1"], 1, id="of equals one gives way to a share that has nothing"),
    ],
)
def test_turns(items: Sequence[str], most: int | None, left: list[str], dropped: int) -> None:
    queue, lost = filled(items, most)
    assert (taken(queue), lost) == (left, dropped)


def test_a_share_that_was_served_and_comes_back_waits_behind_the_others() -> None:
    queue, _ = filled(["a1", "b1", "b2"])
    assert queue.take() == "a1"
    queue.put("a", "a2")
    assert taken(queue) == ["b1", "a2", "b2"]


def test_it_is_empty_in_the_end() -> None:
    queue, _ = filled(["a1", "b1"])
    taken(queue)
    assert (len(queue), queue.shares()) == (0, ())
    with pytest.raises(KeyError):
        queue.take()
    queue.put("a", "a2")
    queue.clear()
    assert len(queue) == 0
