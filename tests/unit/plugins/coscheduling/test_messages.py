"""Which texts on a pod are taken for an extender's own: ours, another replica's, and those of versions before a restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from extender.plugins.coscheduling import messages

REFUSALS: list[tuple[Callable[..., str], tuple[Any, ...]]] = [
    (messages.not_enough_siblings, ("p", 1, 3)),
    (messages.gated_siblings, ("p",)),
    (messages.not_enough_of_role, ("p", "driver", 0, 1)),
    (messages.planned_elsewhere, ("rack",)),
    (messages.waiting_for_group, ("default/a",)),
    (messages.companion_waits, ("default/a", "it is gone")),
    (messages.refuted, (3,)),
    (messages.failed_recently, ("default/a",)),
    (messages.denied, ("default/a", 3.0, "no room")),
    (messages.resource_gap, (("cpu", "memory"),)),
    (messages.kept_free, (3,)),
]


@pytest.mark.parametrize(("text", "given"), REFUSALS)
def test_what_members_are_refused_with_is_ours(text: Callable[..., str], given: tuple[Any, ...]) -> None:
    assert messages.may_be_ours(f"0/2 nodes are available: 2 {text(*given)}.")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "pod with pgName: default/a last failed in 3s, deny: planned members did not come for their places",
            id="denied",
        ),
        pytest.param("2 the gang is being planned: its members are woken when it has a place", id="its plan is late"),
        pytest.param("2 planned node was not among the nodes that passed kube-scheduler's filters", id="another node"),
    ],
)
def test_texts_of_older_versions_are_ours_still(text: str) -> None:
    assert messages.may_be_ours(f"0/2 nodes are available: {text}.")


@pytest.mark.parametrize("text", ["Insufficient cpu", "node(s) had untolerated taint {gpu: true}", "Too many pods"])
def test_in_tree_reasons_are_not(text: str) -> None:
    assert not messages.may_be_ours(f"0/2 nodes are available: 2 {text}. preemption: 0/2 nodes are available.")


def test_a_refusal_has_the_same_text_in_whatever_order_its_parts_are_given() -> None:
    assert messages.resource_gap(["memory", "cpu"]) == messages.resource_gap(["cpu", "memory"])
    assert messages.gang_set_does_not_fit({"b", "a"}, "x") == messages.gang_set_does_not_fit(["a", "b"], "x")


@pytest.mark.parametrize(
    ("strangers", "text"),
    [
        pytest.param(0, "fewer pods exist than minMember of 3", id="all are ours"),
        pytest.param(
            2, "fewer pods exist than minMember of 3; not counted: 2 with another schedulerName", id="two are not"
        ),
    ],
)
def test_pods_of_other_schedulers_are_named_where_they_do_not_count(strangers: int, text: str) -> None:
    assert messages.waiting_for_members(3, strangers) == text


@pytest.mark.parametrize(("count", "pods"), [(1, "1 pod"), (2, "2 pods")])
def test_victims_are_counted_in_plain_english(count: int, pods: str) -> None:
    assert messages.evicts(count) == f"evicting {pods} of lower priority; the gang starts when their room is free"
