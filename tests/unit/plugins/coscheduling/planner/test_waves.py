"""Stories of waves: which members have to be in place before which, for kube-scheduler to accept each where it was planned."""

from __future__ import annotations

from itertools import permutations

import pytest

from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from tests.objects import HOSTNAME, ZONE, PodBuilder, selector
from tests.unit.plugins.coscheduling.planning import GANG, gang, member, node, plan, refused_in_turn


def zones(count: int, cpu: int = 2) -> list[NodeInfo]:
    return [node(f"n{i}", cpu, f"z{i}").info() for i in range(count)]


def waves_of(nodes: list[NodeInfo], members: list[PodInfo], needed: int | None = None) -> list[list[str]]:
    """In which kube-scheduler accepts every member, in any order of each wave."""
    answer = plan(nodes, members, needed)
    assert isinstance(answer, planner.Placement), answer
    for order in permutations(range(max(len(wave) for wave in answer.waves))):
        arranged = lambda wave, order=order: [wave[i] for i in order if i < len(wave)]  # noqa: E731
        assert refused_in_turn(nodes, members, answer, arranged) == ""
    return [sorted(wave) for wave in answer.waves]


TOGETHER = member().pod_affinity(ZONE, GANG)
WORKER = member().pod_affinity(ZONE, selector({"role": "master"}))
MASTER = member().label("role", "master")


@pytest.mark.parametrize(
    ("members", "waves"),
    [
        pytest.param(gang(4, member()), [["m0", "m1", "m2", "m3"]], id="members without terms come in any order"),
        pytest.param(
            [*gang(1, WORKER, "worker"), *gang(1, MASTER, "master")],
            [["master0"], ["worker0"]],
            id="a worker comes after its master",
        ),
        pytest.param(
            gang(2, TOGETHER), [["m0", "m1"]], id="of two that want to be together in one zone either may be first"
        ),
        pytest.param(
            gang(2, member().spread_constraint(1, ZONE, label_selector=GANG)),
            [["m0", "m1"]],
            id="two that spread over two zones come in any order",
        ),
        pytest.param(
            gang(4, member().spread_constraint(1, ZONE, label_selector=GANG)),
            [["m0", "m1"], ["m2", "m3"]],
            id="the second of a zone comes after the first of the other",
        ),
    ],
)
def test_waves(members: list[PodInfo], waves: list[list[str]]) -> None:
    assert waves_of(zones(2), members) == waves


@pytest.mark.parametrize("other", [member(2), member(2).host_port(80), member(2).pod_anti_affinity(HOSTNAME, GANG)])
def test_a_member_that_may_be_the_first_of_its_kind_comes_before_those_that_it_would_have_to_follow(
    other: PodBuilder,
) -> None:
    """The one that wants company finds none in its zone, and may go there as the first only."""
    nodes = [node("a", 1, "a").info(), node("b", 2, "b").info()]
    assert waves_of(nodes, [*gang(1, TOGETHER, "together"), *gang(1, other, "other")]) == [["together0"], ["other0"]]
