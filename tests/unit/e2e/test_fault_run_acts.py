"""The acts of a fault run: one seed gives one run, and of a failing one fewer acts can be found that still fail."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.e2e.fault_run.acts import KINDS, draw
from tests.e2e.fault_run.minimise import minimise
from tests.e2e.fault_run.run import Settings


def test_a_seed_gives_the_same_acts_again_and_another_seed_others() -> None:
    assert draw(7, 50) == draw(7, 50)
    assert draw(7, 50) != draw(8, 50)


def test_a_longer_run_begins_as_a_shorter_one() -> None:
    assert draw(7, 50)[:20] == draw(7, 20)


def test_every_kind_of_act_is_drawn_and_none_lasts_longer_than_thirty_seconds() -> None:
    acts = draw(1, 2000)
    assert {act.name for act in acts} == KINDS.keys()
    assert max(act.seconds for act in acts) <= 30


def test_of_chosen_kinds_only_these_are_drawn() -> None:
    assert {act.name for act in draw(1, 200, only=["kill", "line"])} == {"kill", "line"}


def test_chosen_acts_are_those_of_the_whole_run() -> None:
    assert Settings(7, 60, acts=[3, 11]).drawn() == [draw(7, 20)[3], draw(7, 20)[11]]
    assert Settings(7, 60, acts=[]).drawn() == []


@pytest.mark.parametrize(
    "needed", [{13}, {0, 19}, {2, 3, 17}, set(range(20))], ids=lambda needed: f"{len(needed)} are needed"
)
def test_a_failing_run_is_reduced_to_the_acts_that_it_needs(needed: set[int]) -> None:
    def fails(acts: Sequence[int]) -> bool:
        return needed <= set(acts)

    assert minimise(range(20), fails) == sorted(needed)
