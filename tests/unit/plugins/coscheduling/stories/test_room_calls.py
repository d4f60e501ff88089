"""What a gang of three costs in calls, and how long the files of the room are: the bounds of docs/design/0061."""

from __future__ import annotations

import pytest

from tests.benchmark import room_calls


@pytest.mark.parametrize("gated", [True, False], ids=["gated", "plain"])
def test_a_member_costs_a_bounded_number_of_calls_and_its_plan_too(gated: bool) -> None:
    calls = room_calls.start_a_gang(gated=gated)
    assert calls.plans == 1
    assert calls.of_plan <= room_calls.MOST_FOR_THE_PLAN
    outside = (calls.total - calls.of_plan) / room_calls.MEMBERS
    assert outside <= room_calls.MOST_FOR_A_MEMBER["gated" if gated else "plain"]


def test_no_file_of_the_room_is_longer_than_can_be_held_in_mind() -> None:
    assert {
        path: count for path, count in room_calls.lines_of_files().items() if count > room_calls.MOST_LINES_OF_A_FILE
    } == {}
