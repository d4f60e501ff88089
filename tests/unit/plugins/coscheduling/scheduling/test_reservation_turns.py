"""Gangs have nodes kept free for them in turn, with a pause between two of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.plugins.coscheduling.scheduling.reservation_turns import PAUSE_SECONDS
from tests.unit.plugins.coscheduling.conftest import World, pod
from tests.unit.plugins.coscheduling.short_of_room import Story
from tests.unit.plugins.coscheduling.single import refusals

Make = Callable[..., World]


@pytest.fixture
def story(world: Make) -> Story:
    return Story(world)


def test_after_its_time_the_next_has_its_turn_and_it_comes_round_again(story: Story) -> None:
    story.gang("a", day=1)
    story.gang("b", day=2)
    story.after(300)
    assert story.owner == "a"
    assert refusals(story.w, pod("s"))
    story.after(599)
    assert story.owner == "a"
    assert story.after(1) is None
    story.after(PAUSE_SECONDS)
    assert story.owner == "b"
    assert story.w.plugin.rounds.reservations.turns._turns == {"default/a": 1, "default/b": 1}
    story.after(600)
    story.after(PAUSE_SECONDS)
    assert story.owner == "a"
    assert story.rings == [["s"]], "each pod that it kept out is woken, and was not refused again"


def test_between_two_turns_a_pod_that_was_kept_out_has_the_room(story: Story) -> None:
    """A few gangs that never fit would keep it idle for good."""
    story.gang("a", day=1)
    story.gang("b", day=2)
    story.after(300)
    single = pod("s", cpu="1")
    assert refusals(story.w, single)
    story.after(600)
    story.after(1)
    assert story.rings == [["s"]]
    story.after(PAUSE_SECONDS - 2)
    assert refusals(story.w, single) == {}


def test_a_gang_alone_in_line_waits_between_two_turns(story: Story) -> None:
    story.gang("a")
    story.after(300)
    assert story.after(600) is None
    assert story.after(299) is None
    assert story.after(1) is not None
