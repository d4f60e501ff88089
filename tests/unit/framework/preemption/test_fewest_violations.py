"""Which victims violate a budget, by which of them uses it up first; and the set that violates the fewest."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from extender.framework.preemption.fewest_violations import Budgets, FewestViolations
from extender.plugins.coscheduling.preemption.evictable import Evictable, Kind
from tests.objects import make_pdb, make_pod

APP = {"app": "web"}


def victim(name: str, priority: int = 0, *, protected: bool = True) -> Evictable:
    made = make_pod().name(name).uid(name).node("n1").priority(priority)
    return Evictable((made.labels(APP) if protected else made).info(), "n1", Kind.LONE)


LOW, MIDDLE, HIGH, FREE = victim("low"), victim("middle", 5), victim("high", 9), victim("free", 3, protected=False)
ALL = [HIGH, LOW, FREE, MIDDLE]


def budgets(allowed: int) -> Budgets:
    return Budgets([make_pdb().name("web").match(APP).disruptions_allowed(allowed).obj()], ALL)


@pytest.mark.parametrize(
    ("allowed", "important_first", "violating"),
    [
        pytest.param(3, False, set(), id="all are allowed"),
        pytest.param(1, False, {"middle", "high"}, id="the least important uses it up"),
        pytest.param(1, True, {"low", "middle"}, id="as kube-scheduler has it for one node: the most important does"),
        pytest.param(0, False, {"low", "middle", "high"}, id="none is allowed"),
    ],
)
def test_beyond_what_a_budget_allows(allowed: int, important_first: bool, violating: set[str]) -> None:
    assert budgets(allowed).violating(ALL, important_first=important_first) == violating


def test_without_budgets_nothing_is_violated() -> None:
    assert Budgets([], ALL).violating(ALL) == set()


def fewest(needs: Collection[str], at_most: int = 3, *, out_of_time: bool = False) -> list[str] | None:
    search = FewestViolations(
        ALL,
        budgets(0),
        lambda gone: set(needs) <= {each.uid for each in gone},
        lambda: out_of_time,
    )
    found = search.allowed(at_most)
    return None if found is None else sorted(each.uid for each in found)


@pytest.mark.parametrize(
    ("needs", "at_most", "found"),
    [
        pytest.param({"middle"}, 3, ["free", "middle"], id="one protected pod, and all that no budget protects"),
        pytest.param({"low", "high"}, 3, ["free", "high", "low"], id="two have to go"),
        pytest.param({"low", "high"}, 1, None, id="more than may"),
        pytest.param({"elsewhere"}, 3, None, id="no set helps"),
    ],
)
def test_of_protected_pods_no_more_go_than_it_takes(needs: set[str], at_most: int, found: list[str] | None) -> None:
    assert fewest(needs, at_most) == found


def test_unprotected_pods_above_the_priority_that_is_needed_are_spared() -> None:
    assert fewest({"low"}) == ["low"], "the free one has a higher priority, and is not needed"


def test_when_the_time_is_up_nothing_is_found() -> None:
    assert fewest({"low"}, out_of_time=True) is None
