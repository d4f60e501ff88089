"""`evaluate` beside the real kube-scheduler on scenarios of our own making: as the corpus', wider, and broken ones."""

from __future__ import annotations

import pytest

from tests.parity.corpus import Json, comparable, fresh, node_is_of_the_best
from tests.parity.random_clusters import scenarios
from tests.parity.random_pods import Breadth
from tests.parity.record_fresh import answered

FRESH = [pytest.param(s, e, id=f"{index}-{s['kind']}") for index, (s, e) in enumerate(fresh())]


@pytest.mark.parametrize(("scenario", "expected"), FRESH)
def test_answers_as_the_real_scheduler(scenario: Json, expected: Json) -> None:
    ours = answered(scenario)
    assert comparable(ours) == comparable(expected)
    if preemption := ours.get("preemption"):
        assert node_is_of_the_best(preemption)


@pytest.mark.parametrize("breadth", Breadth)
def test_the_same_seed_makes_the_same_scenarios(breadth: Breadth) -> None:
    assert scenarios(7, 20, breadth) == scenarios(7, 20, breadth)
