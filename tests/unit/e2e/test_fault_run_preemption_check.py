"""Whether the right pods went for more important ones: what passes, and that each needless victim is found."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.fault_run.budgets import KEPT, Budget
from tests.e2e.fault_run.drawn_configuration import DrawnConfiguration
from tests.e2e.fault_run.preemption_check import Before, Comer, needless
from tests.unit.e2e.test_fault_run_liveness import node, pod

NODES = [node("a", 4, "a", "r1"), node("b", 4, "b", "r1")]
BUDGETS = [Budget("default", "kept", KEPT), Budget("default", "g", {"gang": "g"})]


def kept(made: dict[str, Any], **labels: str) -> dict[str, Any]:
    metadata = made["metadata"]
    return {**made, "metadata": {**metadata, "labels": {**metadata["labels"], **(labels or KEPT)}}}


LONE_A, LONE_B = pod("la", 4, on="a"), pod("lb", 4, on="b")
KEPT_A = kept(pod("ka", 4, on="a"))
GANG_A, GANG_B = pod("ga", 4, "g", "a"), pod("gb", 4, "g", "b")
REST = pod("gz", 0, "g", "b")  # of the gang's two
SINGLE, GANG = Comer("vip", 4), Comer("vips", 4, 1, gang=True)


@pytest.mark.parametrize(
    ("comer", "pods", "victims", "complaint"),
    [
        pytest.param(SINGLE, [LONE_A, LONE_B], [], "", id="no pod went"),
        pytest.param(SINGLE, [LONE_A, LONE_B], ["la"], "", id="one that had to"),
        pytest.param(SINGLE, [LONE_A], ["la"], "though there was room", id="one for a pod that fits beside it"),
        pytest.param(
            Comer("vip", 5), [LONE_A, LONE_B], ["la"], "even with all others gone", id="one for a pod that fits nowhere"
        ),
        pytest.param(
            Comer("vips", 4, 2, gang=True, level="zone"),
            [LONE_A, LONE_B],
            ["la", "lb"],
            "even with all others gone",
            id="two for a gang that fits into no zone",
        ),
        pytest.param(SINGLE, [KEPT_A, LONE_B], ["ka"], "a budget protects", id="one that a budget protects"),
        pytest.param(SINGLE, [KEPT_A, LONE_B], ["lb"], "", id="the other, which no budget protects"),
        pytest.param(SINGLE, [KEPT_A, GANG_B, REST], ["gb"], "", id="a single pod spares budgets before gangs"),
        pytest.param(SINGLE, [LONE_A, GANG_B, REST], ["gb"], "breaks default/g", id="a gang beside a lone pod"),
        pytest.param(SINGLE, [LONE_A, GANG_B], ["gb"], "", id="a gang that had lost its quorum"),
        pytest.param(
            SINGLE,
            [pod("la", 4, on="a", priority=10), GANG_B, REST],
            ["gb"],
            "",
            id="a single pod spares important pods before gangs",
        ),
        pytest.param(SINGLE, [GANG_A, GANG_B], ["ga", "gb"], "", id="a gang where there is no other pod"),
        pytest.param(GANG, [KEPT_A, GANG_B, REST], ["gb"], "", id="a gang spares budgets before gangs"),
        pytest.param(GANG, [LONE_A, GANG_B, REST], ["gb"], "breaks default/g", id="a gang that breaks one beside a lone pod"),
        pytest.param(
            GANG,
            [pod("la", 4, on="a", priority=10), GANG_B, REST],
            ["gb"],
            "",
            id="a gang spares important pods before gangs",
        ),
        pytest.param(
            SINGLE,
            [LONE_A, kept(GANG_B, gang="g")],
            ["gb"],
            "a budget protects",
            id="a gang that a budget protects, beside a lone pod",
        ),
        pytest.param(
            SINGLE,
            [pod("la", 4, on="a", priority=20), LONE_B],
            ["lb"],
            "",
            id="an equal does not go",
        ),
    ],
)  # fmt: skip
def test_needless_victims(comer: Comer, pods: list[dict[str, Any]], victims: list[str], complaint: str) -> None:
    found = " ".join(needless(comer, Before(pods, NODES, {"default/g": 2}, BUDGETS), victims))
    assert complaint in found
    assert bool(found) == bool(complaint)


@pytest.mark.parametrize(
    ("settings", "comer", "pods", "victims", "complaint"),
    [
        pytest.param({"evictThrough": "eviction"}, GANG, [KEPT_A], ["ka"], "eviction has to keep", id="a kept pod"),
        pytest.param({"evictThrough": "eviction"}, SINGLE, [KEPT_A], ["ka"], "", id="kube-scheduler evicts it by itself"),
        pytest.param({"gangVictims": "surplusOnly"}, SINGLE, [GANG_A, GANG_B], ["ga"], "no gang may be broken", id="a gang"),
        pytest.param({"gangVictims": "surplusOnly"}, SINGLE, [GANG_A, GANG_B, REST], ["ga"], "", id="one too many of a gang"),
    ],
)  # fmt: skip
def test_what_the_configuration_forbids(
    settings: dict[str, Any], comer: Comer, pods: list[dict[str, Any]], victims: list[str], complaint: str
) -> None:
    before = Before(pods, NODES[: len(pods)], {"default/g": 2}, BUDGETS, DrawnConfiguration(settings))
    found = " ".join(needless(comer, before, victims))
    assert complaint in found
    assert bool(found) == bool(complaint)
