"""Whether any pod of lower priority is on a node is known from counts."""

from __future__ import annotations

from extender.api import corev1
from extender.framework.preemption.priorities_on_nodes import PrioritiesOnNodes
from tests.objects import make_pod

BOUND = make_pod().name("a").uid("a").priority(1).node("n1").obj()


def test_priorities_on_nodes_follow_events_that_come_twice_or_late() -> None:
    known, waiting, bound = PrioritiesOnNodes(), make_pod().name("a").uid("a").priority(1).obj(), BOUND
    steps: list[tuple[corev1.Pod | None, corev1.Pod | None, bool]] = [
        (None, waiting, False),
        (waiting, bound, True),
        (waiting, bound, True),
        (bound, None, False),
        (bound, None, False),
    ]
    for old, new, below in steps:
        known.follow(old, new)
        assert known.any_below(5) == below
    known.follow(None, bound)
    assert not known.any_below(1), "of equal priority"
