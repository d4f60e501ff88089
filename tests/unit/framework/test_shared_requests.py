"""Pods that share their parts are summed up once, and one that differs in any of them by itself."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.client.shared_parts import SharedParts
from extender.framework import shared_requests
from extender.framework.pod_info import PodInfo
from extender.framework.shared_requests import requested_by

CONTAINER = {"name": "c", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
GIVEN = [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]


def pods(*values: dict[str, Any]) -> list[corev1.Pod]:
    """As an informer hands them out."""
    parts, made = SharedParts(), [convert(value, corev1.Pod) for value in values]
    for pod in made:
        parts.share(pod)
    return made


def pod(name: str, *, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [CONTAINER], **spec}, "status": status or {}}


def test_pods_of_one_template_have_one_sum() -> None:
    first, second = pods(pod("a"), pod("b", nodeName="n1"))
    assert PodInfo(first).requests is PodInfo(second).requests
    assert (requested_by(first).accounted.milli_cpu, requested_by(first).non_zero) == (2000, (2000, 1024**3))


@pytest.mark.parametrize(
    ("other", "milli_cpu"),
    [
        pytest.param(pod("b", containers=[CONTAINER, {"name": "more"}]), 2000, id="one more container"),
        pytest.param(pod("b", initContainers=[CONTAINER | {"restartPolicy": "Always"}]), 4000, id="a sidecar"),
        pytest.param(pod("b", overhead={"cpu": "1"}), 3000, id="overhead"),
        pytest.param(pod("b", resources={"requests": {"cpu": "5"}}), 5000, id="resources of the pod"),
        pytest.param(
            pod("b", status={"containerStatuses": GIVEN, "conditions": INFEASIBLE}), 1000, id="a resize that cannot be"
        ),
    ],
)
def test_a_pod_that_asks_for_something_else_has_its_own(other: dict[str, Any], milli_cpu: int) -> None:
    first, same, last = pods(pod("a", status={"containerStatuses": GIVEN}), pod("c"), other)
    assert (requested_by(first).accounted.milli_cpu, requested_by(same).accounted.milli_cpu) == (2000, 2000)
    assert requested_by(last).accounted.milli_cpu == milli_cpu
    assert requested_by(last) is not requested_by(first)


def test_the_sum_goes_with_the_last_pod_of_its_kind() -> None:
    """One pod may have thousands of containers, and other ones each time."""
    before = len(shared_requests._known)
    infos = [PodInfo(each) for each in pods(pod("a"), pod("b"))]
    assert [info.requests.milli_cpu for info in infos] == [2000, 2000]
    assert len(shared_requests._known) == before + 1
    infos.pop()
    assert len(shared_requests._known) == before + 1
    infos.pop()
    assert len(shared_requests._known) == before


def test_a_pod_holds_what_it_asks_for_whichever_of_it_was_asked_first() -> None:
    first, second = map(PodInfo, pods(pod("a"), pod("b")))
    assert first.non_zero_requests == (2000, 1024**3)
    assert second._requested is first._requested
