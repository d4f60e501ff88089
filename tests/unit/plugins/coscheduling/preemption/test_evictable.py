"""Which pods may go for a preemptor: single ones, those that a gang can spare, and gangs whole."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from extender.framework.node_info import NodeInfo
from extender.plugins.coscheduling.dependencies import GangVictims
from extender.plugins.coscheduling.preemption.evictable import (
    Evictable,
    Kind,
    Rules,
    RunningGang,
    evictable_pods,
    with_their_gangs,
)
from tests.objects import PodBuilder, make_node, make_pod


def pod(name: str, priority: int = 0, on: str = "n1") -> PodBuilder:
    return make_pod().name(name).uid(name).node(on).priority(priority)


def gang(
    minimum: int, *pods: PodBuilder, minima: Mapping[str, int] | None = None, roles: Mapping[str, str] | None = None
) -> RunningGang:
    running = {builder.obj().uid: (builder.info(), builder.obj().node_name) for builder in pods}
    return RunningGang("default/g", minimum, running, minima or {}, roles or {})


def nodes(*pods: PodBuilder) -> list[NodeInfo]:
    return [make_node().name("n1").capacity(cpu=9, pods=99).info(*(builder.obj() for builder in pods))]


def kinds(found: list[Evictable]) -> dict[str, Kind]:
    return {each.uid: each.kind for each in found}


A, B, C = pod("a", 1), pod("b", 2), pod("c", 3)


@pytest.mark.parametrize(
    ("running", "victims", "found"),
    [
        pytest.param(
            None, GangVictims.WHOLE_OR_SURPLUS, {"a": Kind.LONE, "b": Kind.LONE, "c": Kind.LONE}, id="single pods"
        ),
        pytest.param(
            gang(2, A, B, C),
            GangVictims.WHOLE_OR_SURPLUS,
            {"a": Kind.SURPLUS, "b": Kind.BREAKING, "c": Kind.BREAKING},
            id="the least important member is to spare, the others go together",
        ),
        pytest.param(gang(2, A, B, C), GangVictims.SURPLUS_ONLY, {"a": Kind.SURPLUS}, id="gangs may not be broken"),
        pytest.param(
            gang(2, A, B, C),
            GangVictims.ANY,
            {"a": Kind.LONE, "b": Kind.LONE, "c": Kind.LONE},
            id="gangs are nothing special",
        ),
        pytest.param(
            gang(4, A, B, C),
            GangVictims.SURPLUS_ONLY,
            {"a": Kind.BREAKING, "b": Kind.BREAKING, "c": Kind.BREAKING},
            id="a fraction is broken already",
        ),
    ],
)
def test_which_pods_may_go(running: RunningGang | None, victims: GangVictims, found: dict[str, Kind]) -> None:
    gangs = [running] if running else []
    assert kinds(evictable_pods(nodes(A, B, C), gangs, Rules(10, victims))) == found


@pytest.mark.parametrize(
    "untouched",
    [
        pytest.param(pod("x").terminating(), id="going already"),
        pytest.param(pod("x").phase("Succeeded"), id="finished"),
        pytest.param(pod("protected"), id="protected by name"),
    ],
)
def test_a_gang_of_which_one_may_not_go_is_not_broken(untouched: PodBuilder) -> None:
    assert evictable_pods(nodes(A, untouched), [gang(2, A, untouched)], Rules(10, protected=["protected"])) == []
    assert kinds(evictable_pods(nodes(A, untouched), [gang(1, A, untouched)], Rules(10, protected=["protected"]))) == {
        "a": Kind.SURPLUS
    }


@pytest.mark.parametrize(
    ("started", "may"),
    [
        pytest.param("2026-01-01T00:00:00Z", True, id="it runs for long enough"),
        pytest.param("2026-06-01T00:00:00Z", False, id="it does not"),
        pytest.param("", False, id="it has not started"),
    ],
)
def test_a_pod_is_left_alone_until_it_has_run_for_a_while(started: str, may: bool) -> None:
    builder = pod("x").start_time(started) if started else pod("x")
    assert Rules(10, started_before=1.7750e9).may_go(builder.obj()) == may


def test_a_gang_is_whole_by_its_minimum_and_by_each_role_s() -> None:
    of = gang(2, A, B, C, minima={"master": 1}, roles={"a": "master"})
    assert (of.complete, of.to_spare) == (True, 1)
    assert not of.whole_with({"b", "c"}), "the master is missing"
    assert gang(4, A, B, C).to_spare == 0


def test_a_gang_that_goes_whole_counts_at_its_one_priority_and_a_spare_member_at_its_own() -> None:
    high = Evictable(C.info(), "n1", Kind.BREAKING, "default/g", 2)
    assert (high.priority, Evictable(A.info(), "n1", Kind.SURPLUS, "default/g", 2).priority) == (2, 1)
    assert Evictable(C.info(), "n1", Kind.LONE).priority == 3


def test_with_a_member_that_breaks_its_gang_the_rest_goes() -> None:
    found = evictable_pods(nodes(A, B, C), [gang(2, A, B, C)], Rules(10))
    by_uid = {each.uid: each for each in found}
    assert {each.uid for each in with_their_gangs([by_uid["b"]], found)} == {"a", "b", "c"}
    assert {each.uid for each in with_their_gangs([by_uid["a"]], found)} == {"a"}
