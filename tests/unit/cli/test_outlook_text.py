"""What would become of gangs, as people read it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from extender.cli import outlook_text
from extender.cli.explain_text import LABEL_WIDTH, preemption_lines
from extender.plugins.coscheduling.report.gang_status import PreemptionView, Shortfall, Victim
from extender.plugins.coscheduling.report.outlook import (
    DrainedGang,
    DrainOutlook,
    GangOutlook,
    Place,
    PodStatus,
    UsedUpBudget,
    WhatIf,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def outlook(**more: object) -> GangOutlook:
    given = {"groups": ("a/g",), "min_member": 2, "members": 2, "needed": 2, "priority": 0, "fits": True, **more}
    return GangOutlook(**given)  # type: ignore[arg-type]


def places(count: int, node: str = "n{}") -> tuple[Place, ...]:
    return tuple(Place(f"p-{number}", node.format(number)) for number in range(count))


@pytest.mark.parametrize(
    ("gang", "line"),
    [
        pytest.param(outlook(), "a/g: fits now", id="it fits"),
        pytest.param(
            outlook(groups=("a/g", "a/h"), fits=False), "a/g and a/h: does not fit", id="two that start together"
        ),
        pytest.param(outlook(ahead=1), "  in line      behind one that waits", id="one before it"),
        pytest.param(outlook(ahead=7), "  in line      behind 7 that wait", id="several before it"),
        pytest.param(outlook(domain="r1"), "  within       r1", id="where all of it goes"),
        pytest.param(outlook(notes=("not so",)), "  note         not so", id="what is taken for granted"),
        pytest.param(
            outlook(fits=False, reserved_for=tuple(f"a/{n}" for n in range(10))),
            "               and 2 more",
            id="holders",
        ),
        pytest.param(
            outlook(fits=False, preemption=PreemptionView(why_not="no")),
            "  no eviction  no",
            id="why no pod is evicted",
        ),
        pytest.param(
            outlook(fits=False, places_then=places(1)),
            "where it would go once those have gone:",
            id="after an eviction",
        ),
        pytest.param(
            outlook(places=places(10, "n")),
            "n      10      p-0, p-1, p-2, p-3, p-4, p-5, p-6, p-7 ...",
            id="many on a node",
        ),
        pytest.param(outlook(places=places(41)), "... and 1 more: -o wide has all", id="many nodes"),
        pytest.param(outlook(reason="a\x1b[2Jb"), r"  reason       a\x1b[2Jb", id="nothing that a terminal obeys"),
    ],
)
def test_what_if(gang: GangOutlook, line: str) -> None:
    assert line in list(outlook_text.of_what_if(WhatIf((gang,))))


@pytest.mark.parametrize(
    "view",
    [
        PreemptionView((Victim("a/p", "n", 0),), under_way=True),
        PreemptionView((Victim("a/p", "n", 0),)),
        PreemptionView((Victim("a/p", "n", 0),), why_not="no"),
        PreemptionView(why_not="no"),
    ],
    ids=["under way", "would", "would, but", "none"],
)
def test_no_label_runs_into_its_text(view: PreemptionView) -> None:
    assert all(len(label) <= LABEL_WIDTH for label, _ in preemption_lines(view))


def test_wide_leaves_nothing_out() -> None:
    many, pods = places(41), tuple(f"a/p-{number}" for number in range(11))
    victims = PreemptionView(tuple(Victim(pod, "n", 0) for pod in pods))
    gang = outlook(places=many, preemption=victims, reserved_for=pods)
    on_one = outlook(places=places(41, "n"))
    drain = DrainOutlook(
        "n", (drained(places=many), drained(here=(), promised=pods)), budgets=(UsedUpBudget("a/b", 0, pods),)
    )
    for wide, whole in ((False, 0), (True, 1)):
        text = "\n".join(
            [
                *outlook_text.of_what_if(WhatIf((gang, on_one)), wide=wide),
                *outlook_text.of_drain(drain, wide=wide),
            ]
        )
        assert ("..." in text, "more" in text) == (not whole, not whole)
        assert text.count("p-40") == 2 * whole
        assert text.count("a/p-10") == 4 * whole


def test_nodes_come_in_their_natural_order() -> None:
    lines = list(outlook_text.of_what_if(WhatIf((outlook(places=places(11)),))))
    assert [line.split()[0] for line in lines[-11:]] == [f"n{number}" for number in range(11)]


def test_a_replica_that_stands_by_says_so() -> None:
    assert any("does not lead" in line for line in outlook_text.of_what_if(WhatIf((outlook(),), standby=True)))
    assert any("does not lead" in line for line in outlook_text.of_drain(DrainOutlook("n", (), standby=True)))


def drained(**more: object) -> DrainedGang:
    given = {"group": "a/g", "min_member": 2, "here": ("p-0",), "left": 1, "below": True, "fits": True, **more}
    return DrainedGang(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gang", "row"),
    [
        pytest.param(drained(places=(Place("p-0", "n1"),)), ["1", "1/2", "below", "1 to n1"], id="to one node"),
        pytest.param(
            drained(here=("p-0", "p-1", "p-2"), places=(Place("p-0", "n2"), Place("p-1", "n10")), below=False),
            ["3", "1/2", "whole", "1 to n2, 1 to n10, 1 nowhere"],
            id="some of them",
        ),
        pytest.param(
            drained(fits=False, reason="Insufficient cpu", shortfall=Shortfall(0, 1)),
            ["1", "1/2", "below", "nowhere: Insufficient cpu: 0 of 1 find a place"],
            id="nowhere",
        ),
        pytest.param(
            drained(fits=False, asked=False), ["1", "1/2", "below", "not asked: no time was left"], id="no time"
        ),
        pytest.param(
            drained(fits=False, min_member=0),
            ["1", "1/-", "below", "nowhere: it is not known what the group asks for"],
            id="a group without an object",
        ),
        pytest.param(
            drained(here=(), below=False, left=0, promised=("p-0", "p-1")),
            ["0", "0/2", "not started", "planned anew: p-0, p-1"],
            id="members that are to come there",
        ),
    ],
)
def test_drain(gang: DrainedGang, row: list[str]) -> None:
    last = list(outlook_text.of_drain(DrainOutlook("n0", (gang,))))[-1]
    cells = [each.strip() for each in last.split("   ") if each.strip()]
    assert cells == ["a/g", *row]


def test_what_else_is_on_the_node() -> None:
    lines = list(outlook_text.of_drain(DrainOutlook("n0", (drained(),), others=1, unschedulable=True)))
    assert lines[:2] == [
        "node n0, which is cordoned: 1 gang on it, 1 would fall below minMember",
        "beside them 1 pod of no gang",
    ]


def test_budgets_at_which_a_drain_waits() -> None:
    pods = tuple(f"a/p-{number}" for number in range(10))
    lines = list(outlook_text.of_drain(DrainOutlook("n0", (), budgets=(UsedUpBudget("a/web", 1, pods),))))
    shown = ", ".join(pods[:8])
    assert lines[1:] == [f"kubectl drain would wait: budget a/web allows 1 of 10 evictions: {shown} ..."]


@pytest.mark.parametrize(
    ("pod", "lines"),
    [
        pytest.param(
            PodStatus("a/p", "s", node="n1", phase="Running", message="old"),
            ["pod a/p: Running, on n1, of scheduler s", "  it is of no gang"],
            id="one that runs",
        ),
        pytest.param(
            PodStatus("a/p", "s", message="0/3 nodes"),
            ["pod a/p: Pending, on no node, of scheduler s", "  it is of no gang", "  message      0/3 nodes"],
            id="one that waits",
        ),
        pytest.param(
            PodStatus("a/p", "s", group="a/g"),
            ["pod a/p: Pending, on no node, of scheduler s"],
            id="a gang not known yet",
        ),
    ],
)
def test_why(pod: PodStatus, lines: list[str]) -> None:
    assert list(outlook_text.of_pod(pod, NOW)) == lines
