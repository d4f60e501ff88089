"""What would make a gang fit: each answer is true, for a gang that is changed so is placed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from extender.framework.hypothetical import HypotheticalSnapshot, with_pods
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.report.relaxation import BUDGET_SECONDS, analyse
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion
from tests.objects import HOSTNAME
from tests.unit.plugins.coscheduling.planning import GANG, JUDGE, existing, gang, member, node, topology


def texts(
    nodes: Sequence[NodeInfo], members: Sequence[PodInfo], *, others: Sequence[tuple[str, PodInfo]] = (), **asked: Any
) -> list[str]:
    snapshot = HypotheticalSnapshot(nodes)
    request = planner.Request(members, len(members), **asked)
    question = PlanQuestion(request, with_pods(snapshot, others), snapshot, others=bool(others))
    return [each.text for each in analyse(question, len(members), JUDGE, lambda: 0.0).relaxations]


TWO = [node("n1", cpu=2, zone="a").info(), node("n2", cpu=1, zone="b").info()]


@pytest.mark.parametrize(
    ("nodes", "members", "asked", "found"),
    [
        pytest.param(TWO, gang(3, member()), {}, [], id="it fits: nothing is to be relaxed"),
        pytest.param(
            TWO,
            gang(5, member()),
            {},
            ["minMember 3 instead of 5", "1 more node with cpu 2, like n1"],
            id="fewer members, or a node more of the kind of which the fewest are needed",
        ),
        pytest.param(
            TWO,
            gang(3, member()),
            {"topology": topology(required="zone")},
            [
                "minMember 2 instead of 3",
                "without topology-required zone",
                "1 more node with cpu 2 in zone a, like n1",
            ],
            id="one zone is too small",
        ),
        pytest.param(
            [node("n1", cpu=2, zone="a", rack="r").info(), node("n2", cpu=1, zone="b", rack="r").info()],
            gang(3, member()),
            {"topology": topology(required="rack")},
            [
                "minMember 2 instead of 3",
                "without topology-required rack",
                "1 more node with cpu 2 in rack a/r, like n1",
            ],
            id="one rack is too small: another of that name is in another zone",
        ),
        pytest.param(
            TWO,
            gang(1, member().req({"nvidia.com/gpu": 8})),
            {},
            ["nodes with nvidia.com/gpu 8: no node of the cluster offers this resource"],
            id="no node has any of it",
        ),
        pytest.param(
            TWO,
            gang(1, member(cpu=3)),
            {},
            ["members with at most cpu 2 instead of 3: no node has more, however empty"],
            id="no node is large enough for one member",
        ),
        pytest.param(
            [node("n1", cpu=2).info()],
            gang(1, member()),
            {"excluded": frozenset({("m0", "n1")})},
            ["the places that kube-scheduler refused, tried again in some seconds", "1 more node with cpu 2, like n1"],
            id="a place was refused",
        ),
        pytest.param(
            [node("n1").info()],
            gang(2, member().pod_anti_affinity(HOSTNAME, GANG)),
            {},
            ["minMember 1 instead of 2", "1 more node with cpu 4, like n1"],
            id="members that look at each other",
        ),
    ],
)
def test_what_would_do(
    nodes: Sequence[NodeInfo], members: Sequence[PodInfo], asked: dict[str, Any], found: list[str]
) -> None:
    assert texts(nodes, members, **asked) == found


def test_places_of_others_once_they_are_free() -> None:
    promised = [("n1", existing("other", "n1", cpu=2).info())]
    assert (
        texts(TWO, gang(3, member()), others=promised)[0]
        == "the places that are promised to others, once they are free"
    )


def test_one_role_s_minimum_is_lowered_with_the_others_as_they_are() -> None:
    members = [*gang(1, member(), "master"), *gang(3, member(), "worker")]
    minima = [
        planner.Minimum(frozenset({"master0"}), 1, "role master", 1),
        planner.Minimum(frozenset({"worker0", "worker1", "worker2"}), 3, "role worker", 3),
    ]
    assert texts(TWO, members, minima=minima)[0] == "role worker 2 instead of 3"


def test_when_the_time_is_up_no_more_is_asked() -> None:
    ticks = iter([0.0, *[BUDGET_SECONDS] * 99])
    snapshot = HypotheticalSnapshot(TWO)
    question = PlanQuestion(planner.Request(gang(5, member()), 5), snapshot, snapshot)
    analysis = analyse(question, 5, JUDGE, lambda: next(ticks))
    assert analysis.verdict is not None
    assert analysis.relaxations == ()
