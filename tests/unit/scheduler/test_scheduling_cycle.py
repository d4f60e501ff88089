"""How a refusal is worded for kube-scheduler: one text, and not for every node of a large cluster."""

from __future__ import annotations

import pytest

from extender.framework.status import Code, Status, unresolvable
from extender.scheduler.scheduling_cycle import NAMED_IN_REFUSAL, refusal

NAMES = [f"n{number}" for number in range(1000)]


@pytest.mark.parametrize(
    ("offered", "named"),
    [
        pytest.param(NAMES[:1], 1, id="one node: it is named"),
        pytest.param(NAMES[:NAMED_IN_REFUSAL], NAMED_IN_REFUSAL, id="few nodes: all are named"),
        pytest.param(NAMES, NAMED_IN_REFUSAL, id="many: some are, the others are refused by being in no list"),
    ],
)
def test_a_refusal_has_one_text_and_lets_no_node_through(offered: list[str], named: int) -> None:
    answer = refusal(offered, unresolvable("gang waits"))
    assert not answer.node_names
    assert not answer.failed_nodes
    assert answer.failed_and_unresolvable_nodes == dict.fromkeys(offered[:named], "gang waits")


def test_an_error_is_not_worded_as_a_refusal() -> None:
    answer = refusal(NAMES, Status(Code.ERROR, ("broken",)))
    assert (answer.error, answer.failed_and_unresolvable_nodes) == ("broken", {})
