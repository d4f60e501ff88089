"""The acts of a fault run: one seed gives one run, and of a failing one fewer acts can be found that still fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.fault_run.acts import KINDS, draw
from tests.e2e.fault_run.judges.judge import judges_of
from tests.e2e.fault_run.minimise import minimise
from tests.e2e.fault_run.record import Past, Record
from tests.e2e.fault_run.run import Settings


def test_a_seed_gives_the_same_acts_again_and_another_seed_others() -> None:
    assert draw(7, 50) == draw(7, 50)
    assert draw(7, 50) != draw(8, 50)


def test_a_longer_run_begins_as_a_shorter_one() -> None:
    assert draw(7, 50)[:20] == draw(7, 20)


def test_every_kind_of_act_is_drawn_and_none_lasts_longer_than_thirty_seconds() -> None:
    acts = [*draw(1, 2000), *draw(1, 2000, hand=1)]
    assert {act.name for act in acts} == KINDS.keys()
    assert max(act.seconds for act in acts) <= 30


def test_of_chosen_kinds_only_these_are_drawn() -> None:
    assert {act.name for act in draw(1, 200, only=["kill", "line"])} == {"kill"}
    assert {act.name for act in draw(1, 200, hand=1, only=["kill", "line"])} == {"line"}
    assert draw(1, 200, only=["line"]) == []


def test_the_two_hands_have_no_kind_and_no_number_in_common() -> None:
    one, other = draw(1, 500), draw(1, 500, hand=1)
    assert {act.name for act in one}.isdisjoint(act.name for act in other)
    assert {act.number for act in one}.isdisjoint(act.number for act in other)


def test_a_third_of_the_pauses_is_long() -> None:
    long = [act for act in draw(1, 3000) if act.pause >= 45]
    assert 900 < len(long) < 1100


def test_a_run_is_made_again_from_its_record(tmp_path: Path) -> None:
    """With the kinds, and the acts, that it had; also where the same seed draws others by now."""
    made = Settings(7, 60, kinds=["kill", "clock"], rounds=2)
    record = Record(tmp_path)
    record.note("settings", **made.to_record())
    acts = [draw(7, 9, hand=1, only=made.kinds)[2], draw(7, 9, only=made.kinds)[3]]
    for act in acts:
        record.note("faults", **act.to_dict(), text=str(act), began=0.0, ended=1.0, done=True)
    record.close()
    again = Settings.of(Past(tmp_path))
    assert again == replace(made, hostile=False, acts=sorted(acts, key=lambda act: act.number))
    assert again.drawn() == [[acts[1]], [acts[0]]]
    assert Past(tmp_path).settings["commit"]


def test_one_seed_of_some_has_a_hostile_tenant_and_any_can_have_one() -> None:
    assert 15 < sum(Settings(seed, 60).is_hostile for seed in range(100)) < 35
    assert Settings(7, 60, hostile=True).is_hostile


def test_the_judge_that_spoke_is_what_a_smaller_run_is_held_against() -> None:
    found = ["answers in time: first: filter took 6 s", "answers in time: second: ...", "enough was judged: no"]
    assert judges_of(found) == {"answers in time"}


@pytest.mark.parametrize(
    "needed", [{13}, {0, 19}, {2, 3, 17}, set(range(20))], ids=lambda needed: f"{len(needed)} are needed"
)
def test_a_failing_run_is_reduced_to_the_acts_that_it_needs(needed: set[int]) -> None:
    def fails(acts: Sequence[int]) -> bool:
        return needed <= set(acts)

    assert minimise(range(20), fails) == sorted(needed)
