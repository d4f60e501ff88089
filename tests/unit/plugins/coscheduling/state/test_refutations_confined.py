"""To which nodes a member is confined by what kube-scheduler did not take, for how long, and what makes that void."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from extender.metrics import REGISTRY
from extender.plugins.coscheduling.state.refutations import ENOUGH_CANDIDATES, How, Refutations

NOWHERE = frozenset[str]()
N1, N2 = frozenset({"n1"}), frozenset({"n2"})
OFFERED = frozenset({"n1", "n2", "n3"})


@pytest.fixture
def refuted() -> Refutations:
    """n1 was refuted for p at 100 s, for two seconds; kube-scheduler had asked about n2 alone."""
    made = Refutations()
    made.add("p", "n1", How.NOT_OFFERED, 100.0)
    made.confine("p", "n1", N2, 7)
    return made


@pytest.mark.parametrize(
    ("now", "epoch", "confined"),
    [
        pytest.param(100.0, 7, {"p": N2}, id="from then on"),
        pytest.param(101.9, 7, {"p": N2}, id="for as long as the node is left out"),
        pytest.param(102.0, 7, {}, id="and no longer"),
        pytest.param(100.0, 8, {}, id="the cluster has changed since"),
    ],
)
def test_how_long_a_member_is_confined_to_the_nodes_that_it_was_offered(
    now: float, epoch: int, confined: dict[str, frozenset[str]], refuted: Refutations
) -> None:
    assert refuted.confined(now, epoch) == confined
    assert refuted.nowhere(now, epoch) == set(), "a node is left"


def test_a_member_that_stays_out_has_no_place_until_the_cluster_changes(refuted: Refutations) -> None:
    refuted.stays_out("q", 7)
    assert refuted.confined(100.0, 7) == {"p": N2, "q": NOWHERE}
    assert refuted.confined(math.nextafter(math.inf, 0), 7) == {"q": NOWHERE}
    assert (refuted.nowhere(100.0, 7), refuted.nowhere(100.0, 8)) == ({"q"}, set())


def test_a_member_that_sleeps_has_no_place_whatever_changes_until_it_comes(refuted: Refutations) -> None:
    refuted.sleeps("p", 7)
    assert refuted.nowhere(9999.0, 8) == {"p"}
    assert refuted.came("p", 8), "it was woken by what has changed"
    assert (refuted.nowhere(9999.0, 8), refuted.confined(100.0, 7)) == (set(), {"p": N2})


@pytest.mark.parametrize(
    ("noted", "news"),
    [
        pytest.param(lambda refuted: None, False, id="it was offered nodes"),
        pytest.param(lambda refuted: refuted.sleeps("p", 9), False, id="it slept, and nothing has changed since"),
        pytest.param(lambda refuted: refuted.sleeps("p", 8), True, id="it slept, and the cluster has changed"),
        pytest.param(lambda refuted: refuted.stays_out("p", 9), True, id="it had no place: a node passes after all"),
    ],
)
def test_whether_it_is_news_that_kube_scheduler_asks_about_a_member(
    noted: Callable[[Refutations], None], news: bool, refuted: Refutations
) -> None:
    noted(refuted)
    assert refuted.came("p", 9) is news
    assert refuted.came("p", 9) is False, "told once"
    assert refuted.nowhere(100.0, 9) == set()


@pytest.mark.parametrize(
    ("uid", "now", "epoch", "nodes"),
    [
        pytest.param("p", 100.0, 7, {"n2"}, id="those that it was offered then"),
        pytest.param("p", 100.0, 8, {"n2", "n3"}, id="after a change all but the one that was refuted"),
        pytest.param("p", 102.0, 7, OFFERED, id="all, once that time is over"),
        pytest.param("q", 100.0, 7, OFFERED, id="all, for another member"),
    ],
)
def test_which_of_the_offered_nodes_a_plan_may_give_a_member(
    uid: str, now: float, epoch: int, nodes: set[str], refuted: Refutations
) -> None:
    assert refuted.without(uid, OFFERED, now, epoch) == nodes


@pytest.mark.parametrize(
    "noted",
    [
        pytest.param(lambda refuted: refuted.sleeps("p", 7), id="it sleeps"),
        pytest.param(lambda refuted: refuted.stays_out("p", 7), id="it stays out"),
    ],
)
def test_a_member_without_a_place_may_be_given_no_offered_node(noted: Callable[[Refutations], None]) -> None:
    refuted = Refutations()
    assert refuted.without("p", OFFERED, 100.0, 7) is OFFERED, "nothing is noted: asked with each filter call"
    noted(refuted)
    assert refuted.without("p", OFFERED, 100.0, 7) == NOWHERE
    assert refuted.without("q", OFFERED, 100.0, 7) == OFFERED


# Candidates of preempt calls


def many(number: int) -> frozenset[str]:
    return frozenset(f"m{each}" for each in range(number))


def test_of_so_many_candidates_there_may_be_more_anywhere(refuted: Refutations) -> None:
    assert refuted.may_preempt("p", many(ENOUGH_CANDIDATES - 1))
    assert refuted.confined(100.0, 7, evicting=True) == {"p": N2 | many(ENOUGH_CANDIDATES - 1)}
    assert refuted.may_preempt("p", many(ENOUGH_CANDIDATES))
    assert refuted.confined(100.0, 7, evicting=True) == {}, "it may be anywhere"
    assert refuted.confined(100.0, 7) == {"p": N2}, "in a plan that evicts none it may not"
    assert not refuted.may_preempt("p", many(ENOUGH_CANDIDATES + 9)), "that says the same"


def test_a_member_without_candidates_is_confined_in_a_plan_that_evicts_pods_as_well(refuted: Refutations) -> None:
    refuted.sleeps("q", 7)
    refuted.may_preempt("p", N1)
    assert refuted.confined(100.0, 7, evicting=True) == {"p": N1 | N2, "q": NOWHERE}


def test_a_preempt_call_tells_that_a_filter_has_refused_a_member_since(refuted: Refutations) -> None:
    assert not refuted.was_refused("q")
    assert not refuted.may_preempt("q", N1), "it was kept from no node"
    assert (refuted.was_refused("q"), refuted.was_refused("p")) == (True, False)
    refuted.came("q", 7)
    assert not refuted.was_refused("q")


def test_members_that_are_alike_share_one_set_of_candidates(refuted: Refutations) -> None:
    """A gang of a thousand would keep a thousand sets of a hundred names."""
    for uid in ("p", "q"):
        refuted.may_preempt(uid, frozenset(["n8", "n9"]))
    assert refuted._candidates["p"] is refuted._candidates["q"]
    refuted.may_preempt("p", N1)
    assert refuted._candidates == {"p": N1, "q": frozenset(["n8", "n9"])}


# What is forgotten


def noted_of(refuted: Refutations, uid: str) -> None:
    refuted.add(uid, "n1", How.REFUSED, 100.0)
    refuted.confine(uid, "n1", N2, 7)
    refuted.may_preempt(uid, N1)


def test_what_is_noted_of_a_member_goes_with_it_and_no_other_s(refuted: Refutations) -> None:
    for uid in ("p", "q"):
        noted_of(refuted, uid)
    refuted.sleeps("q", 7)
    refuted.forget("q")
    assert (refuted.left_out(100.0), list(refuted.uids())) == (frozenset({("p", "n1")}), ["p"])
    assert refuted.confined(100.0, 7, evicting=True) == {"p": N1 | N2}
    assert (refuted.was_refused("q"), refuted.was_refused("p")) == (False, True)
    refuted.forget("unknown")


def test_once_the_gang_starts_all_of_it_is_forgotten(refuted: Refutations) -> None:
    noted_of(refuted, "p")
    refuted.sleeps("q", 7)
    refuted.clear()
    assert (refuted.left_out(100.0), refuted.times, list(refuted.uids())) == (frozenset(), 0, [])
    assert (refuted.confined(100.0, 7), refuted.was_refused("p")) == ({}, False)
    assert refuted.without("q", OFFERED, 100.0, 7) == OFFERED


def test_each_refutation_is_counted_by_how_it_was_seen() -> None:
    def counted() -> dict[str, float]:
        name = "gang_extender_plan_refuted_total"
        return {how: REGISTRY.get_sample_value(name, {"reason": how}) or 0.0 for how in How}

    before, refuted = counted(), Refutations()
    for how in (How.REFUSED, How.REFUSED, How.DID_NOT_COME):
        refuted.add("p", "n1", how, 100.0)
    assert {how: number - before[how] for how, number in counted().items()} == {
        How.REFUSED: 2,
        How.NOT_OFFERED: 0,
        How.DID_NOT_COME: 1,
    }
    assert refuted.times == 3
