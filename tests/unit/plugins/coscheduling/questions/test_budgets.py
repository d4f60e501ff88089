"""Budgets at which a drain would wait, by the pods that are on the node."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1, policyv1
from extender.api.codec import convert
from extender.plugins.coscheduling.questions.budgets import used_up
from tests.objects import PodBuilder, make_pod


def pod(name: str = "a", namespace: str = "team-a") -> PodBuilder:
    return make_pod().name(name).uid(name).namespace(namespace).label("app", "web").phase("Running")


def budget(allowed: int, namespace: str = "team-a", name: str = "web", **status: Any) -> policyv1.PodDisruptionBudget:
    raw = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed, **status},
    }
    return convert(raw, policyv1.PodDisruptionBudget)


@pytest.mark.parametrize(
    ("pods", "budgets", "told"),
    [
        pytest.param(
            [pod("b"), pod("a")], [budget(1)], [("team-a/web", 1, ("team-a/a", "team-a/b"))], id="allows too few"
        ),
        pytest.param([pod("b"), pod("a")], [budget(2)], [], id="allows enough"),
        pytest.param([pod()], [budget(-1)], [("team-a/web", 0, ("team-a/a",))], id="allows less than none"),
        pytest.param([pod()], [budget(0, "team-b")], [], id="of another namespace"),
        pytest.param(
            [make_pod().name("a").namespace("team-a").label("app", "db")], [budget(0)], [], id="of other pods"
        ),
        pytest.param(
            [pod()], [budget(0, disruptedPods={"a": "2026-01-01T00:00:00Z"})], [], id="the pod is counted already"
        ),
        pytest.param([pod().phase("Pending")], [budget(0)], [], id="a pod that does not run yet goes"),
        pytest.param([pod().phase("Succeeded")], [budget(0)], [], id="so does one that has ended"),
        pytest.param([pod().terminating()], [budget(0)], [], id="and one that is going"),
        pytest.param([pod().owner("DaemonSet", "d")], [budget(0)], [], id="a DaemonSet's stays on the node"),
        pytest.param([pod().owner("Node", "n0", "v1")], [budget(0)], [], id="so does a static one"),
        pytest.param(
            [pod()],
            [budget(0, name="z"), budget(0, name="b")],
            [("team-a/b", 0, ("team-a/a",)), ("team-a/z", 0, ("team-a/a",))],
            id="several by their names",
        ),
    ],
)
def test_which_budgets_are_told(
    pods: list[PodBuilder], budgets: list[policyv1.PodDisruptionBudget], told: list[tuple[str, int, tuple[str, ...]]]
) -> None:
    on_the_node: list[corev1.Pod] = [each.obj() for each in pods]
    assert [(each.budget, each.allowed, each.pods) for each in used_up(on_the_node, budgets)] == told
